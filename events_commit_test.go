package weaver_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// missing returns the part of an event that the store lacks, or "". Events of writes follow the
// commit; other events of a task do not.
func missing(h store.History, ev event.Event) string {
	step := func(name string, state task.StepState, try int) bool {
		return slices.ContainsFunc(h.Steps, func(s task.Step) bool {
			return s.Name == name && s.State == state && (try == 0 || s.Try == try)
		})
	}
	state := func(want task.State) string {
		if h.Task.State == want {
			return ""
		}
		return fmt.Sprintf("the task is %s, not %s", h.Task.State, want)
	}
	switch ev := ev.(type) {
	case event.TaskStarted, event.LogWritten:
		return state(task.Running)
	case event.StepStarted:
		if step(ev.Step, task.StepCompleted, 0) {
			return "the step is completed already"
		}
	case event.StepCompleted:
		if !step(ev.Step, task.StepCompleted, 0) {
			return "the step is not completed"
		}
	case event.StepFailed:
		if !step(ev.Step, task.StepFailed, ev.Try) {
			return "the failed try is not recorded"
		}
	case event.Progress:
		if h.Task.Progress == nil || h.Task.Progress.Current < ev.Current {
			return fmt.Sprintf("the progress is %+v", h.Task.Progress)
		}
	case event.TaskSucceeded:
		return state(task.Succeeded)
	case event.TaskFailed:
		return state(task.Failed)
	case event.TaskBlocked:
		return state(task.Blocked)
	case event.TaskCancelled:
		return state(task.Cancelled)
	case event.TaskRetrying, event.TaskSuspended:
		return state(task.Pending)
	default:
		return "of an unknown type"
	}
	return ""
}

// When a listener gets an event, the store already has its data.
func TestEventsFollowTheirCommits(t *testing.T) {
	typ := weaver.Define[string, string]("engine.commits.run.v1", weaver.MaxAttempts(2), weaver.Timeout(time.Hour))
	broken := errors.New("broken")
	handler := typ.Handler(func(ctx context.Context, in string) (string, error) {
		first := weaver.Current(ctx).AttemptNo == 1
		if err := weaver.Progress(ctx, 1, 9); err != nil {
			return "", err
		}
		if err := weaver.Progress(ctx, 2, 9); err != nil { // within 200 ms: written later
			return "", err
		}
		err := weaver.Do(ctx, "plain", func(ctx context.Context) error {
			weaver.Log(ctx).Info("at it")
			if first {
				return broken
			}
			return nil
		}, weaver.StepRetry(2))
		if err == nil {
			_, err = weaver.StepTx(ctx, "tx", func(context.Context, *sql.Tx) (string, error) { return in, nil })
		}
		_ = weaver.Progress(ctx, 3, 9) // written with the end
		switch {
		case err != nil || in == "fail":
			return "", errors.Join(err, broken)
		case in == "block":
			return "", weaver.Blocked("help")
		case in == "cancel":
			<-ctx.Done()
			return "", ctx.Err()
		}
		return in, weaver.Sleep(ctx, "nap", time.Hour)
	})

	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t, openMemory(t))
		var mu sync.Mutex
		seen := map[string]int{}
		sink := event.SinkFunc(func(ev event.Event) {
			h, err := fx.client.History(context.Background(), ev.Head().TaskID)
			if why := missing(h, ev); err != nil || why != "" {
				t.Errorf("%s %+v came before its commit: %s, %v", ev.Type(), ev, why, err)
			}
			mu.Lock()
			seen[ev.Type()]++
			mu.Unlock()
		})
		e := fx.runConfig(fx.store, weaver.Config{Sink: sink, Handlers: []weaver.Handler{handler}})
		result(fx, enqueue(fx, typ, "succeed"))
		fails(fx, enqueue(fx, typ, "fail"))
		blocks(fx, enqueue(fx, typ, "block"))
		h := enqueue(fx, typ, "cancel")
		time.Sleep(time.Minute)
		fx.must(e.Cancel(fx.Context(), h.ID()))
		fails(fx, h)
		synctest.Wait()
		for _, typ := range []string{
			"task.started", "task.succeeded", "task.failed", "task.retrying", "task.suspended", "task.blocked", "task.cancelled",
			"step.started", "step.completed", "step.failed", "progress", "log.written",
		} {
			if seen[typ] == 0 {
				t.Errorf("no event %s: the test does not cover it", typ)
			}
		}
	})
}

// A write refused by the store produces no event.
func TestNoEventOfARefusedWrite(t *testing.T) {
	typ := weaver.Define[string, string]("engine.refusals.run.v1", weaver.NoRetry())
	for name, step := range map[string]func(ctx context.Context) error{
		"a step": func(ctx context.Context) error {
			return weaver.Do(ctx, "s", func(context.Context) error { return nil })
		},
		"a failed try": func(ctx context.Context) error {
			return weaver.Do(ctx, "s", func(context.Context) error { return errors.New("broken") })
		},
		"a transaction": func(ctx context.Context) error {
			_, err := weaver.StepTx(ctx, "s", func(context.Context, *sql.Tx) (string, error) { return "", nil })
			return err
		},
		"a report":      func(ctx context.Context) error { return weaver.Progress(ctx, 1, 2) },
		"an attempt":    func(context.Context) error { return nil },
		"a failed end":  func(context.Context) error { return errors.New("broken") },
		"a blocked end": func(context.Context) error { return weaver.Blocked("help") },
	} {
		for _, end := range []error{store.ErrLeaseLost, store.ErrConflict} {
			subtest(t, name+", "+end.Error(), func(fx *fixture) {
				s := newFaults(fx)
				s.hooks.Record = func(context.Context, []store.Record, func() ([]store.RecordResult, error)) ([]store.RecordResult, error) {
					return []store.RecordResult{{Err: store.ErrLeaseLost}}, nil
				}
				s.hooks.StepTx = func(context.Context, *storehook.StepTx, func() (store.RecordResult, error)) (store.RecordResult, error) {
					return store.RecordResult{Err: store.ErrLeaseLost}, nil
				}
				s.hooks.Finish = func(context.Context, []store.Finish, func() ([]store.FinishResult, error)) ([]store.FinishResult, error) {
					return []store.FinishResult{{Err: end}}, nil
				}
				r := &recorder{}
				e := fx.start(s.store, weaver.Config{Sink: r, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
					return in, step(ctx)
				})}})
				enqueue(fx, typ, "")
				synctest.Wait()
				fx.must(e.stop())
				for _, typ := range r.types() {
					if typ != "task.started" && typ != "step.started" && typ != "task.lease_lost" {
						fx.Errorf("the event %s came although nothing was written", typ)
					}
				}
			})
		}
	}
}
