package weaver

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/store"
)

// StepOption is an option of Step and Do.
type StepOption interface{ applyStep(*engine.StepOptions) }

type stepOption func(*engine.StepOptions)

func (o stepOption) applyStep(s *engine.StepOptions) { o(s) }

func stepOptions(opts []StepOption) (engine.StepOptions, error) {
	set := engine.StepOptions{Tries: 1, Backoff: engine.DefaultStepBackoff}
	for _, o := range opts {
		if o == nil {
			return set, fmt.Errorf("%w: an option is nil", ErrInvalidOption)
		}
		o.applyStep(&set)
	}
	return set, set.Wrong
}

var errNilFunc = fmt.Errorf("%w: the function is nil", ErrInvalidOption)

// misuse fails the task: the call of a step is a mistake of the program.
func misuse(name string, err error) error { return Permanent(fmt.Errorf("step %q: %w", name, err)) }

// StepRetry tries the step up to n times inside the attempt; the pause before
// the second try is base (default 100 ms) and doubles. Each failed try is
// recorded.
func StepRetry(n int, base ...time.Duration) StepOption {
	return stepOption(func(s *engine.StepOptions) {
		s.Tries = max(n, 1)
		if len(base) > 0 {
			s.Backoff = max(base[0], 0)
		}
	})
}

// RecordError makes the last error itself the step's result: it is recorded
// like a value, and later attempts get it back as a *task.StepError without running
// the function again.
//
// An error of the moment is no result: the end of a context (its deadline
// among them), or a store or database that is locked, full or out of reach, also
// as the database's driver says it and however it is wrapped. It is returned, not
// as a *task.StepError, and the next attempt runs the function again.
func RecordError() StepOption {
	return stepOption(func(s *engine.StepOptions) { s.RecordError = true })
}

// Step runs fn once for the task: when it returned, its value is stored before
// Step returns, and from then on every attempt gets that value back and fn
// does not run. The value is recorded under the name, which must be unique
// within the task; renaming a step runs it again. The value travels as JSON. Steps may run in
// parallel goroutines; each keeps its value when another fails.
//
// An error of fn is returned as a *task.StepError. Errors of the engine: ErrNoTask,
// ErrDuplicateStep, ErrNestedStep and a value that cannot be stored fail the
// task at once; ErrCancelled, ErrLeaseLost, ErrSuspended and the like say that
// the attempt is over: return.
func Step[T any](ctx context.Context, name string, fn func(ctx context.Context) (T, error), opts ...StepOption) (T, error) {
	var value T
	a, err := engine.From(ctx)
	if err != nil {
		return value, fmt.Errorf("step %q: %w", name, err)
	}
	set, err := stepOptions(opts)
	if fn == nil {
		err = errNilFunc
	}
	if err != nil {
		return value, misuse(name, err)
	}
	if err := undoFits(&set, reflect.TypeFor[T]()); err != nil {
		return value, a.Refuse(fmt.Errorf("step %q: %w", name, err))
	}
	if set.Redact, err = redactStep(reflect.TypeFor[T]()); err != nil {
		return value, a.Refuse(fmt.Errorf("step %q: %w", name, err))
	}
	raw, err := a.Step(ctx, name, set, func(ctx context.Context) (json.RawMessage, error) {
		v, err := fn(ctx)
		if err != nil {
			return nil, err
		}
		return encodeOutput("value", &v)
	})
	if err != nil {
		return value, err
	}
	return decodeStep[T](a, name, raw)
}

func decodeStep[T any](a *engine.Attempt, name string, raw json.RawMessage) (T, error) {
	var value T
	if err := json.Unmarshal(raw, &value); err != nil {
		return value, a.Undecodable(name, err)
	}
	return value, nil
}

// Do is Step for a function without a value.
func Do(ctx context.Context, name string, fn func(ctx context.Context) error, opts ...StepOption) error {
	if fn == nil {
		_, err := Step[None](ctx, name, nil)
		return err
	}
	_, err := Step(ctx, name, func(ctx context.Context) (None, error) { return None{}, fn(ctx) }, opts...)
	return err
}

// StepTx is Step inside a transaction of the store: the value and everything
// that fn writes through tx commit together, so they happen exactly once. Tx
// is *sql.Tx on SQLite and PostgreSQL, so that a handler runs on both, or pgx.Tx on
// PostgreSQL; another type is ErrTxType, which fails the task at once. Keep it short and
// let it touch the database only: it holds locks (on SQLite the one to write), and is
// rolled back with ErrStepTxTooLong after the smaller of 5 s and a third of the lease; a
// statement of a *sql.Tx that runs then is interrupted, whichever context it was given.
// Return nil to commit and an error to roll back: a function that ends tx itself
// fails the task at once with store.ErrStepTxEnded, and nothing of it is kept. (A
// rollback that an error follows is none of that.) A commit that breaks a constraint, a
// deferred one, is an error of the step that wraps store.ErrStepTxRefused.
//
// Of the options it takes [Undo], [UndoTx] and [UndoRetry]: what did not commit did not
// happen, so that such an undo always has the value.
func StepTx[Tx, T any](ctx context.Context, name string, fn func(ctx context.Context, tx Tx) (T, error), opts ...StepOption) (T, error) {
	var value T
	a, err := engine.From(ctx)
	if err != nil {
		return value, fmt.Errorf("step %q: %w", name, err)
	}
	set, err := stepOptions(opts)
	switch {
	case fn == nil:
		err = errNilFunc
	case err == nil && (set.Tries > 1 || set.RecordError):
		err = fmt.Errorf("%w: StepTx takes neither StepRetry nor RecordError", ErrInvalidOption)
	}
	if err != nil {
		return value, misuse(name, err)
	}
	if err := undoFits(&set, reflect.TypeFor[T]()); err != nil {
		return value, a.Refuse(fmt.Errorf("step %q: %w", name, err))
	}
	if set.Redact, err = redactStep(reflect.TypeFor[T]()); err != nil {
		return value, a.Refuse(fmt.Errorf("step %q: %w", name, err))
	}
	set.SQLTx = wantsSQL(reflect.TypeFor[Tx]())
	raw, err := a.StepTx(ctx, name, set, func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
		handle, ok := tx.Handle().(Tx)
		if !ok {
			return nil, wrongTx(reflect.TypeFor[Tx](), tx)
		}
		v, err := fn(ctx, handle)
		if err != nil {
			return nil, err
		}
		return encodeOutput("value", &v)
	})
	if err != nil {
		return value, err
	}
	return decodeStep[T](a, name, raw)
}

var sqlTx = reflect.TypeFor[*sql.Tx]()

// wantsSQL reports whether a function that wants a transaction of type t gets a *sql.Tx
// where the store has others, too.
func wantsSQL(t reflect.Type) bool {
	return t == sqlTx || t.Kind() == reflect.Interface && t.NumMethod() > 0 && sqlTx.Implements(t)
}

// wrongTx is for a function that wants another type of transaction than the store has.
func wrongTx(want reflect.Type, tx store.Tx) error {
	return Permanent(fmt.Errorf("%w: the function wants a %s: give it a *sql.Tx, which SQLite and PostgreSQL have, or on PostgreSQL a pgx.Tx; this store (%s) gave a %T",
		ErrTxType, want, tx.Driver(), tx.Handle()))
}

// Sleep lets the task wait for d without a worker: the time is recorded under
// the name, the handler must return ErrSuspended (any return does), and an
// attempt that begins when the time has come gets nil from the same Sleep.
// It survives restarts, costs no memory and no attempt. Steps that run beside
// it are completed first.
func Sleep(ctx context.Context, name string, d time.Duration) error {
	a, err := engine.From(ctx)
	if err != nil {
		return fmt.Errorf("sleep %q: %w", name, err)
	}
	_, err = a.Await(ctx, name, &engine.Pause{For: max(d, 0)})
	return err
}

// SleepUntil is Sleep until an instant, which lies before the year 10000; a
// later one fails the task at once.
func SleepUntil(ctx context.Context, name string, t time.Time) error {
	a, err := engine.From(ctx)
	if err != nil {
		return fmt.Errorf("sleep %q: %w", name, err)
	}
	if !option.ValidTime(t) {
		return Permanent(fmt.Errorf("sleep %q: %w: SleepUntil(%s): want an instant before the year 10000", name, ErrInvalidOption, t))
	}
	_, err = a.Await(ctx, name, &engine.Pause{Until: t})
	return err
}

// TaskRef names a task that Start enqueued.
type TaskRef struct {
	ID   TaskID
	Type string
}

// Start enqueues a task as a step: it happens once for this task, under the
// name, and is not waited for.
func Start[In, Out any](ctx context.Context, name string, t *Type[In, Out], in In, opts ...EnqueueOption) (TaskRef, error) {
	a, err := engine.From(ctx)
	if err != nil {
		return TaskRef{}, fmt.Errorf("start %q: %w", name, err)
	}
	c := Client{ids: a.IDs(), limit: a.Values().Most()}
	child, err := c.toNew(t.With(in, opts...))
	if err == nil && child.Coalesce {
		err = fmt.Errorf("%w of %s: a task that a step starts has no Coalesce: the step is about one task", ErrInvalidOption, t.name)
	}
	if err == nil && child.RequireSameInput {
		err = fmt.Errorf("%w of %s: a task that a step starts has no RequireSameInput: the step is recorded with the task that exists", ErrInvalidOption, t.name)
	}
	if err != nil {
		return TaskRef{}, Permanent(fmt.Errorf("start %q: %w", name, err))
	}
	id, err := a.Start(ctx, name, child)
	if err != nil {
		return TaskRef{}, err
	}
	return TaskRef{ID: id, Type: t.name}, nil
}

// UnblockInput returns what the last Unblock of this task was given; ok is
// false when there was none. It knows no question: a handler that asks for more
// than one thing uses Ask. An input that was given for an Ask is not returned
// here, and a second call in one attempt gets the same input as the first; the
// log warns of both.
func UnblockInput[T any](ctx context.Context) (value T, ok bool, err error) {
	a, err := engine.From(ctx)
	if err != nil {
		return value, false, err
	}
	raw := a.UnblockInput()
	if len(raw) == 0 {
		return value, false, nil
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return value, false, Blocked(fmt.Sprintf("the input given to unblock does not decode as %T: %v", value, err))
	}
	return value, true, nil
}
