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

// misuse fails the task for an invalid call of a step.
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

// RecordError records the step's last error as its result: later attempts get it back as a
// *task.StepError without running the function again.
//
// Transient errors are not recorded: the end of a context (including its deadline), or a store or
// database that is locked, full or unreachable, also if the driver reports it and however it is
// wrapped. Such an error is returned without a *task.StepError, and the next attempt runs the function
// again.
func RecordError() StepOption {
	return stepOption(func(s *engine.StepOptions) { s.RecordError = true })
}

// Step runs fn once for the task: its value is stored before Step returns, and from then on every
// attempt gets that value back and fn does not run. The value is recorded under the name, which must
// be unique within the task; renaming a step runs it again. The value travels as JSON. Steps may run
// in parallel goroutines; each keeps its value when another fails.
//
// An error of fn is returned as a *task.StepError. ErrNoTask, ErrDuplicateStep, ErrNestedStep and a
// value that cannot be stored fail the task at once. ErrCancelled, ErrLeaseLost, ErrSuspended and the
// like report that the attempt is over: return.
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

// StepTx is Step inside a transaction of the store: the value and all writes of fn through tx commit
// together, so they happen exactly once. Tx is *sql.Tx on SQLite and PostgreSQL, so that a handler
// runs on both, or pgx.Tx on PostgreSQL; another type is ErrTxType, which fails the task at once.
//
// Keep fn short and limited to the database: it holds locks (on SQLite the write lock), and is rolled
// back with ErrStepTxTooLong after the smaller of 5 s and a third of the lease. A statement of a
// *sql.Tx that runs then is interrupted, whatever its context. Return nil to commit and an error to
// roll back. A function that commits or rolls back tx itself fails the task at once with
// store.ErrStepTxEnded, and nothing of it is kept; a rollback followed by returning an error is
// allowed. A commit that breaks a constraint, for example a deferred one, is an error of the step that
// wraps store.ErrStepTxRefused.
//
// It accepts the options [Undo], [UndoTx] and [UndoRetry]: a failed commit had no effect, so such an
// undo always has the value.
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

// wantsSQL reports whether a function for a transaction of type t gets a *sql.Tx from a store with
// several types.
func wantsSQL(t reflect.Type) bool {
	return t == sqlTx || t.Kind() == reflect.Interface && t.NumMethod() > 0 && sqlTx.Implements(t)
}

// wrongTx returns the error for a transaction type that the store does not have.
func wrongTx(want reflect.Type, tx store.Tx) error {
	return Permanent(fmt.Errorf("%w: the function wants a %s: give it a *sql.Tx, which SQLite and PostgreSQL have, or on PostgreSQL a pgx.Tx; this store (%s) gave a %T",
		ErrTxType, want, tx.Driver(), tx.Handle()))
}

// Sleep suspends the task for d without a worker. The wake time is recorded under the name, the
// handler must return ErrSuspended (any return does), and an attempt that begins at that time gets nil
// from the same Sleep. It survives restarts and costs no memory and no attempt. Concurrent steps
// complete first.
func Sleep(ctx context.Context, name string, d time.Duration) error {
	a, err := engine.From(ctx)
	if err != nil {
		return fmt.Errorf("sleep %q: %w", name, err)
	}
	_, err = a.Await(ctx, name, &engine.Pause{For: max(d, 0)})
	return err
}

// SleepUntil is Sleep until an instant before the year 10000; a later one fails the task at once.
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

// Start enqueues a task as a step: it happens once for this task, under the name. Start does not wait
// for the task.
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

// UnblockInput returns the input of the last Unblock of this task; ok is false if there was no input.
// It does not tell questions apart: a handler that asks several uses Ask. The input for an Ask is not
// returned here, and a second call in one attempt gets the same input as the first; the log warns of
// both.
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
