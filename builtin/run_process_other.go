//go:build !unix || aix

package builtin

import "syscall"

// relativeToDir: the program must be found, and get its extension, before it
// is started.
const relativeToDir = false

// Windows programs do not start without SYSTEMROOT.
var alwaysInherited = []string{"PATH", "HOME", "LANG", "SYSTEMROOT", "USERPROFILE"}

func processAttr() *syscall.SysProcAttr { return nil }

func (p *process) awaitLeader() bool { return false }

func (p *process) leaderEnded() bool { return false }

// terminate ends the leader: there is no polite way, and there are no groups.
func (p *process) terminate() bool {
	if p.ended {
		return false
	}
	p.kill()
	return true
}

func (p *process) kill() { _ = p.leader.Kill() } // it may have ended

func (p *process) remains() bool { return false }
