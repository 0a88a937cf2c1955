package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

func TestSleep(t *testing.T) {
	typ := weaver.Define[string, string]("engine.sleep.run.v1", weaver.NoRetry())

	subtest(t, "leaves the worker, replays, and costs no attempt", func(fx *fixture) {
		attempts, ran := 0, 0
		cfg := weaver.Config{Concurrency: 1, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			if in == "other" {
				return in, nil
			}
			attempts++
			if err := weaver.Do(ctx, "before", func(context.Context) error { ran++; return nil }); err != nil {
				return "", err
			}
			if err := weaver.Sleep(ctx, "cool-down", 24*time.Hour); err != nil {
				return "", err
			}
			return "rested", weaver.Do(ctx, "after", func(context.Context) error { ran++; return nil })
		})}}
		fx.runConfig(fx.store, cfg)
		began := time.Now()
		h := enqueue(fx, typ, "")
		synctest.Wait()
		got := fx.get(h.ID())
		equal(fx, "state", got.State, weaver.StatePending)
		equal(fx, "it waits for", got.Waiting, task.WaitSleep)
		near(fx, "time to its wake-up", time.Until(got.ReadyAt), 24*time.Hour)
		equal(fx, "the only slot is free", result(fx, enqueue(fx, typ, "other")), "other")

		equal(fx, "output", result(fx, h), "rested")
		near(fx, "time", time.Since(began), 24*time.Hour)
		equal(fx, "runs of the handler", attempts, 2)
		equal(fx, "runs of the steps", ran, 2)
		fx.wantOutcomes(h.ID(), task.OutcomeSuspended, task.OutcomeSuccess)
		equal(fx, "attempts that count", fx.get(h.ID()).AttemptCount, 1) // with NoRetry there would be no second one
	})

	subtest(t, "survives the engine", func(fx *fixture) {
		handler := typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return "rested", weaver.SleepUntil(ctx, "until", time.Date(2000, 1, 3, 9, 0, 0, 0, time.UTC))
		})
		h := enqueue(fx, typ, "")
		fx.idle(handler) // the engine has stopped when the task wakes
		time.Sleep(time.Until(time.Date(2000, 1, 3, 8, 59, 59, 0, time.UTC)))
		fx.idle(handler)
		fx.wantState(h.ID(), weaver.StatePending)
		time.Sleep(time.Second)
		fx.idle(handler)
		equal(fx, "output", result(fx, h), "rested")
	})

	for name, ignore := range map[string]func(error) (string, error){
		"swallowed":                 func(error) (string, error) { return "done", nil },
		"wrapped":                   func(err error) (string, error) { return "", fmt.Errorf("nap: %w", err) },
		"replaced":                  func(error) (string, error) { return "", weaver.Permanent(errors.New("no")) },
		"answered with a panic":     func(error) (string, error) { panic("no") },
		"answered with a bad value": func(error) (string, error) { return string(make([]byte, weaver.DefaultInlineLimit)), nil },
	} {
		subtest(t, "suspends although the error is "+name, func(fx *fixture) {
			attempts := 0
			fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
				attempts++
				if err := weaver.Sleep(ctx, "nap", time.Hour); err != nil {
					if !weaver.Suspended(err) || !weaver.Suspended(context.Cause(ctx)) {
						fx.Errorf("Sleep returned %v and the context's cause is %v", err, context.Cause(ctx))
					}
					if err := weaver.Do(ctx, "early", func(context.Context) error { fx.Error("a step began in a suspended attempt"); return nil }); !weaver.Suspended(err) {
						fx.Errorf("Step in a suspended attempt returned %v", err)
					}
					if err := weaver.Progress(ctx, 1, 2); !weaver.Suspended(err) {
						fx.Errorf("Progress in a suspended attempt returned %v", err)
					}
					if _, err := weaver.Start(ctx, "child", typ, ""); !weaver.Suspended(err) {
						fx.Errorf("Start in a suspended attempt returned %v", err)
					}
					return ignore(err)
				}
				return "rested", nil
			}))
			h := enqueue(fx, typ, "")
			equal(fx, "output", result(fx, h), "rested")
			equal(fx, "attempts", attempts, 2)
			fx.wantOutcomes(h.ID(), task.OutcomeSuspended, task.OutcomeSuccess)
		})
	}

	subtest(t, "ends the attempt for steps on record, too", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			recorded := func() error { return weaver.Do(ctx, "recorded", func(context.Context) error { return nil }) }
			switch weaver.Current(ctx).AttemptNo {
			case 1:
				return "", errors.Join(recorded(), weaver.Sleep(ctx, "nap", time.Hour))
			case 2:
				err := errors.Join(weaver.Sleep(ctx, "nap", time.Hour), weaver.Sleep(ctx, "again", time.Hour))
				if !weaver.Suspended(recorded()) {
					fx.Error("a recorded step was replayed in a suspended attempt")
				}
				return "", err
			}
			return "rested", nil
		}))
		equal(fx, "output", result(fx, enqueue(fx, typ, "")), "rested")
	})

	subtest(t, "lets a parallel step end and be stored", func(fx *fixture) {
		ran := 0
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			beside := make(chan error, 1)
			begun := make(chan struct{}, 1)
			go func() {
				beside <- weaver.Do(ctx, "beside", func(ctx context.Context) error {
					begun <- struct{}{}
					ran++
					time.Sleep(10 * time.Minute)
					return ctx.Err() // a wait never ends the context of a step
				})
				begun <- struct{}{}
			}()
			<-begun
			err := weaver.Sleep(ctx, "nap", time.Hour)
			return "rested", errors.Join(err, <-beside)
		}))
		began := time.Now()
		equal(fx, "output", result(fx, enqueue(fx, typ, "")), "rested")
		equal(fx, "runs of the step", ran, 1)
		near(fx, "the time of the sleep counts from its call", time.Since(began), time.Hour)
	})

	subtest(t, "runs deferred functions at each suspension", func(fx *fixture) {
		deferred, undone := 0, 0
		fx.run(typ.Handler(func(ctx context.Context, _ string) (out string, err error) {
			defer func() {
				deferred++
				if err != nil && !weaver.Suspended(err) {
					undone++
				}
			}()
			for i := range 3 {
				if err := weaver.Sleep(ctx, fmt.Sprint("nap ", i), time.Minute); err != nil {
					return "", err
				}
			}
			return "rested", nil
		}))
		result(fx, enqueue(fx, typ, ""))
		equal(fx, "deferred functions", deferred, 4)
		equal(fx, "undone", undone, 0)
	})

	subtest(t, "of no length does not suspend", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return "ok", errors.Join(
				weaver.Sleep(ctx, "zero", 0), weaver.Sleep(ctx, "negative", -time.Hour),
				weaver.SleepUntil(ctx, "past", time.Now().Add(-time.Hour)))
		}))
		h := enqueue(fx, typ, "")
		equal(fx, "output", result(fx, h), "ok")
		equal(fx, "attempts", len(fx.outcomes(h.ID())), 1)
	})

	subtest(t, "keeps its time when the duration changes", func(fx *fixture) {
		attempts := 0
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			attempts++
			return "ok", weaver.Sleep(ctx, "nap", time.Duration(attempts)*time.Hour)
		}))
		began := time.Now()
		result(fx, enqueue(fx, typ, ""))
		near(fx, "time", time.Since(began), time.Hour)
	})

	subtest(t, "of a cancelled task ends", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return "", weaver.Sleep(ctx, "nap", 24*time.Hour)
		}))
		h := enqueue(fx, typ, "")
		synctest.Wait()
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		equal(fx, "state", failure(fx, h).State, weaver.StateCancelled)
	})

	subtest(t, "in a thousand tasks at once", func(fx *fixture) {
		const n = 1000
		var running, most atomic.Int32
		fx.runConfig(fx.store, weaver.Config{Concurrency: 10, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			if now := running.Add(1); now > most.Load() {
				most.Store(now)
			}
			defer running.Add(-1)
			return in, weaver.Sleep(ctx, "nap", time.Hour)
		})}})
		began := time.Now()
		hs, err := typ.EnqueueMany(fx.Context(), fx.client, make([]string, n))
		fx.must(err)
		for _, h := range hs {
			result(fx, h)
		}
		near(fx, "time for all", time.Since(began), time.Hour)
		if most.Load() > 10 {
			fx.Errorf("%d handlers at once, want at most 10", most.Load())
		}
	})
}

func TestStart(t *testing.T) {
	parent := weaver.Define[string, weaver.TaskRef]("engine.start.parent.v1")
	child := weaver.Define[string, string]("engine.start.child.v1")

	subtest(t, "enqueues once, whatever happens to the parent", func(fx *fixture) {
		var refs []weaver.TaskRef
		fx.run(parent.Handler(func(ctx context.Context, _ string) (weaver.TaskRef, error) {
			ref, err := weaver.Start(ctx, "mail", child, "paid", weaver.Delay(time.Hour), weaver.Label("team", "pay"))
			if err != nil {
				return ref, err
			}
			if refs = append(refs, ref); len(refs) < 3 {
				return ref, errors.New("again")
			}
			return ref, nil
		}))
		h := enqueue(fx, parent, "")
		ref := result(fx, h)
		for _, r := range refs {
			equal(fx, "the reference in every attempt", r, ref)
		}
		list, _, err := child.List(fx.Context(), fx.client, weaver.Filter{})
		fx.must(err)
		equal(fx, "children", len(list), 1)
		equal(fx, "its id", list[0].ID, ref.ID)
		equal(fx, "its parent", list[0].ParentID, h.ID())
		equal(fx, "its input", list[0].Input, "paid")
		equal(fx, "its label", list[0].Labels["team"], "pay")
		equal(fx, "it is not awaited", list[0].State, weaver.StatePending)
	})

	subtest(t, "names the task that an idempotency key already has", func(fx *fixture) {
		attempts := 0
		fx.run(parent.Handler(func(ctx context.Context, _ string) (weaver.TaskRef, error) {
			ref, err := weaver.Start(ctx, "mail", child, "again", weaver.IdempotencyKey("evt-1"))
			if attempts++; attempts == 1 && err == nil {
				err = errors.New("again")
			}
			return ref, err
		}))
		first := enqueue(fx, child, "first", weaver.IdempotencyKey("evt-1"), weaver.Delay(time.Hour))
		equal(fx, "the reference, replayed", result(fx, enqueue(fx, parent, "")).ID, first.ID())
	})
}

func TestSleepUntilAfterTheLastInstant(t *testing.T) {
	typ := weaver.Define[time.Time, string]("invalid.sleep.until.v1")
	last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	subtest(t, "fails the task at once", func(fx *fixture) {
		h := enqueue(fx, typ, last)
		fx.idle(typ.Handler(func(ctx context.Context, _ time.Time) (string, error) {
			return "", weaver.SleepUntil(ctx, "nap", last.Add(time.Second))
		}))
		te := failure(fx, h)
		wantError(fx, te, nil, `sleep "nap"`, "SleepUntil(10000-01-01", "before the year 10000")
		equal(fx, "attempts", te.Attempts, 1)
		equal(fx, "recorded steps", len(fx.history(h.ID()).Steps), 0)
	})
	subtest(t, "the last instant is kept", func(fx *fixture) {
		h := enqueue(fx, typ, last)
		fx.idle(typ.Handler(func(ctx context.Context, until time.Time) (string, error) {
			return "", weaver.SleepUntil(ctx, "nap", until)
		}))
		got := fx.get(h.ID())
		equal(fx, "it waits for", got.Waiting, task.WaitSleep)
		equal(fx, "due", got.ReadyAt, last)
		_, err := json.Marshal(got)
		fx.must(err)
	})
}

func TestParallelSleeps(t *testing.T) {
	typ := weaver.Define[string, string]("engine.sleeps.beside.v1")
	subtest(t, "end with the shortest", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if weaver.Current(ctx).AttemptNo > 1 {
				return "rested", nil
			}
			done, working := make(chan error, 3), make(chan struct{})
			go func() {
				<-working
				done <- weaver.Sleep(ctx, "long", time.Hour)
			}()
			go func() {
				time.Sleep(time.Second) // after the long one has begun to wait for the step
				done <- weaver.Sleep(ctx, "short", 10*time.Minute)
			}()
			go func() {
				done <- weaver.Do(ctx, "work", func(context.Context) error {
					close(working)
					time.Sleep(10 * time.Second)
					return nil
				})
			}()
			return "", errors.Join(<-done, <-done, <-done)
		}))
		began := time.Now()
		result(fx, enqueue(fx, typ, ""))
		near(fx, "the task slept", time.Since(began), 10*time.Minute)
	})
}
