package simulation_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// ear is one listener of a process: what it will hear, and what it hears of
// that.
type ear struct {
	p       *process
	fn      func(store.Notice)
	heard   int
	pending *store.Notice // on its way
	gone    bool
}

// Notify implements store.Notifier. Notices to a process that believes them
// complete are late and come twice; to others they get lost too, or come as a
// mere hint that something changed.
func (s *port) Notify(_ string, fn func(store.Notice)) (stop func(), complete bool) {
	e := &ear{p: s.p, fn: fn}
	end, _ := s.mem().Notify(ns, e.tell)
	return func() {
		end()
		e.p.w.mu.Lock()
		defer e.p.w.mu.Unlock()
		e.gone = true
	}, !s.p.lossy
}

// tell is called by whoever committed: it only notes that there is news.
func (e *ear) tell(n store.Notice) {
	engine := n.Due || n.External || len(n.Cancels) > 0
	waiter := n.External || len(n.Tasks)+len(n.Jobs) > 0
	if e.p.eng != nil && !engine || e.p.eng == nil && !waiter {
		return // nobody here cares
	}
	if e.p.dead.Load() {
		return
	}
	if old := e.pending; old != nil { // both in one
		old.Due, old.External = old.Due || n.Due, old.External || n.External
		old.Tasks = append(old.Tasks, n.Tasks...)
		old.Jobs = append(old.Jobs, n.Jobs...)
		old.Cancels = append(old.Cancels, n.Cancels...)
		return
	}
	e.pending = &n
	e.send(&n, func() { e.pending = nil })
}

// send lets a notice travel.
func (e *ear) send(n *store.Notice, arrive func()) {
	rng := e.p.stream("notice")
	e.heard++
	delay := time.Duration(rng.IntN(2000)) * time.Microsecond
	if rng.Float64() < e.p.w.slow {
		delay = time.Duration(rng.Int64N(int64(2 * time.Second)))
	}
	drop, twice, vague := rng.Float64() < e.p.w.drop, rng.Float64() < e.p.w.twice, rng.Float64() < e.p.w.drop
	e.p.w.put(&item{proc: e.p, name: fmt.Sprintf("notice %d", e.heard), after: delay, do: func() {
		arrive()
		if e.deaf() {
			return
		}
		if twice && !e.p.w.calm {
			again := *n
			e.send(&again, func() {})
		}
		switch {
		case !e.p.lossy:
		case drop || e.p.w.calm && e.p.w.drop > 0: // in the end it hears nothing at all
			e.p.w.result(" lost")
			return
		case vague:
			e.p.w.result(" vague")
			e.fn(store.Notice{External: true})
			return
		}
		e.p.w.result(e.text(n))
		e.fn(*n)
	}})
}

func (e *ear) deaf() bool {
	e.p.w.mu.Lock()
	defer e.p.w.mu.Unlock()
	return e.gone
}

func (e *ear) text(n *store.Notice) string {
	var names []string
	for _, id := range slices.Concat(n.Cancels, n.Tasks) {
		names = append(names, e.p.w.label(id))
	}
	return fmt.Sprintf(" due=%v %v", n.Due, names)
}

// shiftClaim shows a claim's answer to a process whose clock is off: every
// instant of the store reads as far off as that clock is.
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
