// Package procgroup starts a program as the leader of a process group of its own, and
// ends the group: SIGTERM first, SIGKILL when its time is up. What a leader that ended
// left in its group is ended, too.
//
// When this process is killed, its groups are: see guard_unix.go. A process that made a
// session or group of its own is not followed. Windows has no such groups: only the
// leader is ended there, without being asked.
package procgroup

import (
	"os"
	"sync"
	"time"
)

// leftoverGrace is how long what a leader left in its group may go on after SIGTERM.
const leftoverGrace = 500 * time.Millisecond

// killedLimit is how long the members of a killed group may take to go: one
// that hangs in the kernel, or that is not reaped, is not waited for for ever.
const killedLimit = time.Second

// Process is a program that runs. On Unix it is a process group; on other systems
// only its leader can be ended.
//
// Nothing is signalled after it is gone, when its id may be another's: for
// that reason the leader is reaped under mu, where awaitLeader can see its end
// and leave it a zombie.
type Process struct {
	leader *os.Process
	seat   seat // of its group in the guard's table
	zombie bool // the leader has ended, and its id is still taken

	mu      sync.Mutex
	ended   bool  // the leader has ended
	gone    bool  // and the group is empty, or was given up
	asked   bool  // the group got SIGTERM; once, because a second one means haste to some
	stopped error // the first cause for which a running leader was terminated
	killAt  time.Time
	killer  *time.Timer
	member  int // of the group, seen alive; for remains
}

// Program says what to start.
type Program struct {
	Path           string // of the file, found
	Argv, Env      []string
	Dir            string   // in which it runs; "" means that of this process
	Stdout, Stderr *os.File // writing ends; they stay the caller's to close
}

// Start starts a program; its standard input is empty. The caller calls Await and then
// Clear, and has locked its goroutine to its thread until Await has returned: on Linux
// the leader is killed when the thread that started it ends (PR_SET_PDEATHSIG), and the
// Go runtime ends threads when a goroutine dies that is locked to one, which any code of
// this process may do. It costs no thread more, as waiting takes one anyway.
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
	// Crash here: the leader is killed by its parent-death signal, and has had
	// no time to start others.
	return &Process{leader: leader, seat: guardGroup(leader.Pid)}, nil
}

// Pid returns the process id of the leader, which is the id of the group.
func (p *Process) Pid() int { return p.leader.Pid }

// Await returns when the leader has ended, on systems that can wait for that without
// reaping it; elsewhere at once. What remains of the group is for Clear.
func (p *Process) Await() { p.zombie = p.awaitLeader() }

// Stopped returns the cause for which a running leader was ended, nil if it ended by
// itself. It may be called when Clear has returned.
func (p *Process) Stopped() error { return p.stopped }

// End asks the group to end, and kills it when it has not after grace; at once if that is
// 0. It may be called several times, from several goroutines; a later call may shorten
// the time of an earlier one.
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

// vanished reports whether no process of the group is there to signal. The caller holds
// mu.
func (p *Process) vanished() bool { return p.gone || p.ended && !p.remains() }

// Clear reaps the leader, which has ended, and ends what remains of its group.
func (p *Process) Clear() (*os.ProcessState, error) {
	state, err := p.reap()
	for pause := time.Millisecond; !p.cleared(); pause = min(2*pause, 50*time.Millisecond) {
		<-time.After(pause)
	}
	return state, err
}

// reap makes the leader's id free, unless others are in its group.
func (p *Process) reap() (*os.ProcessState, error) {
	if !p.zombie {
		// Waiting and reaping are one here, and cannot be done under mu: just
		// after it a signal may go to a group that does not exist any more.
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

// leaderIsGone notes that only others can remain in the group. The caller holds mu.
func (p *Process) leaderIsGone() {
	p.ended = true
	// A process id is not given out while a group has it, and this follows the
	// reaping within microseconds: either the group still has members, or the
	// signal goes nowhere.
	if !p.ask() {
		p.leave()
	} else if p.stopped == nil { // or else they keep the time that they were given
		p.killAt = time.Now().Add(leftoverGrace)
	}
}

// ask asks the group to end, unless it was asked, and reports whether there
// is one. The caller holds mu.
func (p *Process) ask() bool {
	if p.asked {
		return p.remains()
	}
	p.asked = true
	return p.terminate()
}

// cleared looks whether the group is empty, and kills it when its time is up.
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

// leave forgets the group. The caller holds mu.
func (p *Process) leave() {
	p.gone = true
	p.seat.leave()
	if p.killer != nil {
		p.killer.Stop()
	}
}

// shut closes files whose contents do not matter any more.
func shut(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
