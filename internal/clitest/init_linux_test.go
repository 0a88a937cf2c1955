package clitest_test

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// As process 1 of a container weaver reaps processes that its commands leave behind, forwards signals, and returns
// its usual exit code.
func TestProcess1(t *testing.T) {
	t.Parallel()
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if uid := os.Geteuid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "p.yaml"), `name: orphans
tasks:
  a: {run: "for i in 1 2 3; do setsid sh -c 'echo x >>begun; until test -f left; do sleep 0.02; done; echo x >>gone' >/dev/null 2>&1 </dev/null & done; until test \"$(cat begun 2>/dev/null | wc -l)\" = 3; do sleep 0.02; done"}
  b:
    run: >
      touch left; until test "$(cat gone 2>/dev/null | wc -l)" = 3 && test -f pid; do sleep 0.02; done;
      while grep -qs ") Z $(cat pid) " /proc/[0-9]*/stat; do sleep 0.02; done; echo all were waited for; exit 3
    needs: [a]
    timeout: 10s
`)
	p := startWith(t, attr, dir, program(t), "run", "p.yaml")
	write(t, filepath.Join(dir, "pid"), strconv.Itoa(p.cmd.Process.Pid))
	p.await("b| all were waited for")
	if code := p.end(); code != 1 {
		t.Errorf("exit code %d, want that of a job that failed:\n%s", code, p.stderr.String())
	}

	p = startWith(t, attr, dir, program(t), "worker")
	p.await("worker on ")
	p.signal(syscall.SIGTERM)
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d after SIGTERM:\n%s", code, p.stderr.String())
	}
	p.says("worker stopped")
}
