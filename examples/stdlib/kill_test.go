package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be the program: the kill test starts it as
// processes of their own.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

const asProgram = "STDLIB_TEST_AS_PROGRAM"

func program(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append(args, "--dir", dir)...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// realTree runs on packages of the toolchain that runs this test.
var realTree = []string{"--limit", "60", "--pace", "60ms", "--nap", "1s"}

func TestKilledAtFiveMoments(t *testing.T) {
	t.Parallel()
	calm, killed := filepath.Join(t.TempDir(), "calm"), filepath.Join(t.TempDir(), "killed")
	if out, err := program(t, calm, realTree...).CombinedOutput(); err != nil {
		t.Fatalf("without kills: %v\n%s", err, out)
	}

	for i, moment := range []string{
		`^pid `,                  // the job is stored, and nothing has begun
		`^the first task runs`,   // the first steps run
		`^retry: flaky`,          // a failure was recorded
		`^ ?[4-9]0 %`,            // in the middle
		`^report: everything is`, // the outputs are being joined
	} {
		killAt(t, killed, moment, i > 0)
	}
	out, err := program(t, killed, realTree...).CombinedOutput()
	if err != nil {
		t.Fatalf("after the kills: %v\n%s", err, out)
	}
	if !bytes.Contains(out, []byte("continuing job")) {
		t.Errorf("the last run did not continue:\n%s", out)
	}

	for _, name := range []string{reportMD, reportCSV} {
		want := config{dir: calm}.read(t, name)
		if got := (config{dir: killed}).read(t, name); got != want {
			t.Errorf("%s differs after kills:\n%s\nwithout:\n%s", name, got, want)
		}
	}
	out, err = program(t, killed, "verify").CombinedOutput()
	if err != nil {
		t.Errorf("verify: %v", err)
	}
	t.Logf("verify says:\n%s", out)
}

// killAt starts the program and kills it as soon as it prints a line that
// matches. It measures how long the program took to run a task.
func killAt(t *testing.T, dir, moment string, continues bool) {
	t.Helper()
	cmd := program(t, dir, realTree...)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	at := regexp.MustCompile(moment)
	var said strings.Builder
	reached := false
	lines := bufio.NewScanner(pipe)
	for !reached && lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "the first task runs") {
			took := time.Since(begun)
			t.Logf("to be killed at %-25s a task runs %s after the start", moment, took.Round(time.Millisecond))
			if took > 10*time.Second {
				t.Errorf("continuing took %s", took)
			}
		}
		reached = at.MatchString(lines.Text())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Errorf("kill at %s: %v", moment, err)
	}
	_ = cmd.Wait() // it was killed
	if !reached {
		t.Fatalf("it ended before %s:\n%s%s", moment, &said, &stderr)
	}
	if continues && !strings.Contains(said.String(), "continuing job") {
		t.Errorf("it did not continue, but said:\n%s", &said)
	}
	if strings.Contains(said.String(), "succeeded: starting a new one") {
		t.Errorf("the run before had finished already: this one said\n%s", &said)
	}
}
