//go:build unix && !linux && !aix

package procgroup

import "syscall"

// processAttr makes the command the leader of a session, for the reason given in process_linux.go.
func processAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// awaitLeader does not wait; reap does. Some systems lack waitid, and on darwin it returns too early
// (go.dev/issue/19314).
func (p *Process) awaitLeader() bool { return false }

func (p *Process) leaderEnded() bool { return false }

// lives returns true: the package cannot tell zombies here. A group of zombies, which only their parent or process 1
// can reap, counts as alive until killedLimit.
func (p *Process) lives() bool { return true }
