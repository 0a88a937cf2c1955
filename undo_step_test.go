package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// shopping is a saga of three partners, with a record of their calls.
type shopping struct {
	mu    sync.Mutex
	seen  []string                        // "charge KEY", "undo charge KEY of VALUE"
	fails map[string]int                  // number of failures before a call succeeds; negative: always
	slow  func(ctx context.Context) error // runs in "ship"
	limit time.Duration                   // retry limit of undos; 0: a day
}

func (s *shopping) call(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, what)
	name := strings.Join(strings.Fields(what)[:min(2, len(strings.Fields(what)))], " ")
	if !strings.HasPrefix(name, "undo") {
		name, _, _ = strings.Cut(name, " ")
	}
	if n := s.fails[name]; n != 0 {
		s.fails[name] = n - 1
		return errors.New(name + " 503")
	}
	return nil
}

// short returns a key without the task's ID.
func short(key string) string { _, rest, _ := strings.Cut(key, ":"); return rest }

// buy is a step with an undo.
func (s *shopping) buy(ctx context.Context, name string, opts ...weaver.StepOption) (string, error) {
	return weaver.Step(ctx, name, func(ctx context.Context) (string, error) {
		if err := s.call(name + " " + short(weaver.Current(ctx).StepKey(name))); err != nil {
			return "", err
		}
		if name == "ship" && s.slow != nil {
			return "of " + name, s.slow(ctx)
		}
		return "of " + name, nil
	}, append(opts, weaver.UndoRetry(s.limit), weaver.Undo(func(ctx context.Context, u weaver.Undoing[string]) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if u.Key != weaver.Current(ctx).StepKey(name) || !weaver.Current(ctx).Undoing {
			return weaver.Permanent(fmt.Errorf("wrong key %s", u.Key))
		}
		what := "unknown"
		if u.Done {
			what = u.Out
		}
		return s.call(fmt.Sprintf("undo %s %s %s", name, short(u.UndoKey), what))
	}))...)
}

// order charges, ships, and then runs the rest.
func (s *shopping) order(ctx context.Context, then func(ctx context.Context) error) (string, error) {
	if _, err := s.buy(ctx, "charge"); err != nil {
		return "", err
	}
	if _, err := s.buy(ctx, "ship"); err != nil {
		return "", err
	}
	if err := then(ctx); err != nil {
		return "", err
	}
	return "done", nil
}

func (s *shopping) saw(fx *fixture, want ...string) {
	fx.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if fmt.Sprint(s.seen) != fmt.Sprint(want) {
		fx.Errorf("the partners saw\n\t%s, want\n\t%s", strings.Join(s.seen, "\n\t"), strings.Join(want, "\n\t"))
	}
}

var boughtAndUndone = []string{"charge charge", "ship ship", "undo ship ship#0/undo of ship", "undo charge charge#0/undo of charge"}

// If a task ends without success, for any reason, its steps are undone first, the last one first.
func TestUndo(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.order.v1", weaver.MaxAttempts(2), weaver.Backoff(time.Minute))
	wait := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	cancel := func(fx *fixture, id weaver.TaskID) {
		fx.must(fx.client.Cancel(fx.Context(), id))
	}
	for how, end := range map[string]struct {
		opts  []weaver.EnqueueOption
		then  func(ctx context.Context) error
		ask   func(fx *fixture, id weaver.TaskID) // a minute after the start
		state weaver.State
		kind  task.ErrorKind
	}{
		"a failure":           {nil, func(context.Context) error { return errors.New("no stock") }, nil, weaver.StateFailed, task.KindHandler},
		"a permanent failure": {nil, func(context.Context) error { return weaver.Permanent(errors.New("no stock")) }, nil, weaver.StateFailed, task.KindHandler},
		"a panic":             {nil, func(context.Context) error { panic("nil map") }, nil, weaver.StateFailed, task.KindPanic},
		"a cancel":            {nil, wait, cancel, weaver.StateCancelled, task.KindCancelled},
		"a cancel, asleep":    {nil, func(ctx context.Context) error { return weaver.Sleep(ctx, "nap", time.Hour) }, cancel, weaver.StateCancelled, task.KindCancelled},
		"a cancel, blocked":   {nil, func(context.Context) error { return weaver.Blocked("and now?") }, cancel, weaver.StateCancelled, task.KindCancelled},
		"a deadline":          {[]weaver.EnqueueOption{weaver.ExpireAfter(time.Hour)}, wait, nil, weaver.StateCancelled, task.KindDeadline},
		"a deadline, asleep":  {[]weaver.EnqueueOption{weaver.ExpireAfter(time.Hour)}, func(ctx context.Context) error { return weaver.Sleep(ctx, "nap", 2*time.Hour) }, nil, weaver.StateCancelled, task.KindDeadline},
		"a timeout":           {[]weaver.EnqueueOption{weaver.Timeout(time.Hour), weaver.NoRetry()}, wait, nil, weaver.StateFailed, task.KindTimeout},
		"a budget": {[]weaver.EnqueueOption{weaver.MaxCost(1)}, func(ctx context.Context) error {
			return errors.Join(weaver.Do(ctx, "think", func(ctx context.Context) error { return weaver.Spend(ctx, 2) }), wait(ctx))
		}, nil, weaver.StateFailed, task.KindBudget},
	} {
		subtest(t, "after "+how, func(fx *fixture) {
			stores := []store.Store{fx.store}
			if how == "a failure" || how == "a cancel, asleep" {
				stores = append(stores, polled(openStore(fx)))
			}
			for _, s := range stores {
				fx, shop := newFixture(fx.T, s), &shopping{}
				e := fx.start(s, weaver.Config{Lease: 6 * time.Second, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
					return shop.order(ctx, end.then)
				})}})
				h := enqueue(fx, typ, "", end.opts...)
				if end.ask != nil {
					time.Sleep(time.Minute)
					end.ask(fx, h.ID())
				}
				got := failure(fx, h)
				equal(fx, "state and kind", fmt.Sprint(got.State, " ", got.Kind), fmt.Sprint(end.state, " ", end.kind))
				shop.saw(fx, boughtAndUndone...)
				info := fx.get(h.ID())
				if info.UndoOpen != 0 || info.Undo != nil {
					fx.Errorf("it ended with %d steps to undo, phase %+v", info.UndoOpen, info.Undo)
				}
				fx.must(e.stop())
			}
		})
	}

	subtest(t, "not after a success, nor between attempts, nor of an error that was handled", func(fx *fixture) {
		shop := &shopping{fails: map[string]int{"ship": 1}}
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if _, err := shop.buy(ctx, "charge"); err != nil {
				return "", err
			}
			if _, err := shop.buy(ctx, "ship"); err != nil && weaver.Current(ctx).AttemptNo > 1 {
				return "", err
			}
			if weaver.Current(ctx).AttemptNo == 1 {
				return "", errors.New("try again")
			}
			return "done", nil
		}))
		equal(fx, "output", result(fx, enqueue(fx, typ, "")), "done")
		shop.saw(fx, "charge charge", "ship ship", "ship ship")
	})
}

// A begun step without a recorded value is undone as unknown.
func TestUndoOfUnknown(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.unknown.v1", weaver.NoRetry())
	unknown := []string{"charge charge", "ship ship", "undo ship ship#0/undo unknown", "undo charge charge#0/undo of charge"}
	fine := func(context.Context) error { return nil }

	subtest(t, "because its function failed", func(fx *fixture) {
		shop := &shopping{fails: map[string]int{"ship": 1}}
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) { return shop.order(ctx, fine) }))
		equal(fx, "message", failure(fx, enqueue(fx, typ, "")).Message, `step "ship": ship 503`)
		shop.saw(fx, unknown...)
	})
	subtest(t, "because its function panicked", func(fx *fixture) {
		shop := &shopping{slow: func(context.Context) error { panic("boom") }}
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) { return shop.order(ctx, fine) }))
		equal(fx, "kind", failure(fx, enqueue(fx, typ, "")).Kind, task.KindPanic)
		shop.saw(fx, unknown...)
	})
	subtest(t, "because its error is its result", func(fx *fixture) {
		shop := &shopping{fails: map[string]int{"ship": 1}}
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			_, _ = shop.buy(ctx, "charge")
			_, err := shop.buy(ctx, "ship", weaver.RecordError())
			return "", err
		}))
		fails(fx, enqueue(fx, typ, ""))
		shop.saw(fx, unknown...)
	})
	subtest(t, "because its workers died, behind a wait that was over", func(fx *fixture) {
		shop := &shopping{}
		var current *faults
		shop.slow = func(ctx context.Context) error { // the effect happened, and the process dies
			current.cut()
			<-ctx.Done()
			return ctx.Err()
		}
		cfg := weaver.Config{Lease: 6 * time.Second, CrashBudget: 2, Concurrency: 1, DrainTimeout: time.Millisecond, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if _, err := shop.buy(ctx, "charge"); err != nil {
				return "", err
			}
			if err := weaver.Sleep(ctx, "nap", time.Minute); err != nil {
				return "", err
			}
			_, err := shop.buy(ctx, "ship")
			return "", err
		})}}
		h := enqueue(fx, typ, "")
		for range 2 {
			current = newFaults(fx)
			e := fx.start(current.store, cfg)
			time.Sleep(2 * time.Minute)
			if e.stop() == nil {
				fx.Fatal("the worker did not die")
			}
		}
		fx.runConfig(fx.store, cfg)
		equal(fx, "kind", failure(fx, h).Kind, task.KindPoison)
		shop.saw(fx, "charge charge", "ship ship", "ship ship", "undo ship ship#0/undo unknown", "undo charge charge#0/undo of charge")
	})
	subtest(t, "a value that comes after the cancel is stored, and undone as known", func(fx *fixture) {
		shop := &shopping{slow: func(ctx context.Context) error { <-ctx.Done(); time.Sleep(time.Second); return nil }}
		var got error
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			_, err := shop.order(ctx, fine)
			got = errors.Join(got, err)
			return "", err
		}))
		h := enqueue(fx, typ, "")
		time.Sleep(time.Minute)
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		equal(fx, "state", failure(fx, h).State, weaver.StateCancelled)
		shop.saw(fx, boughtAndUndone...)
		wantError(fx, got, weaver.ErrCancelled)
	})
	subtest(t, "no step runs beside its undo, if it outlives its handler", func(fx *fixture) {
		shop := &shopping{slow: func(context.Context) error { time.Sleep(time.Minute); return nil }}
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if weaver.Current(ctx).Undoing {
				_, err := shop.buy(ctx, "ship")
				return "", err
			}
			go func() { _, _ = shop.buy(ctx, "ship") }()
			time.Sleep(time.Second)
			return "", errors.New("impatient")
		}))
		fails(fx, enqueue(fx, typ, ""))
		shop.saw(fx, "ship ship", "undo ship ship#0/undo of ship")
	})
}

func TestUndoOrder(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.parallel.v1", weaver.NoRetry())
	subtest(t, "parallel steps are undone by when they began", func(fx *fixture) {
		shop := &shopping{}
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			var all sync.WaitGroup
			for i := range 5 {
				all.Go(func() {
					time.Sleep(time.Duration(5-i) * time.Second)
					_, _ = shop.buy(ctx, fmt.Sprint("part", i))
				})
			}
			all.Wait()
			return "", errors.New("no")
		}))
		fails(fx, enqueue(fx, typ, ""))
		var undone []string
		for _, s := range shop.seen[5:] {
			undone = append(undone, strings.Fields(s)[1])
		}
		equal(fx, "order", fmt.Sprint(undone), "[part0 part1 part2 part3 part4]")
	})
	subtest(t, "cleanups come before undos", func(fx *fixture) {
		shop := &shopping{fails: map[string]int{"cleanup": 2}}
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			_, err := shop.buy(ctx, "charge")
			if err == nil {
				err = errors.New("no")
			}
			return "", errors.Join(err, weaver.Cleanup(ctx, "tidy", func(context.Context) error { return shop.call("cleanup") }))
		}))
		fails(fx, enqueue(fx, typ, ""))
		shop.saw(fx, "charge charge", "cleanup", "cleanup", "cleanup", "undo charge charge#0/undo of charge")
	})
	subtest(t, "what began before a point of no return stays", func(fx *fixture) {
		shop := &shopping{}
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return shop.order(ctx, func(ctx context.Context) error {
				if err := weaver.PointOfNoReturn(ctx, "shipped"); err != nil {
					return err
				}
				if _, err := shop.buy(ctx, "mail"); err != nil {
					return err
				}
				return errors.New("no")
			})
		}))
		equal(fx, "message", failure(fx, enqueue(fx, typ, "")).Message, "no")
		shop.saw(fx, "charge charge", "ship ship", "mail mail", "undo mail mail#0/undo of mail")
	})
}

// A failed undo is retried. If it is given up, the error reports it, and earlier steps stay.
func TestUndoFails(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.fails.v1", weaver.NoRetry())
	run := func(fx *fixture, shop *shopping, opts ...weaver.EnqueueOption) *weaver.Handle[string] {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return shop.order(ctx, func(context.Context) error { return errors.New("no stock") })
		}))
		return enqueue(fx, typ, "", opts...)
	}
	subtest(t, "for a while", func(fx *fixture) {
		shop := &shopping{fails: map[string]int{"undo ship": 2, "undo charge": 1}}
		h := run(fx, shop)
		equal(fx, "message", failure(fx, h).Message, "no stock")
		shop.saw(fx, "charge charge", "ship ship", "undo ship ship#0/undo of ship", "undo ship ship#0/undo of ship", "undo ship ship#0/undo of ship",
			"undo charge charge#0/undo of charge", "undo charge charge#0/undo of charge")
		equal(fx, "outcomes", fmt.Sprint(fx.outcomes(h.ID())), "[failure undo_failed undo_failed undo_failed undone]")
		equal(fx, "attempts that count", fx.get(h.ID()).AttemptCount, 1)
	})
	subtest(t, "for good", func(fx *fixture) {
		h := run(fx, &shopping{fails: map[string]int{"undo ship": -1}, limit: 10 * time.Minute})
		te := failure(fx, h)
		equal(fx, "kind", te.Kind, task.KindUndoFailed)
		for _, part := range []string{`step "ship" (done): its undo failed after `, "tries in 1", "undo ship 503", `step "charge" (done): not undone`, "the task had ended failed: no stock"} {
			if !strings.Contains(te.Message, part) {
				fx.Errorf("the message does not say %q: %s", part, te.Message)
			}
		}
		equal(fx, "to undo", fx.get(h.ID()).UndoOpen, 2)
	})
	subtest(t, "as long as UndoRetry says, after pauses that it gives", func(fx *fixture) {
		tries := []time.Time{}
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			err := weaver.Do(ctx, "charge", func(context.Context) error { return nil },
				weaver.Undo(func(context.Context, weaver.Undoing[weaver.None]) error {
					tries = append(tries, time.Now())
					panic("psp")
				}),
				weaver.UndoRetry(time.Hour, 10*time.Minute, 20*time.Minute))
			return "", errors.Join(err, errors.New("no"))
		}))
		te := failure(fx, enqueue(fx, typ, ""))
		equal(fx, "kind", te.Kind, task.KindUndoFailed)
		if took := tries[len(tries)-1].Sub(tries[0]); len(tries) < 4 || len(tries) > 6 || took < time.Hour {
			fx.Errorf("%d tries in %s", len(tries), took)
		}
	})
	subtest(t, "until an operator skips the step, or what fails is mended", func(fx *fixture) {
		shop := &shopping{fails: map[string]int{"undo ship": -1, "undo charge": -1}, limit: 2 * time.Hour}
		h := run(fx, shop)
		time.Sleep(time.Hour)
		wantError(fx, fx.client.Retry(fx.Context(), h.ID(), weaver.SkipUndo("ship")), weaver.ErrInvalidOption)
		wantError(fx, fx.client.Retry(fx.Context(), h.ID(), weaver.SkipUndo("sip"), weaver.Reason("by post")), weaver.ErrState, `"sip" is not to be undone`)
		fx.must(fx.client.Retry(fx.Context(), h.ID(), weaver.SkipUndo("ship"), weaver.Reason("by post")))
		time.Sleep(48 * time.Hour)
		te := failure(fx, h)
		equal(fx, "kind", te.Kind, task.KindUndoFailed)
		if strings.Contains(te.Message, "ship") || !strings.Contains(te.Message, `step "charge" (done): its undo failed`) {
			fx.Errorf("the message is %s", te.Message)
		}
		shop.mu.Lock()
		clear(shop.fails)
		shop.mu.Unlock()
		fx.must(fx.client.Retry(fx.Context(), h.ID(), weaver.Cleanups()))
		equal(fx, "message", failure(fx, h).Message, "no stock")
		equal(fx, "the last call", shop.seen[len(shop.seen)-1], "undo charge charge#0/undo of charge")
	})
	subtest(t, "an operator's retry runs what was undone anew, under other keys", func(fx *fixture) {
		shop, broken := &shopping{}, true
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return shop.order(ctx, func(context.Context) error {
				if broken {
					return errors.New("no stock")
				}
				return nil
			})
		}))
		h := enqueue(fx, typ, "")
		fails(fx, h)
		fx.must(fx.client.Retry(fx.Context(), h.ID()))
		fails(fx, h)
		broken = false
		fx.must(fx.client.Retry(fx.Context(), h.ID()))
		equal(fx, "output", result(fx, h), "done")
		shop.saw(fx, append(boughtAndUndone[:4:4], "charge charge#1", "ship ship#1", "undo ship ship#1/undo of ship", "undo charge charge#1/undo of charge",
			"charge charge#2", "ship ship#2")...)
	})
	subtest(t, "a drain gives the undo to another worker", func(fx *fixture) {
		shop := &shopping{}
		first := true
		h := weaver.Handler(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			err := weaver.Do(ctx, "charge", func(context.Context) error { return nil }, weaver.Undo(func(ctx context.Context, _ weaver.Undoing[weaver.None]) error {
				if first {
					first = false
					<-ctx.Done()
					return ctx.Err()
				}
				return shop.call("undo charge")
			}))
			return "", errors.Join(err, errors.New("no"))
		}))
		e := fx.start(fx.store, weaver.Config{DrainTimeout: time.Second, Handlers: []weaver.Handler{h}})
		handle := enqueue(fx, typ, "")
		time.Sleep(time.Second)
		fx.must(e.stop())
		fx.run(h)
		equal(fx, "message", failure(fx, handle).Message, "no")
		equal(fx, "outcomes", fmt.Sprint(fx.outcomes(handle.ID())), "[failure released undone]")
	})
}
