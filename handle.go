package weaver

import (
	"context"
	"fmt"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Handle is an enqueued task whose output is an Out.
type Handle[Out any] struct {
	got    Enqueued
	client Caller // nil: made inside a transaction
}

// newHandle binds a handle to the enqueuer if it is a Caller, too, and can read the task back.
func newHandle[Out any](e Enqueuer, got Enqueued) *Handle[Out] {
	h := &Handle[Out]{got: got}
	if w, ok := e.(Caller); ok {
		h.client = w
	}
	return h
}

// ID returns the task's id.
func (h *Handle[Out]) ID() TaskID { return h.got.ID }

// Disposition returns whether the task was created or existed already, and whether an existing one
// took the input (store.DispositionCoalesced) or not (store.DispositionExisting).
func (h *Handle[Out]) Disposition() store.Disposition { return h.got.Disposition }

// Get reads the task. Error: ErrUnbound for a handle of a transaction.
func (h *Handle[Out]) Get(ctx context.Context) (TaskInfo, error) {
	if h.client == nil {
		return TaskInfo{}, ErrUnbound
	}
	return h.client.Get(ctx, h.got.ID)
}

// WaitOption is an option of Wait.
type WaitOption interface{ applyWait(*WaitSettings) }

type waitOption func(*WaitSettings)

func (o waitOption) applyWait(s *WaitSettings) { o(s) }

// WaitThroughBlocked lets Wait go on while the task is blocked, until it was
// unblocked and ended.
func WaitThroughBlocked() WaitOption {
	return waitOption(func(s *WaitSettings) { s.ThroughBlocked = true })
}

// Wait returns the output of a succeeded task, in any process. It returns a *TaskError if the task
// failed or was cancelled, ErrBlocked if it needs a person, and ctx's error if that ends first. It
// keeps waiting while the store is unreachable or busy: set a limit on ctx to stop earlier.
func (h *Handle[Out]) Wait(ctx context.Context, opts ...WaitOption) (Out, error) {
	var out Out
	if h.client == nil {
		return out, ErrUnbound
	}
	info, err := h.client.Wait(ctx, h.got.ID, opts...)
	if err != nil {
		return out, err
	}
	err = decodeOutput(&info, &out)
	return out, err
}

// Wait waits for a task known only by its ID; see Handle.Wait. The returned task has the encoded
// output.
func (c *Client) Wait(ctx context.Context, id TaskID, opts ...WaitOption) (TaskInfo, error) {
	s, err := ReadWaitOptions(opts...)
	if err != nil {
		return TaskInfo{}, err
	}
	var info TaskInfo
	err = c.waits.until(ctx, id, func(ctx context.Context) (over bool, err error) {
		if info, err = c.get(ctx, id); err != nil {
			return false, err
		}
		if over, err = s.Task(&info); err != nil || info.State != task.Succeeded {
			return over, err
		}
		if info.Output, err = c.values.Load(ctx, info.Output); err != nil {
			return true, fmt.Errorf("the output of task %s cannot be read: %w", id, err)
		}
		return true, nil
	})
	return info, err
}
