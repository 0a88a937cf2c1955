package builtin_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/goweaver/weaver/builtin"
)

// helperEnv makes this test binary a helper process.
const helperEnv = "BUILTIN_TEST_HELPER"

// helpers are commands that a shell cannot replace, and a worker to be killed.
var helpers = map[string]func(arg string) error{
	"write": helpWrite,
}

// asHelper returns the input that runs a helper.
func asHelper(name, arg string) builtin.RunInput {
	return builtin.RunInput{Argv: []string{os.Args[0]}, Env: map[string]string{helperEnv: name, helperEnv + "_ARG": arg}}
}

// testGrace is the time for a cancelled command to end in these tests.
const testGrace = 2 * time.Second

func TestMain(m *testing.M) {
	name := os.Getenv(helperEnv)
	if name == "" {
		builtin.SetCancelGrace(testGrace)
		os.Exit(m.Run())
	}
	if err := helpers[name](os.Getenv(helperEnv + "_ARG")); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

// helpWrite writes the given number of bytes, in lines of 100.
func helpWrite(arg string) error {
	left, err := strconv.Atoi(arg)
	if err != nil {
		return err
	}
	lines := bytes.Repeat(append(bytes.Repeat([]byte{'a'}, 99), '\n'), 655)
	for left > 0 {
		n, err := os.Stdout.Write(lines[:min(left, len(lines))])
		if err != nil {
			return err
		}
		left -= n
	}
	return nil
}
