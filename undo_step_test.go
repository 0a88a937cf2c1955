package weaver_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// shopping is a saga of three partners, and what they saw.
type shopping struct {
	mu    sync.Mutex
	seen  []string                        // "charge KEY", "undo charge KEY of VALUE"
	fails map[string]int                  // how often a call fails before it succeeds; negative: always
	slow  func(ctx context.Context) error // runs in "ship"
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

// short is a key without the task's ID.
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
	}, append(opts, weaver.Undo(func(ctx context.Context, u weaver.Undoing[string]) error {
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

// order charges, ships, and then does what is left.
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

// However a task ends without success, its steps are undone first, the last one first.
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
		kind  weaver.ErrorKind
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
			stores := []weaver.Store{openMemory(fx)}
			if how == "a failure" || how == "a cancel, asleep" { // the others differ in the engine, or in what is tested of all stores
				stores = append(everyStore(fx), polled(openMemory(fx)))
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

// A step that began and whose value is not on record is undone as unknown.
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
		failure(fx, enqueue(fx, typ, ""))
		shop.saw(fx, unknown...)
	})
	subtest(t, "because its workers died, behind a wait that was over", func(fx *fixture) {
		shop := &shopping{}
		var current *faults
		shop.slow = func(ctx context.Context) error { // the effect is there, and the process dies
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
		failure(fx, enqueue(fx, typ, ""))
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
		failure(fx, enqueue(fx, typ, ""))
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
		failure(fx, enqueue(fx, typ, ""))
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

// An undo that fails is tried again; what is given up is told, and what began before it stays.
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
		h := run(fx, &shopping{fails: map[string]int{"undo ship": -1}})
		te := failure(fx, h)
		equal(fx, "kind", te.Kind, task.KindUndoFailed)
		for _, part := range []string{`step "ship" (done): its undo failed after `, "tries in 24h", "undo ship 503", `step "charge" (done): not undone`, "the task had ended failed: no stock"} {
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
	subtest(t, "an operator's retry runs what was undone anew, under other keys", func(fx *fixture) {
		shop, fails := &shopping{}, true
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return shop.order(ctx, func(context.Context) error {
				if fails {
					return errors.New("no stock")
				}
				return nil
			})
		}))
		h := enqueue(fx, typ, "")
		failure(fx, h)
		fx.must(fx.client.Retry(fx.Context(), h.ID()))
		failure(fx, h)
		fails = false
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

// Code that does not lead to what is to be undone, and mistakes in undos, ask a person.
func TestUndoIsBlocked(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.blocked.v1", weaver.NoRetry())
	some := func(ctx context.Context, fn func(ctx context.Context, u weaver.Undoing[int]) error) error {
		_, err := weaver.Step(ctx, "charge", func(context.Context) (int, error) { return 7, nil }, weaver.Undo(fn))
		return errors.Join(err, errors.New("no"))
	}
	for how, c := range map[string]struct {
		undo func(ctx context.Context) error // the handler, in the phase
		says string
	}{
		"the step is gone": {func(context.Context) error { return errors.New("new code") }, `the handler no longer leads to it, or it has no Undo any more: step "charge"`},
		"the step has no undo": {func(ctx context.Context) error {
			_, err := weaver.Step(ctx, "charge", func(context.Context) (int, error) { return 7, nil })
			return err
		}, `the handler no longer leads to it, or it has no Undo any more: step "charge"`},
		"the handler panics": {func(context.Context) error { panic("nil map") }, "nil map"},
		"the value is of another type": {func(ctx context.Context) error {
			_, err := weaver.Step(ctx, "charge", func(context.Context) (string, error) { return "", nil }, weaver.Undo(func(context.Context, weaver.Undoing[string]) error { return nil }))
			return err
		}, "no longer decodes"},
		"the undo runs a step": {func(ctx context.Context) error {
			return some(ctx, func(ctx context.Context, _ weaver.Undoing[int]) error {
				return weaver.Do(ctx, "more", func(context.Context) error { return nil })
			})
		}, weaver.ErrNestedStep.Error()},
		"the undo sleeps": {func(ctx context.Context) error {
			return some(ctx, func(ctx context.Context, _ weaver.Undoing[int]) error { return weaver.Sleep(ctx, "nap", time.Hour) })
		}, weaver.ErrNestedStep.Error()},
		"the undo calls": {func(ctx context.Context) error {
			return some(ctx, func(ctx context.Context, _ weaver.Undoing[int]) error {
				_, err := weaver.Call(ctx, "c", typ, "")
				return err
			})
		}, weaver.ErrNestedStep.Error()},
	} {
		subtest(t, how, func(fx *fixture) {
			fixed, undone := false, 0
			fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
				if weaver.Current(ctx).Undoing && !fixed {
					return "", c.undo(ctx)
				}
				return "", some(ctx, func(_ context.Context, u weaver.Undoing[int]) error {
					if undone++; u.Out != 7 {
						return errors.New("another value")
					}
					return nil
				})
			}))
			h := enqueue(fx, typ, "")
			time.Sleep(time.Hour)
			info := fx.get(h.ID())
			if info.State != weaver.StateBlocked || info.Waiting != task.WaitUndo || info.Error == nil || !strings.Contains(info.Error.Message, c.says) {
				fx.Errorf("it is %s, waits for %q: %+v", info.State, info.Waiting, info.Error)
			}
			fixed = true
			fx.must(fx.client.Unblock(fx.Context(), h.ID(), nil))
			equal(fx, "message", failure(fx, h).Message, "no")
			equal(fx, "undos", undone, 1)
		})
	}
}

// Mistakes in the declaration fail the task before anything is recorded.
func TestUndoMisuse(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.misuse.v1", weaver.NoRetry())
	undo := weaver.Undo(func(context.Context, weaver.Undoing[int]) error { return nil })
	step := func(name string, opts ...weaver.StepOption) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			_, err := weaver.Step(ctx, name, func(context.Context) (int, error) { return 1, nil }, opts...)
			return err
		}
	}
	for what, c := range map[string]struct {
		do   func(ctx context.Context) error
		says string
	}{
		"another type":  {step("charge", weaver.Undo(func(context.Context, weaver.Undoing[string]) error { return nil })), `its value is a int, and its Undo takes a string`},
		"two undos":     {step("charge", undo, undo), "two Undos"},
		"no function":   {step("charge", weaver.Undo[int](nil)), "the function of the Undo is nil"},
		"a bad retry":   {step("charge", undo, weaver.UndoRetry(time.Hour, time.Minute, time.Second)), "UndoRetry(1h0m0s, [1m0s 1s])"},
		"a name with #": {step("charge#1", undo), "has no '#'"},
		"a key of its round": {func(ctx context.Context) error {
			return errors.Join(step("charge", undo)(ctx), step("charge#1")(ctx))
		}, "would have the StepKey"},
		"a key of its round, before": {func(ctx context.Context) error {
			return errors.Join(step("charge#1")(ctx), step("charge", undo)(ctx))
		}, "would have the StepKey"},
		"a cleanup": {func(ctx context.Context) error {
			return weaver.Cleanup(ctx, "tidy", func(context.Context) error { return nil }, undo)
		}, "a Cleanup has no Undo"},
		"StepRetry of StepTx": {func(ctx context.Context) error {
			_, err := weaver.StepTx(ctx, "charge", func(context.Context, *sql.Tx) (int, error) { return 1, nil }, weaver.StepRetry(2))
			return err
		}, "takes neither StepRetry nor RecordError"},
	} {
		subtest(t, what, func(fx *fixture) {
			fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) { return "done", c.do(ctx) }))
			h := enqueue(fx, typ, "")
			time.Sleep(time.Hour)
			info := fx.get(h.ID())
			if info.Error == nil || !strings.Contains(info.Error.Message, c.says) {
				fx.Errorf("it is %s: %+v", info.State, info.Error)
			}
		})
	}
}

// The undo of a StepTx, and one that is a transaction itself.
func TestUndoTx(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.tx.v1", weaver.NoRetry())
	subtest(t, "writes commit with the record", func(fx *fixture) {
		db := openMemory(fx)
		fx = newFixture(fx.T, db)
		tries := 0
		exec := func(tx *sql.Tx, q string) error { _, err := tx.Exec(q); return err }
		fx.runConfig(db, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			_, err := weaver.StepTx(ctx, "book", func(_ context.Context, tx *sql.Tx) (int, error) {
				return 7, errors.Join(exec(tx, `CREATE TABLE seats (n INTEGER)`), exec(tx, `INSERT INTO seats VALUES (7)`))
			}, weaver.UndoTx(func(_ context.Context, tx *sql.Tx, u weaver.Undoing[int]) error {
				tries++
				err := exec(tx, fmt.Sprintf(`DELETE FROM seats WHERE n = %d`, u.Out))
				if tries == 1 {
					return errors.Join(err, errors.New("rolled back"))
				}
				return errors.Join(err, exec(tx, `INSERT INTO seats VALUES (-1)`))
			}))
			return "", errors.Join(err, errors.New("no"))
		})}})
		h := enqueue(fx, typ, "")
		equal(fx, "message", failure(fx, h).Message, "no")
		equal(fx, "outcomes", fmt.Sprint(fx.outcomes(h.ID())), "[failure undo_failed undone]")
		_, err := weaver.NewClient(db, weaver.ClientConfig{})
		fx.must(err)
		equal(fx, "tries", tries, 2)
	})
}

// What costs a task without undos nothing: an undo that was declared and is not needed costs
// one record more.
func TestUndoCostsOneRecord(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.cost.v1")
	subtest(t, "a step", func(fx *fixture) {
		for opts, want := range map[bool]int{false: 1, true: 2} {
			n := 0
			s := storehook.New(openMemory(fx), &storehook.Hooks{Record: func(_ context.Context, recs []store.Record, next func() ([]store.RecordResult, error)) ([]store.RecordResult, error) {
				n += len(recs)
				return next()
			}})
			fx := newFixture(fx.T, s)
			e := fx.start(s, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				var undo []weaver.StepOption
				if opts {
					undo = append(undo, weaver.Undo(func(context.Context, weaver.Undoing[weaver.None]) error { return nil }))
				}
				return "", weaver.Do(ctx, "charge", func(context.Context) error { return nil }, undo...)
			})}})
			result(fx, enqueue(fx, typ, ""))
			equal(fx, "records", n, want)
			fx.must(e.stop())
		}
	})
}
