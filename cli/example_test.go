package cli_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goweaver/weaver/cli"
)

// A custom program becomes the whole command with cli.Main(cli.App{…}). Run does the same for tests and returns the
// exit code.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "weaver")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := "sqlite:" + filepath.Join(dir, "app.db")
	acme := func(stdout io.Writer, args ...string) int {
		args = append([]string{"--store", file}, args...)
		return cli.Run(context.Background(), cli.App{Name: "acme"}, args, strings.NewReader(""), stdout, os.Stdout)
	}

	fmt.Println(acme(io.Discard, "migrate", "up"))
	fmt.Println(acme(os.Stdout, "queue", "pause", "billing", "--force-unknown-queue", "--by", "ops", "--reason", "the bank is down"))
	fmt.Println(acme(os.Stdout, "queue", "resume", "billing"))
	fmt.Println(acme(os.Stdout, "task", "ls", "--state", "done"))
	// Output:
	// 0
	// Queue "billing" is paused: its tasks are not started; running ones go on.
	// 0
	// Queue "billing" runs again.
	// 0
	// acme: --state "done": unknown state (did you mean succeeded?); the states are pending, ready, running, succeeded, failed, cancelled, blocked
	// 2
}
