package memstore

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Collect implements store.Ops. It first finds everything to remove and then removes
// it, so that a dry run is the first half.
func (s *Store) Collect(ctx context.Context, ns string, req store.CollectRequest) (store.CollectResult, error) {
	var res store.CollectResult
	if req.Blobs != nil {
		var other error
		err := s.do(ctx, ns, func(o *op) {
			if other = rules.CheckBucket(o.bucket, req.Blobs.Bucket); other == nil {
				res.Blobs = o.collectBlobs(req.Blobs)
			}
		})
		return res, cmp.Or(err, other)
	}
	if req.Expiries {
		err := s.do(ctx, ns, func(o *op) { res.Expired = o.collectExpiries() })
		return res, err
	}
	if req.Feed {
		err := s.do(ctx, ns, func(o *op) { res.More = o.feed.prune(o.now) })
		return res, err
	}
	if req.Stats != nil {
		err := s.do(ctx, ns, func(o *op) { res.Stats = o.stats.merge(req.Stats.Keep, o.now) })
		return res, err
	}
	at, err := rules.ParseCollectCursor(req.After)
	if err != nil {
		return store.CollectResult{}, err
	}
	err = s.do(ctx, ns, func(o *op) {
		c := collecting{op: o, req: &req, gone: map[task.ID]bool{}, limit: rules.CollectLimit(req.Limit)}
		res = c.run(at)
		o.notice.Changed = rules.CollectChanges(&req, &res)
	})
	return res, err
}

// collecting is one batch of a collection.
type collecting struct {
	*op
	req   *store.CollectRequest
	res   store.CollectResult
	limit int              // rows
	moved int              // rows
	gone  map[task.ID]bool // tasks to remove
	jobs  []*task.Job      // jobs to remove
	drop  []*row           // tasks whose values are removed
}

func (c *collecting) run(at rules.CollectCursor) store.CollectResult {
	for more := true; more && at.Stage != rules.CollectEnd; {
		switch at.Stage {
		case rules.CollectJobs:
			more = c.scanJobs(&at)
		case rules.CollectTasks:
			more = c.scanTasks(&at)
		default: // there is no free space to return in memory
			at = at.NextStage()
		}
	}
	c.res.Next = at.String()
	if c.req.DryRun {
		return c.res
	}
	for id := range c.gone {
		c.erase(c.tasks[id])
	}
	for _, j := range c.jobs {
		c.eraseJob(j)
	}
	for _, r := range c.drop {
		c.dropValues(r)
	}
	return c.res
}

// scanJobs reads jobs from the cursor on, until the batch is full or the jobs are too
// young. It reports whether there is room for the next stage.
func (c *collecting) scanJobs(at *rules.CollectCursor) bool {
	young, some := rules.Young(c.req.Retain, c.now)
	var list []*task.Job
	for _, j := range c.op.jobs {
		if some && j.ID.Compare(at.ID) > 0 && j.ID.Compare(rules.FirstID(young)) < 0 {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b *task.Job) int { return a.ID.Compare(b.ID) })
	for _, j := range list {
		if c.moved >= c.limit {
			return false
		}
		at.ID = j.ID
		of := rules.Retained{State: task.State(j.State), At: j.FinishedAt}
		if !rules.Goes(c.req.Retain, &of, c.now) || c.neededOutside(j) || c.isBase(j) || !c.stands(j).IsZero() {
			continue
		}
		c.jobs = append(c.jobs, j)
		c.res.Gone = append(c.res.Gone, j.ID)
		c.res.Jobs++
		for _, r := range c.sorted(func(r *row) bool { return r.JobID == j.ID }) {
			c.gone[r.ID] = true
			c.moved++
		}
	}
	*at = at.NextStage()
	return true
}

// stands returns the first task of a job whose undo was given up, or zero.
func (o *op) stands(j *task.Job) (first task.ID) {
	if rows := o.sorted(func(r *row) bool { return r.JobID == j.ID && r.Undo.Stands() }); len(rows) > 0 {
		return rows[0].ID
	}
	return first
}

// neededOutside reports whether a task outside of a job depends on a task of the job.
func (o *op) neededOutside(j *task.Job) bool {
	for _, r := range o.tasks {
		if r.JobID != j.ID {
			continue
		}
		for _, e := range o.dependents[r.ID] {
			if o.tasks[e.Task].JobID != j.ID {
				return true
			}
		}
	}
	return false
}

// isBase reports whether another job is based on the job.
func (o *op) isBase(j *task.Job) bool {
	for _, other := range o.jobs {
		if slices.Contains(other.BasedOn, j.ID) {
			return true
		}
	}
	return false
}

// scanTasks is scanJobs for tasks: it removes tasks outside of jobs, and the values of
// all tasks.
func (c *collecting) scanTasks(at *rules.CollectCursor) bool {
	young, some := rules.Young(c.req.Retain, c.now)
	list := c.sorted(func(r *row) bool { return some && r.ID.Compare(at.ID) > 0 && r.ID.Compare(rules.FirstID(young)) < 0 })
	for _, r := range list {
		if c.moved >= c.limit {
			return false
		}
		at.ID = r.ID
		of := rules.Retained{State: r.State, Type: r.Type, At: r.FinishedAt, Stands: r.Undo.Stands()}
		switch {
		case c.gone[r.ID]:
		case r.JobID.IsZero() && rules.Goes(c.req.Retain, &of, c.now) && c.removable(r):
			c.res.Tasks += c.mark(r)
		case !r.ValuesDropped && c.dropsValues(r, of):
			c.drop = append(c.drop, r)
			c.res.Dropped++
			c.moved++
		}
	}
	*at = at.NextStage()
	return true
}

// removable reports whether a task can be removed: it and its children have ended, and no
// remaining task has an edge to it.
func (c *collecting) removable(r *row) bool {
	return r.State.Terminal() && !r.Undo.Stands() &&
		!slices.ContainsFunc(c.dependents[r.ID], func(e *store.EdgeRow) bool { return !c.gone[e.Task] }) &&
		!slices.ContainsFunc(c.children(r), func(e *store.EdgeRow) bool { return !e.Done })
}

// mark marks a task for removal, with its children that no other task depends on. It
// returns their number.
func (c *collecting) mark(r *row) int {
	c.gone[r.ID] = true
	c.res.Gone = append(c.res.Gone, r.ID)
	c.moved++
	n := 1
	for _, e := range c.children(r) {
		if child := c.tasks[e.Needs]; !c.gone[child.ID] && c.removable(child) {
			n += c.mark(child)
		}
	}
	return n
}

// dropsValues reports whether the values of a task can be removed: no task that could run
// again reads them.
func (c *collecting) dropsValues(r *row, of rules.Retained) bool {
	if j, ok := c.op.jobs[r.JobID]; ok {
		of.At = j.FinishedAt
		return !rules.JobMayRead(j) && !c.neededOutside(j) && !c.isBase(j) && rules.DropsValues(c.req.Retain, &of, c.now)
	}
	return rules.DropsValues(c.req.Retain, &of, c.now) && len(c.dependents[r.ID]) <= rules.CollectDependents &&
		!slices.ContainsFunc(c.dependents[r.ID], func(e *store.EdgeRow) bool { return c.tasks[e.Task].State != task.Succeeded }) &&
		!c.ancestor(r, func(up *row) bool { return up.State != task.Succeeded })
}

// ancestor reports whether an ancestor of a task satisfies is. The undo of a parent reads
// the results of its children, which read those of their own.
func (o *op) ancestor(r *row, is func(*row) bool) bool {
	for {
		i := slices.IndexFunc(o.dependents[r.ID], func(e *store.EdgeRow) bool { return e.Kind == task.OnDone && e.Awaited > 0 })
		if i < 0 {
			return false
		}
		if r = o.tasks[o.dependents[r.ID][i].Task]; is(r) {
			return true
		}
	}
}

// mayRead reports whether an unfinished task may read the artifacts of a finished one.
// The possible readers are the tasks of its job and of jobs based on that, its dependents
// and its ancestors.
func (o *op) mayRead(r *row) bool {
	for _, j := range o.jobs {
		if j.FinishedAt.IsZero() && slices.Contains(j.BasedOn, r.JobID) {
			return true
		}
	}
	return o.needed(r) || len(o.dependents[r.ID]) > rules.CollectDependents || o.ancestor(r, func(up *row) bool { return !up.State.Terminal() })
}

// needed reports whether the job of a task, or a dependent of the task, has not ended.
func (o *op) needed(r *row) bool {
	j := o.jobs[r.JobID]
	return j != nil && j.FinishedAt.IsZero() ||
		slices.ContainsFunc(o.dependents[r.ID], func(e *store.EdgeRow) bool { return !o.tasks[e.Task].State.Terminal() })
}

// erase removes a task with all its records.
func (o *op) erase(r *row) {
	o.remove(r)
	o.eraseAudit(r.ID)
}

func (o *op) eraseAudit(id task.ID) {
	target := id.String()
	o.audit = slices.DeleteFunc(o.audit, func(a store.AuditEntry) bool { return strings.EqualFold(a.Target, target) })
}

// eraseJob removes a job whose tasks have been removed.
func (o *op) eraseJob(j *task.Job) {
	delete(o.jobs, j.ID)
	if j.IdempotencyKey != "" {
		delete(o.onceJobs, jobKey{j.Name, j.IdempotencyKey})
	}
	o.eraseAudit(j.ID)
}

// dropValues removes the inputs and results of a task.
func (o *op) dropValues(r *row) {
	r.Input, r.Output, r.UnblockInput, r.UnblockFor, r.Progress, r.ValuesDropped = nil, nil, nil, "", nil, true
	for i := range o.steps[r.ID] {
		o.steps[r.ID][i].Value = nil
	}
	for i := range o.signals[r.ID] {
		o.signals[r.ID][i].Payload = json.RawMessage(nil)
	}
	delete(o.refs, r.ID) // of values; artifacts stay
	delete(o.checkpoints, r.ID)
	delete(o.events, r.ID)
}

// deleteJob removes a job with its tasks.
func (o *op) deleteJob(cmd store.DeleteJob) store.CommandResult {
	j, ok := o.jobs[cmd.Job]
	if !ok {
		return store.CommandResult{Err: rules.JobNotFound(cmd.Job)}
	}
	if err := rules.CheckDeleteJob(j, false, o.neededOutside(j), o.isBase(j), o.stands(j)); err != nil {
		return store.CommandResult{Err: err}
	}
	var res store.CommandResult
	for _, r := range o.sorted(func(r *row) bool { return r.JobID == j.ID }) {
		o.erase(r)
		res.Deleted++
	}
	o.eraseJob(j)
	o.note(cmd.Audit, "delete_job", cmd.Job.String())
	return res
}
