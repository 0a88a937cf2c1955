// Package propagate does what follows from the moves of one batch: waiters of
// freed concurrency keys wake, tasks that are claimable again are dispatched,
// dependents of tasks that ended start or end themselves, jobs are counted.
//
// It does so in phases, when all moves of the batch are made, so that the result
// does not depend on their order (ADR 0013). Each phase is one operation on a
// set of rows, and each sees what the phases before it have written:
//
//  1. Keys with room wake their waiters, which are older than tasks of the batch
//     that are about to queue again.
//  2. Tasks that are claimable again get their dispatch rows.
//  3. The open edges towards all tasks that ended are marked. Each dependent is
//     then looked at once, with all of its edges that were marked: two needs of
//     one task in one batch both count. It starts when all needs have ended that
//     it waits for, of those whose failure it runs for the first that went wrong.
//     Dependents that cannot start any more end, and so do parents that end with
//     their children; these have their own dependents looked at, until none is left.
//  4. The counters of jobs change, once for each job, and what they have used of
//     their budgets. Jobs that are exhausted by that are for the caller to end, whose
//     moves are a batch of their own.
//
// No run moves more rows than its limit: what is left becomes chores, which other
// transactions work off. The result is that of one run without a limit: a
// dependent that cannot run is decided by all of its needs that have ended, those
// whose edges a chore is still to mark among them, and tasks of a job that is
// being cancelled are left to the chore that does it.
//
// Two data-modifying expressions of one SQL statement would share a snapshot and
// miss each other's rows; that is why these are separate operations.
//
// What the moves mean is decided in package rules. A store implements [Ops] with
// statements over sets; package memstore does not use this package, so that the
// SQL stores have an independent oracle.
package propagate

import (
	"maps"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Batch gathers what follows from the moves of one batch. The zero value is
// empty and ready for use.
type Batch struct {
	keys     map[string]struct{}
	dispatch []store.DispatchRow
	ended    []Ended
	jobs     map[task.ID]JobChange
}

// FreeKey notes that a concurrency key may have room. "" is no key.
func (b *Batch) FreeKey(key string) {
	if key == "" {
		return
	}
	if b.keys == nil {
		b.keys = make(map[string]struct{})
	}
	b.keys[key] = struct{}{}
}

// Dispatch notes that a task, whose state is written, is claimable again.
func (b *Batch) Dispatch(row store.DispatchRow) { b.dispatch = append(b.dispatch, row) }

// Drop takes back that a task is claimable again: it has moved on in the same batch.
func (b *Batch) Drop(id task.ID) {
	b.dispatch = slices.DeleteFunc(b.dispatch, func(row store.DispatchRow) bool { return row.Task == id })
}

// End notes that a task is in a terminal state. needed reports whether an edge
// leads to it.
func (b *Batch) End(id task.ID, end task.End, needed bool) {
	if needed {
		b.ended = append(b.ended, Ended{ID: id, End: end})
	}
}

// EndAfter is End for a task of which a chore has marked edges, up to a dependent.
func (b *Batch) EndAfter(id task.ID, end task.End, after task.ID) {
	b.ended = append(b.ended, Ended{ID: id, End: end, After: after})
}

// Count notes a move for the counters of the task's job; a zero job has none.
func (b *Batch) Count(job task.ID, before, after Contribution) {
	if change := after.count().Sub(before.count()); change != (task.JobCounters{}) {
		b.change(job, JobChange{Change: change})
	}
}

// Add notes new tasks for the counters of a job; a zero job has none.
func (b *Batch) Add(job task.ID, tasks task.JobCounters) { b.change(job, JobChange{Change: tasks}) }

// Recount has the state of a job derived anew though none of its tasks moved.
func (b *Batch) Recount(job task.ID) { b.change(job, JobChange{}) }

// Use notes what the tasks of a job have used of its budget: attempts, and cost.
func (b *Batch) Use(job task.ID, attempts int, cost int64) {
	b.change(job, JobChange{Attempts: attempts, Cost: cost})
}

// Used is what this batch has used so far.
func (b *Batch) Used(job task.ID) (attempts int, cost int64) {
	return b.jobs[job].Attempts, b.jobs[job].Cost
}

func (b *Batch) change(job task.ID, more JobChange) {
	if job.IsZero() {
		return
	}
	if b.jobs == nil {
		b.jobs = make(map[task.ID]JobChange)
	}
	sum := b.jobs[job]
	b.jobs[job] = JobChange{job, sum.Change.Add(more.Change), sum.Attempts + more.Attempts, sum.Cost + more.Cost}
}

// Result names what else has moved, for the notices after the commit.
type Result struct {
	Ended   []task.ID  // dependents that ended
	Jobs    []JobState // that got another state
	Callers []Caller   // dependents that ended, or whose undo began, with children that may not have
	Marked  int        // edges
	Chores  bool       // some were added

	Exhausted []task.ID // jobs that are to end, because their budgets are used up
}

// Run does the phases, and empties the batch. now is the transaction's clock,
// limit the number of edges that are marked at most.
func (b *Batch) Run(ops Ops, now time.Time, limit int) (Result, error) {
	r := run{Batch: *b, ops: ops, now: now, limit: limit}
	*b = Batch{}
	err := r.all()
	return r.result, err
}

// run is one Run: the batch, with what the phases add to it.
type run struct {
	Batch
	ops    Ops
	now    time.Time
	limit  int
	result Result
}

func (r *run) all() error {
	var keys []string // to be woken again
	if len(r.keys) > 0 {
		var err error
		if keys, err = r.ops.WakeKeys(slices.Sorted(maps.Keys(r.keys))); err != nil {
			return err
		}
	}
	if err := r.insertDispatch(); err != nil {
		return err
	}
	for len(r.ended) > 0 {
		ended := r.ended
		r.ended = nil
		if err := r.resolveEdges(ended); err != nil {
			return err
		}
		if err := r.insertDispatch(); err != nil {
			return err
		}
	}
	if err := r.later(keys, nil); err != nil {
		return err
	}
	return r.countJobs()
}

// later leaves work to chores.
func (r *run) later(keys []string, ended []Ended) error {
	if len(keys)+len(ended) == 0 {
		return nil
	}
	r.result.Chores = true
	return r.ops.AddChores(keys, ended)
}

func (r *run) insertDispatch() error {
	rows := r.dispatch
	r.dispatch = nil
	if len(rows) == 0 {
		return nil
	}
	slices.SortFunc(rows, func(a, b store.DispatchRow) int { return a.Task.Compare(b.Task) })
	return r.ops.InsertDispatch(rows)
}

// resolveEdges marks the open edges towards tasks that ended, and decides about
// each of their dependents.
func (r *run) resolveEdges(ended []Ended) error {
	slices.SortFunc(ended, func(a, b Ended) int { return a.ID.Compare(b.ID) })
	limit := r.limit - r.result.Marked
	if limit <= 0 {
		return r.later(nil, ended)
	}
	edges, rest, err := r.ops.MarkEdges(ended, limit)
	if err != nil {
		return err
	}
	r.result.Marked += len(edges)
	// Before the dependents are looked at, which are decided by these too.
	if err := r.later(nil, rest); err != nil || len(edges) == 0 {
		return err
	}
	byDependent := make(map[task.ID][]rules.EndedNeed)
	calls := make(map[call]int)
	for i := range edges {
		e := &edges[i]
		if e.Step != "" {
			calls[call{e.Dependent, e.Step}]++
			continue
		}
		byDependent[e.Dependent] = append(byDependent[e.Dependent], e.EndedNeed)
	}
	marked := make([]Marked, 0, len(byDependent))
	for id, needs := range byDependent {
		marked = append(marked, Marked{id, rules.SumMarked(needs)})
	}
	if err := r.lowerCalls(calls); err != nil || len(marked) == 0 {
		return err
	}
	slices.SortFunc(marked, func(a, b Marked) int { return a.ID.Compare(b.ID) })
	dependents, err := r.ops.LowerNeeds(marked)
	if err != nil {
		return err
	}
	var ready []Ready
	var unmet, joined, undos []*Dependent
	for i := range dependents {
		d := &dependents[i]
		switch {
		case d.Undoable.Phase != nil:
			undos = append(undos, d)
		case d.Join == task.JoinComplete && d.Waits.Open == 0:
			joined = append(joined, d)
		case d.Waits.NotNeeded() || rules.Blame(byDependent[d.ID]) != nil:
			unmet = append(unmet, d)
		case d.Waits.Open == 0:
			ready = append(ready, r.start(d))
		}
	}
	if len(ready) > 0 {
		if err := r.ops.MakeReady(ready); err != nil {
			return err
		}
	}
	if err := r.join(joined); err != nil {
		return err
	}
	if err := r.decideUndos(undos, byDependent); err != nil {
		return err
	}
	return r.cancelDependents(unmet, byDependent)
}

// waits is how a dependent counts that is looked at, also if it waits for its
// children.
func (d *Dependent) waits() Contribution {
	c := Unfinished(task.Pending, task.WaitDeps)
	c.Join = d.Join
	return c
}

// start notes that a dependent has no open need left.
func (r *run) start(d *Dependent) Ready {
	state, waiting := rules.Available(d.ReadyAt, task.WaitDelay, r.now)
	row := d.Dispatch
	row.AvailableAt = r.now
	if state == task.Pending {
		row.AvailableAt = d.ReadyAt
	}
	r.Dispatch(row)
	r.Count(d.Job, d.waits(), Unfinished(state, waiting))
	return Ready{d.ID, state, waiting}
}

// cancelDependents ends dependents that cannot run any more, with messages that
// name the needs.
func (r *run) cancelDependents(unmet []*Dependent, ended map[task.ID][]rules.EndedNeed) error {
	unmet, err := r.notCancelling(unmet)
	if err != nil || len(unmet) == 0 {
		return err
	}
	return r.endUnmet(unmet, ended)
}

// endUnmet ends dependents that cannot run any more.
func (r *run) endUnmet(unmet []*Dependent, ended map[task.ID][]rules.EndedNeed) error {
	ids := make([]task.ID, len(unmet))
	for i, d := range unmet {
		ids[i] = d.ID
	}
	unmarked, err := r.ops.Unmarked(ids)
	if err != nil {
		return err
	}
	for i := range unmarked {
		e := &unmarked[i]
		ended[e.Dependent] = append(ended[e.Dependent], e.EndedNeed)
	}
	reasons, err := r.reasons(ids, ended)
	if err != nil {
		return err
	}
	ends := make([]Unmet, 0, len(unmet))
	var begins []Undoing
	for i, d := range unmet {
		if u := r.mayUndo(d, task.Cancelled, reasons[i]); u != nil {
			begins = append(begins, *u)
			continue
		}
		ends = append(ends, r.endOne(d, reasons[i]))
	}
	if err := r.beginUndo(begins); err != nil || len(ends) == 0 {
		return err
	}
	return r.ops.CancelDependents(ends)
}

// endOne notes the end of a dependent that cannot run any more.
func (r *run) endOne(d *Dependent, failure *task.Error) Unmet {
	end := task.End{State: task.Cancelled, Kind: failure.Kind}
	r.Count(d.Job, d.waits(), Contribution{End: end})
	r.End(d.ID, end, d.Needed)
	r.noteEnd(d)
	return Unmet{ID: d.ID, Deadline: d.Deadline, Failure: failure, Undo: d.Undoable.Phase != nil}
}

// mayUndo returns the begin of the undo phase of a task that is to end, nil if there is
// nothing to undo.
func (r *run) mayUndo(d *Dependent, state task.State, failure *task.Error) *Undoing {
	u := Undoing{ID: d.ID, Deadline: d.Deadline, To: rules.Transition{State: state, Failure: failure}}
	if !u.To.BeginUndo(&d.Undoable, time.Time{}, r.now) {
		return nil
	}
	row := d.Dispatch
	row.AvailableAt = u.To.ReadyAt
	r.Dispatch(row)
	r.Count(d.Job, d.waits(), Unfinished(u.To.State, u.To.Waiting))
	r.result.Callers = append(r.result.Callers, Caller{d.ID, d.Job})
	return &u
}

func (r *run) beginUndo(tasks []Undoing) error {
	if len(tasks) == 0 {
		return nil
	}
	return r.ops.BeginUndo(tasks)
}

// reasons says why dependents cannot run: for an edge that has to hold, or
// because none of the needs failed for whose failure they run.
func (r *run) reasons(ids []task.ID, ended map[task.ID][]rules.EndedNeed) ([]*task.Error, error) {
	blamed, others := make([]*rules.EndedNeed, len(ids)), make(map[task.ID]bool)
	var notNeeded []task.ID
	for i, id := range ids {
		if blamed[i] = rules.Blame(ended[id]); blamed[i] == nil {
			notNeeded = append(notNeeded, id)
		}
	}
	if len(notNeeded) > 0 {
		edges, err := r.ops.IfFailed(notNeeded)
		if err != nil {
			return nil, err
		}
		first := make(map[task.ID]*rules.EndedNeed, len(notNeeded))
		for i := range edges {
			if e := &edges[i]; first[e.Dependent] == nil {
				first[e.Dependent] = &e.EndedNeed
			} else {
				others[e.Dependent] = true
			}
		}
		for i, id := range ids {
			if blamed[i] == nil {
				blamed[i] = first[id]
			}
		}
	}
	needs := make([]task.ID, len(ids))
	for i := range blamed {
		needs[i] = blamed[i].Need
	}
	nodes, err := r.ops.Nodes(needs)
	if err != nil {
		return nil, err
	}
	reasons := make([]*task.Error, len(ids))
	for i, need := range blamed {
		name := rules.TaskName(nodes[i], need.Need)
		if need.Kind == task.OnFailed {
			reasons[i] = rules.NotNeededFailure(need, others[ids[i]], name)
		} else {
			reasons[i] = rules.UnmetFailure(need, name)
		}
	}
	return reasons, nil
}

// notCancelling returns the dependents that are not of a job whose tasks a chore
// ends: it ends those, too.
func (r *run) notCancelling(list []*Dependent) (kept []*Dependent, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	jobs := make([]task.ID, len(list))
	for i, d := range list {
		jobs[i] = d.Job
	}
	cancelling, err := r.ops.Cancelling(jobs)
	for i, d := range list {
		if err == nil && !cancelling[i] {
			kept = append(kept, d)
		}
	}
	return kept, err
}

func (r *run) countJobs() error {
	if len(r.jobs) == 0 {
		return nil
	}
	changes := make([]JobChange, 0, len(r.jobs))
	for _, c := range r.jobs {
		changes = append(changes, c)
	}
	slices.SortFunc(changes, func(a, b JobChange) int { return a.Job.Compare(b.Job) })
	var err error
	r.result.Jobs, r.result.Exhausted, err = r.ops.CountJobs(changes)
	return err
}
