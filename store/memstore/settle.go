package memstore

import (
	"maps"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// move gives a task another state and moves its job's counters with it.
func (o *op) move(r *row, to task.State, why task.Waiting, err *task.Error) {
	before := task.Count(r.State, r.Waiting, kindOf(r.Error))
	r.State, r.Waiting, r.Error = to, why, err
	r.UpdatedAt = o.now
	o.count(r, before, task.Count(to, why, kindOf(err)))
}

// count moves the counters of a task's job, from which its state follows.
func (o *op) count(r *row, before, after task.JobCounters) {
	j, ok := o.jobs[r.JobID]
	if !ok || before == after {
		return
	}
	j.Counters = j.Counters.Sub(before).Add(after)
	o.judge(j)
}

// judge derives a job's state from its counters.
func (o *op) judge(j *task.Job) {
	j.State = task.JobStateOf(j.Counters, j.CancelRequested)
	j.UpdatedAt = o.now
	switch {
	case !j.State.Terminal():
		j.FinishedAt = time.Time{}
	case j.FinishedAt.IsZero():
		j.FinishedAt = o.now
	}
	o.notice.Jobs = append(o.notice.Jobs, j.ID)
}

// release makes a task claimable that needs nobody any more, but not before
// the instant it asked for.
func (o *op) release(r *row) { o.offer(r, r.ReadyAt, task.WaitDelay, r.Error) }

// offer makes a task claimable from an instant on (W1): its dispatch row comes
// with the same operation (settle). why tells what it waits for until then.
func (o *op) offer(r *row, at time.Time, why task.Waiting, err *task.Error) {
	at = later(at, o.now)
	if at.After(o.now) {
		o.move(r, task.Pending, why, err)
	} else {
		o.move(r, task.Ready, task.WaitNone, err)
	}
	o.offers = append(o.offers, store.DispatchRow{
		Task: r.ID, Queue: r.Queue, Type: r.Type, Priority: r.Priority,
		AvailableAt: at, ConcurrencyKey: r.ConcurrencyKey,
	})
}

// withdraw takes back the claimability of a task that does not run: its
// dispatch row, for which a waiter of the same key may come forward, or its
// place among the waiters.
func (o *op) withdraw(r *row) {
	delete(o.dispatch, r.ID)
	delete(o.waiters, r.ID)
	if r.ConcurrencyKey != "" {
		o.freed[r.ConcurrencyKey] = true
	}
}

// end moves a task into a terminal state. Its dependents are told by settle.
func (o *op) end(r *row, s task.State, err *task.Error) {
	o.withdraw(r)
	o.move(r, s, task.WaitNone, err)
	r.FinishedAt = o.now
	o.ended = append(o.ended, r)
	o.notice.Tasks = append(o.notice.Tasks, r.ID)
}

// settle does what follows from the moves of a batch, when all of them are
// made, so that it does not depend on their order (LEASES §3, §4):
//
//   - keys with room wake their waiters, which are older than anybody who is
//     about to queue again
//   - tasks that are claimable again get their dispatch rows
//   - the edges towards all that ended are decided, then those towards what
//     ended by that, until none is left
func (o *op) settle() {
	o.wakeFreed()
	o.dispatchOffers()
	for len(o.ended) > 0 {
		ended := o.ended
		o.ended = nil
		o.decide(ended)
		o.dispatchOffers()
	}
}

func (o *op) dispatchOffers() {
	for _, d := range o.offers {
		o.dispatch[d.Task] = d
		o.notice.Due = true
	}
	o.offers = nil
}

// decide counts the edges whose needs have ended. Each dependent is so many
// needs nearer to its start, or will never run. One that ended before stays as
// it is.
func (o *op) decide(ended []*row) {
	decided := map[*row][]*store.EdgeRow{}
	for _, need := range ended {
		for _, e := range o.dependents[need.ID] {
			if !e.Done {
				e.Done = true
				decided[o.tasks[e.Task]] = append(decided[o.tasks[e.Task]], e)
			}
		}
	}
	for _, r := range slices.SortedFunc(maps.Keys(decided), func(a, b *row) int { return a.ID.Compare(b.ID) }) {
		if r.State != task.Pending || r.Waiting != task.WaitDeps {
			continue
		}
		r.RemainingDeps -= len(decided[r])
		if e := o.blame(decided[r]); e != nil {
			o.end(r, task.Cancelled, store.UnmetError(e.Kind, o.tasks[e.Needs].name(), o.tasks[e.Needs].State))
		} else if r.RemainingDeps == 0 {
			o.release(r)
		}
	}
}

// blame returns the edge for which a dependent cannot run any more, or nil. Of
// several, one whose need should have succeeded counts before one whose need
// should have failed, for the job is judged by it; then the oldest need.
func (o *op) blame(decided []*store.EdgeRow) (worst *store.EdgeRow) {
	for _, e := range decided {
		if holds, _ := e.Kind.Holds(o.tasks[e.Needs].State); holds { // it ended
			continue
		}
		first := worst == nil || worst.Kind == e.Kind && e.Needs.Compare(worst.Needs) < 0
		if first || worst.Kind == task.OnFailed && e.Kind == task.OnSuccess {
			worst = e
		}
	}
	return worst
}
