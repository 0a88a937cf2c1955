package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// waits are the ways in which a saga waits after its first step.
var waits = map[string]func(ctx context.Context) error{
	"asleep": func(ctx context.Context) error { return weaver.Sleep(ctx, "trial", 24*time.Hour) },
	"blocked by a question": func(ctx context.Context) error {
		_, err := weaver.Ask[bool](ctx, "ok", "go on?")
		return err
	},
	"waiting for a signal": func(ctx context.Context) error {
		_, _, err := approved.Wait(ctx, "ok", 0)
		return err
	},
	"waiting for a child": func(ctx context.Context) error {
		_, err := weaver.Call(ctx, "ok", piece, 1, weaver.Delay(48*time.Hour))
		return err
	},
	"waiting for a signal or a time": func(ctx context.Context) error {
		_, err := weaver.Race(ctx, "ok", weaver.OnSignal[bool](approved, nil), weaver.OnSleep(24*time.Hour))
		return err
	},
	"in a retry": func(ctx context.Context) error {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		return weaver.RetryAfter(24*time.Hour, errors.New("not yet"))
	},
	"blocked": func(ctx context.Context) error {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		return weaver.Blocked("go on?")
	},
}

// journey is a saga that waits after paying, with a record of its calls.
type journey struct {
	typ      *weaver.Type[string, string]
	waits    func(ctx context.Context) error
	undo     func(ctx context.Context) error // nil: at once
	last     func(err error) (string, error) // nil: the error that ended it
	attempts atomic.Int32
	charged  int
	undone   int
	causes   []error // causes of its ended contexts, and the errors of its waits
}

func (j *journey) handler() weaver.Handler {
	return j.typ.Handler(func(ctx context.Context, _ string) (string, error) {
		j.attempts.Add(1)
		if err := weaver.Do(ctx, "charge", func(context.Context) error { j.charged++; return nil }); err != nil {
			return "", err
		}
		err := j.waits(ctx)
		if ctx.Err() == nil || weaver.Suspended(err) {
			return "", err
		}
		j.causes = append(j.causes, context.Cause(ctx), err)
		err = errors.Join(err, weaver.Do(ctx, "deliver", func(context.Context) error { panic("a step began after the end") }))
		err = errors.Join(err, weaver.Cleanup(ctx, "refund", func(ctx context.Context) error {
			j.undone++
			if j.undo != nil {
				return j.undo(ctx)
			}
			return nil
		}))
		if j.last != nil {
			return j.last(err)
		}
		return "", err
	})
}

func TestCleanupWhenCancelled(t *testing.T) {
	saga := weaver.Define[string, string]("engine.cleanup.waits.v1", weaver.CleanupWhenCancelled(), weaver.NoRetry())
	retried := weaver.Define[string, string]("engine.cleanup.retries.v1", weaver.CleanupWhenCancelled())
	of := func(how string) *journey {
		if how == "in a retry" {
			return &journey{typ: retried, waits: waits[how]}
		}
		return &journey{typ: saga, waits: waits[how]}
	}
	begin := func(fx *fixture, j *journey, opts ...weaver.EnqueueOption) *weaver.Handle[string] {
		fx.Helper()
		h := enqueue(fx, j.typ, "", opts...)
		time.Sleep(time.Minute) // a worker may poll
		synctest.Wait()
		equal(fx, "attempts before the cancel", j.attempts.Load(), 1)
		return h
	}
	// cleanedUp checks that a journey was undone, for a cause.
	cleanedUp := func(fx *fixture, j *journey, h *weaver.Handle[string], cause error) {
		fx.Helper()
		equal(fx, "state", failure(fx, h).State, weaver.StateCancelled)
		all := strings.NewReplacer("trial sleep completed ", "", "ok signal waiting ", "", "ok call waiting ", "", "ok[0] signal waiting ok[1] sleep completed ", "").Replace(recordedAs(fx, h.ID()))
		equal(fx, "steps", all, "[charge step completed refund cleanup completed]")
		equal(fx, "charges and refunds", fmt.Sprint(j.charged, j.undone), "1 1")
		if len(j.causes) != 2 || !errors.Is(j.causes[0], cause) || !errors.Is(j.causes[1], cause) || weaver.Suspended(j.causes[1]) {
			fx.Errorf("the context ended and the wait returned %v, want %v", j.causes, cause)
		}
	}

	for how := range waits {
		subtest(t, "a saga that is "+how+" refunds once when it is cancelled", func(fx *fixture) {
			for _, s := range []store.Store{fx.store, polled(openStore(fx))} {
				fx, j := newFixture(fx.T, s), of(how)
				e := fx.start(s, weaver.Config{Handlers: []weaver.Handler{j.handler()}})
				h := begin(fx, j)
				fx.must(fx.client.Cancel(fx.Context(), h.ID(), weaver.By("ann"), weaver.Reason("changed her mind")))
				te := failure(fx, h)
				equal(fx, "message", te.Message, "cancelled by ann: changed her mind")
				cleanedUp(fx, j, h, weaver.ErrCancelled)
				equal(fx, "attempts", j.attempts.Load(), 2)
				equal(fx, "the last outcome", fx.outcomes(h.ID())[1], task.OutcomeUndone)
				fx.must(e.stop())
			}
		})
		if how == "in a retry" {
			continue // a retry never starts after the deadline
		}
		subtest(t, "a saga that is "+how+" refunds once at its deadline", func(fx *fixture) {
			j := of(how)
			fx.run(j.handler())
			h := begin(fx, j, weaver.ExpireAfter(time.Hour))
			time.Sleep(2 * time.Hour)
			equal(fx, "kind", failure(fx, h).Kind, task.KindDeadline)
			cleanedUp(fx, j, h, weaver.ErrDeadline)
			near(fx, "its end", fx.get(h.ID()).FinishedAt.Sub(fx.get(h.ID()).CreatedAt), time.Hour)
		})
	}

	subtest(t, "an undo that is retried is tried for another 24 h", func(fx *fixture) {
		j := of("blocked by a question")
		j.undo = func(context.Context) error {
			switch j.undone {
			case 1:
				return weaver.Permanent(errors.New("no such account"))
			case 2:
				return errors.New("psp 503")
			}
			return nil
		}
		fx.run(j.handler())
		h := begin(fx, j)
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		te := failure(fx, h)
		equal(fx, "state and kind", fmt.Sprint(te.State, " ", te.Kind), "failed undo_failed")
		if !strings.Contains(te.Message, `cleanup "refund" failed after 1 try`) || !strings.Contains(te.Message, "no such account") {
			fx.Errorf("the error is %q", te.Message)
		}
		time.Sleep(48 * time.Hour)
		wantError(fx, fx.client.Retry(fx.Context(), h.ID()), weaver.ErrState, "its undo was given up")
		fx.must(fx.client.Retry(fx.Context(), h.ID(), weaver.Cleanups()))
		equal(fx, "state", failure(fx, h).State, weaver.StateCancelled)
		equal(fx, "the tries", j.undone, 3)
	})

	subtest(t, "one that never ran ends at once, one that is forced after its lease", func(fx *fixture) {
		j := of("asleep")
		h := enqueue(fx, saga, "")
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		fx.wantState(h.ID(), weaver.StateCancelled)
		fx.run(j.handler())
		h = begin(fx, j)
		fx.must(fx.client.Cancel(fx.Context(), h.ID(), weaver.Force()))
		equal(fx, "state", failure(fx, h).State, weaver.StateCancelled)
		equal(fx, "the tries", j.undone, 1)
	})

	for how, last := range map[string]struct {
		end   func(error) (string, error)
		state weaver.State
	}{
		"succeeds all the same": {func(error) (string, error) { return "kept", nil }, weaver.StateCancelled},
		"wants to be retried":   {func(err error) (string, error) { return "", weaver.RetryAfter(time.Hour, err) }, weaver.StateCancelled},
		"wants to be blocked":   {func(error) (string, error) { return "", weaver.Blocked("and now?") }, weaver.StateCancelled},
		"panics":                {func(err error) (string, error) { panic(err) }, weaver.StateCancelled},
	} {
		subtest(t, "a cleanup that "+how+" is the last attempt", func(fx *fixture) {
			j := of("asleep")
			j.last = last.end
			fx.run(j.handler())
			h := begin(fx, j)
			fx.must(fx.client.Cancel(fx.Context(), h.ID()))
			synctest.Wait()
			fx.wantState(h.ID(), last.state)
			time.Sleep(48 * time.Hour)
			equal(fx, "attempts", j.attempts.Load(), 2)
			equal(fx, "attempts that count", fx.get(h.ID()).AttemptCount, 0)
			equal(fx, "steps", recordedAs(fx, h.ID()), "[charge step completed trial sleep completed refund cleanup completed]")
		})
	}

	for name, wrong := range map[string]struct {
		do    func(ctx context.Context) error
		state weaver.State
	}{
		"waits once more": {func(ctx context.Context) error { return weaver.Sleep(ctx, "another", time.Hour) }, weaver.StateCancelled},
		"repeats a name":  {func(ctx context.Context) error { return weaver.Sleep(ctx, "trial", time.Hour) }, weaver.StateBlocked},
	} {
		subtest(t, "a cleanup that "+name+" is the last attempt", func(fx *fixture) {
			j := of("asleep")
			fx.run(typHandler(j, wrong.do))
			h := begin(fx, j)
			fx.must(fx.client.Cancel(fx.Context(), h.ID()))
			time.Sleep(time.Hour)
			fx.wantState(h.ID(), wrong.state)
			equal(fx, "attempts", j.attempts.Load(), 2)
		})
	}

	subtest(t, "a sleep that would be over when the cleanup begins returns the cause", func(fx *fixture) {
		j := of("asleep")
		e := fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{j.handler()}})
		h := begin(fx, j)
		fx.must(e.stop())
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		time.Sleep(48 * time.Hour)
		fx.run(j.handler())
		cleanedUp(fx, j, h, weaver.ErrCancelled)
	})

	subtest(t, "a sleep behind which the handler went on is over in a cleanup, too", func(fx *fixture) {
		var ended []error
		fx.run(saga.Handler(func(ctx context.Context, _ string) (string, error) {
			if err := weaver.Sleep(ctx, "notice", time.Hour); err != nil {
				return "", err
			}
			if err := weaver.Do(ctx, "remind", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			err := weaver.Sleep(ctx, "grace", time.Hour)
			if ctx.Err() != nil && !weaver.Suspended(err) {
				ended = append(ended, err)
			}
			return "", err
		}))
		h := enqueue(fx, saga, "")
		time.Sleep(90 * time.Minute)
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		equal(fx, "state", failure(fx, h).State, weaver.StateCancelled)
		if len(ended) != 1 || !errors.Is(ended[0], weaver.ErrCancelled) {
			fx.Errorf("the second sleep returned %v, want once %v", ended, weaver.ErrCancelled)
		}
	})

	subtest(t, "a cleanup lasts as long as its attempt and 30 s, and is tried again", func(fx *fixture) {
		j := of("blocked by a question")
		var took time.Duration
		j.undo = func(ctx context.Context) error {
			if j.undone > 1 {
				return nil
			}
			began := time.Now()
			<-ctx.Done()
			took = time.Since(began)
			wantError(fx, context.Cause(ctx), weaver.ErrCleanupTooLong)
			return ctx.Err()
		}
		e := fx.run(j.handler())
		h := begin(fx, j, weaver.Timeout(time.Minute))
		fx.must(e.stop())
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		time.Sleep(time.Hour) // long past its due time
		fx.run(j.handler())
		equal(fx, "state", failure(fx, h).State, weaver.StateCancelled)
		equal(fx, "the time of the cleanup", took.Round(time.Second), time.Minute+30*time.Second)
		equal(fx, "the tries", j.undone, 2)
	})

	subtest(t, "a cleanup that the engine's stop cuts short goes on with the next one", func(fx *fixture) {
		j := of("asleep")
		j.undo = func(ctx context.Context) error {
			if j.undone > 1 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		e := fx.start(fx.store, weaver.Config{DrainTimeout: time.Second, Handlers: []weaver.Handler{j.handler()}})
		h := begin(fx, j)
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		synctest.Wait()
		fx.wantState(h.ID(), weaver.StateRunning)
		fx.must(e.stop())
		fx.wantState(h.ID(), weaver.StatePending)
		fx.run(j.handler())
		equal(fx, "state", failure(fx, h).State, weaver.StateCancelled)
		equal(fx, "steps", recordedAs(fx, h.ID()), "[charge step completed trial sleep completed refund cleanup completed]")
		fx.wantOutcomes(h.ID(), task.OutcomeSuspended, task.OutcomeReleased, task.OutcomeUndone)
	})

	subtest(t, "a cancel that comes as the task falls asleep is followed by a cleanup", func(fx *fixture) {
		j, once := of("asleep"), true
		s := storehook.New(fx.store, &storehook.Hooks{Finish: func(_ context.Context, fins []store.Finish, next func() ([]store.FinishResult, error)) ([]store.FinishResult, error) {
			if once {
				once = false
				fx.must(fx.client.Cancel(fx.Context(), fins[0].Lease.Task))
			}
			return next()
		}})
		fx.runConfig(s, weaver.Config{Handlers: []weaver.Handler{j.handler()}})
		h := enqueue(fx, saga, "")
		cleanedUp(fx, j, h, weaver.ErrCancelled)
		fx.wantOutcomes(h.ID(), task.OutcomeCancelled, task.OutcomeUndone)
	})

	subtest(t, "a cancel between the claim and an answer that was lost is followed by a cleanup", func(fx *fixture) {
		j, claims := of("asleep"), 0
		s := storehook.New(fx.store, &storehook.Hooks{Claim: func(_ context.Context, _ store.ClaimRequest, next func() (store.ClaimResult, error)) (store.ClaimResult, error) {
			res, err := next()
			if len(res.Tasks) > 0 {
				if claims++; claims == 2 { // it has slept
					fx.must(fx.client.Cancel(fx.Context(), res.Tasks[0].Task.ID))
					return store.ClaimResult{}, store.ErrUnavailable
				}
			}
			return res, err
		}})
		fx.runConfig(s, weaver.Config{Handlers: []weaver.Handler{j.handler()}})
		h := begin(fx, j)
		equal(fx, "state", failure(fx, h).State, weaver.StateCancelled)
		equal(fx, "charges and refunds", fmt.Sprint(j.charged, j.undone), "1 1")
	})
}

// typHandler charges, sleeps, and fails.
func typHandler(j *journey, wrong func(ctx context.Context) error) weaver.Handler {
	return j.typ.Handler(func(ctx context.Context, _ string) (string, error) {
		j.attempts.Add(1)
		err := weaver.Sleep(ctx, "trial", 24*time.Hour)
		if ctx.Err() != nil {
			err = wrong(ctx)
		}
		return "", err
	})
}
