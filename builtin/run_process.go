package builtin

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/goweaver/weaver"
)

// How long what gets SIGTERM may go on before it gets SIGKILL.
var (
	cancelGrace   = 10 * time.Second       // after a cancel, a deadline, a timeout; a variable for tests
	drainGrace    = time.Second            // the engine waits no more than 2 s
	leftoverGrace = 500 * time.Millisecond // for what a command left in its group
)

// killedLimit is how long the members of a killed group may take to go: one
// that hangs in the kernel, or that is not reaped, is not waited for for ever.
const killedLimit = time.Second

// process is a command that runs. On Unix it is a process group; on other systems
// only its leader can be ended.
//
// Nothing is signalled after it is gone, when its id may be another's: for
// that reason the leader is reaped under mu, where awaitLeader can see its end
// and leave it a zombie.
type process struct {
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

func startProcess(c command, out *output) (*process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer shut(null)
	defer out.closeWriters() // only the command holds them: its end is the end of the output
	readyGuard()
	leader, err := os.StartProcess(c.path, c.argv, &os.ProcAttr{
		Dir:   c.dir,
		Env:   c.env,
		Files: []*os.File{null, out.stdout.w, out.stderr.w},
		Sys:   processAttr(),
	})
	if err != nil {
		return nil, err
	}
	// Crash here: the leader is killed by its parent-death signal, and has had
	// no time to start others.
	return &process{leader: leader, seat: guardGroup(leader.Pid)}, nil
}

// graceOf returns how long a command may go on whose attempt ended.
func graceOf(cause error) time.Duration {
	switch {
	case errors.Is(cause, weaver.ErrLeaseLost), errors.Is(cause, weaver.ErrLeaseUncertain):
		return 0 // another worker may have begun
	case errors.Is(cause, weaver.ErrDraining):
		return drainGrace
	}
	return cancelGrace
}

// end asks the group to end, and kills it when it does not.
func (p *process) end(cause error) {
	grace := graceOf(cause)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.vanished() {
		return
	}
	if !p.ended && !p.leaderEnded() {
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
func (p *process) vanished() bool { return p.gone || p.ended && !p.remains() }

// clear reaps the leader, which has ended, and ends what remains of its group.
func (p *process) clear() (*os.ProcessState, error) {
	state, err := p.reap()
	for pause := time.Millisecond; !p.cleared(); pause = min(2*pause, 50*time.Millisecond) {
		<-time.After(pause)
	}
	return state, err
}

// reap makes the leader's id free, unless others are in its group.
func (p *process) reap() (*os.ProcessState, error) {
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
func (p *process) leaderIsGone() {
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
func (p *process) ask() bool {
	if p.asked {
		return p.remains()
	}
	p.asked = true
	return p.terminate()
}

// cleared looks whether the group is empty, and kills it when its time is up.
func (p *process) cleared() bool {
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
func (p *process) leave() {
	p.gone = true
	p.seat.leave()
	if p.killer != nil {
		p.killer.Stop()
	}
}
