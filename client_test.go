package weaver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
)

func TestTaskStates(t *testing.T) {
	typ := weaver.Define[string, string]("engine.states.run.v1", weaver.NoRetry())

	subtest(t, "pending, running, succeeded or failed, and a finished task never runs by itself", func(fx *fixture) {
		g := newGate()
		ran := 0
		fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			ran++
			if err := g.pass(ctx); err != nil {
				return "", err
			}
			if in == "bad" {
				return "", fmt.Errorf("no")
			}
			return in, nil
		}))
		good, bad := enqueue(fx, typ, "good", weaver.Delay(time.Minute)), enqueue(fx, typ, "bad", weaver.Delay(time.Hour))
		fx.wantState(good.ID(), weaver.StatePending)
		<-g.in
		fx.wantState(good.ID(), weaver.StateRunning)
		g.open()
		result(fx, good)
		fx.wantState(good.ID(), weaver.StateSucceeded)
		<-g.in
		g.open()
		fails(fx, bad)
		fx.wantState(bad.ID(), weaver.StateFailed)

		time.Sleep(24 * time.Hour)
		equal(fx, "runs after a day", ran, 2)
	})

	subtest(t, "Retry works from failed only, and skips finished steps", func(fx *fixture) {
		fetched, broken := 0, true
		handler := typ.Handler(func(ctx context.Context, in string) (string, error) {
			value, err := weaver.Step(ctx, "fetch", func(context.Context) (string, error) { fetched++; return in + "!", nil })
			if err != nil {
				return "", err
			}
			return value, weaver.Do(ctx, "save", func(context.Context) error {
				if broken {
					return fmt.Errorf("disk full")
				}
				return nil
			})
		})
		h := enqueue(fx, typ, "x")
		wantError(fx, fx.client.Retry(fx.Context(), h.ID()), weaver.ErrState, h.ID().String(), "ready")
		fx.idle(handler)
		fails(fx, h)
		broken = false
		fx.must(fx.client.Retry(fx.Context(), h.ID(), weaver.By("ops"), weaver.Reason("disk replaced")))
		fx.wantState(h.ID(), weaver.StateReady)
		fx.idle(handler)
		equal(fx, "output", result(fx, h), "x!")
		equal(fx, "runs of the finished step", fetched, 1)
		wantError(fx, fx.client.Retry(fx.Context(), h.ID()), weaver.ErrState, "succeeded")

		hist := fx.history(h.ID())
		equal(fx, "attempts in the history", len(hist.Attempts), 2)
		if len(hist.Audit) != 1 || hist.Audit[0].Verb != "retry" || hist.Audit[0].Actor != "ops" || hist.Audit[0].Reason != "disk replaced" {
			fx.Errorf("audit: %+v", hist.Audit)
		}
	})
}

func TestOperatorCommandsRefusedByState(t *testing.T) {
	typ := weaver.Define[string, string]("invalid.verbs.run.v1")
	verbs := map[string]func(context.Context, *weaver.Client, weaver.TaskID) error{
		"retry":   func(ctx context.Context, c *weaver.Client, id weaver.TaskID) error { return c.Retry(ctx, id) },
		"cancel":  func(ctx context.Context, c *weaver.Client, id weaver.TaskID) error { return c.Cancel(ctx, id) },
		"unblock": func(ctx context.Context, c *weaver.Client, id weaver.TaskID) error { return c.Unblock(ctx, id, nil) },
		"delete":  func(ctx context.Context, c *weaver.Client, id weaver.TaskID) error { return c.Delete(ctx, id) },
	}
	forbidden := map[weaver.State][]string{
		weaver.StateRunning:   {"retry", "unblock", "delete"},
		weaver.StateSucceeded: {"retry", "cancel", "unblock"},
		weaver.StatePending:   {"retry", "unblock", "delete"},
		weaver.StateBlocked:   {"retry", "delete"},
	}
	subtest(t, "name the state of the task", func(fx *fixture) {
		g := newGate()
		fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			switch in {
			case "running":
				return in, g.pass(ctx)
			case "blocked":
				return in, weaver.Blocked("a person, please")
			}
			return in, nil
		}))
		tasks := map[weaver.State]weaver.TaskID{
			weaver.StateRunning: enqueue(fx, typ, "running").ID(),
			weaver.StatePending: enqueue(fx, typ, "pending", weaver.Delay(time.Hour)).ID(),
		}
		<-g.in
		done, stuck := enqueue(fx, typ, "done"), enqueue(fx, typ, "blocked")
		result(fx, done)
		blocks(fx, stuck)
		tasks[weaver.StateSucceeded], tasks[weaver.StateBlocked] = done.ID(), stuck.ID()
		for state, names := range forbidden {
			for _, name := range names {
				err := verbs[name](fx.Context(), fx.client, tasks[state])
				wantError(fx, err, weaver.ErrState, name+": task "+tasks[state].String(), string(state))
				fx.wantState(tasks[state], state)
			}
		}
		g.open()
	})
	subtest(t, "a task that does not exist is ErrNotFound", func(fx *fixture) {
		absent := weaver.TaskID{9}
		for name, verb := range verbs {
			wantError(fx, verb(fx.Context(), fx.client, absent), weaver.ErrNotFound, name+": task "+absent.String())
		}
		_, err := fx.client.CancelJob(fx.Context(), absent)
		wantError(fx, err, weaver.ErrNotFound, "cancel: job "+absent.String())
		_, err = fx.client.JobStatus(fx.Context(), absent)
		wantError(fx, err, weaver.ErrNotFound, "job "+absent.String(), `namespace "default"`)
		_, err = fx.client.History(fx.Context(), absent)
		wantError(fx, err, weaver.ErrNotFound, absent.String())
		_, err = fx.client.Wait(fx.Context(), absent)
		wantError(fx, err, weaver.ErrNotFound, absent.String())
	})
}

func TestOperatorTextsAreChecked(t *testing.T) {
	typ := weaver.Define[string, string]("invalid.operators.text.v1")
	inBubble(t, func(fx *fixture) {
		h := enqueue(fx, typ, "")
		for _, text := range []string{"a\x00b", "a\xffb"} {
			for name, opt := range map[string]weaver.OperateOption{"By": weaver.By(text), "Reason": weaver.Reason(text)} {
				wantError(fx, fx.client.Cancel(fx.Context(), h.ID(), opt), weaver.ErrInvalidOption, "cancel task "+h.ID().String(), name)
			}
			wantError(fx, fx.client.PauseQueue(fx.Context(), text), weaver.ErrInvalidOption, "pause queue")
			wantError(fx, fx.client.ResumeQueue(fx.Context(), text), weaver.ErrInvalidOption, "resume queue")
		}
		wantError(fx, fx.client.PauseQueue(fx.Context(), ""), weaver.ErrInvalidOption, "the name is empty")
		wantError(fx, fx.client.ResumeQueue(fx.Context(), ""), weaver.ErrInvalidOption, "the name is empty")
		fx.wantState(h.ID(), weaver.StateReady)
		equal(fx, "audit", len(fx.history(h.ID()).Audit), 0)
		queues, err := fx.client.Queues(fx.Context())
		fx.must(err)
		equal(fx, "the queue is paused", slices.ContainsFunc(queues, func(q store.Queue) bool { return q.Paused }), false)
	})
}

func TestOnlyCancelTakesForce(t *testing.T) {
	typ := weaver.Define[string, string]("invalid.operators.force.v1")
	inBubble(t, func(fx *fixture) {
		id := enqueue(fx, typ, "").ID()
		for verb, do := range map[string]func(...weaver.OperateOption) error{
			"retry task":   func(o ...weaver.OperateOption) error { return fx.client.Retry(fx.Context(), id, o...) },
			"unblock task": func(o ...weaver.OperateOption) error { return fx.client.Unblock(fx.Context(), id, nil, o...) },
			"delete task":  func(o ...weaver.OperateOption) error { return fx.client.Delete(fx.Context(), id, o...) },
			"pause queue":  func(o ...weaver.OperateOption) error { return fx.client.PauseQueue(fx.Context(), "q", o...) },
			"resume queue": func(o ...weaver.OperateOption) error { return fx.client.ResumeQueue(fx.Context(), "q", o...) },
			"cancel job": func(o ...weaver.OperateOption) error {
				_, err := fx.client.CancelJob(fx.Context(), id, o...)
				return err
			},
		} {
			wantError(fx, do(weaver.Force()), weaver.ErrInvalidOption, verb, "Force is an option of Cancel and CancelMany only")
		}
		fx.wantState(id, weaver.StateReady)
		fx.must(fx.client.Cancel(fx.Context(), id, weaver.Force()))
	})
}

// An error names the operation once: the client's words replace those of the
// store.
func TestErrorsNameTheOperationOnce(t *testing.T) {
	typ := weaver.Define[string, string]("engine.errors.once.v1")
	inBubble(t, func(fx *fixture) {
		ctx, cancel := context.WithCancel(fx.Context())
		cancel()
		job := weaver.NewJob("nightly")
		job.Add("only", typ.With(""))
		id := weaver.TaskID{7}
		for begin, do := range map[string]func() error{
			"enqueue: ":                                      func() error { _, err := typ.Enqueue(ctx, fx.client, ""); return err },
			`submit job "nightly": `:                         func() error { _, err := fx.client.Submit(ctx, job); return err },
			fmt.Sprintf("get task %s: ", id):                 func() error { _, err := fx.client.Get(ctx, id); return err },
			fmt.Sprintf("get job %s: ", id):                  func() error { _, err := fx.client.Job(ctx, id); return err },
			"list tasks: ":                                   func() error { _, _, err := fx.client.List(ctx, weaver.Filter{}); return err },
			"list jobs: ":                                    func() error { _, _, err := fx.client.Jobs(ctx, store.JobFilter{}); return err },
			fmt.Sprintf("cancel task %s: ", id):              func() error { return fx.client.Cancel(ctx, id) },
			fmt.Sprintf("read the history of task %s: ", id): func() error { _, err := fx.client.History(ctx, id); return err },
		} {
			err := do()
			wantError(fx, err, context.Canceled)
			rest, ok := strings.CutPrefix(err.Error(), begin)
			if !ok {
				fx.Errorf("%q does not begin with %q", err, begin)
			}
			for _, verb := range []string{"enqueue: ", "operate: ", "list ", "read "} {
				if strings.HasPrefix(rest, verb) {
					fx.Errorf("%q says what was done twice", err)
				}
			}
		}
	})
}
