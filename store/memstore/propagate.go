package memstore

import (
	"maps"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// move changes a task's state and its job's counters.
func (o *op) move(r *row, to task.State, why task.Waiting, err *task.Error) {
	before, from := r.counted(r.Waiting), r.State
	r.State, r.Waiting, r.Error = to, why, err
	r.UpdatedAt = o.now
	o.tellMove(r, from)
	o.count(r, before, r.counted(why))
}

// counted returns a task's contribution to its job's counters while it waits.
func (r *row) counted(why task.Waiting) task.JobCounters {
	return task.Count(r.End(), why, r.Join, !r.ReadyAt.IsZero())
}

// count updates the counters of a task's job, which determine its state.
func (o *op) count(r *row, before, after task.JobCounters) {
	j, ok := o.jobs[r.JobID]
	if !ok || before == after {
		return
	}
	j.Counters = j.Counters.Sub(before).Add(after)
	o.resolveJob(j)
}

// resolveJob derives a job's state from its counters.
func (o *op) resolveJob(j *task.Job) {
	if _, seen := o.jobWas[j]; !seen {
		o.jobWas[j] = j.State
	}
	j.State = task.JobStateOf(j.Counters, j.CancelRequested)
	j.UpdatedAt = o.now
	switch {
	case !j.State.Terminal():
		j.FinishedAt = time.Time{}
	case j.FinishedAt.IsZero():
		j.FinishedAt = o.now
	}
	o.counted = append(o.counted, j)
}

// makeReady makes a task claimable from an instant on (W1): propagate creates its
// dispatch row in the same operation. why is the reason for waiting until then.
func (o *op) makeReady(r *row, at time.Time, why task.Waiting, err *task.Error) {
	o.makeReadyAt(r, later(at, o.now), why, err)
}

// makeReadyAt is makeReady that also accepts an instant in the past.
func (o *op) makeReadyAt(r *row, at time.Time, why task.Waiting, err *task.Error) {
	state, waiting := rules.Available(at, why, o.now)
	o.move(r, state, waiting, err)
	o.ready = append(o.ready, r.dispatchRow(at))
}

// unschedule makes a task that does not run unclaimable: it removes the dispatch row, so
// that a waiter of the same key may proceed, or the waiter row.
func (o *op) unschedule(r *row) {
	delete(o.dispatch, r.ID)
	delete(o.waiters, r.ID)
	// It may have become claimable in the same batch.
	o.ready = slices.DeleteFunc(o.ready, func(d store.DispatchRow) bool { return d.Task == r.ID })
	if p, ok := o.pausedTask[r.ID]; ok {
		p.due = time.Time{}
	}
	if r.ConcurrencyKey != "" {
		o.freed[r.ConcurrencyKey] = true
	}
}

// end moves a task into a terminal state. propagate resolves its dependents.
func (o *op) end(r *row, s task.State, err *task.Error) {
	o.unschedule(r)
	o.move(r, s, task.WaitNone, err)
	r.FinishedAt = o.now
	o.ended = append(o.ended, r)
	o.notice.Tasks = append(o.notice.Tasks, r.ID)
	if !r.UndoOf.IsZero() {
		o.wakeUndo(r)
	}
}

// propagate applies the consequences of a batch after all of its moves, so that the
// result does not depend on their order (ADR 0013):
//
//   - the children of tasks that ended before them are cancelled
//   - keys with room wake their waiters, which are older than tasks of the batch that are about to queue again
//   - tasks that are claimable again get their dispatch rows
//   - the edges toward ended tasks are marked, then those toward tasks that end by that, until no edge is left
//   - jobs whose budgets are exhausted by then end their remaining tasks, which has the same consequences
//
// Package internal/propagate does the same for the SQL stores; this is its oracle and
// shares only the rules with it.
func (o *op) propagate() {
	for o.settle(); o.exhaust(); {
		o.settle()
	}
}

// settle performs all of these but the last.
func (o *op) settle() {
	o.cancelChildren()
	o.wakeFreed()
	o.dispatchReady()
	for len(o.ended) > 0 {
		o.cancelChildren()
		ended := o.ended
		o.ended = nil
		o.resolveEdges(ended)
		o.dispatchReady()
	}
}

func (o *op) dispatchReady() {
	for _, d := range o.ready {
		if o.park(d) {
			continue
		}
		o.dispatch[d.Task] = d
		o.notice.Due = true
	}
	o.ready = nil
}

// resolveEdges marks the edges whose dependencies have ended. Each dependent comes closer
// to its start, or can never run. A dependent that has already started or ended does not
// change.
func (o *op) resolveEdges(ended []*row) {
	marked, calls := map[*row][]rules.EndedNeed{}, map[call]int{}
	for _, need := range ended {
		for _, e := range o.dependents[need.ID] {
			if !e.Done {
				mark(e, need)
				d := o.tasks[e.Task]
				if e.Step != "" {
					calls[call{d, e.Step}]++
					continue
				}
				marked[d] = append(marked[d], rules.EndedNeed{Need: need.ID, Kind: e.Kind, End: need.End()})
			}
		}
	}
	for _, r := range slices.SortedFunc(maps.Keys(marked), func(a, b *row) int { return a.ID.Compare(b.ID) }) {
		if !rules.WaitsForTasks(r.State, r.Waiting, r.Join) {
			continue
		}
		waits := rules.TaskWaits(r.Join, o.needsOf(r), rules.Unmarked)
		r.RemainingDeps = waits.Open
		if r.Undo.Runs() {
			o.decideUndo(r, marked[r])
			continue
		}
		if need := rules.Blame(marked[r]); need != nil {
			o.fail(r, task.Cancelled, rules.UnmetFailure(need, o.tasks[need.Need].name()))
		} else if waits.NotNeeded() {
			o.fail(r, task.Cancelled, o.notNeeded(r))
		} else if waits.Open == 0 && r.Join == task.JoinComplete {
			o.join(r)
		} else if waits.Open == 0 {
			o.makeReady(r, r.ReadyAt, task.WaitDelay, r.Error)
			r.Join = task.JoinNone // it counted as waiting before
		}
	}
	o.lowerCalls(calls)
}

// decideUndo begins or ends an undo task if all of its dependencies have ended, or if the
// undo that it waits for was given up.
func (o *op) decideUndo(r *row, ended []rules.EndedNeed) {
	if need := rules.Blame(ended); need != nil {
		failure := rules.UnmetFailure(need, o.tasks[need.Need].name())
		o.leave(r, &rules.Transition{State: task.Cancelled, SetUndo: true, Failure: failure})
		return
	}
	if r.RemainingDeps > 0 {
		return
	}
	var needs []rules.UndoNeed
	for _, e := range o.needs[r.ID] {
		need := o.tasks[e.Needs]
		needs = append(needs, rules.UndoNeed{Kind: e.Kind, End: need.End(), Began: need.AttemptNo > 0, Name: need.name()})
	}
	j := o.jobs[r.JobID]
	to := rules.DecideUndo(needs, j != nil && j.CancelRequested, o.now)
	o.leave(r, &to)
}

// notNeeded returns the reason for which a task does not run although no dependency
// failed.
func (o *op) notNeeded(r *row) *task.Error {
	var first *rules.Need
	others := false
	needs := o.needsOf(r)
	for i := range needs {
		if n := &needs[i]; n.Kind == task.OnFailed {
			others = first != nil
			if first == nil {
				first = n
			}
		}
	}
	return rules.NotNeededFailure(&first.EndedNeed, others, first.Name)
}

// needsOf returns the edges of a task, ordered by dependency.
func (o *op) needsOf(r *row) []rules.Need {
	needs := make([]rules.Need, 0, len(o.needs[r.ID]))
	for _, e := range o.needs[r.ID] {
		need := o.tasks[e.Needs]
		needs = append(needs, rules.Need{
			EndedNeed: rules.EndedNeed{Need: need.ID, Kind: e.Kind, End: need.End()}, Name: need.name(), Marked: e.Done,
			Awaited: e.Awaited, CancelKind: need.CancelKind, Step: e.Step, Recorded: e.EndedState,
		})
	}
	return needs
}
