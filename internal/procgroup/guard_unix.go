//go:build unix && !aix

package procgroup

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// The guard ends the process groups of commands when this process is killed:
// a shell that waits for the end of a pipe whose other end only this process
// holds, and then kills the groups that are listed in a file which both have
// open. To list a group or strike it out is one write to that file (in memory,
// on Linux): it wakes no process, cannot block, and what the guard finds is what
// was true at the moment of the kill. (Lines sent through the pipe would wake
// the shell twice per command, which it reads byte by byte.)
//
// There is one guard per process, not per Config: handlers are not notified
// when their engine is done, so it can only end with the process. Without /bin/sh
// there is none, and a killed worker leaves behind what its commands started
// (on Linux the command itself is killed by the kernel).
var guard guardian

type guardian struct {
	mu    sync.Mutex
	table *os.File
	pipe  *os.File // its end is what the guard waits for
	shell int      // its process id
	bad   bool     // it could not be started: not tried again
	free  []seat
	seats seat
}

// seat is a line of the table, counted from 1. 0 is none.
type seat int

// seatSize is the length of a line: a process id and its line end.
const seatSize = 12

// guardScript runs with the pipe as standard input and the table as 3. It
// ignores what a terminal or a service manager sends to everybody.
const guardScript = `trap '' HUP INT QUIT TERM
while read -r line; do :; done
while read -r pgid; do
	[ -z "$pgid" ] || kill -s KILL -- "-$pgid"
done <&3`

// readyGuard makes sure that the guard is there before a command is.
func readyGuard() {
	guard.mu.Lock()
	defer guard.mu.Unlock()
	if !guard.bad && (guard.shell == 0 || guard.fell()) {
		guard.bad = guard.start() != nil
	}
}

// guardGroup lists a group until its seat is freed.
func guardGroup(pgid int) seat {
	guard.mu.Lock()
	defer guard.mu.Unlock()
	if guard.bad {
		return 0
	}
	s := guard.seats + 1
	if n := len(guard.free); n > 0 {
		s, guard.free = guard.free[n-1], guard.free[:n-1]
	} else {
		guard.seats = s
	}
	guard.write(s, fmt.Sprint(pgid))
	return s
}

func (s seat) leave() {
	if s == 0 {
		return
	}
	guard.mu.Lock()
	defer guard.mu.Unlock()
	guard.write(s, "")
	guard.free = append(guard.free, s)
}

func (g *guardian) write(s seat, text string) {
	// A table that cannot be written to protects less; nothing else is lost.
	_, _ = g.table.WriteAt(fmt.Appendf(nil, "%-*s\n", seatSize-1, text), int64(s-1)*seatSize)
}

// fell looks whether the guard was ended from outside.
func (g *guardian) fell() bool {
	pid, err := unix.Wait4(g.shell, nil, unix.WNOHANG, nil)
	return pid == g.shell || errors.Is(err, syscall.ECHILD)
}

func (g *guardian) start() error {
	if g.table == nil {
		table, err := newTable()
		if err != nil {
			return err
		}
		g.table = table
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer shut(r)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		shut(w)
		return err
	}
	defer shut(null)
	shell, err := os.StartProcess("/bin/sh", []string{"weaver-guard", "-c", guardScript}, &os.ProcAttr{
		Dir:   "/", // it must not keep a file system busy
		Env:   []string{},
		Files: []*os.File{r, null, null, g.table},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		shut(w)
		return err
	}
	shut(g.pipe) // of the one that fell
	g.shell, g.pipe = shell.Pid, w
	return shell.Release() // fell waits for it
}
