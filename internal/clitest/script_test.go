package clitest_test

import (
	"errors"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/goweaver/weaver/cli"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"weaver": func() { cli.Main(cli.App{}) },
		"acme":   func() { cli.Main(cli.App{Name: "acme", Version: "v1.2.3"}) },
	})
}

func TestSessions(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fails": fails,
			"seed":  seed,
			"sql":   runSQL,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("TZ", "UTC")
			env.Setenv("USER", "tester")
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else each of the many programs ends a second late
			return nil
		},
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
	})
}

// fails runs a program that must end with an exit code:
//
//	fails 2 weaver task ls --limit 0
func fails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fails CODE PROGRAM ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case err == nil:
		ts.Fatalf("it ended well, want exit code %d", want)
	case !errors.As(err, &exit):
		ts.Fatalf("run %s: %v", args[1], err)
	case exit.ExitCode() != want:
		ts.Fatalf("the exit code is %d, want %d", exit.ExitCode(), want)
	}
}
