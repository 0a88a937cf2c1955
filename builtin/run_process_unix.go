//go:build unix && !aix

package builtin

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// relativeToDir: the kernel resolves the program's path after it has changed
// to the command's directory.
const relativeToDir = true

var alwaysInherited = []string{"PATH", "HOME", "LANG"}

// terminate asks the group to end and reports whether there is one. A stopped
// process has to be continued to receive it.
func (p *process) terminate() bool {
	if !p.signal(syscall.SIGTERM) {
		return false
	}
	p.signal(syscall.SIGCONT)
	return true
}

func (p *process) kill() { p.signal(syscall.SIGKILL) }

// remains reports whether the group, whose leader was reaped, has members.
func (p *process) remains() bool {
	// Orphans become children of this process when it is the first of a
	// container, or a subreaper. No other process reaps them then.
	for {
		pid, err := unix.Wait4(-p.leader.Pid, nil, unix.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			break
		}
	}
	return p.signal(0) && p.lives()
}

// signal reports whether the group has members. Members that may not be signalled
// (set-user-id programs) count: they are.
func (p *process) signal(s syscall.Signal) bool {
	return !errors.Is(syscall.Kill(-p.leader.Pid, s), syscall.ESRCH)
}
