package clitest_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// As process 1 of a container weaver waits for what its commands leave behind, passes
// signals on, and has the exit code that it has elsewhere.
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
  b: {run: "touch left; until test \"$(cat gone 2>/dev/null | wc -l)\" = 3; do sleep 0.02; done; echo all; until test -f go; do sleep 0.02; done; exit 3", needs: [a]}
`)
	p := startWith(t, attr, dir, program(t), "run", "p.yaml")
	p.await("b| all")
	var dead []string
	for deadline := time.Now().Add(10 * time.Second); ; <-time.After(20 * time.Millisecond) {
		if dead = zombies(t, p.cmd.Process.Pid); len(dead) == 0 || time.Now().After(deadline) {
			break
		}
	}
	if len(dead) > 0 {
		t.Errorf("process 1 has not waited for %v", dead)
	}
	write(t, filepath.Join(dir, "go"), "")
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

// zombies returns the children of a process that have ended and were not waited for.
func zombies(t *testing.T, pid int) (dead []string) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it is gone
		}
		stat := string(raw)
		fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
		if len(fields) > 1 && fields[0] == "Z" && fields[1] == strconv.Itoa(pid) {
			dead = append(dead, stat)
		}
	}
	return dead
}
