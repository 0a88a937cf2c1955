package weaver

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/ops"
)

// manySettings are the options of verbs of many tasks.
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

// DryRun has RetryMany, CancelMany or DeleteMany change nothing, and list what they
// would: in ops.ManyAck.Tasks what they would change, in ops.ManyAck.Refused what they would
// refuse, as far as that is known before (of the first 1,000 tasks).
func DryRun() OperateOption { return manyOption(func(s *manySettings) { s.dryRun = true }) }

// OlderThan has RetryMany, CancelMany or DeleteMany pass over tasks that ended, or
// that were enqueued if they have not ended, less than d ago.
func OlderThan(d time.Duration) OperateOption {
	return manyOption(func(s *manySettings) { s.older = d })
}

// RetryMany retries the failed and cancelled tasks that a filter selects; see
// Retry. What others need may come after them: those that are refused are tried
// once more in the end.
//
// Tasks are changed newest first, in pages of up to 1,000, each of them by itself.
// When it returns an error, what was done stays done, and the answer says how far
// it came (ops.ManyAck.After). With Cleanups it is for tasks whose undo was given up, or those
// that are blocked or pending if the filter asks for these states. Options: DryRun, OlderThan, KeepSteps, Cleanups, By, Reason. A Filter with a
// state in which no task can be retried, a DryRun of another verb and the like:
// ErrInvalidOption. Filter.Limit is the size of a page; an empty filter selects
// every task.
func (c *Client) RetryMany(ctx context.Context, f Filter, opts ...OperateOption) (ops.ManyAck, error) {
	return c.many(ctx, f, opts, retryVerb())
}

// CancelMany cancels the tasks that a filter selects and that have not ended; see
// Cancel, and RetryMany for the rest. It has the option Force, too, with which tasks that
// are being undone are refused.
func (c *Client) CancelMany(ctx context.Context, f Filter, opts ...OperateOption) (ops.ManyAck, error) {
	return c.many(ctx, f, opts, cancelVerb())
}

// DeleteMany deletes the tasks that a filter selects, that have ended and that
// belong to no job; see Delete, and RetryMany for the rest.
func (c *Client) DeleteMany(ctx context.Context, f Filter, opts ...OperateOption) (ops.ManyAck, error) {
	return c.many(ctx, f, opts, deleteVerb())
}

// many is Bulk of all that a filter selects, however long that takes.
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

// lastOf is when a task ended, or was enqueued.
func lastOf(t *TaskInfo) time.Time {
	if !t.FinishedAt.IsZero() {
		return t.FinishedAt
	}
	return t.CreatedAt
}
