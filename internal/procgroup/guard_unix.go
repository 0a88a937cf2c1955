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

// The guard ends the process groups of commands when this process is killed. It is a shell that waits for the end of
// a pipe whose other end only this process holds. It then kills the groups listed in a file that both have open.
// Listing or removing a group is one write to that file (in memory on Linux): the write wakes no process, cannot
// block, and the guard always finds the state at the moment of the kill. Lines sent through the pipe were rejected:
// the shell reads byte by byte, and would wake twice per command.
//
// There is one guard per process, not per Config: handlers are not notified when their engine stops, so the guard can
// only end with the process. Without /bin/sh there is no guard, and a killed worker leaves behind the processes that
// its commands started. On Linux the kernel kills the command itself.
var guard guardian

type guardian struct {
	mu    sync.Mutex
	table *os.File
	pipe  *os.File // the guard waits for the end of this pipe
	shell int      // process ID
	bad   bool     // the guard could not be started; there is no second attempt
	free  []seat
	seats seat
}

// seat is a line of the table, counted from 1; 0 means no line.
type seat int

// seatSize is the length of a line in bytes: a process ID, padding and a newline.
const seatSize = 12

// guardScript reads the pipe as standard input and the table as descriptor 3. It ignores the signals that a terminal
// or service manager sends to all processes.
const guardScript = `trap '' HUP INT QUIT TERM
while read -r line; do :; done
while read -r pgid; do
	[ -z "$pgid" ] || kill -s KILL -- "-$pgid"
done <&3`

// readyGuard starts the guard before the first command starts.
func readyGuard() {
	guard.mu.Lock()
	defer guard.mu.Unlock()
	if !guard.bad && (guard.shell == 0 || guard.fell()) {
		guard.bad = guard.start() != nil
	}
}

// guardGroup adds a group to the table; freeing the seat removes it.
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
	// A failed write leaves this group unprotected and has no other effect.
	_, _ = g.table.WriteAt(fmt.Appendf(nil, "%-*s\n", seatSize-1, text), int64(s-1)*seatSize)
}

// fell reports whether the guard was ended from outside.
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
		Dir:   "/", // a working directory elsewhere would keep its file system busy
		Env:   []string{},
		Files: []*os.File{r, null, null, g.table},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		shut(w)
		return err
	}
	shut(g.pipe) // the pipe of the guard that was ended
	g.shell, g.pipe = shell.Pid, w
	return shell.Release() // fell reaps the shell
}
