package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Enqueue implements store.Core.
func (s *Store) Enqueue(ctx context.Context, ns string, tx store.Tx, sub store.Submission) ([]store.Enqueued, error) {
	if err := rules.CheckEnqueue(&sub); err != nil {
		return nil, err
	}
	if tx != nil {
		t, ok := tx.(*Tx)
		if !ok || t == nil || t.store != s {
			return nil, store.ErrForeignTx
		}
		if err := rules.CheckCoalesce(&sub); err != nil {
			return nil, err
		}
		return t.enqueue(ctx, ns, sub)
	}
	var out []store.Enqueued
	var gone error
	err := s.do(ctx, ns, func(o *op) {
		if gone = cmp.Or(o.usable(rules.TaskBlobs(sub.Tasks)), o.hasBases(sub.Job)); gone == nil {
			out = o.enqueue(sub, task.ID{})
		}
	})
	return out, cmp.Or(err, gone)
}

// enqueue stores the new tasks of a submission in order, and returns the IDs of existing
// ones.
func (o *op) enqueue(sub store.Submission, parent task.ID) []store.Enqueued {
	if id, exists := o.otherJob(sub.Job); exists {
		return existingJob(id, len(sub.Tasks))
	}
	out := make([]store.Enqueued, len(sub.Tasks))
	for i := range sub.Tasks {
		n := &sub.Tasks[i]
		known, ok := o.known(n)
		if n.Coalesce && (!ok || known.Disposition == store.DispositionExisting) {
			if r := o.takesInput(n, known.ID); r != nil {
				known, ok = store.Enqueued{ID: r.ID, Disposition: store.DispositionCoalesced}, true
			}
		}
		if !ok {
			known = store.Enqueued{ID: n.ID, Disposition: store.DispositionCreated}
			o.insert(n, sub.Job, parent)
		}
		out[i] = known
	}
	return out
}

// known reports whether a task already exists: by its ID, stored by an earlier try of the
// same call, or by its idempotency key.
func (sp *space) known(n *task.New) (store.Enqueued, bool) {
	if _, ok := sp.tasks[n.ID]; ok {
		return store.Enqueued{ID: n.ID, Disposition: store.DispositionCreated}, true
	}
	if n.IdempotencyKey != "" {
		if id, ok := sp.idempotent[idempotency{n.Type, n.IdempotencyKey}]; ok {
			return store.Enqueued{ID: id, Disposition: store.DispositionExisting}, true
		}
	}
	return store.Enqueued{}, false
}

// otherJob returns the job with the same key as a submission's job, if it is another job.
func (sp *space) otherJob(n *task.NewJob) (id task.ID, exists bool) {
	if n == nil || n.IdempotencyKey == "" {
		return task.ID{}, false
	}
	id, exists = sp.onceJobs[jobKey{n.Name, n.IdempotencyKey}]
	return id, exists && id != n.ID
}

// hasBases returns an error if a base of a new job does not exist.
func (sp *space) hasBases(n *task.NewJob) error {
	if n == nil {
		return nil
	}
	if _, exists := sp.otherJob(n); exists {
		return nil
	}
	for _, id := range n.BasedOn {
		if sp.jobs[id] == nil {
			return rules.JobNotFound(id)
		}
	}
	return nil
}

// existingJob returns the results for the n tasks of a job whose key another job has.
func existingJob(id task.ID, n int) []store.Enqueued {
	return slices.Repeat([]store.Enqueued{{Job: id, Disposition: store.DispositionExisting}}, n)
}

// insert stores a new task with its edges, and makes it claimable if it has no
// dependencies.
func (o *op) insert(n *task.New, job *task.NewJob, parent task.ID) {
	r := &row{Task: newTask(n, o.now)}
	r.ParentID = parent
	var jobDeadline time.Time
	if job != nil {
		j := o.jobOf(job)
		r.JobID, jobDeadline = j.ID, j.DeadlineAt
	}
	r.DeadlineAt = rules.Deadline(n, jobDeadline, o.now)
	o.place(r, n)
}

// place stores the row of a new task that already has its job and deadline.
func (o *op) place(r *row, n *task.New) {
	o.watch(r)
	o.tasks[r.ID] = r
	o.refer(r.ID, refInput, "", r.Input)
	o.watchExpiry(r, r.Expire)
	if r.IdempotencyKey != "" {
		o.idempotent[idempotency{r.Type, r.IdempotencyKey}] = r.ID
	}
	for _, edge := range n.Needs {
		o.link(&store.EdgeRow{Task: r.ID, Needs: edge.Needs, Kind: edge.Kind})
	}
	r.RemainingDeps = len(n.Needs)
	r.Undo = rules.FirstPhase(n.Needs, o.now)
	r.State, r.Waiting, r.ReadyAt = rules.FirstState(n, o.now)
	o.tell(r.told(store.FeedEnqueued))
	o.count(r, task.JobCounters{}, r.counted(r.Waiting))
	if r.RemainingDeps == 0 {
		o.makeReady(r, r.ReadyAt, task.WaitDelay, nil)
	}
}

// newTask converts a draft. State, deadline and edges follow later.
func newTask(n *task.New, now time.Time) task.Task {
	t := n.Task()
	t.CreatedAt, t.UpdatedAt = n.ID.Time(), now
	return t
}

// jobOf returns the job of a submission; its first task stores it.
func (o *op) jobOf(n *task.NewJob) *task.Job {
	if j, ok := o.jobs[n.ID]; ok {
		return j
	}
	j := &task.Job{
		ID: n.ID, Name: n.Name, Budget: n.Budget, Meta: copyMap(n.Meta), IdempotencyKey: n.IdempotencyKey, BasedOn: slices.Clone(n.BasedOn),
		CreatedAt: n.ID.Time(), UpdatedAt: o.now,
	}
	j.DeadlineAt = rules.JobDeadline(n.Budget, o.now)
	o.jobs[j.ID] = j
	if j.IdempotencyKey != "" {
		o.onceJobs[jobKey{j.Name, j.IdempotencyKey}] = j.ID
	}
	return j
}

// link stores an edge at both of its ends.
func (sp *space) link(e *store.EdgeRow) {
	sp.needs[e.Task] = append(sp.needs[e.Task], e)
	sp.dependents[e.Needs] = append(sp.dependents[e.Needs], e)
	sortLast(sp.needs[e.Task])
	sortLast(sp.dependents[e.Needs])
}

// sortLast moves the last edge of an otherwise sorted list to its place.
func sortLast(list []*store.EdgeRow) {
	if n := len(list); n > 1 && byEdge(list[n-2], list[n-1]) > 0 {
		slices.SortFunc(list, byEdge)
	}
}
