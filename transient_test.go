package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// R10: an error of the store or the end of a context is never recorded as the result of a step, raw or
// wrapped: the step's function runs again.
func TestRecordErrorRecordsNothingTransient(t *testing.T) {
	final := map[string]error{"an answer": errors.New("answer 42")}
	transient := map[string]error{
		"a deadline":                      context.DeadlineExceeded,
		"a cancelled context":             context.Canceled,
		"a timeout of the handler":        weaver.ErrTimeout,
		"an engine that stops":            weaver.ErrDraining,
		"a store out of reach":            store.ErrUnavailable,
		"a store that another one locks":  store.ErrBusy,
		"a store that was closed":         store.ErrClosed,
		"a transaction to be begun again": store.ErrRestartTx,
		"a session that has no statement": sqlState("26000"),
		"a session with another of them":  sqlState("42P05"),
	}
	forms := map[string]func(error) error{
		"raw":         func(err error) error { return err },
		"wrapped":     func(err error) error { return fmt.Errorf("ask the service: %w", err) },
		"joined":      func(err error) error { return errors.Join(errors.New("twice"), fmt.Errorf("ask: %w", err)) },
		"permanent":   func(err error) error { return weaver.Permanent(fmt.Errorf("ask: %w", err)) },
		"in a panic":  func(err error) error { panic(fmt.Errorf("ask: %w", err)) },
		"to be later": func(err error) error { return weaver.RetryAfter(1, err) },
	}
	typ := weaver.Define[string, int]("engine.transient.run.v1")
	inBubble(t, func(fx *fixture) {
		var fail func() error // of the step
		runs, recorded := 0, false
		fx.run(typ.Handler(func(ctx context.Context, _ string) (int, error) {
			_, err := weaver.Step(ctx, "ask", func(context.Context) (int, error) { runs++; return 0, fail() }, weaver.RecordError())
			if _, is := errors.AsType[*task.StepError](err); err == nil || is != recorded {
				fx.Errorf("the step returned %#v, a *StepError: %v, want %v", err, is, recorded)
			}
			if weaver.Current(ctx).AttemptNo == 1 {
				return 0, errors.New("once more")
			}
			return 0, nil
		}))
		for want, errs := range map[int]map[string]error{1: final, 2: transient} {
			for name, err := range errs {
				for form, wrap := range forms {
					runs, recorded, fail = 0, want == 1, func() error { return wrap(err) }
					h := enqueue(fx, typ, "")
					result(fx, h)
					what := name + ", " + form
					equal(fx, what+": runs of the step", runs, want)
					results := 0
					for _, st := range fx.history(h.ID()).Steps {
						if st.State == task.StepCompleted {
							results++
						}
					}
					equal(fx, what+": recorded results", results, 2-want)
				}
			}
		}
	})
}

// sqlState is an error of a PostgreSQL driver.
type sqlState string

// Error implements error.
func (s sqlState) Error() string { return "ERROR: prepared statement (SQLSTATE " + string(s) + ")" }

// SQLState implements the method of PostgreSQL drivers.
func (s sqlState) SQLState() string { return string(s) }

// A statement that a pooler sent to a session without it is not a failure of the handler: the attempt
// does not count, and the step is retried. Other driver errors are failures.
func TestStatementLostByPooler(t *testing.T) {
	typ := weaver.Define[string, int]("engine.pooler.run.v1", weaver.NoRetry())
	for code, want := range map[sqlState]weaver.State{"26000": weaver.StateSucceeded, "42P05": weaver.StateSucceeded, "23505": weaver.StateFailed} {
		inBubble(t, func(fx *fixture) {
			runs := 0
			fx.run(typ.Handler(func(ctx context.Context, _ string) (int, error) {
				return weaver.Step(ctx, "ask", func(context.Context) (int, error) {
					if runs++; runs == 1 {
						return 0, fmt.Errorf("ask: %w", code)
					}
					return runs, nil
				})
			}))
			h, err := typ.Enqueue(fx.Context(), fx.client, "x")
			fx.must(err)
			_, _ = h.Wait(fx.Context())
			got, err := fx.client.Get(fx.Context(), h.ID())
			fx.must(err)
			equal(fx, string(code), got.State, want)
		})
	}
}
