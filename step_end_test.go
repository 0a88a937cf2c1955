package weaver_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A refused write ends the attempt, which then writes nothing.
func TestRefusedSteps(t *testing.T) {
	typ := weaver.Define[string, string]("engine.refused.run.v1", weaver.NoRetry())
	nothing := func(context.Context) error { return nil }
	nothingTx := func(context.Context, *sql.Tx) (string, error) { return "", nil }

	for name, refuse := range map[string]struct {
		why     error
		records int // asked for
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
		scene(t, "end the attempt: "+name, func(w *world) {
			s := newFaults(w)
			s.fail("StepTx", refuse.why)
			records := 0
			s.hooks.Record = func(_ context.Context, _ []store.Record, next func() ([]store.RecordResult, error)) ([]store.RecordResult, error) {
				if records++; records > 3 {
					return next() // whoever goes on asking shall come to an end
				}
				return []store.RecordResult{{Err: refuse.why}}, nil
			}
			steps := 0
			w.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				if weaver.Current(ctx).AttemptNo > 1 {
					return "ok", nil
				}
				err := refuse.step(ctx)
				if !errors.Is(err, refuse.why) || !errors.Is(context.Cause(ctx), refuse.why) {
					w.Errorf("the step returned %v and the context's cause is %v, want %v", err, context.Cause(ctx), refuse.why)
				}
				_ = weaver.Do(ctx, "next", func(context.Context) error { steps++; return nil })
				return "refused", nil
			})}})
			h := enqueue(w, typ, "")
			time.Sleep(10 * time.Second)
			equal(w, "results written by the refused attempt", s.count("Finish"), 0)
			equal(w, "steps begun after it", steps, 0)
			equal(w, "records asked for", records, refuse.records)
			equal(w, "output", result(w, h), "ok") // when the lease has expired
			w.wantOutcomes(h.ID(), task.OutcomeLeaseLost, task.OutcomeSuccess)
		})
	}

	scene(t, "under a lease that is no longer trusted are not even asked for", func(w *world) {
		deaf := make(chan struct{})
		s := newFaults(w)
		s.hooks.Heartbeat = func(_ context.Context, _ store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			<-deaf // nobody else looks at the lease meanwhile
			return next()
		}
		w.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if weaver.Current(ctx).AttemptNo > 1 {
				return "ok", nil
			}
			err := weaver.Do(ctx, "long", func(context.Context) error { time.Sleep(26 * time.Second); return nil })
			if !errors.Is(err, weaver.ErrLeaseUncertain) {
				w.Errorf("Step under a lease that is not trusted returned %v", err)
			}
			equal(w, "records", s.count("Record"), 0)
			close(deaf)
			return "", err
		})}})
		equal(w, "output", result(w, enqueue(w, typ, "")), "ok")
	})
}

// What the end of a context caused is no result of a step.
func TestStepsAndTheEndOfTheirContext(t *testing.T) {
	typ := weaver.Define[string, string]("engine.stepend.run.v1", weaver.NoRetry())
	errBroken := errors.New("broken")
	recorded := func(w *world, id weaver.TaskID) int { return len(w.history(id).Steps) }

	scene(t, "are not tried again after it", func(w *world) {
		tries := 0
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return weaver.Step(ctx, "s", func(context.Context) (string, error) { tries++; return "", errBroken }, weaver.StepRetry(3, time.Minute))
		}))
		h := enqueue(w, typ, "")
		time.Sleep(time.Second)
		w.must(w.client.Cancel(w.Context(), h.ID()))
		fails(w, h)
		equal(w, "tries", tries, 1)
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
		scene(t, "record no failure after it: "+name, func(w *world) {
			s := newFaults(w)
			s.hooks.Reap = func(context.Context, store.ReapRequest, func() (store.ReapResult, error)) (store.ReapResult, error) {
				return store.ReapResult{Next: -1}, nil
			}
			w.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				return "", step(ctx)
			})}})
			h := enqueue(w, typ, "", weaver.ExpireAfter(time.Second))
			fails(w, h)
			equal(w, "recorded steps", recorded(w, h.ID()), 0)
		})
	}

	scene(t, "record no failure of a context that the handler ended", func(w *world) {
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			inner, cancel := context.WithCancel(ctx)
			err := weaver.Do(inner, "s", func(ctx context.Context) error { cancel(); return ctx.Err() })
			if !errors.Is(err, context.Canceled) {
				w.Errorf("Do = %v", err)
			}
			return "ok", nil
		}))
		h := enqueue(w, typ, "")
		result(w, h)
		equal(w, "recorded steps", recorded(w, h.ID()), 0)
	})

	scene(t, "record no failure of the engine itself", func(w *world) {
		s := newFaults(w)
		s.fail("Needs", store.ErrUnavailable)
		w.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if weaver.Current(ctx).AttemptNo > 1 {
				return "ok", nil
			}
			return weaver.Step(ctx, "s", func(ctx context.Context) (string, error) { return typ.Output(ctx, "a") })
		})}})
		h := enqueue(w, typ, "")
		equal(w, "output", result(w, h), "ok")
		equal(w, "attempts that count", w.get(h.ID()).AttemptCount, 1)
		equal(w, "recorded steps", recorded(w, h.ID()), 0)
	})

	scene(t, "tell the first misuse", func(w *world) {
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			nothing := func(context.Context) error { return nil }
			_ = weaver.Do(ctx, "", nothing)
			return "", weaver.Do(ctx, strings.Repeat("x", 300), nothing)
		}))
		wantError(w, failure(w, enqueue(w, typ, "")), nil, "a step needs a name")
	})
}

func TestTransactionsOfSteps(t *testing.T) {
	typ := weaver.Define[string, string]("engine.steptx.limits.v1", weaver.NoRetry())
	for lease, want := range map[time.Duration]time.Duration{3 * time.Second: time.Second, 30 * time.Second: 5 * time.Second} {
		scene(t, "end after the smaller of 5 s and a third of the lease: "+lease.String(), func(w *world) {
			s := newFaults(w)
			var limit time.Duration
			s.hooks.StepTx = func(_ context.Context, c *storehook.StepTx, next func() (store.RecordResult, error)) (store.RecordResult, error) {
				limit = c.Limit
				return next()
			}
			w.runConfig(s.store, weaver.Config{Lease: lease, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				return weaver.StepTx(ctx, "s", func(context.Context, *sql.Tx) (string, error) { return "ok", nil })
			})}})
			result(w, enqueue(w, typ, ""))
			equal(w, "limit", limit, want)
		})
	}

	scene(t, "store no value over the inline limit", func(w *world) {
		w.runConfig(w.store, weaver.Config{InlineLimit: 100, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			_, err := weaver.StepTx(ctx, "s", func(context.Context, *sql.Tx) (string, error) { return strings.Repeat("x", 101), nil })
			return "ok", err
		})}})
		h := enqueue(w, typ, "")
		equal(w, "kind", failure(w, h).Kind, task.KindValidation)
		for _, s := range w.history(h.ID()).Steps {
			if s.State == task.StepCompleted {
				w.Errorf("the step is recorded as completed: %+v", s)
			}
		}
	})
}

func TestSleepsBesideEachOther(t *testing.T) {
	typ := weaver.Define[string, string]("engine.sleeps.beside.v1")
	scene(t, "end with the shortest", func(w *world) {
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if weaver.Current(ctx).AttemptNo > 1 {
				return "rested", nil
			}
			done := make(chan error, 3)
			go func() { done <- weaver.Sleep(ctx, "long", time.Hour) }()
			go func() {
				time.Sleep(time.Second) // after the long one has begun to wait for the step
				done <- weaver.Sleep(ctx, "short", 10*time.Minute)
			}()
			go func() {
				done <- weaver.Do(ctx, "work", func(context.Context) error { time.Sleep(10 * time.Second); return nil })
			}()
			return "", errors.Join(<-done, <-done, <-done)
		}))
		began := time.Now()
		result(w, enqueue(w, typ, ""))
		near(w, "the task slept", time.Since(began), 10*time.Minute)
	})
}

func TestProgressOfTheEndedAndTheLate(t *testing.T) {
	typ := weaver.Define[string, string]("engine.progress.late.v1", weaver.NoRetry())

	scene(t, "of a goroutine that outlived its handler is refused", func(w *world) {
		ended, done := make(chan struct{}), make(chan error, 1)
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			go func() {
				<-ended
				done <- weaver.Progress(ctx, 1, 2)
			}()
			return "ok", nil
		}))
		h := enqueue(w, typ, "")
		result(w, h)
		close(ended)
		wantError(w, <-done, weaver.ErrAttemptOver)
		equal(w, "progress", w.get(h.ID()).Progress, nil)
	})

	scene(t, "of an attempt whose context ended is refused", func(w *world) {
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			err := weaver.Progress(ctx, 1, 2)
			wantError(w, err, weaver.ErrCancelled)
			return "", err
		}))
		h := enqueue(w, typ, "")
		synctest.Wait()
		w.must(w.client.Cancel(w.Context(), h.ID()))
		fails(w, h)
		equal(w, "progress", w.get(h.ID()).Progress, nil)
	})

	scene(t, "that could not be written does not replace a newer one", func(w *world) {
		s := newFaults(w)
		var refused atomic.Int32
		s.hooks.Record = func(context.Context, []store.Record, func() ([]store.RecordResult, error)) ([]store.RecordResult, error) {
			time.Sleep(50 * time.Millisecond)
			refused.Add(1)
			return nil, store.ErrUnavailable
		}
		w.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			first := make(chan error, 1)
			go func() { first <- weaver.Progress(ctx, 1, 2) }()
			time.Sleep(10 * time.Millisecond)
			err := weaver.Progress(ctx, 2, 2)
			return "ok", errors.Join(err, <-first)
		})}})
		h := enqueue(w, typ, "")
		result(w, h)
		if got := w.get(h.ID()).Progress; got == nil || got.Current != 2 || refused.Load() == 0 {
			w.Errorf("progress = %+v, %d reports were refused, want the newer report after one", got, refused.Load())
		}
	})
}
