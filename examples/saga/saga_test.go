package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain makes the test binary run as the program, which the tests start and kill.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const asProgram = "SAGA_TEST_AS_PROGRAM"

// play runs the program and kills it at its n-th line about a partner, or runs it to its end if it prints fewer. It
// returns whether the program came to its end, and its output.
func play(t *testing.T, dir string, n int, args ...string) (ended bool, said string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append(args, "--dir", dir, "--late", "20ms")...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		said += lines.Text() + "\n"
		if strings.HasPrefix(lines.Text(), "pid ") {
			continue
		}
		if n--; n == 0 {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait() // it was killed, or fails as its order does
	return n > 0, said + errs.String()
}

// stands returns the partners' effects that were not undone.
func stands(t *testing.T, dir string) (list string) {
	t.Helper()
	done, err := filepath.Glob(filepath.Join(dir, "*.done"))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range done {
		if _, err := os.Stat(strings.TrimSuffix(at, "done") + "void"); err != nil {
			words := strings.Fields(strings.TrimSuffix(filepath.Base(at), ".done"))
			list += words[0] + " " + words[2] + "\n"
		}
	}
	return list
}

// A failed order leaves no effects, wherever the program is killed, and a retried order is charged and reserved once.
func TestKilled(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 6; n++ {
		t.Run(fmt.Sprint("after ", n), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			ended, said := play(t, dir, n, "--order", "7", "--closed")
			for tries := 0; !ended && tries < 10; tries++ {
				more := ""
				ended, more = play(t, dir, 100, "--order", "7", "--closed")
				said += more
			}
			if !strings.Contains(said, "the warehouse is closed") || strings.Count(said, "mail: ") > 2 || stands(t, dir) != "" {
				t.Fatalf("what stands: %q, of\n%s", stands(t, dir), said)
			}
			ended, said = play(t, dir, n, "--order", "7", "--retry")
			for tries := 0; !ended && tries < 10; tries++ {
				more := ""
				ended, more = play(t, dir, 100, "--order", "7")
				said += more
			}
			if got := stands(t, dir); !strings.Contains(said, "bought: receipt of order 7") || got != "payment charge#1\nwarehouse reserve#1\n" {
				t.Errorf("what stands: %q, of\n%s", got, said)
			}
		})
	}
}
