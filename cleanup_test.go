package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// ends are the ways to end an attempt's task.
var ends = map[string]struct {
	opts  []weaver.EnqueueOption
	ask   func(fx *fixture, id weaver.TaskID) // a minute after the start
	cause error
	state weaver.State
}{
	"a cancel": {nil, func(fx *fixture, id weaver.TaskID) {
		fx.must(fx.client.Cancel(fx.Context(), id, weaver.By("ann")))
	}, weaver.ErrCancelled, weaver.StateCancelled},
	"a deadline": {[]weaver.EnqueueOption{weaver.ExpireAfter(time.Minute)}, nil, weaver.ErrDeadline, weaver.StateCancelled},
	"a timeout":  {[]weaver.EnqueueOption{weaver.Timeout(time.Minute), weaver.NoRetry()}, nil, weaver.ErrTimeout, weaver.StateFailed},
}

// recordedAs returns the kind and state of a task's steps.
func recordedAs(fx *fixture, id weaver.TaskID) string {
	fx.Helper()
	var all []string
	for _, s := range fx.history(id).Steps {
		all = append(all, fmt.Sprint(s.Name, " ", s.Kind, " ", s.State))
	}
	return fmt.Sprint(all)
}

func TestCleanup(t *testing.T) {
	typ := weaver.Define[string, string]("engine.cleanup.run.v1")
	nothing := func(context.Context) error { return nil }

	// saga is a handler that works until it is asked to end, then undoes its steps.
	saga := func(undo func(ctx context.Context) error) weaver.Handler {
		return typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if err := weaver.Do(ctx, "book", nothing); err != nil {
				return "", err
			}
			<-ctx.Done()
			return "", errors.Join(context.Cause(ctx), undo(ctx))
		})
	}
	// play runs a saga, ends it, and returns its task.
	play := func(fx *fixture, s store.Store, how string, h weaver.Handler) weaver.TaskID {
		fx.Helper()
		end := ends[how]
		fx.runConfig(s, weaver.Config{Lease: 6 * time.Second, Handlers: []weaver.Handler{h}})
		handle := enqueue(fx, typ, "", end.opts...)
		if end.ask != nil {
			time.Sleep(time.Minute)
			end.ask(fx, handle.ID())
		}
		equal(fx, "state", failure(fx, handle).State, end.state)
		synctest.Wait()
		return handle.ID()
	}

	// unreaped is the fixture's store without reaping: the worker detects a deadline by itself.
	unreaped := func(fx *fixture) *faults {
		f := newFaults(fx)
		f.hooks.Reap = func(context.Context, store.ReapRequest, func() (store.ReapResult, error)) (store.ReapResult, error) {
			return store.ReapResult{Next: -1}, nil
		}
		return f
	}

	for how, end := range ends {
		subtest(t, "runs and is recorded after "+how, func(fx *fixture) {
			for _, s := range []store.Store{fx.store, polled(openStore(fx))} {
				fx := newFixture(fx.T, s)
				end, opts := ends[how], ends[how].opts
				ran := 0
				e := fx.start(s, weaver.Config{Lease: 6 * time.Second, Handlers: []weaver.Handler{saga(func(ctx context.Context) error {
					return weaver.Cleanup(ctx, "unbook", func(ctx context.Context) error {
						ran++
						time.Sleep(20 * time.Second) // for some leases
						return ctx.Err()
					})
				})}})
				h := enqueue(fx, typ, "", opts...)
				time.Sleep(time.Minute)
				if end.ask != nil {
					end.ask(fx, h.ID())
				}
				equal(fx, "state", failure(fx, h).State, end.state)
				equal(fx, "runs", ran, 1)
				equal(fx, "steps", recordedAs(fx, h.ID()), "[book step completed unbook cleanup completed]")
				fx.must(e.stop())
			}
		})

		subtest(t, "a step runs and is recorded, or does not run, after "+how, func(fx *fixture) {
			ran := 0
			var got error
			id := play(fx, fx.store, how, saga(func(ctx context.Context) error {
				if err := weaver.Do(ctx, "late", func(context.Context) error { fx.Error("a step began after the end"); return nil }); !errors.Is(err, end.cause) {
					fx.Errorf("a step after %s returned %v", how, err)
				}
				got = weaver.Do(context.WithoutCancel(ctx), "without cancel", func(context.Context) error { ran++; return nil })
				return got
			}))
			recorded := len(fx.history(id).Steps) - 1
			if ran != recorded || (got == nil) != (recorded == 1) {
				fx.Errorf("it ran %d times and was recorded %d times, and the step returned %v", ran, recorded, got)
			}
		})

		for name, given := range map[string]func(context.Context) context.Context{
			"":                             func(ctx context.Context) context.Context { return ctx },
			", with a context without end": context.WithoutCancel,
		} {
			subtest(t, "lasts for 30 s after "+how+", and does not begin after them"+name, func(fx *fixture) {
				var began, ended time.Time
				tries := 0
				id := play(fx, unreaped(fx).store, how, saga(func(ctx context.Context) error {
					ctx = given(ctx)
					if tries++; tries > 1 {
						return weaver.Cleanup(ctx, "slow", func(context.Context) error { time.Sleep(time.Minute); return nil })
					}
					err := weaver.Cleanup(ctx, "slow", func(ctx context.Context) error {
						began = time.Now()
						<-ctx.Done()
						ended = time.Now()
						wantError(fx, context.Cause(ctx), weaver.ErrCleanupTooLong)
						return ctx.Err()
					})
					if err == nil {
						fx.Error("a cleanup that was ended returned no error")
					}
					wantError(fx, weaver.Cleanup(ctx, "more", func(context.Context) error { fx.Error("it began too late"); return nil }), weaver.ErrCleanupTooLong)
					return err
				}))
				if took := ended.Sub(began).Round(time.Second); took != 30*time.Second {
					fx.Errorf("it was ended after %s", took)
				}
				equal(fx, "steps, of the cleanup that had another try", recordedAs(fx, id), "[book step completed slow cleanup completed]")
			})
		}
	}

	subtest(t, "goes on when the end is asked for while it runs, and is not run again", func(fx *fixture) {
		ran, attempts := 0, 0
		again := weaver.Define[string, string]("engine.cleanup.again.v1", weaver.Timeout(10*time.Second), weaver.MaxAttempts(3))
		fx.run(again.Handler(func(ctx context.Context, _ string) (string, error) {
			attempts++
			err := weaver.Cleanup(ctx, "undo", func(ctx context.Context) error {
				ran++
				time.Sleep(20 * time.Second)
				return ctx.Err()
			})
			return "done", errors.Join(err, ctx.Err())
		}))
		h := enqueue(fx, again, "")
		equal(fx, "output", result(fx, h), "done")
		equal(fx, "attempts", attempts, 2)
		equal(fx, "runs", ran, 1)
		equal(fx, "steps", recordedAs(fx, h.ID()), "[undo cleanup completed]")
	})

	subtest(t, "lasts for 30 s after a cancel that comes while it runs", func(fx *fixture) {
		var ended time.Time
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return "", weaver.Cleanup(ctx, "undo", func(ctx context.Context) error {
				if !ended.IsZero() {
					return nil
				}
				<-ctx.Done()
				ended = time.Now()
				return context.Cause(ctx)
			})
		}))
		h := enqueue(fx, typ, "")
		time.Sleep(time.Hour)
		asked := time.Now()
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		fails(fx, h)
		equal(fx, "ended after", ended.Sub(asked), 30*time.Second)
	})

	subtest(t, "is a step like any other without an end: its value stays, its failure is tried again", func(fx *fixture) {
		tries := 0
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return "done", weaver.Cleanup(ctx, "undo", func(context.Context) error {
				if tries++; tries < 3 {
					return errors.New("not yet")
				}
				return nil
			}, weaver.StepRetry(3, time.Second))
		}))
		h := enqueue(fx, typ, "")
		equal(fx, "output", result(fx, h), "done")
		equal(fx, "steps", recordedAs(fx, h.ID()), "[undo cleanup failed undo cleanup failed undo cleanup completed]")
	})

	subtest(t, "that fails is recorded so, and tried again, in the attempt and by others", func(fx *fixture) {
		tries := 0
		id := play(fx, fx.store, "a cancel", saga(func(ctx context.Context) error {
			err := weaver.Cleanup(ctx, "unbook", func(context.Context) error {
				if tries++; tries < 4 {
					return errors.New("no")
				}
				return nil
			}, weaver.StepRetry(2, time.Second))
			if _, is := errors.AsType[*task.StepError](err); !is && tries < 4 {
				fx.Errorf("a cleanup that failed returned %#v", err)
			}
			return err
		}))
		equal(fx, "tries", tries, 4)
		equal(fx, "steps", recordedAs(fx, id), "[book step completed unbook cleanup failed unbook cleanup failed unbook cleanup failed unbook cleanup completed]")
		equal(fx, "outcomes", fmt.Sprint(fx.outcomes(id)), "[cancelled undone]")
	})

	subtest(t, "is recorded although the store is away for a while", func(fx *fixture) {
		f := newFaults(fx)
		id := play(fx, f.store, "a cancel", saga(func(ctx context.Context) error {
			return weaver.Cleanup(ctx, "unbook", func(context.Context) error {
				f.fail("Record", store.ErrUnavailable)
				time.AfterFunc(3*time.Second, f.mend)
				return nil
			})
		}))
		equal(fx, "steps", recordedAs(fx, id), "[book step completed unbook cleanup completed]")
	})

	subtest(t, "ends with the lease", func(fx *fixture) {
		var cause, got error
		f := newFaults(fx)
		id := play(fx, f.store, "a cancel", saga(func(ctx context.Context) error {
			got = weaver.Cleanup(ctx, "unbook", func(ctx context.Context) error {
				fx.must(fx.client.Cancel(fx.Context(), weaver.Current(ctx).TaskID, weaver.Force()))
				<-ctx.Done()
				cause = context.Cause(ctx)
				return nil
			})
			return got
		}))
		wantError(fx, cause, weaver.ErrLeaseLost)
		wantError(fx, got, weaver.ErrLeaseLost)
		equal(fx, "results reported without the lease", f.count("Finish"), 0)
		equal(fx, "steps", recordedAs(fx, id), "[book step completed]")
	})

	subtest(t, "ends when the lease is no longer valid", func(fx *fixture) {
		f := newFaults(fx)
		var cause error
		fx.runConfig(f.store, weaver.Config{Lease: 6 * time.Second, Handlers: []weaver.Handler{saga(func(ctx context.Context) error {
			return weaver.Cleanup(ctx, "unbook", func(ctx context.Context) error {
				f.cut()
				time.AfterFunc(20*time.Second, f.mend)
				<-ctx.Done()
				cause = context.Cause(ctx)
				return nil
			})
		})}})
		h := enqueue(fx, typ, "")
		time.Sleep(time.Second)
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		fails(fx, h)
		wantError(fx, cause, weaver.ErrLeaseUncertain)
	})

	subtest(t, "does not run where the task goes on: after a drain or a wait", func(fx *fixture) {
		undo := func(ctx context.Context) error {
			return weaver.Cleanup(ctx, "undo", func(context.Context) error { fx.Error("a task that goes on was undone"); return nil })
		}
		var errs []error
		e := fx.start(fx.store, weaver.Config{DrainTimeout: time.Second, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			if in == "sleep" {
				err := weaver.Sleep(ctx, "nap", time.Hour)
				errs = append(errs, undo(ctx))
				return "", err
			}
			<-ctx.Done()
			errs = append(errs, undo(ctx))
			return "", ctx.Err()
		})}})
		enqueue(fx, typ, "sleep")
		synctest.Wait()
		enqueue(fx, typ, "drain")
		synctest.Wait()
		fx.must(e.stop())
		if len(errs) != 2 || !errors.Is(errs[0], weaver.ErrSuspended) || !errors.Is(errs[1], weaver.ErrDraining) {
			fx.Errorf("Cleanup returned %v", errs)
		}
	})
}

// Without notices the worker learns of a cancel from its heartbeat; until then only the store knows
// it.
func TestCleanupBeforeTheWorkerKnows(t *testing.T) {
	typ := weaver.Define[string, string]("engine.cleanup.early.v1")
	subtest(t, "is recorded", func(fx *fixture) {
		s := storehook.New(fx.store, &storehook.Hooks{Hide: store.CanNotify | store.CanStepTx | store.CanWait})
		fx.runConfig(s, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			fx.must(fx.client.Cancel(context.WithoutCancel(ctx), weaver.Current(ctx).TaskID))
			err := weaver.Cleanup(ctx, "undo", func(context.Context) error { return nil })
			return "", errors.Join(err, errors.New("undone"))
		})}})
		h := enqueue(fx, typ, "")
		equal(fx, "state", failure(fx, h).State, weaver.StateCancelled)
		equal(fx, "steps", recordedAs(fx, h.ID()), "[undo cleanup completed]")
	})
}
