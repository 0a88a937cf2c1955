// Package propagate applies the consequences of one batch of moves. Waiters of freed
// concurrency keys wake, claimable tasks are dispatched, dependents of ended tasks start or
// end, and jobs are counted.
//
// It works in phases after all moves of the batch, so that the result does not depend on their
// order (ADR 0013). Each phase is one operation on a set of rows, and sees the writes of the
// earlier phases:
//
//  1. Keys with room wake their waiters, which are older than tasks of the batch
//     that are about to queue again.
//  2. Tasks that are claimable again get their dispatch rows.
//  3. The open edges towards all ended tasks are marked. Each dependent is then checked
//     once with all of its marked edges: two needs of one task in one batch both count.
//     It starts when every need that it waits for has ended, or, among the needs whose
//     failure it runs for, when the first went wrong. Dependents that cannot start any
//     more end, and so do parents that end with their children. Their own dependents
//     follow in the same way, level by level.
//  4. The counters and used budgets of jobs change, once for each job. The caller ends
//     the jobs that are exhausted thereby, in a batch of its own.
//
// A run moves at most limit rows. Chores hold the rest, which other transactions work off. The
// result equals that of one run without a limit. A dependent that cannot run is decided by all
// of its ended needs, including those whose edges a chore has not marked yet. Tasks of a job
// that is being cancelled are left to the chore that cancels it.
//
// The operations are separate because two data-modifying expressions of one SQL statement
// would share a snapshot and miss each other's rows.
//
// Package rules decides the moves. A store implements [Ops] with set-based statements. Package
// memstore does not use this package, so that the SQL stores have an independent oracle.
package propagate

import (
	"maps"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Batch collects the consequences of one batch of moves. The zero value is empty and ready for
// use.
type Batch struct {
	keys     map[string]struct{}
	dispatch []store.DispatchRow
	ended    []Ended
	jobs     map[task.ID]JobChange
}

// FreeKey records that a concurrency key may have room. "" means no key.
func (b *Batch) FreeKey(key string) {
	if key == "" {
		return
	}
	if b.keys == nil {
		b.keys = make(map[string]struct{})
	}
	b.keys[key] = struct{}{}
}

// Dispatch records that a task, whose state is written, is claimable again.
func (b *Batch) Dispatch(row store.DispatchRow) { b.dispatch = append(b.dispatch, row) }

// Drop removes a task's Dispatch, because the task has moved on in the same batch.
func (b *Batch) Drop(id task.ID) {
	b.dispatch = slices.DeleteFunc(b.dispatch, func(row store.DispatchRow) bool { return row.Task == id })
}

// End records that a task is in a terminal state. needed reports whether it has dependents.
func (b *Batch) End(id task.ID, end task.End, needed bool) {
	if needed {
		b.ended = append(b.ended, Ended{ID: id, End: end})
	}
}

// EndAfter is End for a task whose edges a chore has marked up to a dependent.
func (b *Batch) EndAfter(id task.ID, end task.End, after task.ID) {
	b.ended = append(b.ended, Ended{ID: id, End: end, After: after})
}

// Count records a move for the counters of the task's job. A zero job is ignored.
func (b *Batch) Count(job task.ID, before, after Contribution) {
	if change := after.count().Sub(before.count()); change != (task.JobCounters{}) {
		b.change(job, JobChange{Change: change})
	}
}

// Add records new tasks for the counters of a job. A zero job is ignored.
func (b *Batch) Add(job task.ID, tasks task.JobCounters) { b.change(job, JobChange{Change: tasks}) }

// Recount derives the state of a job again although its tasks did not move.
func (b *Batch) Recount(job task.ID) { b.change(job, JobChange{}) }

// Use records the attempts and the cost that tasks of a job used of its budget.
func (b *Batch) Use(job task.ID, attempts int, cost int64) {
	b.change(job, JobChange{Attempts: attempts, Cost: cost})
}

// Used returns the usage recorded in this batch.
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

// Result lists the other moves, for the notices after the commit.
type Result struct {
	Ended   []task.ID  // dependents that ended
	Jobs    []JobState // jobs whose state changed
	Callers []Caller   // dependents that ended, or whose undo began, with children that may be unfinished
	Marked  int        // number of edges
	Chores  bool       // chores were added

	Exhausted []task.ID // jobs that end because their budgets are used up
}

// Run runs the phases and empties the batch. now is the transaction's clock. limit is the
// maximum number of marked edges.
func (b *Batch) Run(ops Ops, now time.Time, limit int) (Result, error) {
	r := run{Batch: *b, ops: ops, now: now, limit: limit}
	*b = Batch{}
	err := r.all()
	return r.result, err
}

// run is the state of one Run: the batch with the additions of the phases.
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

// resolveEdges marks the open edges towards ended tasks, and decides about each of their
// dependents.
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
	// Before the dependents are checked, because these edges decide about them too.
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

// waits returns the contribution of a waiting dependent, also if it waits for its children.
func (d *Dependent) waits() Contribution {
	c := Unfinished(task.Pending, task.WaitDeps)
	c.Join = d.Join
	return c
}

// start records that a dependent has no open need left.
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

// cancelDependents ends dependents that cannot run any more, with messages that name the
// needs.
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

// endOne records the end of a dependent that cannot run any more.
func (r *run) endOne(d *Dependent, failure *task.Error) Unmet {
	end := task.End{State: task.Cancelled, Kind: failure.Kind}
	r.Count(d.Job, d.waits(), Contribution{End: end})
	r.End(d.ID, end, d.Needed)
	r.noteEnd(d)
	return Unmet{ID: d.ID, Deadline: d.Deadline, Failure: failure, Undo: d.Undoable.Phase != nil}
}

// mayUndo returns the begin of the undo phase of an ending task, or nil if there is nothing to
// undo.
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

// reasons returns why dependents cannot run: an edge that must hold does not, or no need
// failed whose failure they run for.
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

// notCancelling returns the dependents outside of jobs whose tasks a chore is ending. The
// chore ends the others.
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
