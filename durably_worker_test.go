package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

func durablyWorker(t *testing.T) {
	typ := weaver.Define[int, int]("durably.worker.run.v1")

	scene(t, "22 the oldest goes first", func(w *world) {
		var order []int
		for i := range 5 {
			enqueue(w, typ, i, weaver.Delay(time.Duration(5-i)*time.Second)) // the last is due first
		}
		time.Sleep(time.Minute)
		cfg := weaver.Config{Concurrency: 1, Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, n int) (int, error) {
			order = append(order, n)
			return n, nil
		})}}
		w.must(w.newEngine(w.store, cfg).RunUntilIdle(w.Context()))
		equal(w, "order", fmt.Sprint(order), "[4 3 2 1 0]")
	})

	scene(t, "23 stopping waits for the running ones", func(w *world) {
		g := newGate()
		e := w.start(w.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, n int) (int, error) {
			return n, g.pass(ctx)
		})}})
		h := enqueue(w, typ, 1)
		<-g.in
		stopped := make(chan error, 1)
		go func() { stopped <- e.stop() }()
		synctest.Wait()
		late := enqueue(w, typ, 2)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		select {
		case err := <-stopped:
			w.Fatalf("Run returned %v while a handler ran", err)
		default:
		}
		w.wantState(late.ID(), weaver.StateReady) // nothing new is started
		g.open()
		w.must(<-stopped)
		w.wantState(h.ID(), weaver.StateSucceeded)
	})

	scene(t, "24 heartbeats keep a task, and a dead worker's tasks are taken over without a restart", func(w *world) {
		fetched, blocking := 0, true
		handler := typ.Handler(func(ctx context.Context, n int) (int, error) {
			n, err := weaver.Step(ctx, "fetch", func(context.Context) (int, error) { fetched++; return n + 1, nil })
			if err != nil || !blocking {
				return n, err
			}
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		f := newFaults(w)
		dying := w.start(f.store, weaver.Config{Handlers: []weaver.Handler{handler}})
		h := enqueue(w, typ, 1)
		synctest.Wait()
		w.run(handler) // the survivor

		time.Sleep(10 * time.Minute) // twenty leases long, beside its steps
		w.wantState(h.ID(), weaver.StateRunning)
		equal(w, "attempts while the worker lives", w.get(h.ID()).AttemptNo, 1)

		blocking = false
		f.cut()
		died := time.Now()
		equal(w, "output", result(w, h), 2)
		if waited := time.Since(died); waited > 2*weaver.DefaultLease {
			w.Errorf("taken over after %s, want within two leases of %s", waited, weaver.DefaultLease)
		}
		equal(w, "runs of the completed step", fetched, 1)
		w.wantOutcomes(h.ID(), task.OutcomeLeaseLost, task.OutcomeSuccess)
		if dying.stop() == nil {
			w.Error("Run of the worker without a store returned nil")
		}
	})

	scene(t, "25 the poll interval and the lease are configurable", func(w *world) {
		// A store that tells nobody has to be polled.
		began := time.Time{}
		handler := typ.Handler(func(_ context.Context, n int) (int, error) {
			began = time.Now()
			time.Sleep(time.Minute)
			return n, nil
		})
		for _, poll := range []time.Duration{0, 20 * time.Second} {
			f := newFaults(w)
			e := w.start(polled(f.store), weaver.Config{Handlers: []weaver.Handler{handler}, Poll: poll, Lease: 9 * time.Second})
			synctest.Wait() // the first look found nothing
			asked := time.Now()
			h := enqueue(w, typ, 1)
			_ = result(w, h)
			if poll == 0 {
				poll = weaver.DefaultPoll
			}
			near(w, "time from the enqueue to the next look", began.Sub(asked), poll)
			if beats := f.count("Heartbeat"); beats < 19 || beats > 30 {
				w.Errorf("%d heartbeats in a minute, want one per third of 9s", beats)
			}
			w.must(e.stop())
		}
	})

	scene(t, "26 enqueue wakes an idle worker at once", func(w *world) {
		var began time.Time
		w.run(typ.Handler(func(_ context.Context, n int) (int, error) {
			began = time.Now()
			return n, nil
		}))
		time.Sleep(time.Hour + 123*time.Millisecond)
		asked := time.Now()
		result(w, enqueue(w, typ, 1))
		equal(w, "time from the enqueue to the handler", began.Sub(asked), 0)
	})
}

func durablyReports(t *testing.T) {
	typ := weaver.Define[int, int]("durably.reports.run.v1")

	scene(t, "32 progress is stored, readable, and survives a resume", func(w *world) {
		w.run(typ.Handler(func(ctx context.Context, n int) (int, error) {
			if weaver.Current(ctx).AttemptNo == 1 {
				if err := weaver.Progress(ctx, 10, 100, "fetched"); err != nil {
					return 0, err
				}
				return 0, errors.New("again, please")
			}
			time.Sleep(time.Minute)
			return n, weaver.Progress(ctx, 12.5, 0)
		}))
		h := enqueue(w, typ, 1)
		time.Sleep(30 * time.Second) // in the second attempt, before it reports
		equal(w, "attempt", w.get(h.ID()).AttemptNo, 2)
		if got := w.get(h.ID()).Progress; got == nil || *got != (task.Progress{Current: 10, Total: 100, Message: "fetched"}) {
			w.Errorf("progress = %+v", got)
		}
		result(w, h)
		if got := w.get(h.ID()).Progress; got == nil || *got != (task.Progress{Current: 12.5}) {
			w.Errorf("progress at the end = %+v, want the last report without a total", got)
		}
		equal(w, "recorded steps", len(w.history(h.ID()).Steps), 0)
	})

	scene(t, "33 a log line says which task and step it belongs to", func(w *world) {
		w.run(typ.Handler(func(ctx context.Context, n int) (int, error) {
			weaver.Log(ctx).Info("begins", "count", 3)
			return weaver.Step(ctx, "fetch", func(ctx context.Context) (int, error) {
				weaver.Log(ctx).Warn("slow")
				weaver.Log(ctx).With("try", 2).Error("broken", "error", errors.New("no"))
				return n, nil
			})
		}))
		h := enqueue(w, typ, 1)
		result(w, h)
		for message, want := range map[string]map[string]any{
			"begins": {"level": "INFO", "step": nil, "count": 3.0},
			"slow":   {"level": "WARN", "step": "fetch"},
			"broken": {"level": "ERROR", "step": "fetch", "try": 2.0, "error": "no"},
		} {
			lines := w.log.lines(w, message)
			if len(lines) != 1 {
				w.Errorf("%d lines %q, want 1", len(lines), message)
				continue
			}
			want["task_id"], want["task_type"], want["attempt"] = h.ID().String(), typ.Name(), 1.0
			for key, value := range want {
				equal(w, fmt.Sprintf("%s of line %q", key, message), lines[0][key], value)
			}
		}
	})

	scene(t, "45 labels filter lists, all of them at once", func(w *world) {
		labelled := weaver.Define[int, int]("durably.reports.labelled.v1", weaver.Label("team", "pay"))
		a := enqueue(w, labelled, 1, weaver.Label("env", "prod"))
		enqueue(w, labelled, 2, weaver.Label("env", "dev"))
		enqueue(w, labelled, 3, weaver.Label("team", "ops"), weaver.Label("env", "prod"))
		list, _, err := w.client.List(w.Context(), weaver.Filter{Labels: map[string]string{"team": "pay", "env": "prod"}})
		w.must(err)
		if len(list) != 1 || list[0].ID != a.ID() {
			w.Errorf("found %d tasks, want the one with both labels", len(list))
		}
		equal(w, "its labels", fmt.Sprint(list[0].Labels), "map[env:prod team:pay]")
	})

	scene(t, "47 run until idle and return", func(w *world) {
		var ran []int
		eng := w.newEngine(w.store, weaver.Config{Concurrency: 1, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, n int) (int, error) {
			ran = append(ran, n)
			switch n {
			case 1: // starts another one, which is due at once
				_, err := weaver.Start(ctx, "next", typ, 4)
				return n, err
			case 2:
				return 0, errors.New("later, please")
			}
			return n, nil
		})}})
		for n := range 3 {
			enqueue(w, typ, n)
		}
		enqueue(w, typ, 3, weaver.Delay(time.Hour))
		foreign := weaver.Define[int, int]("durably.reports.foreign.v1")
		enqueue(w, foreign, 9)

		began := time.Now()
		w.must(eng.RunUntilIdle(w.Context()))
		equal(w, "time it took", time.Since(began), 0)
		equal(w, "tasks that ran", len(ran), 4)
		for state, want := range map[weaver.State]int{weaver.StateSucceeded: 3, weaver.StatePending: 2, weaver.StateReady: 1} {
			list, _, err := w.client.List(w.Context(), weaver.Filter{States: []weaver.State{state}})
			w.must(err)
			equal(w, string(state)+" afterwards", len(list), want)
		}
		time.Sleep(2 * time.Hour)
		w.must(eng.RunUntilIdle(w.Context())) // the next night
		equal(w, "tasks that ran in both nights", len(ran), 6)
	})

	scene(t, "48 cancel stops before the next step, ends the step's context, and does not store what was in flight", func(w *world) {
		var cause error
		inStep := make(chan struct{})
		w.run(typ.Handler(func(ctx context.Context, n int) (int, error) {
			if err := weaver.Do(ctx, "before", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			_, err := weaver.Step(ctx, "in flight", func(ctx context.Context) (int, error) {
				close(inStep)
				<-ctx.Done()
				cause = context.Cause(ctx)
				return n, nil // it got its value all the same
			})
			if !errors.Is(err, weaver.ErrCancelled) {
				w.Errorf("Step returned %v, want ErrCancelled", err)
			}
			err = weaver.Do(ctx, "next", func(context.Context) error {
				w.Error("the step after the cancel ran")
				return nil
			})
			return 0, err
		}))
		h := enqueue(w, typ, 1)
		<-inStep
		w.must(w.client.Cancel(w.Context(), h.ID(), weaver.By("ann"), weaver.Reason("wrong order")))
		te := failure(w, h)
		equal(w, "state", te.State, weaver.StateCancelled)
		equal(w, "kind", te.Kind, task.KindCancelled)
		wantError(w, te, nil, "ann", "wrong order")
		if !errors.Is(cause, weaver.ErrCancelled) {
			w.Errorf("the step's context ended with cause %v", cause)
		}
		steps := w.history(h.ID()).Steps
		if len(steps) != 1 || steps[0].Name != "before" {
			w.Errorf("stored steps: %+v, want the one before the cancel", steps)
		}
	})

	scene(t, "51 finished parallel steps keep their values when a sibling fails", func(w *world) {
		ran, attempts := [5]int{}, 0
		w.run(typ.Handler(func(ctx context.Context, _ int) (int, error) {
			attempts++
			return parallel(ctx, 5, func(ctx context.Context, i int) (int, error) {
				return weaver.Step(ctx, fmt.Sprint("part ", i), func(context.Context) (int, error) {
					ran[i]++
					if i == 2 && attempts == 1 {
						return 0, errors.New("part 2 broke")
					}
					time.Sleep(time.Duration(i) * time.Second) // siblings finish before and after it failed
					return i, nil
				})
			})
		}))
		equal(w, "sum", result(w, enqueue(w, typ, 1)), 10)
		equal(w, "runs of the parts", ran, [5]int{1, 1, 2, 1, 1})
	})

	scene(t, "52 handlers read the attempt number and the step's idempotency key", func(w *world) {
		var seen []weaver.CurrentInfo
		w.run(typ.Handler(func(ctx context.Context, n int) (int, error) {
			cur := weaver.Current(ctx)
			seen = append(seen, cur)
			if len(seen) < 3 {
				return 0, errors.New("again")
			}
			return n, nil
		}, weaver.CodeVersion(7)))
		h := enqueue(w, typ, 1, weaver.Metadata("tenant", "t1"))
		result(w, h)
		for i, cur := range seen {
			equal(w, "attempt number", cur.AttemptNo, i+1)
			equal(w, "attempts that counted before", cur.AttemptCount, i)
			equal(w, "task id", cur.TaskID, h.ID())
			equal(w, "tenant", cur.Metadata["tenant"], "t1")
			equal(w, "code version of the first attempt", cur.StartedVersion, 7)
			equal(w, "step key", cur.StepKey("pay"), seen[0].StepKey("pay"))
			if i > 0 && cur.Epoch <= seen[i-1].Epoch {
				w.Errorf("epoch %d after %d: it must rise", cur.Epoch, seen[i-1].Epoch)
			}
		}
		if seen[0].StepKey("pay") == seen[0].StepKey("ship") {
			w.Error("two steps have one key")
		}
		equal(w, "the type", seen[0].Type, typ.Name())
		equal(w, "outside of a handler", weaver.Current(w.Context()).TaskID.IsZero(), true)
	})
}

// parallel runs n functions in goroutines and adds their values up.
func parallel(ctx context.Context, n int, fn func(ctx context.Context, i int) (int, error)) (sum int, err error) {
	type answer struct {
		n   int
		err error
	}
	answers := make(chan answer, n)
	for i := range n {
		go func() {
			v, err := fn(ctx, i)
			answers <- answer{v, err}
		}()
	}
	for range n {
		a := <-answers
		sum += a.n
		err = errors.Join(err, a.err)
	}
	return sum, err
}
