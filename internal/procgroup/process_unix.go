//go:build unix && !aix

package procgroup

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminate asks the group to end and reports whether there is one. A stopped
// process has to be continued to receive it.
func (p *Process) terminate() bool {
	if !p.signal(syscall.SIGTERM) {
		return false
	}
	p.signal(syscall.SIGCONT)
	return true
}

func (p *Process) kill() { p.signal(syscall.SIGKILL) }

// remains reports whether the group, whose leader was reaped, has members.
func (p *Process) remains() bool {
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
func (p *Process) signal(s syscall.Signal) bool {
	return !errors.Is(syscall.Kill(-p.leader.Pid, s), syscall.ESRCH)
}
