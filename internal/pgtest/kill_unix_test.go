//go:build unix

package pgtest_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/goweaver/weaver/internal/pgtest"
)

// childVariable turns TestNothingOutlivesTheProgram into the program that is killed.
const childVariable = "WEAVER_PGTEST_CHILD"

// Servers, also paused ones, PgBouncer and their files end with the program that started them
// when it is killed. They see an exit without cleanup in the same way: a pipe closes.
func TestNothingOutlivesTheProgram(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		url := pgtest.URL(t)
		paused := pgtest.Start(t, pgtest.Options{})
		for _, url := range []string{url, paused.URL("postgres")} {
			data, err := ask(url, "SHOW data_directory")
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println("pidfile", filepath.Join(data, "postmaster.pid"))
		}
		_ = pgtest.Bouncer(t, url, "transaction")
		paused.Pause()
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed, or the test has ended
		return
	}
	t.Parallel()
	if testing.Short() {
		t.Skip("needs PostgreSQL")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestNothingOutlivesTheProgram$")
	cmd.Env = append(os.Environ(), childVariable+"=1")
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	var folders []string
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		if name, ok := strings.CutPrefix(lines.Text(), "pidfile "); ok {
			folders = append(folders, filepath.Dir(filepath.Dir(name)))
		}
	}
	if len(folders) != 2 {
		t.Fatalf("%d servers were started, want 2", len(folders))
	}
	scratch := filepath.Dir(folders[0])
	pids := pidsIn(t, scratch)
	if len(pids) != 3 {
		t.Errorf("processes %v in %s, want two servers and PgBouncer", pids, scratch)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	for _, pid := range pids {
		await(t, func() error {
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) && !zombie(pid) {
				return fmt.Errorf("process %d is there", pid)
			}
			return nil
		})
	}
	await(t, func() error {
		if _, err := os.Stat(scratch); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s is there", scratch)
		}
		return nil
	})
}

// pidsIn returns the process IDs of the servers in a folder.
func pidsIn(t *testing.T, scratch string) (pids []int) {
	for _, pattern := range []string{"*/data/postmaster.pid", "*/pgbouncer.pid"} {
		files, err := filepath.Glob(filepath.Join(scratch, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(text), "\n")
			pid, err := strconv.Atoi(first)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// zombie reports whether a process ended without being waited for.
func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(text), ") Z ")
}

// A killed server leaves no System V shared memory behind.
func TestKilledServerLeavesNoSegment(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs PostgreSQL")
	}
	const list = "/proc/sysvipc/shm"
	if _, err := os.Stat(list); err != nil {
		return // only Linux has such a list
	}
	var creator string
	t.Run("a test", func(t *testing.T) {
		s := pgtest.Start(t, pgtest.Options{})
		data, err := ask(s.URL("postgres"), "SHOW data_directory")
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
		if err != nil {
			t.Fatal(err)
		}
		creator, _, _ = strings.Cut(string(text), "\n")
		s.Kill()
		if !createdSegment(t, list, creator) {
			t.Error("a server that was killed has no segment")
		}
	})
	await(t, func() error { // processes of the server that use it may be ending
		if createdSegment(t, list, creator) {
			return errors.New("its segment is left")
		}
		return nil
	})
}

// createdSegment reports whether a process created a segment in the list.
func createdSegment(t *testing.T, list, pid string) bool {
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		// key, ID, permissions, size, creating process, …
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == pid {
			return true
		}
	}
	return false
}
