package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi/wire"
	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const maxNeeds = 200_000 // of all tasks of a job

func (c *call) submitJob() error {
	var body JobDraft
	if err := c.decode(&body); err != nil {
		return err
	}
	if err := c.keyOf(&body.IdempotencyKey, "/idempotency_key"); err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	j, err := c.job(ctx, &body, "")
	if err != nil {
		return err
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

// job converts a JobDraft for the client, without its key; pointer is its place in the body.
func (c *call) job(ctx context.Context, body *JobDraft, pointer string) (*weaver.Job, error) {
	b := body.Budget
	j := weaver.NewJob(body.Name, weaver.Budget{
		MaxAttemptsPerTask: b.MaxAttemptsPerTask, MaxTotalAttempts: b.MaxTotalAttempts, MaxDuration: time.Duration(b.MaxDuration),
		MaxCost: b.MaxCost, MaxRepairs: b.MaxRepairs, MaxNoProgress: b.MaxNoProgress,
	})
	for k, v := range body.Metadata {
		j.Metadata(k, v)
	}
	if body.MaxParallel != 0 {
		j.MaxParallel(body.MaxParallel)
	}
	needs := 0
	for i := range body.Tasks {
		n := &body.Tasks[i]
		at := fmt.Sprintf("%s/tasks/%d", pointer, i)
		if needs += len(n.Needs) + len(n.IfFailed) + len(n.IfDone); needs > maxNeeds {
			return nil, bodyProblem(invalidBody, at, fmt.Sprintf("up to here the tasks have %d needs: at most %d are taken. Put a task between two groups that need each other", needs, maxNeeds))
		}
		d, err := c.draft(ctx, &n.Draft, at)
		if err != nil {
			return nil, within(err, at)
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
	return j, nil
}

var jobStates = wire.JobStates()

func (c *call) listJobs() (err error) {
	f := store.JobFilter{Name: c.get("name"), After: c.get("after")}
	for _, s := range c.list("state") {
		if !slices.Contains(jobStates, task.JobState(s)) {
			return badParam("state", "%q is not a state of a job: use one of %v", s, jobStates)
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
	return c.write(http.StatusOK, Page[weaver.JobInfo]{Items: listOf(list).Items, Next: next})
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
	for f := (weaver.Filter{Job: id, Limit: 200}); ; { // pages bound the memory, for any number of tasks
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

// CancelAck is the result of cancelling a job.
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

// RetryAck is the result of retrying a job.
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
	return c.write(http.StatusOK, RetryAck{Retried: ack.Retried})
}
