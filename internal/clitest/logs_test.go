//go:build unix

package clitest_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// gated is a pipeline whose second task writes its last line when a file appears.
const gated = `name: gated
tasks:
  before: {run: "echo ready"}
  slow: {run: "printf 'first\\nhal'; read -r go <gate; printf 'f\\nattempt %s' $WEAVER_ATTEMPT", needs: [before]}
  after: {run: "echo last", needs: [slow]}
`

// gatedRun starts a run of gated in a new folder, and returns after the first output of its second task.
func gatedRun(t *testing.T) (dir, id string, run *process) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "gated.yaml"), gated)
	if err := syscall.Mkfifo(filepath.Join(dir, "gate"), 0o600); err != nil {
		t.Fatal(err)
	}
	run = start(t, dir, "run", "-o", "json", "gated.yaml")
	run.await(`"data":"first`)
	return dir, job(t, run.stdout.String()), run
}

// openGate lets the task of gatedRun continue.
func openGate(t *testing.T, dir string) {
	t.Helper()
	gate, err := os.OpenFile(filepath.Join(dir, "gate"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gate.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	if err := gate.Close(); err != nil {
		t.Fatal(err)
	}
}

// logs -f prints output while it is written, and ends with the job or task.
func TestLogsFollow(t *testing.T) {
	t.Parallel()
	dir, id, run := gatedRun(t)
	ofJob := start(t, dir, "logs", "-f", id)
	ofTask := start(t, dir, "logs", "-f", id+"/slow")
	ofNext := start(t, dir, "logs", "-f", id+"/after") // of a task that has not begun
	ofJob.await("slow| first")
	ofTask.await("first")
	if now := start(t, dir, "logs", id); now.end() != 0 || now.stdout.String() != "before| ready\nslow| first\nslow| hal\n" {
		t.Errorf("logs without -f:\n%s%s", now.stdout.String(), now.stderr.String())
	}
	openGate(t, dir)
	for p, want := range map[*process]string{
		ofJob:  "before| ready\nslow| first\nslow| half\nslow| attempt 1\nafter| last\n",
		ofTask: "first\nhalf\nattempt 1",
		ofNext: "last\n",
	} {
		if code := p.end(); code != 0 || p.stdout.String() != want || p.stderr.Len() > 0 {
			t.Errorf("exit code %d, got\n%s%s\nwant\n%s", code, p.stdout.String(), p.stderr.String(), want)
		}
	}
	if code := run.end(); code != 0 {
		t.Errorf("the run: exit code %d", code)
	}
}

// An interrupt ends logs -f.
func TestLogsFollowIsInterrupted(t *testing.T) {
	t.Parallel()
	dir, id, run := gatedRun(t)
	follow := start(t, dir, "logs", "-f", id)
	follow.await("slow| first")
	follow.signal(syscall.SIGINT)
	if code := follow.end(); code != 0 || follow.stderr.Len() > 0 {
		t.Errorf("exit code %d: %s", code, follow.stderr.String())
	}
	openGate(t, dir)
	if code := run.end(); code != 0 {
		t.Errorf("the run: exit code %d", code)
	}
}

// The output of a killed run is kept, and that of the next attempt is added separately. logs -f continues with it.
func TestLogsOfAKilledRun(t *testing.T) {
	t.Parallel()
	dir, id, run := gatedRun(t)
	follow := start(t, dir, "logs", "-f", id+"/slow")
	follow.await("first")
	run.signal(syscall.SIGKILL)
	run.end()
	if logs := start(t, dir, "logs", id+"/slow"); logs.end() != 0 || logs.stdout.String() != "first\nhal" {
		t.Errorf("after the kill:\n%s%s", logs.stdout.String(), logs.stderr.String())
	}
	again := start(t, dir, "run", "-o", "json", "gated.yaml")
	again.await(`"data":"first`)
	openGate(t, dir)
	if code := again.end(); code != 0 {
		t.Fatalf("exit code %d:\n%s%s", code, again.stdout.String(), again.stderr.String())
	}
	const second = "first\nhalf\nattempt 2"
	if follow.end(); follow.stdout.String() != "first\nhal"+second {
		t.Errorf("logs -f:\n%s%s", follow.stdout.String(), follow.stderr.String())
	}
	for args, want := range map[string]string{"": second, "--attempt=1": "first\nhal", "--attempt=2": second} {
		logs := start(t, dir, strings.Fields("logs "+args+" "+id+"/slow")...)
		if logs.end() != 0 || logs.stdout.String() != want {
			t.Errorf("%s: got\n%s%s\nwant\n%s", args, logs.stdout.String(), logs.stderr.String(), want)
		}
	}
}
