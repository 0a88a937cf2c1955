package weaver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Wait waits for a task of this type known only by its ID, and returns its output; see Handle.Wait.
// Further errors: ErrNotFound, ErrWrongType.
func (t *Type[In, Out]) Wait(ctx context.Context, c Caller, id TaskID, opts ...WaitOption) (out Out, err error) {
	info, err := t.get(ctx, c, id)
	if err != nil {
		return out, err
	}
	if info, err = c.Wait(ctx, id, opts...); err != nil {
		return out, err
	}
	err = decodeOutput(&info, &out)
	return out, err
}

// decodeOutput decodes the output of a succeeded task.
func decodeOutput(info *TaskInfo, out any) error {
	if info.Forgotten {
		return fmt.Errorf("the output of task %s: %w", info.ID, ErrForgotten)
	}
	if info.ValuesDropped {
		return fmt.Errorf("the output of task %s: %w", info.ID, ErrValuesDropped)
	}
	if len(info.Output) == 0 {
		return nil // a Decider overruled the failure and gave no output
	}
	if err := unloaded("output", info.ID, info.Output); err != nil {
		return err
	}
	if err := json.Unmarshal(info.Output, out); err != nil {
		return fmt.Errorf("the output of task %s does not decode as %s: %w", info.ID, reflect.TypeOf(out).Elem(), err)
	}
	return nil
}

// JobOutput returns the output of a job's task by its name. Inside a handler of that job use Output.
// Errors: ErrNotFound, ErrNoSuchNode, ErrWrongType, ErrNotSucceeded. It lists the job's tasks until it
// finds the name.
func (t *Type[In, Out]) JobOutput(ctx context.Context, c Caller, job JobID, node string) (out Out, err error) {
	info, err := t.nodeThatSucceeded(ctx, c, job, node)
	if err != nil {
		return out, err
	}
	err = decodeOutput(&info, &out)
	return out, err
}

// nodeThatSucceeded reads a succeeded task of a job with its output.
func (t *contract) nodeThatSucceeded(ctx context.Context, c Caller, job JobID, node string) (TaskInfo, error) {
	info, found, err := nodeOf(ctx, c, job, node)
	switch {
	case err != nil:
		return info, err
	case !found:
		return info, fmt.Errorf("%q of job %s: %w", node, job, ErrNoSuchNode)
	case info.Type != t.name:
		return info, fmt.Errorf("%q is a %s, not a %s: %w", node, info.Type, t.name, ErrWrongType)
	case info.State != task.Succeeded:
		return info, fmt.Errorf("%q of job %s is %s: %w", node, job, info.State, ErrNotSucceeded)
	}
	if _, large := task.BlobOf(info.Output); large || len(info.Output) == 0 { // a list over HTTP has no values
		return c.Get(ctx, info.ID)
	}
	return info, nil
}

// nodeOf finds a task of a job by its name.
func nodeOf(ctx context.Context, c Caller, job JobID, node string) (info TaskInfo, found bool, err error) {
	if _, err := c.Job(ctx, job); err != nil {
		return info, false, err
	}
	for f := (Filter{Job: job, Limit: store.MaxLimit}); ; {
		page, next, err := c.List(ctx, f)
		if err != nil {
			return info, false, fmt.Errorf("read the tasks of job %s: %w", job, err)
		}
		if i := slices.IndexFunc(page, func(t TaskInfo) bool { return t.Node == node }); i >= 0 {
			return page[i], true, nil
		}
		if f.After = next; next == "" {
			return info, false, nil
		}
	}
}

// RunJob submits a job and runs the engine until the job has ended or waits for a person, or ctx has
// ended; then the engine drains like Run. Meanwhile it also runs other due tasks of its queues. If the
// engine already runs, RunJob only submits and waits. It logs a warning for each task that it leaves
// to other engines.
//
// It returns the job's result so far and the error of JobHandle.Wait or Run, such as ErrBlocked or
// ctx's error. The job stays and continues with the next Run of any engine that handles its types, or
// with RunJob and the same IdempotencyKey.
func (e *Engine) RunJob(ctx context.Context, j *Job, opts ...SubmitOption) (JobResult, error) {
	h, err := e.Submit(ctx, j, opts...)
	if err != nil {
		return JobResult{}, err
	}
	e.warnNodes(j)
	var res JobResult
	var waitErr, runErr error
	g := group.New(context.WithoutCancel(ctx))
	runCtx, stop := context.WithCancel(ctx)
	defer stop()
	g.Go("wait for the job", func(context.Context) error {
		defer stop()
		res, waitErr = e.WaitJob(runCtx, h.id)
		return nil
	})
	switch runErr = e.Run(runCtx); {
	case errors.Is(runErr, ErrRunning):
		runErr = nil // the other Run does the work
	case runErr != nil:
		stop()
	}
	if err := g.Wait(); err != nil {
		return res, err
	}
	if ctx.Err() == nil && errors.Is(waitErr, context.Canceled) {
		waitErr = nil // Run ended by itself and returns the reason
	}
	if waitErr != nil || runErr != nil {
		// The wait was cut short: read the current result.
		look, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if now, err := e.JobResult(look, h.id); err == nil {
			res = now
		}
	}
	return res, errors.Join(waitErr, runErr)
}

// RetryJob retries every failed or cancelled task of a job, needs before dependents; see Retry. Tasks
// that were not needed stay as they are. Each task is retried individually: after an error some may
// have been retried, and the same call retries the rest. Errors: ErrNotFound; ErrState if no task can
// be retried.
//
// A job with a used-up budget (JobInfo.BudgetUsedUp) needs AddAttempts or AddCost, or both; the error
// names the minimum. Tasks that ended for the budget are revived, too.
func (c *Client) RetryJob(ctx context.Context, id JobID, opts ...OperateOption) (ops.RetryAck, error) {
	job, err := c.Job(ctx, id)
	if err != nil {
		return ops.RetryAck{}, err
	}
	var ack ops.RetryAck
	raised, err := c.raise(ctx, &job, opts, &ack)
	if err != nil {
		return ack, err
	}
	left, err := c.jobTasks(ctx, id, task.Failed, task.Cancelled)
	if err != nil {
		return ack, err
	}
	opts = append(slices.Clip(opts), operateOption(func(s *operateSettings) { s.addAttempts, s.addCost = nil, nil }))
	left = slices.DeleteFunc(left, func(t TaskInfo) bool { return t.Error != nil && t.Error.Kind == task.KindNotNeeded })
	if len(left) == 0 && raised {
		return ack, nil
	}
	if len(left) > 0 && job.BudgetUsedUp() { // every retry would be refused for the budget
		return ack, c.Retry(ctx, left[0].ID, opts...)
	}
	if len(left) == 0 {
		return ops.RetryAck{}, fmt.Errorf("retry: no task of job %s failed or was cancelled: %w", id, ErrState)
	}
	// A task with a failed need is refused until the need is retried. Tasks are listed in the order of
	// Add, in which needs come first or last.
	var refused error
	for passes := 0; passes < 2 && len(left) > 0; passes++ {
		if passes == 0 {
			refused = nil
		}
		var again []TaskInfo
		for _, t := range left {
			err := c.Retry(ctx, t.ID, opts...)
			switch {
			case err == nil:
				ack.Retried++
				passes = -1 // once more in both directions
				continue
			case !errors.Is(err, ErrState):
				return ack, err
			}
			now, getErr := c.Get(ctx, t.ID)
			switch {
			case getErr != nil:
				return ack, getErr
			case now.State == task.Failed, now.State == task.Cancelled:
				if refused == nil { // report the error of a need that comes first
					refused = err
				}
				again = append(again, t)
			default: // it revived with its need
			}
		}
		slices.Reverse(again)
		left = again
	}
	if len(left) == 0 {
		refused = nil
	}
	return ack, refused
}
