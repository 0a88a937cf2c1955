//go:build unix && !linux && !aix

package procgroup

import "syscall"

// processAttr makes the command the leader of a session; see Linux.
func processAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// awaitLeader leaves the waiting to reap: waitid is not to be had everywhere,
// and returns too early on darwin (go.dev/issue/19314).
func (p *Process) awaitLeader() bool { return false }

func (p *Process) leaderEnded() bool { return false }

// lives says true: a group of zombies, which only their parent or process 1
// can reap, counts until killedLimit.
func (p *Process) lives() bool { return true }
