//go:build !unix || aix

package procgroup

import "syscall"

func processAttr() *syscall.SysProcAttr { return nil }

func (p *Process) awaitLeader() bool { return false }

func (p *Process) leaderEnded() bool { return false }

// terminate kills the leader: the system has neither a SIGTERM nor process groups.
func (p *Process) terminate() bool {
	if p.ended {
		return false
	}
	p.kill()
	return true
}

func (p *Process) kill() { _ = p.leader.Kill() } // the leader may have ended

func (p *Process) remains() bool { return false }
