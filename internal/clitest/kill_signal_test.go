package clitest_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A worker is killed while a task waits for a person and while its children run; the next worker continues. No
// recorded step runs again.
func TestSignalAfterAKill(t *testing.T) {
	t.Parallel()
	dir, acme := t.TempDir(), filepath.Join(filepath.Dir(program(t)), "acme")
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, acme)
	}
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		p := startProgram(t, dir, acme, args...)
		if code := p.end(); code != 0 {
			t.Fatalf("acme %v: exit code %d:\n%s%s", args, code, p.stdout.String(), p.stderr.String())
		}
		return p.stdout.String()
	}
	kill := func(at string) {
		t.Helper()
		p := startProgram(t, dir, acme, "worker")
		p.await(at)
		p.signal(syscall.SIGKILL)
		p.end()
	}
	run("migrate", "up")
	run("submit", "acme.demo.ship.v1", `"v7"`)
	kill("waits for a signal")
	id := taskID(t, run("task", "ls", "--type", "acme.demo.ship.v1", "-o", "json"))
	if why := run("why", id); !strings.Contains(why, `It waits for the signal "approved" in "manager"`) {
		t.Errorf("why:\n%s", why)
	}
	run("task", "signal", id, "approved", `"ann"`)
	kill("waits for its children")
	run("worker", "--until-idle")
	if shown := run("task", "show", id); !strings.Contains(shown, `"v7 approved by ann: [hello 1 hello 2 hello 3]"`) {
		t.Errorf("task show:\n%s", shown)
	}
}

// taskID returns the ID of the only task in a list.
func taskID(t *testing.T, list string) string {
	t.Helper()
	_, rest, found := strings.Cut(list, `"id": "`)
	id, rest, _ := strings.Cut(rest, `"`)
	if !found || strings.Contains(rest, `"id": "`) {
		t.Fatalf("not one task:\n%s", list)
	}
	return id
}
