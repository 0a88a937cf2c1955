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

// Undoing describes the step to an undo function.
type Undoing[T any] struct {
	Out     T      // the step's value; zero unless Done
	Done    bool   // the value is recorded; otherwise the step began, and its effect is unknown
	Key     string // the step's StepKey, to look up or cancel its effect at the external service
	UndoKey string // key of the undo itself, the same in every try: for an idempotency header
}

// Undo undoes the step when its task ends without success: by a failure, a panic, a cancel, its
// deadline, a timeout, a budget, or the loss of its last worker.
//
//	receipt, err := weaver.Step(ctx, "charge", charge,
//		weaver.Undo(func(ctx context.Context, u weaver.Undoing[Receipt]) error {
//			return psp.Refund(ctx, u.Key, u.UndoKey) // u.Done: u.Out is the receipt
//		}))
//
// Such a step records that it begins before its function runs. A begun step without a recorded value
// (its worker died, or its function returned an error) is undone too. Then Done is false, and fn looks
// up the effect by Key, or cancels it, even if it may not exist.
//
// Before the task ends, the handler runs once more, to reach its steps. Recorded steps return their
// results, errors included, and the first unrecorded one returns the end of the context. The code
// between its steps must therefore lead it to the same steps again. Then the steps are undone one by
// one, the last begun first. Each undo has a context that no cancel ends, and its type's Timeout. A
// failed undo is retried after 1 s, 2 s, … up to 1 min, for 24 h ([UndoRetry]), by attempts that count
// for no limit. If it is given up, or returns a [Permanent] error, the task fails with the kind
// undo_failed, which names the remaining effects. Steps that began before it are then not undone,
// since it may depend on them. Until the task ends, it is pending or running for the reason undo, and
// shows its final error. A handler that no longer leads to a step to be undone blocks the task.
//
// An error that the handler tolerates undoes nothing, nor does a retry. An undone step counts as never
// run: if the task is retried, it runs again, with another StepKey. Steps without an Undo keep their
// values.
//
// T is the type of the step's value, None with [Do]; another one fails the task. An undo that calls
// Step, Sleep or the like blocks the task. Errors: ErrInvalidOption for a nil function and for a
// second Undo of a step. (ADR 0049)
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

// UndoTx is Undo inside a transaction of the store: the writes of fn through tx and the record of the
// undo commit together. It has the transaction types and limits of [StepTx].
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

// undoFits refuses an undo for a type other than the step's value.
func undoFits(set *engine.StepOptions, of reflect.Type) error {
	if set.Undo == nil || set.Undo.Of == of {
		return nil
	}
	return fmt.Errorf("%w: its value is a %s, and its Undo takes a %s", ErrInvalidOption, of, set.Undo.Of)
}

// UndoRetry limits the retries of a step's undo, or of a [Cleanup], to d after its first failure; 0
// means 24 h. pauses are the pause before the second try (default 1 s), which doubles, and the maximum
// (default 1 min).
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

// PointOfNoReturn records that earlier steps are no longer undone, whatever the end of the task: for
// example when the order is shipped. It is a step, with its own name and the errors of Step.
func PointOfNoReturn(ctx context.Context, name string) error {
	a, err := engine.From(ctx)
	if err != nil {
		return fmt.Errorf("point of no return %q: %w", name, err)
	}
	return a.Point(ctx, name)
}

// UndoPlan lists the effects of a task: first those to be undone if it ends without success, in that
// order, then those that stay (without an [Undo], or before a [PointOfNoReturn] or the success of the
// task), then those already undone. It only reads. It has no values, and masks messages of errors as
// the task asks (docs/privacy.md). It does not list cleanups, whose effects are known only when they
// run. The plan of a task that undoes a child ([UndoChildren]) has the effects of the child. Error:
// ErrNotFound.
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
	if errors.Is(err, ErrNotFound) { // deleted meanwhile
		return preview.Undo(&h), nil
	}
	if err != nil {
		return task.UndoPlan{}, err
	}
	redact.History(&of)
	return preview.UndoOf(&h, &of), nil
}
