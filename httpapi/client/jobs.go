package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi/wire"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Submit implements weaver.Caller. With an IdempotencyKey it is retried if its response was
// lost.
func (c *Client) Submit(ctx context.Context, j *weaver.Job, opts ...weaver.SubmitOption) (*weaver.JobHandle, error) {
	job, tasks, err := j.Plain(opts...)
	if err != nil {
		return nil, err
	}
	var got wire.Submitted
	if err := c.send(ctx, request{method: http.MethodPost, path: "/v1/jobs", body: jobDraftOf(&job, tasks), safe: job.IdempotencyKey != ""}, &got); err != nil {
		return nil, err
	}
	return j.Submitted(c, got.ID, got.Disposition), nil
}

// jobDraftOf converts a job and its tasks.
func jobDraftOf(job *task.NewJob, tasks []task.New) wire.JobDraft {
	b := job.Budget
	d := wire.JobDraft{
		Name: job.Name, IdempotencyKey: job.IdempotencyKey, Metadata: job.Meta, Tasks: make([]wire.NodeDraft, len(tasks)),
		Budget: wire.BudgetDraft{
			MaxAttemptsPerTask: b.MaxAttemptsPerTask, MaxTotalAttempts: b.MaxTotalAttempts, MaxDuration: wire.Span(b.MaxDuration),
			MaxCost: b.MaxCost, MaxRepairs: b.MaxRepairs, MaxNoProgress: b.MaxNoProgress,
		},
	}
	names := make(map[task.ID]string, len(tasks))
	for i := range tasks {
		names[tasks[i].ID] = tasks[i].Node
	}
	for i := range tasks {
		t := &tasks[i]
		if t.ConcurrencyKey == task.ParallelKey(job.ID) {
			d.MaxParallel = t.ConcurrencyLimit
			t.ConcurrencyKey, t.ConcurrencyLimit = "", 0
		}
		n := wire.NodeDraft{Node: t.Node, Draft: draftOf(t), AllowFailure: t.AllowFailure}
		for _, e := range t.Needs {
			switch name := names[e.Needs]; e.Kind {
			case task.OnSuccess:
				n.Needs = append(n.Needs, name)
			case task.OnFailed:
				n.IfFailed = append(n.IfFailed, name)
			case task.OnDone:
				n.IfDone = append(n.IfDone, name)
			case task.OnUndo:
				n.Undoes = name
			}
		}
		if n.Undoes != "" { // its other dependencies follow from that
			n.IfDone = nil
		}
		d.Tasks[i] = n
	}
	return d
}

func jobPath(id weaver.JobID, part string) string { return "/v1/jobs/" + idPart(id) + part }

// Job reads one job without its tasks; ErrNotFound.
func (c *Client) Job(ctx context.Context, id weaver.JobID) (weaver.JobInfo, error) {
	st, err := c.JobStatus(ctx, id)
	return st.JobInfo, err
}

// JobStatus reads a job and the numbers of its tasks; ErrNotFound.
func (c *Client) JobStatus(ctx context.Context, id weaver.JobID) (weaver.JobStatus, error) {
	return c.jobStatus(ctx, id, nil, 0)
}

func (c *Client) jobStatus(ctx context.Context, id weaver.JobID, q url.Values, poll time.Duration) (st weaver.JobStatus, err error) {
	err = c.send(ctx, request{method: http.MethodGet, path: jobPath(id, ""), query: q, poll: poll}, &st)
	return st, err
}

// Jobs reads jobs newest first, and the cursor of the next page.
func (c *Client) Jobs(ctx context.Context, f store.JobFilter) ([]weaver.JobInfo, string, error) {
	if !f.ID.IsZero() {
		job, err := c.Job(ctx, f.ID)
		if errors.Is(err, weaver.ErrNotFound) {
			return nil, "", nil
		} else if err != nil {
			return nil, "", err
		}
		return []weaver.JobInfo{job}, "", nil
	}
	for _, s := range f.States {
		if !slices.Contains(wire.JobStates(), s) {
			return nil, "", fmt.Errorf("list jobs: %w: %q: unknown state of a job; the states are %v", weaver.ErrInvalidOption, s, wire.JobStates())
		}
	}
	q := pageQuery(f.Limit, f.After)
	addAll(q, "state", f.States)
	if f.Name != "" {
		q.Set("name", f.Name)
	}
	var page wire.Page[weaver.JobInfo]
	err := c.send(ctx, request{method: http.MethodGet, path: "/v1/jobs", query: q}, &page)
	return page.Items, page.Next, err
}

// JobTasks reads all tasks of a job in the order of their creation, without inputs and outputs;
// ErrNotFound.
func (c *Client) JobTasks(ctx context.Context, id weaver.JobID) (all []weaver.TaskInfo, err error) {
	for f := (weaver.Filter{Limit: store.MaxLimit}); ; {
		page, err := c.search(ctx, jobPath(id, "/tasks"), "", f)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if f.After = page.Next; page.Next == "" {
			slices.Reverse(all)
			return all, nil
		}
	}
}

// JobResult reads the result of a job, finished or not, without the outputs of its tasks. JobOutput
// of a task type reads these. Errors: ErrNotFound.
func (c *Client) JobResult(ctx context.Context, id weaver.JobID) (weaver.JobResult, error) {
	var res wire.JobResult
	if err := c.send(ctx, request{method: http.MethodGet, path: jobPath(id, "/result")}, &res); err != nil {
		return weaver.JobResult{}, err
	}
	read := func(list []wire.JobTask) (out []weaver.JobTask) {
		for _, t := range list {
			out = append(out, weaver.JobTask{ID: t.ID, Name: t.Node, Type: t.Type, State: t.State, Kind: t.Kind, Reason: t.Reason, Attempts: t.Attempts, Allowed: t.Allowed})
		}
		return out
	}
	return weaver.JobResult{ID: res.ID, Name: res.Name, State: res.State, Completed: read(res.Completed), Failed: read(res.Failed), Incomplete: read(res.Incomplete)}, nil
}

// WaitJob implements weaver.Caller; see weaver.JobHandle.Wait. Its result has the same fields as
// that of JobResult.
func (c *Client) WaitJob(ctx context.Context, id weaver.JobID, opts ...weaver.WaitOption) (res weaver.JobResult, err error) {
	s, err := weaver.ReadWaitOptions(opts...)
	if err != nil {
		return res, err
	}
	err = c.until(ctx, id, s, func(q url.Values, poll time.Duration) (over bool, err error) {
		st, err := c.jobStatus(ctx, id, q, poll)
		if err != nil || !st.State.Terminal() && st.State != task.JobBlocked {
			return false, err
		}
		if res, err = c.JobResult(ctx, id); err != nil {
			return false, err
		}
		return s.Job(&res)
	})
	return res, err
}

// CancelJob is weaver.Client.CancelJob over HTTP.
func (c *Client) CancelJob(ctx context.Context, id weaver.JobID, opts ...weaver.OperateOption) (ops.CancelAck, error) {
	o, err := operation("cancel job "+id.String(), store.CancelJob{}, opts)
	if err != nil {
		return ops.CancelAck{}, err
	}
	var ack wire.CancelAck
	err = c.send(ctx, request{method: http.MethodPost, path: jobPath(id, "/cancel"), body: why(o)}, &ack)
	return ops.CancelAck{Cancelled: ack.Cancelled, Asked: ack.Asked, AlreadyDone: ack.AlreadyDone}, err
}

// RetryJob is weaver.Client.RetryJob over HTTP.
func (c *Client) RetryJob(ctx context.Context, id weaver.JobID, opts ...weaver.OperateOption) (ops.RetryAck, error) {
	o, err := operation("retry job "+id.String(), store.RaiseBudget{}, opts)
	if err != nil {
		return ops.RetryAck{}, err
	}
	var ack wire.RetryAck
	err = c.send(ctx, request{method: http.MethodPost, path: jobPath(id, "/retry"), body: retryBody(&o)}, &ack)
	return ops.RetryAck{Retried: ack.Retried}, err
}
