package weaver_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// A record that the store refuses ends the attempt, which then writes nothing more.
func TestRefusedSteps(t *testing.T) {
	typ := weaver.Define[string, string]("engine.refused.run.v1", weaver.NoRetry())
	nothing := func(context.Context) error { return nil }
	nothingTx := func(context.Context, *sql.Tx) (string, error) { return "", nil }

	for name, refuse := range map[string]struct {
		why     error
		records int // number of record calls
		step    func(ctx context.Context) error
	}{
		"a step that stands with another value": {store.ErrStepConflict, 1, func(ctx context.Context) error { return weaver.Do(ctx, "s", nothing) }},
		"a step without a lease":                {store.ErrLeaseLost, 1, func(ctx context.Context) error { return weaver.Do(ctx, "s", nothing) }},
		"a transaction without a lease": {store.ErrLeaseLost, 0, func(ctx context.Context) error {
			_, err := weaver.StepTx(ctx, "s", nothingTx)
			return err
		}},
		"a transaction that stands with another value": {store.ErrStepConflict, 0, func(ctx context.Context) error {
			_, err := weaver.StepTx(ctx, "s", nothingTx)
			return err
		}},
	} {
		subtest(t, "end the attempt: "+name, func(fx *fixture) {
			s := newFaults(fx)
			s.fail("StepTx", refuse.why)
			records := 0
			s.hooks.Record = func(_ context.Context, _ []store.Record, next func() ([]store.RecordResult, error)) ([]store.RecordResult, error) {
				if records++; records > 3 {
					return next() // so that a worker that keeps calling ends
				}
				return []store.RecordResult{{Err: refuse.why}}, nil
			}
			steps := 0
			fx.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				if weaver.Current(ctx).AttemptNo > 1 {
					return "ok", nil
				}
				err := refuse.step(ctx)
				if !errors.Is(err, refuse.why) || !errors.Is(context.Cause(ctx), refuse.why) {
					fx.Errorf("the step returned %v and the context's cause is %v, want %v", err, context.Cause(ctx), refuse.why)
				}
				_ = weaver.Do(ctx, "next", func(context.Context) error { steps++; return nil })
				return "refused", nil
			})}})
			h := enqueue(fx, typ, "")
			time.Sleep(10 * time.Second)
			equal(fx, "results written by the refused attempt", s.count("Finish"), 0)
			equal(fx, "steps begun after it", steps, 0)
			equal(fx, "records asked for", records, refuse.records)
			equal(fx, "output", result(fx, h), "ok") // when the lease has expired
			fx.wantOutcomes(h.ID(), task.OutcomeLeaseLost, task.OutcomeSuccess)
		})
	}

	subtest(t, "under a lease that is no longer valid are not even asked for", func(fx *fixture) {
		checked := make(chan struct{})
		s := newFaults(fx)
		s.hooks.Heartbeat = func(_ context.Context, _ store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			<-checked // no other role checks the lease meanwhile
			return next()
		}
		fx.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if weaver.Current(ctx).AttemptNo > 1 {
				return "ok", nil
			}
			err := weaver.Do(ctx, "long", func(context.Context) error { time.Sleep(26 * time.Second); return nil })
			if !errors.Is(err, weaver.ErrLeaseUncertain) {
				fx.Errorf("Step under a lease that is no longer valid returned %v", err)
			}
			equal(fx, "records", s.count("Record"), 0)
			close(checked)
			return "", err
		})}})
		equal(fx, "output", result(fx, enqueue(fx, typ, "")), "ok")
	})
}

// An error caused by the end of a context is not recorded as a step's result.
func TestStepsAfterTheEndOfTheirContext(t *testing.T) {
	typ := weaver.Define[string, string]("engine.stepend.run.v1", weaver.NoRetry())
	errBroken := errors.New("broken")
	recorded := func(fx *fixture, id weaver.TaskID) int { return len(fx.history(id).Steps) }

	subtest(t, "are not tried again after it", func(fx *fixture) {
		tries := 0
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return weaver.Step(ctx, "s", func(context.Context) (string, error) { tries++; return "", errBroken }, weaver.StepRetry(3, time.Minute))
		}))
		h := enqueue(fx, typ, "")
		time.Sleep(time.Second)
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		fails(fx, h)
		equal(fx, "tries", tries, 1)
	})

	for name, step := range map[string]func(ctx context.Context) error{
		"a step": func(ctx context.Context) error {
			return weaver.Do(ctx, "s", func(ctx context.Context) error { <-ctx.Done(); return errBroken })
		},
		"a transaction": func(ctx context.Context) error {
			_, err := weaver.StepTx(ctx, "s", func(ctx context.Context, _ *sql.Tx) (string, error) { <-ctx.Done(); return "", errBroken })
			return err
		},
	} {
		sqlSubtest(t, "record no failure after it: "+name, func(fx *fixture) {
			s := newFaults(fx)
			s.hooks.Reap = func(context.Context, store.ReapRequest, func() (store.ReapResult, error)) (store.ReapResult, error) {
				return store.ReapResult{Next: -1}, nil
			}
			fx.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				return "", step(ctx)
			})}})
			h := enqueue(fx, typ, "", weaver.ExpireAfter(time.Second))
			fails(fx, h)
			equal(fx, "recorded steps", recorded(fx, h.ID()), 0)
		})
	}

	subtest(t, "record no failure of a context that the handler ended", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			inner, cancel := context.WithCancel(ctx)
			err := weaver.Do(inner, "s", func(ctx context.Context) error { cancel(); return ctx.Err() })
			if !errors.Is(err, context.Canceled) {
				fx.Errorf("Do = %v", err)
			}
			return "ok", nil
		}))
		h := enqueue(fx, typ, "")
		result(fx, h)
		equal(fx, "recorded steps", recorded(fx, h.ID()), 0)
	})

	subtest(t, "record no failure of the engine itself", func(fx *fixture) {
		s := newFaults(fx)
		s.fail("Needs", store.ErrUnavailable)
		fx.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if weaver.Current(ctx).AttemptNo > 1 {
				return "ok", nil
			}
			return weaver.Step(ctx, "s", func(ctx context.Context) (string, error) { return typ.Output(ctx, "a") })
		})}})
		h := enqueue(fx, typ, "")
		equal(fx, "output", result(fx, h), "ok")
		equal(fx, "attempts that count", fx.get(h.ID()).AttemptCount, 1)
		equal(fx, "recorded steps", recorded(fx, h.ID()), 0)
	})

	subtest(t, "report the first programmer error", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			nothing := func(context.Context) error { return nil }
			_ = weaver.Do(ctx, "", nothing)
			return "", weaver.Do(ctx, strings.Repeat("x", 300), nothing)
		}))
		wantError(fx, failure(fx, enqueue(fx, typ, "")), nil, "a step needs a name")
	})
}

// A step's function starts only while its lease is valid, also when a listener
// has taken longer than the lease lasts.
func TestNoStepStartsAfterASlowListener(t *testing.T) {
	typ := weaver.Define[string, string]("engine.listener.run.v1")
	const ttl = 6 * time.Second
	for name, step := range map[string]func(ctx context.Context, fn func(context.Context) error) error{
		"step": func(ctx context.Context, fn func(context.Context) error) error { return weaver.Do(ctx, "s", fn) },
		"step transaction": func(ctx context.Context, fn func(context.Context) error) error {
			_, err := weaver.StepTx(ctx, "s", func(ctx context.Context, _ *sql.Tx) (weaver.None, error) { return weaver.None{}, fn(ctx) })
			return err
		},
	} {
		sqlSubtest(t, name, func(fx *fixture) {
			f := newFaults(fx)
			slow := true
			fx.runConfig(f.store, weaver.Config{
				Lease: ttl,
				Sink: event.SinkFunc(func(e event.Event) {
					if _, ok := e.(event.StepStarted); ok && slow {
						slow = false
						f.fail("Heartbeat", store.ErrUnavailable)
						time.Sleep(2 * ttl)
						f.mend()
					}
				}),
				Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
					return in, step(ctx, func(ctx context.Context) error {
						if ctx.Err() != nil {
							fx.Errorf("the step's function started though its context had ended: %v", context.Cause(ctx))
						}
						return nil
					})
				})},
			})
			result(fx, enqueue(fx, typ, "x"))
			if slow {
				fx.Error("no event of a step came")
			}
		})
	}
}
