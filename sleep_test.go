package weaver_test

import (
	"context"
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

	scene(t, "leaves the worker, replays, and costs no attempt", func(w *world) {
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
		w.runConfig(w.store, cfg)
		began := time.Now()
		h := enqueue(w, typ, "")
		synctest.Wait()
		got := w.get(h.ID())
		equal(w, "state", got.State, weaver.StatePending)
		equal(w, "it waits for", got.Waiting, task.WaitSleep)
		near(w, "time to its wake-up", time.Until(got.ReadyAt), 24*time.Hour)
		equal(w, "the only slot is free", result(w, enqueue(w, typ, "other")), "other")

		equal(w, "output", result(w, h), "rested")
		near(w, "time", time.Since(began), 24*time.Hour)
		equal(w, "runs of the handler", attempts, 2)
		equal(w, "runs of the steps", ran, 2)
		w.wantOutcomes(h.ID(), task.OutcomeSuspended, task.OutcomeSuccess)
		equal(w, "attempts that count", w.get(h.ID()).AttemptCount, 1) // with NoRetry a second one would not be
	})

	scene(t, "survives the engine", func(w *world) {
		handler := typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return "rested", weaver.SleepUntil(ctx, "until", time.Date(2000, 1, 3, 9, 0, 0, 0, time.UTC))
		})
		h := enqueue(w, typ, "")
		w.idle(handler) // it is gone when the task wakes
		time.Sleep(time.Until(time.Date(2000, 1, 3, 8, 59, 59, 0, time.UTC)))
		w.idle(handler)
		w.wantState(h.ID(), weaver.StatePending)
		time.Sleep(time.Second)
		w.idle(handler)
		equal(w, "output", result(w, h), "rested")
	})

	for name, ignore := range map[string]func(error) (string, error){
		"swallowed":                 func(error) (string, error) { return "done", nil },
		"wrapped":                   func(err error) (string, error) { return "", fmt.Errorf("nap: %w", err) },
		"replaced":                  func(error) (string, error) { return "", weaver.Permanent(errors.New("no")) },
		"answered with a panic":     func(error) (string, error) { panic("no") },
		"answered with a bad value": func(error) (string, error) { return string(make([]byte, weaver.DefaultInlineLimit)), nil },
	} {
		scene(t, "suspends although the error is "+name, func(w *world) {
			attempts := 0
			w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
				attempts++
				if err := weaver.Sleep(ctx, "nap", time.Hour); err != nil {
					if !weaver.Suspended(err) || !weaver.Suspended(context.Cause(ctx)) {
						w.Errorf("Sleep returned %v and the context's cause is %v", err, context.Cause(ctx))
					}
					if err := weaver.Do(ctx, "early", func(context.Context) error { w.Error("a step began in a suspended attempt"); return nil }); !weaver.Suspended(err) {
						w.Errorf("Step in a suspended attempt returned %v", err)
					}
					if err := weaver.Progress(ctx, 1, 2); !weaver.Suspended(err) {
						w.Errorf("Progress in a suspended attempt returned %v", err)
					}
					if _, err := weaver.Start(ctx, "child", typ, ""); !weaver.Suspended(err) {
						w.Errorf("Start in a suspended attempt returned %v", err)
					}
					return ignore(err)
				}
				return "rested", nil
			}))
			h := enqueue(w, typ, "")
			equal(w, "output", result(w, h), "rested")
			equal(w, "attempts", attempts, 2)
			w.wantOutcomes(h.ID(), task.OutcomeSuspended, task.OutcomeSuccess)
		})
	}

	scene(t, "ends the attempt for steps on record, too", func(w *world) {
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			recorded := func() error { return weaver.Do(ctx, "recorded", func(context.Context) error { return nil }) }
			switch weaver.Current(ctx).AttemptNo {
			case 1:
				return "", errors.Join(recorded(), weaver.Sleep(ctx, "nap", time.Hour))
			case 2:
				err := errors.Join(weaver.Sleep(ctx, "nap", time.Hour), weaver.Sleep(ctx, "again", time.Hour))
				if !weaver.Suspended(recorded()) {
					w.Error("a recorded step was replayed in a suspended attempt")
				}
				return "", err
			}
			return "rested", nil
		}))
		equal(w, "output", result(w, enqueue(w, typ, "")), "rested")
	})

	scene(t, "lets a step beside it end and be kept", func(w *world) {
		ran := 0
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
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
		equal(w, "output", result(w, enqueue(w, typ, "")), "rested")
		equal(w, "runs of the step", ran, 1)
		near(w, "the time of the sleep counts from its call", time.Since(began), time.Hour)
	})

	scene(t, "runs deferred functions at each suspension", func(w *world) {
		deferred, undone := 0, 0
		w.run(typ.Handler(func(ctx context.Context, _ string) (out string, err error) {
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
		result(w, enqueue(w, typ, ""))
		equal(w, "deferred functions", deferred, 4)
		equal(w, "undone", undone, 0)
	})

	scene(t, "of no length does not suspend", func(w *world) {
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return "ok", errors.Join(
				weaver.Sleep(ctx, "zero", 0), weaver.Sleep(ctx, "negative", -time.Hour),
				weaver.SleepUntil(ctx, "past", time.Now().Add(-time.Hour)))
		}))
		h := enqueue(w, typ, "")
		equal(w, "output", result(w, h), "ok")
		equal(w, "attempts", len(w.outcomes(h.ID())), 1)
	})

	scene(t, "keeps its time when the duration changes", func(w *world) {
		attempts := 0
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			attempts++
			return "ok", weaver.Sleep(ctx, "nap", time.Duration(attempts)*time.Hour)
		}))
		began := time.Now()
		result(w, enqueue(w, typ, ""))
		near(w, "time", time.Since(began), time.Hour)
	})

	scene(t, "of a cancelled task ends", func(w *world) {
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return "", weaver.Sleep(ctx, "nap", 24*time.Hour)
		}))
		h := enqueue(w, typ, "")
		synctest.Wait()
		w.must(w.client.Cancel(w.Context(), h.ID()))
		equal(w, "state", failure(w, h).State, weaver.StateCancelled)
	})

	scene(t, "in a thousand tasks at once", func(w *world) {
		const n = 1000
		var running, most atomic.Int32
		w.runConfig(w.store, weaver.Config{Concurrency: 10, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			if now := running.Add(1); now > most.Load() {
				most.Store(now)
			}
			defer running.Add(-1)
			return in, weaver.Sleep(ctx, "nap", time.Hour)
		})}})
		began := time.Now()
		hs, err := typ.EnqueueMany(w.Context(), w.client, make([]string, n))
		w.must(err)
		for _, h := range hs {
			result(w, h)
		}
		near(w, "time for all", time.Since(began), time.Hour)
		if most.Load() > 10 {
			w.Errorf("%d handlers at once, want at most 10", most.Load())
		}
	})
}

func TestStart(t *testing.T) {
	parent := weaver.Define[string, weaver.TaskRef]("engine.start.parent.v1")
	child := weaver.Define[string, string]("engine.start.child.v1")

	scene(t, "enqueues once, whatever happens to the parent", func(w *world) {
		var refs []weaver.TaskRef
		w.run(parent.Handler(func(ctx context.Context, _ string) (weaver.TaskRef, error) {
			ref, err := weaver.Start(ctx, "mail", child, "paid", weaver.Delay(time.Hour), weaver.Label("team", "pay"))
			if err != nil {
				return ref, err
			}
			if refs = append(refs, ref); len(refs) < 3 {
				return ref, errors.New("again")
			}
			return ref, nil
		}))
		h := enqueue(w, parent, "")
		ref := result(w, h)
		for _, r := range refs {
			equal(w, "the reference in every attempt", r, ref)
		}
		list, _, err := child.List(w.Context(), w.client, weaver.Filter{})
		w.must(err)
		equal(w, "children", len(list), 1)
		equal(w, "its id", list[0].ID, ref.ID)
		equal(w, "its parent", list[0].ParentID, h.ID())
		equal(w, "its input", list[0].Input, "paid")
		equal(w, "its label", list[0].Labels["team"], "pay")
		equal(w, "it is not awaited", list[0].State, weaver.StatePending)
	})

	scene(t, "names the task that an idempotency key already has", func(w *world) {
		attempts := 0
		w.run(parent.Handler(func(ctx context.Context, _ string) (weaver.TaskRef, error) {
			ref, err := weaver.Start(ctx, "mail", child, "again", weaver.IdempotencyKey("evt-1"))
			if attempts++; attempts == 1 && err == nil {
				err = errors.New("again")
			}
			return ref, err
		}))
		first := enqueue(w, child, "first", weaver.IdempotencyKey("evt-1"), weaver.Delay(time.Hour))
		equal(w, "the reference, replayed", result(w, enqueue(w, parent, "")).ID, first.ID())
	})
}
