package weaver

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/preview"
	"github.com/goweaver/weaver/store"
)

// manySettings are the options of verbs of many tasks.
type manySettings struct {
	dryRun bool
	older  time.Duration
	known  map[TaskID]bool // that were refused without asking the store
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
// would: in ManyAck.Tasks what they would change, in ManyAck.Refused what they would
// refuse, as far as that is known before (of the first 1,000 tasks).
func DryRun() OperateOption { return manyOption(func(s *manySettings) { s.dryRun = true }) }

// OlderThan has RetryMany, CancelMany or DeleteMany pass over tasks that ended, or
// that were enqueued if they have not ended, less than d ago.
func OlderThan(d time.Duration) OperateOption {
	return manyOption(func(s *manySettings) { s.older = d })
}

// ManyAck says what a verb did to the tasks that a filter selects.
type ManyAck struct {
	Done        int           // that it changed; in a DryRun: that it would
	Asked       int           // CancelMany: of these, those that run, or clean up, and were asked to end
	UndoneFirst int           // in a DryRun of CancelMany: of Done, those that would be undone before they end; see UndoPlan
	AlreadyDone int           // that ended, were brought back or were deleted meanwhile, for instance with what they need
	Refused     []RefusedTask // that it could not change
	Tasks       []ManyTask    // in a DryRun: those of Done, newest first

	// After is how far it came: every selected task that is not older than this
	// one was looked at. As Filter.After it lets another call do the rest.
	After string
}

// ManyTask is a task that a DryRun lists.
type ManyTask struct {
	ID    TaskID
	Type  string
	Queue string
	State State
}

// RefusedTask is a task that a verb could not change, with the reason: ErrState
// and the like.
type RefusedTask struct {
	ID  TaskID
	Err error
}

// RetryMany retries the failed and cancelled tasks that a filter selects; see
// Retry. What others need may come after them: those that are refused are tried
// once more in the end.
//
// Tasks are changed newest first, in pages of up to 1,000, each of them by itself.
// When it returns an error, what was done stays done, and the answer says how far
// it came (ManyAck.After). With Cleanups it is for tasks whose undo was given up, or those
// that are blocked or pending if the filter asks for these states. Options: DryRun, OlderThan, KeepSteps, Cleanups, By, Reason. A Filter with a
// state in which no task can be retried, a DryRun of another verb and the like:
// ErrInvalidOption. Filter.Limit is the size of a page; an empty filter selects
// every task.
func (c *Client) RetryMany(ctx context.Context, f Filter, opts ...OperateOption) (ManyAck, error) {
	return c.many(ctx, f, opts, retryVerb())
}

// CancelMany cancels the tasks that a filter selects and that have not ended; see
// Cancel, and RetryMany for the rest. It has the option Force, too, with which tasks that
// are being undone are refused.
func (c *Client) CancelMany(ctx context.Context, f Filter, opts ...OperateOption) (ManyAck, error) {
	return c.many(ctx, f, opts, cancelVerb())
}

// DeleteMany deletes the tasks that a filter selects, that have ended and that
// belong to no job; see Delete, and RetryMany for the rest.
func (c *Client) DeleteMany(ctx context.Context, f Filter, opts ...OperateOption) (ManyAck, error) {
	return c.many(ctx, f, opts, deleteVerb())
}

func (c *Client) many(ctx context.Context, f Filter, opts []OperateOption, v *manyVerb) (ack ManyAck, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s tasks: %w", v.name, err)
		}
	}()
	if engine.StepTxOf(ctx) != nil {
		return ack, ErrNestedTx
	}
	s := operateSettings{}
	if err := s.apply(opts); err != nil {
		return ack, err
	}
	if err := s.problem(verbOptions{force: v.force, keep: v.keep, cleanups: v.keep, many: true}); err != nil {
		return ack, err
	}
	if s.many == nil {
		s.many = new(manySettings)
	}
	v.with(&s)
	if err := v.narrow(&f); err != nil {
		return ack, err
	}
	if f.Limit <= 0 {
		f.Limit = store.MaxLimit
	}
	limit := time.Now().Add(-s.many.older)
	for ack.After = f.After; ; {
		page, next, err := c.List(ctx, f)
		if err != nil {
			return ack, err
		}
		page = slices.DeleteFunc(page, func(t TaskInfo) bool { return s.many.older > 0 && lastOf(&t).After(limit) })
		if err := c.manyOf(ctx, page, &s, v, &ack); err != nil {
			return ack, err
		}
		if next == "" {
			break
		}
		f.After, ack.After = next, next
	}
	if s.many.dryRun {
		return ack, c.foresee(ctx, v, &s, &ack)
	}
	if v.twice && len(ack.Refused) > 0 {
		return ack, c.again(ctx, &s, v, &ack)
	}
	return ack, nil
}

// lastOf is when a task ended, or was enqueued.
func lastOf(t *TaskInfo) time.Time {
	if !t.FinishedAt.IsZero() {
		return t.FinishedAt
	}
	return t.CreatedAt
}

// manyOf changes the tasks of one page, or lists them.
func (c *Client) manyOf(ctx context.Context, page []TaskInfo, s *operateSettings, v *manyVerb, ack *ManyAck) error {
	var ids []TaskID
	for i := range page {
		t := &page[i]
		if v.refuse != nil {
			if err := v.refuse(s, t); err != nil {
				ack.Refused = append(ack.Refused, RefusedTask{t.ID, err})
				if s.many.known == nil {
					s.many.known = make(map[TaskID]bool)
				}
				s.many.known[t.ID] = true
				continue
			}
		}
		if s.many.dryRun {
			ack.Done++
			if v.undoes && preview.UndoneFirst(t) {
				ack.UndoneFirst++
			}
			ack.Tasks = append(ack.Tasks, ManyTask{t.ID, t.Type, t.Queue, t.State})
			continue
		}
		ids = append(ids, t.ID)
	}
	return c.manyCommands(ctx, ids, s, v, ack)
}

// again changes once more what was refused.
func (c *Client) again(ctx context.Context, s *operateSettings, v *manyVerb, ack *ManyAck) error {
	var refused []RefusedTask
	known := ack.Refused[:0]
	for _, r := range ack.Refused {
		if s.many.known[r.ID] {
			known = append(known, r)
		} else {
			refused = append(refused, r)
		}
	}
	ack.Refused = known
	slices.Reverse(refused) // what others need is often older
	for len(refused) > 0 {
		n := min(len(refused), store.MaxLimit)
		ids := make([]TaskID, n)
		for i := range ids {
			ids[i] = refused[i].ID
		}
		if err := c.manyCommands(ctx, ids, s, v, ack); err != nil {
			ack.Refused = append(ack.Refused, refused...)
			return err
		}
		refused = refused[n:]
	}
	return nil
}

func (c *Client) manyCommands(ctx context.Context, ids []TaskID, s *operateSettings, v *manyVerb, ack *ManyAck) error {
	if len(ids) == 0 {
		return nil
	}
	cmds := make([]store.Command, len(ids))
	for i, id := range ids {
		cmds[i] = v.command(s, id)
	}
	got, err := c.store.Operate(ctx, c.ns, cmds...)
	if err != nil {
		return err
	}
	for i := range got {
		r := &got[i]
		switch {
		case r.Err == nil:
			ack.Done++
			if r.Asked {
				ack.Asked++
			}
		case v.done(r):
			ack.AlreadyDone++
		default:
			ack.Refused = append(ack.Refused, RefusedTask{ids[i], r.Err})
		}
	}
	return nil
}
