package weaver

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/ops"
)

// manySettings holds the options of bulk verbs.
type manySettings struct {
	dryRun bool
	older  time.Duration
}

func manyOption(set func(*manySettings)) OperateOption {
	return operateOption(func(s *operateSettings) {
		if s.many == nil {
			s.many = new(manySettings)
		}
		set(s.many)
	})
}

// DryRun makes RetryMany, CancelMany or DeleteMany list their effect without changes: in
// ops.ManyAck.Tasks the tasks to change, in ops.ManyAck.Refused the expected refusals, as far as known
// in advance (for the first 1,000 tasks).
func DryRun() OperateOption { return manyOption(func(s *manySettings) { s.dryRun = true }) }

// OlderThan makes RetryMany, CancelMany or DeleteMany skip tasks that ended, or unfinished tasks that
// were enqueued, less than d ago.
func OlderThan(d time.Duration) OperateOption {
	return manyOption(func(s *manySettings) { s.older = d })
}

// RetryMany retries the failed and cancelled tasks that a filter selects; see Retry. Needs may come
// later than their dependents: refused tasks are retried once more at the end.
//
// Tasks are changed newest first, in pages of up to 1,000, each individually. After an error,
// completed changes stay, and the answer has the cursor (ops.ManyAck.After). With Cleanups it selects
// tasks whose undo was given up, or blocked or pending tasks if the filter asks for these states.
// Options: DryRun, OlderThan, KeepSteps, Cleanups, By, Reason. ErrInvalidOption: the Filter has a
// state in which no task can be retried, or a cursor belongs to another verb's DryRun. Filter.Limit is
// the page size; an empty filter selects every task.
func (c *Client) RetryMany(ctx context.Context, f Filter, opts ...OperateOption) (ops.ManyAck, error) {
	return c.many(ctx, f, opts, retryVerb())
}

// CancelMany cancels the unfinished tasks that a filter selects; see Cancel, and RetryMany for the
// rest. It also takes the option Force, with which tasks that are being undone are refused.
func (c *Client) CancelMany(ctx context.Context, f Filter, opts ...OperateOption) (ops.ManyAck, error) {
	return c.many(ctx, f, opts, cancelVerb())
}

// DeleteMany deletes the finished tasks outside jobs that a filter selects; see Delete, and RetryMany
// for the rest.
func (c *Client) DeleteMany(ctx context.Context, f Filter, opts ...OperateOption) (ops.ManyAck, error) {
	return c.many(ctx, f, opts, deleteVerb())
}

// many runs Bulk for all tasks that a filter selects, without a time limit.
func (c *Client) many(ctx context.Context, f Filter, opts []OperateOption, v *manyVerb) (ops.ManyAck, error) {
	b := bulk{c: c, verb: v, query: &ops.Query{Filter: f}, whole: true, last: f.After}
	err := b.all(ctx, opts)
	if err != nil {
		err = fmt.Errorf("%s tasks: %w", v.name, err)
	}
	return ops.ManyAck{
		Done: b.res.Done, Asked: b.res.Asked, UndoneFirst: b.res.UndoneFirst, AlreadyDone: b.res.AlreadyDone,
		Refused: b.res.Refused, Tasks: b.res.Samples, After: b.last,
	}, err
}

func (b *bulk) all(ctx context.Context, opts []OperateOption) error {
	if engine.StepTxOf(ctx) != nil {
		return ErrNestedTx
	}
	if err := b.set.apply(opts); err != nil {
		return err
	}
	if err := b.set.problem(verbOptions{force: b.verb.force, keep: b.verb.keep, cleanups: b.verb.keep, many: true}); err != nil {
		return err
	}
	b.verb.with(&b.set)
	b.req = &ops.BulkRequest{Limit: math.MaxInt}
	if m := b.set.many; m != nil {
		b.req.DryRun, b.req.OlderThan = m.dryRun, m.older
	}
	if err := b.narrow(); err != nil {
		return err
	}
	return b.run(ctx)
}

// lastOf returns the time at which a task ended, or else was enqueued.
func lastOf(t *TaskInfo) time.Time {
	if !t.FinishedAt.IsZero() {
		return t.FinishedAt
	}
	return t.CreatedAt
}
