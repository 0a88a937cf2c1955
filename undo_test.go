package weaver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// A cleanup that fails at the end of an attempt keeps its task in an undo phase until it has run,
// whatever the end of the task.
func TestCleanupIsTriedUntilItRan(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.cleanup.v1", weaver.MaxAttempts(2), weaver.Backoff(time.Minute))
	for how, end := range map[string]struct {
		opts  []weaver.EnqueueOption
		ask   func(fx *fixture, id weaver.TaskID) // nil: the work fails
		waits bool                                // the work lasts until its context ends
		state weaver.State
		kind  task.ErrorKind
		first string // outcomes before the phase
	}{
		"a failure": {nil, nil, false, weaver.StateFailed, task.KindHandler, "failure failure"},
		"a cancel": {nil, func(fx *fixture, id weaver.TaskID) {
			fx.must(fx.client.Cancel(fx.Context(), id))
		}, true, weaver.StateCancelled, task.KindCancelled, "cancelled"},
		"a deadline": {[]weaver.EnqueueOption{weaver.ExpireAfter(time.Hour)}, nil, true, weaver.StateCancelled, task.KindDeadline, "cancelled"},
		"a timeout":  {[]weaver.EnqueueOption{weaver.Timeout(time.Hour), weaver.NoRetry()}, nil, true, weaver.StateFailed, task.KindTimeout, "failure"},
	} {
		subtest(t, "after "+how, func(fx *fixture) {
			stores := []store.Store{fx.store}
			if how == "a failure" {
				stores = append(stores, polled(openStore(fx)))
			}
			for _, s := range stores {
				fx, charged := newFixture(fx.T, s), 0
				var tries atomic.Int32
				var undoing []event.TaskUndoing
				e := fx.start(s, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
					if err := weaver.Do(ctx, "charge", func(context.Context) error { charged++; return nil }); err != nil {
						return "", err
					}
					err := weaver.Do(ctx, "ship", func(ctx context.Context) error {
						if end.waits {
							<-ctx.Done()
							return context.Cause(ctx)
						}
						return errors.New("courier down")
					})
					if !weaver.Final(ctx, err) {
						return "", err
					}
					return "", errors.Join(err, weaver.Cleanup(ctx, "refund", func(context.Context) error {
						if tries.Add(1) < 4 {
							return errors.New("psp 503")
						}
						return nil
					}))
				})}})
				weaver.On(e.Engine, func(ev event.TaskUndoing) { undoing = append(undoing, ev) })
				h := enqueue(fx, typ, "", end.opts...)
				if end.ask != nil {
					time.Sleep(time.Hour)
					end.ask(fx, h.ID())
				}
				for range 3 * 3600 { // to the pause before the second try of the phase
					if time.Sleep(time.Second); tries.Load() == 2 {
						break
					}
				}
				synctest.Wait()
				info := fx.get(h.ID())
				if info.State != weaver.StatePending || info.Waiting != task.WaitUndo || info.Error == nil || info.Error.Kind != end.kind {
					fx.Errorf("in the phase it is %s, waits for %s, and shows %+v", info.State, info.Waiting, info.Error)
				}
				got := failure(fx, h)
				equal(fx, "state and kind", fmt.Sprint(got.State, " ", got.Kind), fmt.Sprint(end.state, " ", end.kind))
				equal(fx, "charges and tries of the refund", fmt.Sprint(charged, tries.Load()), "1 4")
				equal(fx, "outcomes", fmt.Sprint(fx.outcomes(h.ID())), "["+end.first+" undo_failed undo_failed undone]")
				if len(undoing) != 1 || undoing[0].EndsAs != end.state || undoing[0].Error.Kind != end.kind {
					fx.Errorf("task.undoing: %+v", undoing)
				}
				fx.must(e.stop())
			}
		})
	}
}

// undoSaga charges, fails permanently, and refunds.
func undoSaga(typ *weaver.Type[string, string], refund func() error) weaver.Handler {
	return typ.Handler(func(ctx context.Context, _ string) (string, error) {
		if err := weaver.Do(ctx, "charge", func(context.Context) error { return nil }); err != nil {
			return "", err
		}
		return "", errors.Join(errors.New("courier down"), weaver.Cleanup(ctx, "refund", func(context.Context) error { return refund() }))
	})
}

func TestCleanupIsGivenUp(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.given_up.v1", weaver.NoRetry())
	for how, c := range map[string]struct {
		err   error
		after time.Duration
		says  string
	}{
		"after a day": {errors.New("psp 503"), 24 * time.Hour, `cleanup "refund" failed after 9 tries in 24h0m`},
		"at once":     {weaver.Permanent(errors.New("no such account")), 0, `cleanup "refund" failed after 2 tries in 0s`},
	} {
		subtest(t, how, func(fx *fixture) {
			var log bytes.Buffer
			cfg := weaver.Config{
				Handlers: []weaver.Handler{undoSaga(typ, func() error { return c.err })},
				Logger:   slog.New(slog.NewTextHandler(&log, nil)),
			}
			e := fx.start(fx.store, cfg)
			h, began := enqueue(fx, typ, ""), time.Now()
			time.Sleep(150 * time.Second) // for the pauses of 1, 2, 4, … 60 s
			fx.must(e.stop())
			if c.after > 0 { // a day of attempts costs seconds
				time.Sleep(c.after - 150*time.Second)
			}
			fx.runConfig(fx.store, cfg)
			te := failure(fx, h)
			synctest.Wait() // for the log
			equal(fx, "state and kind", fmt.Sprint(te.State, " ", te.Kind), "failed undo_failed")
			near(fx, "given up after", fx.get(h.ID()).FinishedAt.Sub(began), c.after)
			for _, part := range []string{c.says, c.err.Error(), "the task had ended failed", "courier down"} {
				if !strings.Contains(te.Message, part) {
					fx.Errorf("the error does not say %q: %s", part, te.Message)
				}
			}
			if want := "level=ERROR msg=\"undo given up\" task_id=" + h.ID().String(); !strings.Contains(log.String(), want) {
				fx.Errorf("no line %q in the log", want)
			}
		})
	}
}

// After a panic the handler runs again for its cleanups (CleanupWhenCancelled). If it does not reach
// them, the task is blocked.
func TestCleanupAfterPanic(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.panics.v1", weaver.CleanupWhenCancelled(), weaver.NoRetry())
	crash := map[string]func(){
		"panics":         func() { panic("nil map") },
		"ends in Goexit": func() { runtime.Goexit() },
	}
	for how, crash := range crash {
		subtest(t, "of a handler that "+how, func(fx *fixture) {
			runs, refunded, bad := 0, 0, 2
			fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
				runs++
				err := weaver.Do(ctx, "charge", func(context.Context) error { return nil })
				if err == nil && runs <= bad {
					crash()
				}
				if err == nil {
					err = weaver.Do(ctx, "ship", func(context.Context) error { return nil })
				}
				if weaver.Final(ctx, err) {
					err = errors.Join(err, weaver.Cleanup(ctx, "refund", func(context.Context) error { refunded++; return nil }))
				}
				return "", err
			}))
			h := enqueue(fx, typ, "")
			synctest.Wait()
			info := fx.get(h.ID())
			if info.State != weaver.StateBlocked || info.Waiting != task.WaitUndo || !strings.Contains(info.Error.Message, "the handler ended before any cleanup") {
				fx.Errorf("after two such ends it is %s, waits for %s: %+v", info.State, info.Waiting, info.Error)
			}
			fx.must(fx.client.Unblock(fx.Context(), h.ID(), nil))
			equal(fx, "kind", failure(fx, h).Kind, map[bool]task.ErrorKind{true: task.KindPanic, false: task.KindHandler}[how == "panics"])
			equal(fx, "refunds", refunded, 1)
			equal(fx, "outcomes", fmt.Sprint(fx.outcomes(h.ID())), "[failure blocked undone]")
		})
	}

	subtest(t, "nothing is asked if no step ran", func(fx *fixture) {
		fx.run(typ.Handler(func(context.Context, string) (string, error) { panic("at once") }))
		h := enqueue(fx, typ, "")
		equal(fx, "kind", failure(fx, h).Kind, task.KindPanic)
	})
}

// The replay of an undo attempt returns recorded results, and code that no longer leads to a failed
// cleanup is reported.
func TestUndoReplay(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.replay.v1", weaver.NoRetry())
	subtest(t, "failures on record are returned, also behind a wait that is over", func(fx *fixture) {
		var got []error
		failing := true
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if err := weaver.Sleep(ctx, "nap", time.Hour); err != nil {
				return "", err
			}
			err := weaver.Do(ctx, "ship", func(context.Context) error { return weaver.WithCode("down", errors.New("courier down")) })
			got = append(got, err)
			if !failing {
				got = append(got, weaver.Do(ctx, "never", func(context.Context) error { return nil }))
			}
			return "", errors.Join(err, weaver.Cleanup(ctx, "refund", func(context.Context) error {
				if failing {
					failing = false
					return errors.New("psp 503")
				}
				return nil
			}))
		}))
		h := enqueue(fx, typ, "")
		fails(fx, h)
		if len(got) != 3 {
			fx.Fatalf("%d results: %v", len(got), got)
		}
		se, is := errors.AsType[*task.StepError](got[1])
		if !is || se.Code != "down" || se.Message != "courier down" || !errors.Is(got[2], weaver.ErrUndoing) {
			fx.Errorf("in the phase the steps returned %v and %v", got[1], got[2])
		}
	})
	subtest(t, "a cleanup that is no longer reached blocks the task", func(fx *fixture) {
		deployed := false
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if deployed {
				return "", errors.New("new code")
			}
			deployed = true
			return "", errors.Join(errors.New("courier down"), weaver.Cleanup(ctx, "refund", func(context.Context) error { return errors.New("psp 503") }))
		}))
		h := enqueue(fx, typ, "")
		time.Sleep(time.Hour)
		info := fx.get(h.ID())
		if info.State != weaver.StateBlocked || !strings.Contains(info.Error.Message, `cleanup "refund" failed before, and the handler no longer reaches it`) {
			fx.Errorf("it is %s: %+v", info.State, info.Error)
		}
		fx.must(fx.client.Cancel(fx.Context(), h.ID(), weaver.Force()))
	})
}

// Cleanups run after the children have ended, which may produce effects to undo until then.
func TestUndoWaitsForChildren(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.parent.v1", weaver.CleanupWhenCancelled(), weaver.NoRetry())
	child := weaver.Define[string, string]("engine.undo.child.v1", weaver.NoRetry())
	subtest(t, "a cancelled call", func(fx *fixture) {
		var order []string
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			_, err := weaver.Call(ctx, "part", child, "")
			if weaver.Final(ctx, err) {
				err = errors.Join(err, weaver.Cleanup(ctx, "undo", func(context.Context) error { order = append(order, "parent"); return nil }))
			}
			return "", err
		}), child.Handler(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			time.Sleep(10 * time.Second)
			order = append(order, "child")
			return "", context.Cause(ctx)
		}))
		h := enqueue(fx, typ, "")
		time.Sleep(time.Minute)
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		equal(fx, "state", failure(fx, h).State, task.Cancelled)
		equal(fx, "order", fmt.Sprint(order), "[child parent]")
	})
}

// No undo starts while the handler of a forced cancel still runs.
func TestForceWaitsForTheLease(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.forced.v1", weaver.CleanupWhenCancelled(), weaver.NoRetry())
	subtest(t, "of an attempt, and of an undo that hangs", func(fx *fixture) {
		var refunds []time.Time
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if err := weaver.Do(ctx, "charge", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			<-ctx.Done()
			err := context.Cause(ctx)
			if !weaver.Final(ctx, err) {
				return "", err
			}
			return "", errors.Join(err, weaver.Cleanup(ctx, "refund", func(ctx context.Context) error {
				if refunds = append(refunds, time.Now()); len(refunds) == 1 {
					<-ctx.Done()
				}
				return ctx.Err()
			}))
		}))
		h := enqueue(fx, typ, "")
		var ends []time.Time
		for range 2 {
			for fx.get(h.ID()).State != weaver.StateRunning {
				time.Sleep(time.Second)
			}
			time.Sleep(time.Second) // the handler hangs
			ends = append(ends, fx.get(h.ID()).LeaseExpiresAt)
			fx.must(fx.client.Cancel(fx.Context(), h.ID(), weaver.Force(), weaver.Reason("it hangs")))
			if len(ends) == 1 { // the next one would abandon the undo: the force has already started its phase
				continue
			}
			equal(fx, "state", fx.get(h.ID()).State, weaver.StateFailed)
		}
		fx.must(fx.client.Retry(fx.Context(), h.ID(), weaver.Cleanups()))
		equal(fx, "state", failure(fx, h).State, weaver.StateCancelled)
		equal(fx, "the tries", len(refunds), 2)
		for i, at := range refunds {
			if at.Before(ends[i]) {
				fx.Errorf("refund %d began at %v, before the revoked lease ended at %v", i+1, at, ends[i])
			}
		}
	})
}

// Bulk verbs skip undos, except with Cleanups.
func TestManyUndos(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.many.v1", weaver.NoRetry(), weaver.CleanupWhenCancelled())
	subtest(t, "given up, and waiting for the next try", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			return "", errors.Join(errors.New("courier down"), weaver.Cleanup(ctx, "refund", func(context.Context) error {
				if in == "gone" {
					return weaver.Permanent(errors.New("no such account"))
				}
				return errors.New("psp 503")
			}))
		}))
		gone, waits := enqueue(fx, typ, "gone"), enqueue(fx, typ, "")
		time.Sleep(time.Minute)
		synctest.Wait()
		all := weaver.Filter{Types: []string{typ.Name()}}
		ctx := fx.Context()
		for _, dry := range [][]weaver.OperateOption{{weaver.DryRun()}, nil} {
			for what, tc := range map[string]struct {
				many func(context.Context, weaver.Filter, ...weaver.OperateOption) (ops.ManyAck, error)
				opts []weaver.OperateOption
				want string
			}{
				"retry":           {fx.client.RetryMany, nil, "weaver task retry " + gone.ID().String() + " --cleanup"},
				"delete":          {fx.client.DeleteMany, nil, "weaver task cancel " + gone.ID().String() + " --abandon-undo"},
				"a forced cancel": {fx.client.CancelMany, []weaver.OperateOption{weaver.Force()}, "weaver task cancel " + waits.ID().String() + " --abandon-undo"},
			} {
				ack, err := tc.many(ctx, all, append(tc.opts, dry...)...)
				fx.must(err)
				if ack.Done != 0 || len(ack.Refused) != 1 {
					fx.Errorf("%s, dry run %t: %+v", what, dry != nil, ack)
					continue
				}
				wantError(fx, ack.Refused[0].Err, weaver.ErrState, tc.want)
			}
		}
		ack, err := fx.client.RetryMany(ctx, all, weaver.Cleanups(), weaver.DryRun())
		fx.must(err)
		if ack.Done != 1 || len(ack.Refused) != 0 || ack.Tasks[0].ID != gone.ID() {
			fx.Errorf("a dry run with Cleanups: %+v", ack)
		}
		all.States = []weaver.State{weaver.StatePending, weaver.StateFailed}
		if ack, err = fx.client.RetryMany(ctx, all, weaver.Cleanups()); err != nil || ack.Done != 2 {
			fx.Errorf("with Cleanups: %+v, %v", ack, err)
		}
		_, err = fx.client.RetryMany(ctx, all, weaver.Cleanups(), weaver.KeepSteps())
		wantError(fx, err, weaver.ErrInvalidOption, "leave KeepSteps")
		_, err = fx.client.RetryJob(ctx, weaver.JobID{}, weaver.Cleanups())
		if err == nil {
			fx.Error("a job is retried with Cleanups")
		}
		wantError(fx, fx.client.Delete(ctx, gone.ID(), weaver.AbandonUndo()), weaver.ErrInvalidOption, "AbandonUndo is an option of Cancel only")
	})
}
