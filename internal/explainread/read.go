package explainread

import (
	"context"
	"errors"
	"slices"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Source is what an explanation needs of a client and its store.
type Source interface {
	History(context.Context, weaver.TaskID) (store.History, error)
	List(context.Context, weaver.Filter) ([]weaver.TaskInfo, string, error)
	Job(context.Context, weaver.JobID) (weaver.JobInfo, error)
	JobStatus(context.Context, weaver.JobID) (weaver.JobStatus, error)
	Edges(context.Context, weaver.JobID) ([]store.GraphEdge, error)
	Orphans(context.Context, ...weaver.TaskID) ([]weaver.TaskID, error)
	Workers(context.Context) ([]store.WorkerStatus, error)
	Overview(context.Context, store.OverviewRequest) (store.Overview, error)
	Stats(context.Context, ops.StatsRequest) (ops.Stats, error)
}

// Reader explains what a source has.
type Reader struct {
	Source

	// TakeOver returns the command lines that go on with a task of a job, nil: of none,
	// whose worker's process is dead. Without it dead workers are not looked for.
	TakeOver func(job *task.Job) []string

	// Runs reports whether the command lines of TakeOver run tasks of a type; nil: they run none
	// that no worker runs.
	Runs func(taskType string) bool
}

// Explain explains the task or job that has an ID; ErrNotFound.
func (r Reader) Explain(ctx context.Context, e explain.Explainer, id task.ID) (*explain.Explanation, error) {
	x, err := r.ExplainTask(ctx, e, id)
	if errors.Is(err, store.ErrNotFound) {
		return r.ExplainJob(ctx, e, id)
	}
	return x, err
}

// ExplainTask explains a task; ErrNotFound.
func (r Reader) ExplainTask(ctx context.Context, e explain.Explainer, id task.ID) (*explain.Explanation, error) {
	h, err := r.History(ctx, id)
	if err != nil {
		return nil, err
	}
	prepare(&e)
	if e.OfJob, err = r.JobOf(ctx, &h.Task); err != nil {
		return nil, err
	}
	if e.Root, err = r.rootOf(ctx, &h.Task); err != nil {
		return nil, err
	}
	look := []*task.Task{&h.Task}
	if n := len(e.Root); n > 0 {
		look = append(look, e.Root[n-1])
	}
	if err := r.FindGone(ctx, e.Clock, look...); err != nil {
		return nil, err
	}
	var running explain.Running
	if t := &h.Task; t.State == task.Ready {
		list, next, err := r.List(ctx, weaver.Filter{States: []task.State{task.Running}, Types: []string{t.Type}})
		if err != nil {
			return nil, err
		}
		running = explain.Running{Tasks: list, More: next != ""}
	}
	if e.Pace, err = r.pace(ctx, &h, running.Tasks); err != nil {
		return nil, err
	}
	start, err := r.startWorker(ctx, &h.Task)
	if err != nil {
		return nil, err
	}
	return r.gather(ctx, e.Clock, func(known explain.Known) (*explain.Explanation, []task.ID) {
		x, missing := e.Task(&h, running, known)
		x.Actions = slices.Concat(start, x.Actions)
		return x, missing
	})
}

// ExplainJob explains a job; ErrNotFound.
func (r Reader) ExplainJob(ctx context.Context, e explain.Explainer, id task.ID) (*explain.Explanation, error) {
	st, err := r.JobStatus(ctx, id)
	if err != nil {
		return nil, err
	}
	tasks, err := r.jobTasks(ctx, id)
	if err != nil {
		return nil, err
	}
	prepare(&e)
	look := make([]*task.Task, len(tasks))
	for i := range tasks {
		look[i] = &tasks[i]
	}
	if err := r.FindGone(ctx, e.Clock, look...); err != nil {
		return nil, err
	}
	e.OfJob = &st.JobInfo
	start, err := r.startWorker(ctx, look...)
	if err != nil {
		return nil, err
	}
	return r.gather(ctx, e.Clock, func(known explain.Known) (*explain.Explanation, []task.ID) {
		x, missing := e.Job(&st.JobInfo, tasks, known)
		x.Actions = slices.Concat(start, x.Actions)
		if st.Bottleneck != "" {
			x.Notes = slices.Insert(x.Notes, 0, text.Stop("What holds it up: "+st.Bottleneck))
		}
		return x, missing
	})
}

// startWorker returns the actions that start a worker of tasks that are due, or wait for a
// time, if none runs their type. The tasks are of one job, or of none.
func (r Reader) startWorker(ctx context.Context, tasks ...*task.Task) (list []explain.Action, err error) {
	tasks = slices.DeleteFunc(slices.Clone(tasks), func(t *task.Task) bool {
		return t.State != task.Ready && (t.State != task.Pending || !explain.WaitsForTime(t.Waiting))
	})
	if len(tasks) == 0 || r.Runs == nil || r.TakeOver == nil {
		return nil, nil
	}
	workers, err := r.Workers(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range tasks {
		if !r.Runs(t.Type) || slices.ContainsFunc(workers, func(w store.WorkerStatus) bool {
			return !w.Silent && !w.Dead && slices.Contains(w.Types, t.Type)
		}) {
			continue
		}
		var job *task.Job
		if j, err := r.Job(ctx, t.JobID); err == nil {
			job = &j
		} else if !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		target := explain.Target{Kind: explain.TargetTask, ID: t.ID.String()}
		for _, command := range r.TakeOver(job) {
			list = append(list, explain.Action{Verb: explain.VerbRun, Target: target, Command: command, Effect: "runs what is due"})
		}
		return list, nil
	}
	return nil, nil
}

func prepare(e *explain.Explainer) {
	if e.Gone == nil {
		e.Gone = make(map[task.ID][]string)
	}
}

// gather reads the histories that an explanation lacks, until none are missing.
func (r Reader) gather(ctx context.Context, c explain.Clock, ask func(explain.Known) (*explain.Explanation, []task.ID)) (*explain.Explanation, error) {
	known := make(explain.Known)
	for {
		x, missing := ask(known)
		if len(missing) == 0 {
			return x, nil
		}
		for _, id := range missing {
			h, err := r.History(ctx, id)
			switch {
			case err == nil:
				known[id] = &h
				if err := r.FindGone(ctx, c, &h.Task); err != nil {
					return nil, err
				}
			case errors.Is(err, store.ErrNotFound):
				known[id] = nil
			default:
				return nil, err
			}
		}
	}
}

// rootOf finds the way from a task to the root cause of its wait or cancel, from
// all tasks and edges of its job.
func (r Reader) rootOf(ctx context.Context, t *task.Task) ([]*task.Task, error) {
	if t.JobID.IsZero() || t.State != task.Pending && t.State != task.Cancelled {
		return nil, nil
	}
	edges, err := r.Edges(ctx, t.JobID)
	if err != nil || len(edges) == 0 {
		return nil, err
	}
	tasks, err := r.jobTasks(ctx, t.JobID)
	if err != nil {
		return nil, err
	}
	return explain.RootOf(t, tasks, edges), nil
}

// jobTasks reads all tasks of a job, in the order of their creation, without their values:
// no explanation has them, and together they may be large.
func (r Reader) jobTasks(ctx context.Context, id task.ID) (all []task.Task, err error) {
	for f := (weaver.Filter{Job: id, Limit: 200}); ; {
		page, next, err := r.List(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range page {
			page[i].Input, page[i].Output, page[i].UnblockInput = nil, nil, nil
		}
		all = append(all, page...)
		if f.After = next; next == "" {
			slices.Reverse(all)
			return all, nil
		}
	}
}

// JobOf returns the job of a task that its deadline may have ended; nil for other
// tasks.
func (r Reader) JobOf(ctx context.Context, t *task.Task) (*task.Job, error) {
	if t.JobID.IsZero() || t.State != task.Cancelled {
		return nil, nil
	}
	j, err := r.Job(ctx, t.JobID)
	return &j, err
}

// FindGone adds those of the tasks to c.Gone whose worker is known to be dead, with what
// TakeOver says.
func (r Reader) FindGone(ctx context.Context, c explain.Clock, tasks ...*task.Task) error {
	byID := make(map[task.ID]*task.Task)
	var running []task.ID
	for _, t := range tasks {
		if _, known := c.Gone[t.ID]; t.State == task.Running && !known {
			byID[t.ID] = t
			running = append(running, t.ID)
		}
	}
	if len(running) == 0 || r.TakeOver == nil {
		return nil
	}
	orphans, err := r.Orphans(ctx, running...)
	if err != nil {
		return err
	}
	jobs := map[task.ID][]string{{}: r.TakeOver(nil)}
	for _, id := range orphans {
		job := byID[id].JobID
		if _, seen := jobs[job]; !seen {
			j, err := r.Job(ctx, job)
			if err != nil {
				return err
			}
			jobs[job] = r.TakeOver(&j)
		}
		c.Gone[id] = jobs[job]
	}
	return nil
}
