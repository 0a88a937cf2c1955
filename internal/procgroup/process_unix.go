//go:build unix && !aix

package procgroup

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminate sends SIGTERM to the group and reports whether the group exists. SIGCONT follows, because a stopped
// process only receives SIGTERM once it continues.
func (p *Process) terminate() bool {
	if !p.signal(syscall.SIGTERM) {
		return false
	}
	p.signal(syscall.SIGCONT)
	return true
}

func (p *Process) kill() { p.signal(syscall.SIGKILL) }

// remains reports whether the group has members after its leader was reaped.
func (p *Process) remains() bool {
	// Orphans become children of this process if it is process 1 of a container or a subreaper. No other process
	// reaps them then.
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

// signal sends s and reports whether the group has members. Members that may not be signalled (set-user-ID programs)
// count.
func (p *Process) signal(s syscall.Signal) bool {
	return !errors.Is(syscall.Kill(-p.leader.Pid, s), syscall.ESRCH)
}
