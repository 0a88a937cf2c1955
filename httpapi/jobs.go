package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// JobDraft is a job that is to be submitted.
type JobDraft struct {
	Name           string            `json:"name"`
	IdempotencyKey string            `json:"idempotency_key,omitempty"`
	Budget         BudgetDraft       `json:"budget,omitzero"`
	Metadata       map[string]string `json:"metadata,omitempty"`
	Tasks          []NodeDraft       `json:"tasks" max:"10000"`
}

// BudgetDraft limits a job; 0: without limit.
type BudgetDraft struct {
	MaxAttemptsPerTask int   `json:"max_attempts_per_task,omitempty"`
	MaxTotalAttempts   int   `json:"max_total_attempts,omitempty"`
	MaxDuration        Span  `json:"max_duration,omitempty"`
	MaxCost            int64 `json:"max_cost,omitempty"` // micro-units
	MaxRepairs         int   `json:"max_repairs,omitempty"`
	MaxNoProgress      int   `json:"max_no_progress,omitempty"`
}

// NodeDraft is a task of a job.
type NodeDraft struct {
	Node string `json:"node"` // its name in the job
	Draft
	Needs        []string `json:"needs,omitempty" max:"10000"`     // nodes that must succeed
	IfFailed     []string `json:"if_failed,omitempty" max:"10000"` // it runs when one of these fails
	IfDone       []string `json:"if_done,omitempty" max:"10000"`   // it runs when these have ended
	Undoes       string   `json:"undoes,omitempty"`                // a node that it undoes, when the job goes wrong; it has no other needs
	AllowFailure bool     `json:"allow_failure,omitempty"`
}

// Submitted answers a job.
type Submitted struct {
	ID          weaver.JobID      `json:"id"`
	Disposition store.Disposition `json:"disposition"` // created or existing
}

const maxNeeds = 200_000 // of all tasks of a job

func (c *call) submitJob() error {
	var body JobDraft
	if err := c.decode(&body); err != nil {
		return err
	}
	if err := c.keyOf(&body.IdempotencyKey, "/idempotency_key"); err != nil {
		return err
	}
	b := body.Budget
	j := weaver.NewJob(body.Name, weaver.Budget{
		MaxAttemptsPerTask: b.MaxAttemptsPerTask, MaxTotalAttempts: b.MaxTotalAttempts, MaxDuration: time.Duration(b.MaxDuration),
		MaxCost: b.MaxCost, MaxRepairs: b.MaxRepairs, MaxNoProgress: b.MaxNoProgress,
	})
	for k, v := range body.Metadata {
		j.Metadata(k, v)
	}
	ctx, cancel := c.context()
	defer cancel()
	needs := 0
	for i := range body.Tasks {
		n := &body.Tasks[i]
		at := fmt.Sprintf("/tasks/%d", i)
		if needs += len(n.Needs) + len(n.IfFailed) + len(n.IfDone); needs > maxNeeds {
			return bodyProblem(invalidBody, at, fmt.Sprintf("up to here the tasks have %d needs: at most %d are taken. Put a task between two groups that need each other", needs, maxNeeds))
		}
		d, err := c.draft(ctx, &n.Draft, at)
		if err != nil {
			return within(err, at)
		}
		var opts []weaver.NodeOption
		if len(n.Needs) > 0 {
			opts = append(opts, weaver.Needs(j.Nodes(n.Needs...)...))
		}
		if len(n.IfFailed) > 0 {
			opts = append(opts, weaver.IfFailed(j.Nodes(n.IfFailed...)...))
		}
		if len(n.IfDone) > 0 {
			opts = append(opts, weaver.IfDone(j.Nodes(n.IfDone...)...))
		}
		if n.Undoes != "" {
			opts = append(opts, weaver.Undoes(j.Node(n.Undoes)))
		}
		if n.AllowFailure {
			opts = append(opts, weaver.AllowFailure())
		}
		j.Add(n.Node, d, opts...)
	}
	var opts []weaver.SubmitOption
	if body.IdempotencyKey != "" {
		opts = append(opts, weaver.IdempotencyKey(body.IdempotencyKey))
	}
	h, err := c.api.client.Submit(ctx, j, opts...)
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", "jobs/"+h.ID().String())
	status := http.StatusOK
	if h.Disposition() == store.DispositionCreated {
		status = http.StatusCreated
	}
	return c.write(status, Submitted{ID: h.ID(), Disposition: h.Disposition()})
}

var jobStates = []task.JobState{task.JobRunning, task.JobBlocked, task.JobSucceeded, task.JobFailed, task.JobCancelled}

func (c *call) listJobs() (err error) {
	f := store.JobFilter{Name: c.get("name"), After: c.get("after")}
	for _, s := range c.list("state") {
		if !slices.Contains(jobStates, task.JobState(s)) {
			return badParam("state", "%q is no state of a job; the states are %v", s, jobStates)
		}
		f.States = append(f.States, task.JobState(s))
	}
	if f.Limit, err = c.limit(store.MaxLimit); err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	list, next, err := c.api.client.Jobs(ctx, f)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, Page[weaver.JobInfo]{listOf(list).Items, next})
}

func (c *call) getJob() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	err = c.wait(func(ctx context.Context, opts ...weaver.WaitOption) error {
		_, err := c.api.client.WaitJob(ctx, id, opts...)
		return err
	})
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	st, err := c.api.client.JobStatus(ctx, id)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, st)
}

// jobTasks lists the tasks of a job, newest first.
func (c *call) jobTasks() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	q, err := c.query()
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	if _, err := c.api.client.Job(ctx, id); err != nil {
		return err
	}
	return c.search(ctx, q.And(weaver.Filter{Job: id}))
}

// JobResult is how a job ended, or where it stands.
type JobResult struct {
	ID         weaver.JobID  `json:"id"`
	Name       string        `json:"name"`
	State      task.JobState `json:"state"`
	Completed  []JobTask     `json:"completed"`
	Failed     []JobTask     `json:"failed"`
	Incomplete []JobTask     `json:"incomplete"`
}

// JobTask is a task of a JobResult.
type JobTask struct {
	ID       weaver.TaskID  `json:"id"`
	Node     string         `json:"node"`
	Type     string         `json:"task_type"`
	State    weaver.State   `json:"state"`
	Kind     task.ErrorKind `json:"error_kind,omitempty"`
	Reason   string         `json:"reason,omitempty"` // why it did not succeed, or what it waits for
	Attempts int            `json:"attempts"`
	Allowed  bool           `json:"allowed,omitempty"` // it failed, and may
}

// jobResult has no outputs: payloads/output of a task has one.
func (c *call) jobResult() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	job, err := c.api.client.Job(ctx, id)
	if err != nil {
		return err
	}
	res := weaver.JobResult{ID: id, Name: job.Name, State: job.State}
	for f := (weaver.Filter{Job: id, Limit: 200}); ; { // values are not held, however many tasks there are
		page, next, err := c.api.client.List(ctx, f)
		if err != nil {
			return err
		}
		redact.Tasks(page)
		for i := range page {
			page[i].Output = nil
			res.Add(&page[i])
		}
		if f.After = next; next == "" {
			break
		}
	}
	show := func(list []weaver.JobTask) []JobTask {
		out := make([]JobTask, len(list))
		for i, t := range slices.Backward(list) { // lists begin with the newest
			out[len(list)-1-i] = JobTask{ID: t.ID, Node: t.Name, Type: t.Type, State: t.State, Kind: t.Kind, Reason: t.Reason, Attempts: t.Attempts, Allowed: t.Allowed}
		}
		return out
	}
	return c.write(http.StatusOK, JobResult{
		ID: res.ID, Name: res.Name, State: res.State, Completed: show(res.Completed), Failed: show(res.Failed), Incomplete: show(res.Incomplete),
	})
}

// CancelAck answers the cancel of a job.
type CancelAck struct {
	Cancelled   int `json:"cancelled"`    // tasks that ended at once
	Asked       int `json:"asked"`        // that run, and were asked to end
	AlreadyDone int `json:"already_done"` // that had ended
}

func (c *call) cancelJob() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	var body verbRequest
	if err := c.decodeOptional(&body); err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	ack, err := c.api.client.CancelJob(ctx, id, c.operator(body.Reason)...)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, CancelAck{Cancelled: ack.Cancelled, Asked: ack.Asked, AlreadyDone: ack.AlreadyDone})
}

// RetryAck answers the retry of a job.
type RetryAck struct {
	Retried int `json:"retried"` // tasks; those that were cancelled because of them are not counted
}

func (c *call) retryJob() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	var body retryRequest
	if err := c.decodeOptional(&body); err != nil {
		return err
	}
	opts := c.operator(body.Reason)
	if body.AddAttempts != 0 {
		opts = append(opts, weaver.AddAttempts(body.AddAttempts))
	}
	if body.AddCost != 0 {
		opts = append(opts, weaver.AddCost(body.AddCost))
	}
	if body.KeepSteps {
		opts = append(opts, weaver.KeepSteps())
	}
	ctx, cancel := c.context()
	defer cancel()
	ack, err := c.api.client.RetryJob(ctx, id, opts...)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, RetryAck{ack.Retried})
}
