package weaver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// forgetPage is the number of tasks in a page, which includes their inputs.
const forgetPage = 100

// Forget erases the data of tasks with all these labels, and of the children that they waited for:
// inputs, outputs, metadata, the values of steps and signals, checkpoints, progress, answers,
// artifacts, log lines and events, and the texts of errors and decisions. It keeps the record that a
// task existed, its times, states and attempts: IDs, names, keys, labels, kinds of errors, times and
// the audit. Reading erased data is [ErrForgotten], and such a task cannot be retried. Each task is
// audited; a second call finds no tasks.
//
// Unfinished tasks are refused (ErrState); see CancelFirst. Other work continues meanwhile: Forget
// uses small transactions. At the end it deletes the bytes from the client's bucket, unless another
// task has the same bytes. A store in a file then rewrites the file, without unused parts that may
// hold copies, while other writers wait (see KeepFile). After an interruption the same call completes
// the rest.
//
// Forget does not erase outputs that other tasks derived, inputs of tasks that a forgotten one started
// (Start), backups, or data that handlers wrote elsewhere. A label selects the tasks about one
// subject: use an identifier, never a secret.
//
// Options: DryRun, By, Reason, CancelFirst, Force, AlsoForget, KeepFile. Without a label:
// ErrInvalidOption.
func (c *Client) Forget(ctx context.Context, req ops.ForgetRequest) (ack ops.ForgetAck, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("forget tasks: %w", err)
		}
	}()
	if engine.StepTxOf(ctx) != nil {
		return ack, ErrNestedTx
	}
	f := forgetting{c: c, req: &req, ack: &ack, seen: make(map[TaskID]error), cancelled: make(map[TaskID]store.CommandResult)}
	f.s.audit, f.s.force = store.Audit{By: req.By, Reason: req.Reason}, req.Force
	switch {
	case req.Force && !req.Cancel:
		return ack, fmt.Errorf("%w: Force without Cancel: no task is cancelled", ErrInvalidOption)
	case len(req.Labels) == 0:
		return ack, fmt.Errorf("%w: no label is given: name the tasks to be forgotten by at least one", ErrInvalidOption)
	}
	if err := f.s.problem(verbOptions{force: true}); err != nil {
		return ack, err
	}
	for after := ""; ; {
		page, next, err := c.List(ctx, Filter{Labels: req.Labels, Limit: forgetPage, After: after})
		if err != nil {
			return ack, err
		}
		if err := f.cancel(ctx, page); err != nil {
			return ack, err
		}
		for i := range page {
			if err := f.one(ctx, &page[i]); err != nil {
				return ack, err
			}
		}
		if err := f.flush(ctx); err != nil {
			return ack, err
		}
		if after = next; next == "" {
			return ack, f.clean(ctx)
		}
	}
}

// forgetting is one call of Forget.
type forgetting struct {
	c     *Client
	s     operateSettings // with the audit, and Force
	req   *ops.ForgetRequest
	ack   *ops.ForgetAck
	seen  map[TaskID]error // tasks that were looked at, with why they stay
	batch []TaskInfo       // to be erased; children come before their parents

	cancelled map[TaskID]store.CommandResult // tasks cancelled by this call
}

// one examines a task. Its children are erased before it: once it is erased, no link leads to them.
func (f *forgetting) one(ctx context.Context, t *TaskInfo) error {
	if _, again := f.seen[t.ID]; again || t.Forgotten {
		return nil
	}
	f.seen[t.ID] = nil
	stays := f.ended(t)
	if stays == nil {
		var err error
		if stays, err = f.children(ctx, t.ID); err != nil {
			return err
		}
	}
	if stays != nil {
		f.seen[t.ID] = stays
		f.ack.Refused = append(f.ack.Refused, ops.RefusedTask{ID: t.ID, Err: stays})
		return nil
	}
	f.batch = append(f.batch, *t)
	if len(f.batch) < forgetPage {
		return nil
	}
	return f.flush(ctx)
}

// cancel cancels the unfinished tasks of a list, with CancelFirst.
func (f *forgetting) cancel(ctx context.Context, list []TaskInfo) error {
	if !f.req.Cancel || f.req.DryRun {
		return nil
	}
	var cmds []store.Command
	var ids []TaskID
	for i := range list {
		t := &list[i]
		if _, again := f.seen[t.ID]; !again && !t.State.Terminal() {
			ids = append(ids, t.ID)
			cmds = append(cmds, store.CancelTask{Audit: f.s.audit, Task: t.ID, Force: f.s.force})
		}
	}
	if len(cmds) == 0 {
		return nil
	}
	got, err := f.c.store.Operate(ctx, f.c.ns, cmds...)
	for i := range got {
		f.cancelled[ids[i]] = got[i]
	}
	return err
}

// ended returns the reason why an unfinished task stays.
func (f *forgetting) ended(t *TaskInfo) (stays error) {
	if t.State.Terminal() {
		return nil
	}
	got, asked := f.cancelled[t.ID]
	switch {
	case !f.req.Cancel:
		return fmt.Errorf("task %s is %s, cancel it first: %w", t.ID, t.State, ErrState)
	case f.req.DryRun:
		f.ack.Cancelled++
		return nil
	case asked && got.State.Terminal(): // also if it ended a moment before
		if got.Err == nil {
			f.ack.Cancelled++
		}
		t.State = got.State
		return nil
	case asked && got.Err != nil:
		return got.Err
	}
	return fmt.Errorf("task %s was asked to end, forget it when it has: %w", t.ID, ErrState)
}

// children examines the children of a task, and returns why it stays if one of them does.
func (f *forgetting) children(ctx context.Context, id TaskID) (stays, err error) {
	needs, err := f.c.store.Needs(ctx, f.c.ns, id)
	if err != nil {
		return nil, err
	}
	needs = slices.DeleteFunc(needs, func(n store.Need) bool { return n.Awaited == 0 || n.Kind != task.OnDone })
	for len(needs) > 0 {
		some := needs[:min(len(needs), forgetPage)]
		needs = needs[len(some):]
		ids := make([]TaskID, len(some))
		for i := range some {
			ids[i] = some[i].ID
		}
		list, err := f.c.store.Tasks(ctx, f.c.ns, ids...)
		if err != nil {
			return nil, err
		}
		if err := f.cancel(ctx, list); err != nil {
			return nil, err
		}
		for i := range list {
			if err := f.one(ctx, &list[i]); err != nil {
				return nil, err
			}
			if f.seen[list[i].ID] != nil {
				stays = fmt.Errorf("task %s stays until its child %s can be forgotten: %w", id, list[i].ID, ErrState)
			}
		}
	}
	return stays, nil
}

// flush erases the tasks of the batch, in order.
// Crash here: the next call finds the remaining tasks again.
func (f *forgetting) flush(ctx context.Context) error {
	batch := f.batch
	f.batch = nil
	if len(batch) == 0 {
		return nil
	}
	if f.req.DryRun {
		f.ack.Done += len(batch)
		for i := range batch {
			t := &batch[i]
			f.ack.Tasks = append(f.ack.Tasks, ops.ManyTask{ID: t.ID, Type: t.Type, Queue: t.Queue, State: t.State})
		}
		return nil
	}
	if f.req.Also != nil {
		if err := f.req.Also(ctx, batch); err != nil {
			return err
		}
	}
	cmds := make([]store.Command, len(batch))
	for i := range batch {
		cmds[i] = store.ForgetTask{Audit: f.s.audit, Task: batch[i].ID}
	}
	got, err := f.c.store.Operate(ctx, f.c.ns, cmds...)
	if err != nil {
		return err
	}
	for i := range got {
		switch {
		case got[i].Err == nil && !got[i].Existing:
			f.ack.Done++
		case got[i].Err != nil && !errors.Is(got[i].Err, ErrNotFound): // deleted meanwhile
			f.ack.Refused = append(f.ack.Refused, ops.RefusedTask{ID: batch[i].ID, Err: got[i].Err})
		}
	}
	return nil
}

// clean deletes unreferenced bytes, and the copies in the store's files.
// Crash here: the next call, or a collector, deletes the bytes, and the next call
// cleans the files.
func (f *forgetting) clean(ctx context.Context) (err error) {
	if f.req.DryRun {
		return nil
	}
	if f.c.hasBucket() {
		if f.ack.Blobs, err = f.c.values.Collect(ctx, 0); err != nil {
			return err
		}
	}
	if f.req.KeepFile || !f.c.store.Capabilities().Has(store.CanScrub) {
		return nil
	}
	did, err := f.c.store.Scrub(ctx, f.c.ns)
	f.ack.Rewritten = did.Bytes
	return err
}
