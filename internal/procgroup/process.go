// Package procgroup starts a program as the leader of its own process group and ends the group: SIGTERM first,
// SIGKILL after the grace period. When the leader ends, the package also ends the remaining members of the group.
//
// When this process is killed, its groups are killed too: see guard_unix.go. A process that creates its own session
// or group is not followed. Windows has no such groups: there the package kills only the leader, without SIGTERM.
package procgroup

import (
	"os"
	"sync"
	"time"
)

// leftoverGrace is the time between SIGTERM and SIGKILL for members that outlive their leader.
const leftoverGrace = 500 * time.Millisecond

// killedLimit is the maximum wait for the members of a killed group to disappear. A member that hangs in the kernel,
// or that is never reaped, does not block the caller forever.
const killedLimit = time.Second

// Process is a running program. On Unix it is a process group; on other systems only its leader can be ended.
//
// No signal is sent after the process is gone, because its ID may then belong to another process. For this reason the
// leader is reaped under mu; awaitLeader sees its end and leaves it a zombie.
type Process struct {
	leader *os.Process
	seat   seat // the group's line in the guard's table
	zombie bool // the leader has ended but still holds its ID

	mu      sync.Mutex
	ended   bool  // the leader has ended
	gone    bool  // the group is empty, or the package gave up on it
	asked   bool  // the group got SIGTERM; only once, because some programs hurry on a second one
	stopped error // the first cause for ending a running leader
	killAt  time.Time
	killer  *time.Timer
	member  int // a member seen alive, for remains
}

// Program describes the program to start.
type Program struct {
	Path           string // of the executable file
	Argv, Env      []string
	Dir            string   // working directory; "" means that of this process
	Stdout, Stderr *os.File // write ends; the caller closes them
}

// Start starts a program with empty standard input. The caller must call Await and then Clear. It must lock its
// goroutine to its thread before Start and until Await returns: on Linux the kernel kills the leader when the thread
// that started it ends (PR_SET_PDEATHSIG). The Go runtime ends a thread when a goroutine locked to it exits, which
// any code of this process may do. The lock costs no extra thread, because waiting occupies one anyway.
func Start(what Program) (*Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer shut(null)
	readyGuard()
	leader, err := os.StartProcess(what.Path, what.Argv, &os.ProcAttr{
		Dir:   what.Dir,
		Env:   what.Env,
		Files: []*os.File{null, what.Stdout, what.Stderr},
		Sys:   processAttr(),
	})
	if err != nil {
		return nil, err
	}
	// Crash here: the parent-death signal kills the leader, which had no time to start other processes.
	return &Process{leader: leader, seat: guardGroup(leader.Pid)}, nil
}

// Pid returns the process ID of the leader, which is also the ID of the group.
func (p *Process) Pid() int { return p.leader.Pid }

// Await waits until the leader has ended, without reaping it. On systems that cannot wait this way it returns at
// once. Clear handles the rest of the group.
func (p *Process) Await() { p.zombie = p.awaitLeader() }

// Stopped returns the cause for which a running leader was ended, or nil if it ended by itself. Call it after Clear
// has returned.
func (p *Process) Stopped() error { return p.stopped }

// End asks the group to end and kills it after the grace period; a grace of 0 kills it at once. End is safe for
// concurrent use and may be called several times: a later call may shorten the grace period.
func (p *Process) End(cause error, grace time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.vanished() {
		return
	}
	if p.stopped == nil && !p.ended && !p.leaderEnded() {
		p.stopped = cause
	}
	if at := time.Now().Add(grace); !p.ended || at.Before(p.killAt) {
		p.killAt = at
	}
	if grace == 0 {
		p.kill()
		return
	}
	p.ask()
	p.killer = time.AfterFunc(grace, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.vanished() {
			p.kill()
		}
	})
}

// vanished reports whether the group has no process left to signal. The caller holds mu.
func (p *Process) vanished() bool { return p.gone || p.ended && !p.remains() }

// Clear reaps the ended leader and ends the remaining members of its group.
func (p *Process) Clear() (*os.ProcessState, error) {
	state, err := p.reap()
	for pause := time.Millisecond; !p.cleared(); pause = min(2*pause, 50*time.Millisecond) {
		<-time.After(pause)
	}
	return state, err
}

// reap reaps the leader. Its ID becomes free unless the group has other members.
func (p *Process) reap() (*os.ProcessState, error) {
	if !p.zombie {
		// Waiting and reaping are one step here and cannot run under mu: right after it a signal may go to a group
		// that no longer exists.
		state, err := p.leader.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.leaderIsGone()
		return state, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	state, err := p.leader.Wait()
	p.leaderIsGone()
	return state, err
}

// leaderIsGone records that only other members can remain in the group. The caller holds mu.
func (p *Process) leaderIsGone() {
	p.ended = true
	// The kernel does not reuse a process ID while a group has it, and this code runs within microseconds of the
	// reaping. So either the group still has members, or the signal reaches no process.
	if !p.ask() {
		p.leave()
	} else if p.stopped == nil { // otherwise the members keep their grace period
		p.killAt = time.Now().Add(leftoverGrace)
	}
}

// ask sends SIGTERM to the group unless it was sent before, and reports whether the group exists. The caller holds
// mu.
func (p *Process) ask() bool {
	if p.asked {
		return p.remains()
	}
	p.asked = true
	return p.terminate()
}

// cleared reports whether the group is empty, and kills it when its grace period is over.
func (p *Process) cleared() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return true
	}
	if !p.remains() {
		p.leave()
		return true
	}
	late := time.Since(p.killAt)
	if late >= 0 {
		p.kill()
	}
	if late > killedLimit {
		p.leave()
	}
	return p.gone
}

// leave marks the group as gone and frees its seat. The caller holds mu.
func (p *Process) leave() {
	p.gone = true
	p.seat.leave()
	if p.killer != nil {
		p.killer.Stop()
	}
}

// shut closes files whose close errors do not matter.
func shut(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
