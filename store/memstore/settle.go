package memstore

import (
	"fmt"
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

// offer makes a task claimable from an instant on (W1): its dispatch row is
// written together with the state. why tells what it waits for until then.
func (o *op) offer(r *row, at time.Time, why task.Waiting, err *task.Error) {
	at = later(at, o.now)
	if at.After(o.now) {
		o.move(r, task.Pending, why, err)
	} else {
		o.move(r, task.Ready, task.WaitNone, err)
	}
	o.dispatch[r.ID] = store.DispatchRow{
		Task: r.ID, Queue: r.Queue, Type: r.Type, Priority: r.Priority,
		AvailableAt: at, ConcurrencyKey: r.ConcurrencyKey,
	}
	o.notice.Due = true
}

// withdraw takes back the claimability of a task that does not run: its
// dispatch row, for which a waiter of the same key may come forward, or its
// place among the waiters.
func (o *op) withdraw(r *row) {
	_, dispatched := o.dispatch[r.ID]
	delete(o.dispatch, r.ID)
	delete(o.waiters, r.ID)
	if dispatched {
		o.wake(r.ConcurrencyKey)
	}
	o.tidy(r.ConcurrencyKey)
}

// end moves a task into a terminal state. Its dependents are told by settle.
func (o *op) end(r *row, s task.State, err *task.Error) {
	o.withdraw(r)
	o.move(r, s, task.WaitNone, err)
	r.FinishedAt = o.now
	o.ended = append(o.ended, r)
	o.notice.Settled = append(o.notice.Settled, r.ID)
}

// settle decides the edges towards all tasks that ended in this operation,
// and towards those that end because of it, until none is left.
func (o *op) settle() {
	for len(o.ended) > 0 {
		need := o.ended[0]
		o.ended = o.ended[1:]
		for _, e := range o.dependents[need.ID] {
			if !e.Done {
				o.decide(e, need)
			}
		}
	}
}

// decide counts one edge, whose need has ended: the dependent is one need
// nearer to its start, or will never run. One that ended before stays as it is.
func (o *op) decide(e *store.EdgeRow, need *row) {
	e.Done = true
	r := o.tasks[e.Task]
	if r.State != task.Pending || r.Waiting != task.WaitDeps {
		return
	}
	if holds, _ := e.Kind.Holds(need.State); !holds {
		o.end(r, task.Cancelled, unmet(e.Kind, need))
		return
	}
	r.RemainingDeps--
	if r.RemainingDeps == 0 {
		o.release(r)
	}
}

// unmet is the error of a task whose need ended so that it cannot run.
func unmet(kind task.EdgeKind, need *row) *task.Error {
	if kind == task.OnFailed {
		return &task.Error{
			Kind:    task.KindNotNeeded,
			Message: fmt.Sprintf("not needed: it runs if task %s fails, which ended %s", need.name(), need.State),
		}
	}
	return &task.Error{
		Kind:    task.KindDependencyFailed,
		Message: fmt.Sprintf("it needs task %s, which ended %s", need.name(), need.State),
	}
}
