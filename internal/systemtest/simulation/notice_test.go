package simulation_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// listener is a listener of a process, with its notices in transit.
type listener struct {
	p       *process
	fn      func(store.Notice)
	sent    int
	pending *store.Notice // in transit
	gone    bool
}

// Notify implements store.Observe. To processes with complete notices, notices arrive late and twice; to others they
// are also lost or reduced to External.
func (s *port) Notify(_ string, _ func() []task.ID, fn func(store.Notice)) (stop func(), complete bool) {
	l := &listener{p: s.p, fn: fn}
	end, _ := s.mem().Notify(ns, nil, l.committed)
	return func() {
		end()
		l.p.sim.mu.Lock()
		defer l.p.sim.mu.Unlock()
		l.gone = true
	}, !s.p.lossy
}

// committed is called after each commit: it only records the notice.
func (l *listener) committed(n store.Notice) {
	engine := n.Due || n.External || n.Deadline > 0 || len(n.Cancels) > 0
	waiter := n.External || len(n.Tasks)+len(n.Jobs) > 0
	if l.p.eng != nil && !engine || l.p.eng == nil && !waiter {
		return // the listener does not use it
	}
	if l.p.dead.Load() {
		return
	}
	if old := l.pending; old != nil { // merge both
		old.Due, old.External = old.Due || n.Due, old.External || n.External
		if n.Deadline > 0 {
			old.DeadlineIn(n.Deadline)
		}
		old.Tasks = append(old.Tasks, n.Tasks...)
		old.Jobs = append(old.Jobs, n.Jobs...)
		old.Cancels = append(old.Cancels, n.Cancels...)
		return
	}
	l.pending = &n
	l.send(&n, func() { l.pending = nil })
}

// send starts the transit of a notice.
func (l *listener) send(n *store.Notice, arrive func()) {
	rng := l.p.stream("notice")
	l.sent++
	delay := time.Duration(rng.IntN(2000)) * time.Microsecond
	if rng.Float64() < l.p.sim.slow {
		delay = time.Duration(rng.Int64N(int64(2 * time.Second)))
	}
	drop, twice, vague := rng.Float64() < l.p.sim.drop, rng.Float64() < l.p.sim.twice, rng.Float64() < l.p.sim.drop
	l.p.sim.put(&item{proc: l.p, name: fmt.Sprintf("notice %d", l.sent), after: delay, do: func() {
		arrive()
		if l.ended() {
			return
		}
		if twice && !l.p.sim.calm {
			again := *n
			l.send(&again, func() {})
		}
		switch {
		case !l.p.lossy:
		case drop || l.p.sim.calm && l.p.sim.drop > 0: // in the end no notice arrives
			l.p.sim.result(" lost")
			return
		case vague:
			l.p.sim.result(" vague")
			l.fn(store.Notice{External: true})
			return
		}
		l.p.sim.result(l.text(n))
		l.fn(*n)
	}})
}

func (l *listener) ended() bool {
	l.p.sim.mu.Lock()
	defer l.p.sim.mu.Unlock()
	return l.gone
}

func (l *listener) text(n *store.Notice) string {
	var names []string
	for _, id := range slices.Concat(n.Cancels, n.Tasks) {
		names = append(names, l.p.sim.label(id))
	}
	return fmt.Sprintf(" due=%v %v", n.Due, names)
}

// shiftClaim shifts the times in a claim's answer for a process with a skewed clock: every instant of the store is
// off by the skew.
func shiftClaim(res store.ClaimResult, by time.Duration) store.ClaimResult {
	res.Now = shift(res.Now, by)
	res.Tasks = slices.Clone(res.Tasks)
	for i := range res.Tasks {
		t := &res.Tasks[i].Task
		for _, at := range []*time.Time{&t.CreatedAt, &t.UpdatedAt, &t.ReadyAt, &t.DeadlineAt, &t.StartedAt, &t.FinishedAt, &t.LeaseExpiresAt} {
			*at = shift(*at, by)
		}
		steps := slices.Clone(res.Tasks[i].Steps)
		for j := range steps {
			steps[j] = shiftStep(steps[j], by)
		}
		res.Tasks[i].Steps = steps
	}
	return res
}

func shiftStep(s task.Step, by time.Duration) task.Step {
	s.WakeAt, s.StartedAt, s.CompletedAt = shift(s.WakeAt, by), shift(s.StartedAt, by), shift(s.CompletedAt, by)
	return s
}

func shift(t time.Time, by time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(by)
}
