package weaver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Job is a set of tasks to submit together, with needs between them and a budget. Add collects
// mistakes; Submit reports them all.
type Job struct {
	name     string
	budget   Budget
	meta     map[string]string
	bases    []JobID
	nodes    []*Node
	byName   map[string]*Node
	parallel int // maximum number of its tasks that run at once; 0: any
	problems []error
}

// Node is a task of a job before Submit.
type Node struct {
	job    *Job
	name   string
	draft  Draft
	needs  []need
	undoes string // the node that it undoes, or ""
}

type need struct {
	name string
	kind task.EdgeKind
}

// NewJob begins a job with at most one budget.
func NewJob(name string, budget ...Budget) *Job {
	j := &Job{name: name, byName: make(map[string]*Node)}
	if err := option.CheckKey("NewJob", name); err != nil {
		j.problems = append(j.problems, err)
	}
	if len(budget) > 1 {
		j.problems = append(j.problems, errors.New("NewJob takes one Budget"))
	}
	if len(budget) > 0 {
		j.budget = budget[0]
	}
	b := j.budget
	if b.MaxAttemptsPerTask < 0 || b.MaxDuration < 0 || b.MaxTotalAttempts < 0 || b.MaxCost < 0 || b.MaxRepairs < 0 || b.MaxNoProgress < 0 {
		j.problems = append(j.problems, fmt.Errorf("%w: a budget cannot be negative", ErrInvalidOption))
	}
	return j
}

// Metadata attaches a value to the job for readers (JobInfo.Meta).
func (j *Job) Metadata(key, value string) {
	err := option.CheckKey("Metadata", key)
	if err == nil {
		err = task.CheckText("Metadata "+key, value)
	}
	if err != nil {
		j.problems = append(j.problems, err)
		return
	}
	if j.meta == nil {
		j.meta = make(map[string]string)
	}
	j.meta[key] = value
}

// BasedOn names earlier jobs whose results the job uses. While it exists, retention, Prune and
// DeleteJob neither delete them nor drop the values of their tasks. Submit returns ErrNotFound if one
// of them does not exist.
func (j *Job) BasedOn(jobs ...JobID) {
	for _, id := range jobs {
		switch {
		case id.IsZero():
			j.problems = append(j.problems, errors.New("BasedOn: the ID of a job is zero"))
		case !slices.Contains(j.bases, id):
			j.bases = append(j.bases, id)
		}
	}
}

// MaxParallel lets at most n tasks of the job run at once, in all processes. It gives them a concurrency
// key, and so do tasks that they start as children. A task that waits for its children or a timer does
// not count. Submit refuses a task that has a ConcurrencyKey of its own.
func (j *Job) MaxParallel(n int) {
	if n < 1 {
		j.problems = append(j.problems, fmt.Errorf("%w: MaxParallel(%d): pass 1 or more, or leave it out for no limit", ErrInvalidOption, n))
	}
	j.parallel = n
}

// NodeOption is an option of Add.
type NodeOption interface{ applyNode(*Node) }

type nodeOption func(*Node)

func (o nodeOption) applyNode(n *Node) { o(n) }

// Needs makes a task run when all these nodes have succeeded, or failed with AllowFailure. If one of
// them ends otherwise the task is cancelled with error kind dependency_failed, or not_needed if that
// node was not needed.
func Needs(nodes ...*Node) NodeOption {
	return nodeOption(func(n *Node) { n.add(task.OnSuccess, nodes) })
}

// Node returns a node of the job by name, for the options of others. The node may be added later.
func (j *Job) Node(name string) *Node {
	if n := j.byName[name]; n != nil {
		return n
	}
	return &Node{job: j, name: name}
}

// Nodes is Node for several names.
func (j *Job) Nodes(names ...string) []*Node {
	nodes := make([]*Node, len(names))
	for i, name := range names {
		nodes[i] = j.Node(name)
	}
	return nodes
}

func (n *Node) add(kind task.EdgeKind, nodes []*Node) {
	for _, other := range nodes {
		switch {
		case other == nil:
			n.job.problems = append(n.job.problems, fmt.Errorf("%q needs a nil node", n.name))
		case other.job != n.job:
			n.job.problems = append(n.job.problems, fmt.Errorf("%q needs %q, which belongs to another job", n.name, other.name))
		default:
			n.needs = append(n.needs, need{other.name, kind})
		}
	}
}

// Name returns the node's name.
func (n *Node) Name() string { return n.name }

// Add adds a task under a name that is unique in the job.
func (j *Job) Add(name string, d Draft, opts ...NodeOption) *Node {
	n := &Node{job: j, name: name, draft: d}
	if err := option.CheckKey("Add", name); err != nil {
		j.problems = append(j.problems, err)
	}
	if j.byName[name] != nil {
		j.problems = append(j.problems, fmt.Errorf("two tasks are named %q", name))
	}
	if d.options().IdempotencyKey != "" {
		j.problems = append(j.problems, fmt.Errorf("%q: a task of a job cannot have an IdempotencyKey: an existing task belongs to no job or to another one", name))
	}
	if d.options().Coalesce {
		j.problems = append(j.problems, fmt.Errorf("%q: a task of a job cannot have Coalesce: the waiting task belongs to no job", name))
	}
	j.byName[name] = n
	j.nodes = append(j.nodes, n)
	for _, o := range opts {
		if o == nil {
			j.problems = append(j.problems, fmt.Errorf("%q: an option is nil", name))
			continue
		}
		o.applyNode(n)
	}
	return n
}

// submission returns the rows of a job, with new IDs.
func (j *Job) submission(ids *task.IDs, toNew func(Draft) (task.New, error), set *submitSettings) (store.Submission, error) {
	if j == nil {
		return store.Submission{}, fmt.Errorf("%w: it is nil: make jobs with NewJob", ErrInvalidJob)
	}
	problems := slices.Concat(j.problems, set.errs)
	if len(j.nodes) == 0 {
		problems = append(problems, errors.New("the job is empty: Add at least one task"))
	}
	sub := store.Submission{
		Job:   &task.NewJob{ID: ids.New(), Name: j.name, Budget: j.budget, Meta: maps.Clone(j.meta), BasedOn: slices.Clone(j.bases), IdempotencyKey: set.key},
		Tasks: make([]task.New, len(j.nodes)),
	}
	byNode := make(map[string]task.ID, len(j.nodes))
	for i, n := range j.nodes {
		t, err := toNew(n.draft)
		if err != nil {
			problems = append(problems, fmt.Errorf("%q: %w", n.name, err))
			continue
		}
		t.Node = n.name
		j.budget.Tighten(&t)
		if j.parallel > 0 {
			if t.ConcurrencyKey != "" {
				problems = append(problems, fmt.Errorf("%q has the ConcurrencyKey %q, and the job has MaxParallel, which is one too: a task has one key. Leave one of them out", n.name, t.ConcurrencyKey))
			}
			t.ConcurrencyKey, t.ConcurrencyLimit = task.ParallelKey(sub.Job.ID), j.parallel
		}
		sub.Tasks[i] = t
		byNode[n.name] = t.ID
	}

	needs := j.allNeeds(&problems)
	order := make([]string, 0, len(j.nodes))
	graph := make(map[string][]string, len(j.nodes))
	for i, n := range j.nodes {
		order = append(order, n.name)
		seen := make(map[string]task.EdgeKind, len(needs[i]))
		for _, nd := range needs[i] {
			if j.byName[nd.name] == nil {
				problems = append(problems, fmt.Errorf("%q needs %q, which is not in the job", n.name, nd.name))
				continue
			}
			if kind, again := seen[nd.name]; again {
				if kind != nd.kind {
					problems = append(problems, n.twoWays(nd.name, kind, nd.kind))
				}
				continue
			}
			seen[nd.name] = nd.kind
			graph[n.name] = append(graph[n.name], nd.name)
			sub.Tasks[i].Needs = append(sub.Tasks[i].Needs, task.Edge{Needs: byNode[nd.name], Kind: nd.kind})
		}
	}
	cycle := task.FindCycle(order, graph)
	if cycle != nil && len(j.byName) == len(j.nodes) { // with two tasks of one name it is unknown which one is needed
		problems = append(problems, fmt.Errorf("the needs form a cycle: %s", task.CycleString(cycle)))
	}
	if len(problems) > 0 {
		return store.Submission{}, fmt.Errorf("%w %q: nothing was stored: %w", ErrInvalidJob, j.name, errors.Join(problems...))
	}
	return sub, nil
}

// JobHandle is a submitted job.
type JobHandle struct {
	id          JobID
	disposition store.Disposition
	client      Caller // nil: made inside a transaction
}

// Submitted returns the handle of a job that another Caller than a Client submitted.
func (j *Job) Submitted(c Caller, id JobID, d store.Disposition) *JobHandle {
	return &JobHandle{id: id, disposition: d, client: c}
}

// ID returns the job's id.
func (h *JobHandle) ID() JobID { return h.id }

// Disposition returns whether the job was created or existed already.
func (h *JobHandle) Disposition() store.Disposition { return h.disposition }

// Wait returns the job's result when all its tasks have ended, in any process. If all unfinished tasks
// wait for a person, it returns ErrBlocked with the result so far. ErrUnbound: the job was submitted
// inside a transaction.
func (h *JobHandle) Wait(ctx context.Context, opts ...WaitOption) (JobResult, error) {
	if h.client == nil {
		return JobResult{}, ErrUnbound
	}
	return h.client.WaitJob(ctx, h.id, opts...)
}

// WaitJob is JobHandle.Wait for a job known only by its ID.
func (c *Client) WaitJob(ctx context.Context, id JobID, opts ...WaitOption) (JobResult, error) {
	s, err := ReadWaitOptions(opts...)
	if err != nil {
		return JobResult{}, err
	}
	var res JobResult
	err = c.waits.until(ctx, id, func(ctx context.Context) (bool, error) {
		job, err := c.Job(ctx, id)
		if err != nil || !job.State.Terminal() && job.State != task.JobBlocked {
			return false, err
		}
		if res, err = c.JobResult(ctx, id); err != nil {
			return false, err
		}
		return s.Job(&res) // read after the job, which may have been unblocked or retried since
	})
	return res, err
}

// Job reads one job without its tasks. Error: ErrNotFound.
func (c *Client) Job(ctx context.Context, id JobID) (JobInfo, error) {
	job, err := store.JobOf(ctx, c.store, c.ns, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return JobInfo{}, fmt.Errorf("job %s in namespace %q: %w", id, c.ns, ErrNotFound)
	case err != nil:
		return JobInfo{}, fmt.Errorf("get job %s: %w", id, err)
	}
	return job, nil
}

// JobTasks reads all tasks of a job, in order of creation, including those created by its tasks; an
// unknown job has no tasks. It reads pages of 1,000 and holds all tasks in memory: use List with
// Filter.Job for one page at a time, and JobStatus for numbers.
func (c *Client) JobTasks(ctx context.Context, id JobID) ([]TaskInfo, error) {
	return c.jobTasks(ctx, id)
}

// jobTasks reads the tasks of a job in the given states, or all without one.
func (c *Client) jobTasks(ctx context.Context, id JobID, states ...State) (all []TaskInfo, err error) {
	for f := (Filter{Job: id, States: states, Limit: store.MaxLimit}); ; {
		page, next, err := c.store.List(ctx, c.ns, f)
		if err != nil {
			return nil, fmt.Errorf("read the tasks of job %s: %w", id, err)
		}
		all = append(all, page...)
		if f.After = next; next == "" {
			slices.Reverse(all)
			return all, nil
		}
	}
}

// CancelJob cancels every unfinished task of a job; see Cancel.
func (c *Client) CancelJob(ctx context.Context, id JobID, opts ...OperateOption) (ops.CancelAck, error) {
	res, err := c.operate(ctx, "cancel job "+id.String(), opts, func(s operateSettings) store.Command {
		return store.CancelJob{Audit: s.audit, Job: id}
	})
	return ops.CancelAck{Cancelled: res.Cancelled, Asked: res.AskedTasks, AlreadyDone: res.AlreadyDone}, err
}

// JobResult groups the tasks of a job by their final state.
type JobResult struct {
	ID         JobID
	Name       string
	State      task.JobState
	Completed  []JobTask // succeeded
	Failed     []JobTask // failed; those with Allowed do not count against the job
	Incomplete []JobTask // cancelled, blocked, or not finished yet
}

// JobTask is one task of a JobResult.
type JobTask struct {
	ID       TaskID
	Name     string
	Type     string
	State    State
	Kind     task.ErrorKind
	Reason   string          // why it did not succeed, or its reason to wait
	Attempts int             // attempts that count
	Output   json.RawMessage // if succeeded
	Allowed  bool            // it did not succeed, which AllowFailure permits
}

// JobResult reads the result of a job, finished or not. Error: ErrNotFound.
func (c *Client) JobResult(ctx context.Context, id JobID) (JobResult, error) {
	job, err := c.Job(ctx, id)
	if err != nil {
		return JobResult{}, err
	}
	tasks, err := c.jobTasks(ctx, id)
	if err != nil {
		return JobResult{}, err
	}
	res := JobResult{ID: id, Name: job.Name, State: job.State}
	for i := range tasks {
		tasks[i].Output = c.loaded(ctx, tasks[i].Output)
		res.Add(&tasks[i])
	}
	return res, nil
}

// Add adds a task to its group.
func (r *JobResult) Add(t *TaskInfo) {
	jt := JobTask{ID: t.ID, Name: t.Node, Type: t.Type, State: t.State, Attempts: t.AttemptCount, Allowed: t.End().Allowed()}
	if t.Error != nil && t.State != task.Succeeded {
		jt.Kind, jt.Reason = t.Error.Kind, t.Error.Message
	} else if t.Waiting != "" {
		jt.Reason = "waits: " + string(t.Waiting)
	}
	switch t.State {
	case task.Succeeded:
		jt.Output = t.Output
		r.Completed = append(r.Completed, jt)
	case task.Failed:
		r.Failed = append(r.Failed, jt)
	default:
		r.Incomplete = append(r.Incomplete, jt)
	}
}

func (r JobResult) firstReason() string {
	for _, t := range r.Incomplete {
		if t.State == task.Blocked {
			return t.Name + ": " + t.Reason
		}
	}
	return "its tasks wait for each other"
}
