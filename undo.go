package weaver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/preview"
	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Undoing is what an undo is given of the step that it undoes.
type Undoing[T any] struct {
	Out     T      // the step's value; zero unless Done
	Done    bool   // the value is on record; else the step began, and its effect is unknown
	Key     string // the step's StepKey, to ask the partner or cancel by
	UndoKey string // of the undo itself, the same in every try: for the partner's idempotency header
}

// Undo says how the step is undone when its task ends in any way but success: by a failure,
// a panic, a cancel, its deadline, a timeout, a budget, or with the last of its workers.
//
//	receipt, err := weaver.Step(ctx, "charge", charge,
//		weaver.Undo(func(ctx context.Context, u weaver.Undoing[Receipt]) error {
//			return psp.Refund(ctx, u.Key, u.UndoKey) // u.Done: u.Out is the receipt
//		}))
//
// Such a step records that it begins before its function runs. One that began and whose
// value is not on record (its worker died, or its function returned an error) is undone too:
// then Done is false, and fn asks the partner by Key, or cancels what may not be there.
//
// When the task is to end, the handler is called once more, to come to its steps: those on
// record answer, with their errors too, and the first that is not returns the end of the
// context. So what a handler does between its steps must lead it to the same steps again.
// Then the steps are undone one after the other, the last begun first. Each undo has a
// context that no cancel ends, and its type's Timeout. One that fails is tried again after
// 1 s, 2 s, … up to 1 min, for 24 h ([UndoRetry]), by attempts that count for no limit. When
// it is given up, or returns a [Permanent] error, the task fails with the kind undo_failed, which
// names what stands; steps that began before it are not undone then, since they may be what
// it is for. Until the task ends, it is pending or running for the reason undo, and shows the
// error with which it ends. A handler that no longer leads to a step that is to be undone
// blocks the task.
//
// An error that the handler handles undoes nothing, nor does a retry. A step that was undone
// counts as never run: if the task is retried, it runs again, with another StepKey. Steps
// without an Undo keep their values.
//
// T is the type of the step's value, None with [Do]; another one fails the task. An undo
// that calls Step, Sleep or the like blocks the task. Errors: ErrInvalidOption for a nil
// function and for a second Undo of a step. (ADR 0049)
func Undo[T any](fn func(ctx context.Context, u Undoing[T]) error) StepOption {
	u := &engine.Undo{Of: reflect.TypeFor[T](), Run: func(ctx context.Context, call engine.UndoCall) error {
		undoing, err := undoingOf[T](ctx, &call)
		if err != nil {
			return err
		}
		return fn(ctx, undoing)
	}}
	return undoOption(u, fn == nil)
}

// UndoTx is Undo inside a transaction of the store: what fn writes through tx and the record
// that the step is undone commit together. It has the types of transactions and the limits
// of [StepTx].
func UndoTx[Tx, T any](fn func(ctx context.Context, tx Tx, u Undoing[T]) error) StepOption {
	u := &engine.Undo{Of: reflect.TypeFor[T](), SQLTx: wantsSQL(reflect.TypeFor[Tx]()), Tx: func(ctx context.Context, tx store.Tx, call engine.UndoCall) error {
		handle, ok := tx.Handle().(Tx)
		if !ok {
			return wrongTx(reflect.TypeFor[Tx](), tx)
		}
		undoing, err := undoingOf[T](ctx, &call)
		if err != nil {
			return err
		}
		return fn(ctx, handle, undoing)
	}}
	return undoOption(u, fn == nil)
}

func undoOption(u *engine.Undo, missing bool) StepOption {
	return stepOption(func(s *engine.StepOptions) {
		switch {
		case missing:
			s.Wrong = fmt.Errorf("%w: the function of the Undo is nil", ErrInvalidOption)
		case s.Undo != nil:
			s.Wrong = fmt.Errorf("%w: the step has two Undos", ErrInvalidOption)
		}
		s.Undo = u
	})
}

func undoingOf[T any](ctx context.Context, call *engine.UndoCall) (Undoing[T], error) {
	u := Undoing[T]{Done: call.Done, Key: call.Key, UndoKey: call.UndoKey}
	if !call.Done {
		return u, nil
	}
	a, err := engine.From(ctx)
	if err != nil {
		return u, err
	}
	if err := json.Unmarshal(call.Out, &u.Out); err != nil {
		return u, a.Undecodable(call.Step, err)
	}
	return u, nil
}

// undoFits refuses an undo of another type than the step's value.
func undoFits(set *engine.StepOptions, of reflect.Type) error {
	if set.Undo == nil || set.Undo.Of == of {
		return nil
	}
	return fmt.Errorf("%w: its value is a %s, and its Undo takes a %s", ErrInvalidOption, of, set.Undo.Of)
}

// UndoRetry has the undo of a step, or a [Cleanup], tried again for d since its first
// failure; 0: 24 h. pauses are that before the second try (default 1 s), which doubles, and
// the longest one (default 1 min).
func UndoRetry(d time.Duration, pauses ...time.Duration) StepOption {
	return stepOption(func(s *engine.StepOptions) {
		base, most := time.Second, time.Minute
		switch len(pauses) {
		case 0:
		case 1:
			base, most = pauses[0], max(most, pauses[0])
		default:
			base, most = pauses[0], pauses[1]
		}
		if s.UndoRetry = (engine.UndoRetry{For: d, Base: base, Most: most}); d < 0 || base <= 0 || most < base || len(pauses) > 2 {
			s.Wrong = fmt.Errorf("%w: UndoRetry(%s, %v): want a time, the first pause and the longest one, all above 0", ErrInvalidOption, d, pauses)
		}
	})
}

// PointOfNoReturn records that the steps that began before it are not undone any more,
// whatever becomes of the task: the order is shipped. It is a step, with a name of its own,
// and its errors are those of Step.
func PointOfNoReturn(ctx context.Context, name string) error {
	a, err := engine.From(ctx)
	if err != nil {
		return fmt.Errorf("point of no return %q: %w", name, err)
	}
	return a.Point(ctx, name)
}

// UndoPlan lists what a task did: first what is undone if it ends in any way but success,
// in that order, then what stays (it has no [Undo], or a [PointOfNoReturn] or the success of
// the task came after it), then what was undone. Nothing is changed by it. It has no values,
// and messages of errors are masked as the task says (docs/privacy.md). Cleanups are not in
// it: what they do is known when they run. The plan of a task that undoes a child
// ([UndoChildren]) has the effects of the child. ErrNotFound: there is no such task.
func (c *Client) UndoPlan(ctx context.Context, id TaskID) (task.UndoPlan, error) {
	h, err := c.History(ctx, id)
	if err != nil {
		return task.UndoPlan{}, err
	}
	redact.History(&h)
	if h.Task.UndoOf.IsZero() {
		return preview.Undo(&h), nil
	}
	of, err := c.History(ctx, h.Task.UndoOf)
	if errors.Is(err, ErrNotFound) { // it was deleted since
		return preview.Undo(&h), nil
	}
	if err != nil {
		return task.UndoPlan{}, err
	}
	redact.History(&of)
	return preview.UndoOf(&h, &of), nil
}
