package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestMany(t *testing.T) {
	typ := weaver.Define[string, string]("engine.many.run.v1", weaver.NoRetry())
	other := weaver.Define[string, string]("engine.many.other.v1", weaver.NoRetry())
	var broken bool
	idle := func(fx *fixture) {
		fx.Helper()
		run := func(_ context.Context, in string) (string, error) {
			if broken {
				return "", errors.New("no luck")
			}
			return in, nil
		}
		e, err := weaver.New(fx.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(run), other.Handler(run)}})
		fx.must(err)
		fx.must(e.RunUntilIdle(fx.Context()))
	}
	counts := func(a ops.ManyAck) string {
		return fmt.Sprintf("%d done, %d asked, %d before, %d refused, %d listed", a.Done, a.Asked, a.AlreadyDone, len(a.Refused), len(a.Tasks))
	}
	many := func(fx *fixture, typ *weaver.Type[string, string], n int, opts ...weaver.EnqueueOption) (ids []task.ID) {
		hs, err := typ.EnqueueMany(fx.Context(), fx.client, make([]string, n), opts...)
		fx.must(err)
		for _, h := range hs {
			ids = append(ids, h.ID())
		}
		return ids
	}

	subtest(t, "retry, cancel and delete what a filter selects, in pages", func(fx *fixture) {
		broken = true
		ids := many(fx, typ, 5, weaver.Label("team", "pay"))
		rest := many(fx, other, 2)
		idle(fx)
		f := weaver.Filter{Types: []string{typ.Name()}, Limit: 2, Labels: map[string]string{"team": "pay"}}

		ack, err := fx.client.RetryMany(fx.Context(), f, weaver.DryRun())
		fx.must(err)
		equal(fx, "the dry run", counts(ack), "5 done, 0 asked, 0 before, 0 refused, 5 listed")
		slices.Reverse(ack.Tasks)
		for i, m := range ack.Tasks {
			equal(fx, "what it lists", m, ops.ManyTask{ID: ids[i], Type: typ.Name(), Queue: "default", State: task.Failed})
			equal(fx, "what it changed", fx.get(m.ID).State, task.Failed)
		}
		ack, err = fx.client.RetryMany(fx.Context(), f, weaver.By("ops"))
		fx.must(err)
		equal(fx, "the retry", counts(ack), "5 done, 0 asked, 0 before, 0 refused, 0 listed")
		equal(fx, "one of them", fx.get(ids[0]).State, task.Ready)
		equal(fx, "one that was not selected", fx.get(rest[0]).State, task.Failed)
		equal(fx, "the operator on record", fx.history(ids[4]).Audit[0].Actor, "ops")

		ack, err = fx.client.CancelMany(fx.Context(), f)
		fx.must(err)
		equal(fx, "the cancel", counts(ack), "5 done, 0 asked, 0 before, 0 refused, 0 listed")
		equal(fx, "one of them", fx.get(ids[0]).State, task.Cancelled)

		ack, err = fx.client.DeleteMany(fx.Context(), weaver.Filter{})
		fx.must(err)
		equal(fx, "the delete of all", counts(ack), "7 done, 0 asked, 0 before, 0 refused, 0 listed")
		left, _, err := fx.client.List(fx.Context(), weaver.Filter{})
		fx.must(err)
		equal(fx, "the tasks left", len(left), 0)
	})

	subtest(t, "tasks of a job: what they need comes after them, and they stay with it", func(fx *fixture) {
		broken = true
		j := weaver.NewJob("nightly")
		a := j.Add("a", typ.With("a"))
		b := j.Add("b", typ.With("b"), weaver.Needs(a))
		j.Add("c", typ.With("c"), weaver.Needs(b))
		h, err := fx.client.Submit(fx.Context(), j)
		fx.must(err)
		idle(fx)
		broken = false
		ack, err := fx.client.RetryMany(fx.Context(), weaver.Filter{Job: h.ID()})
		fx.must(err)
		equal(fx, "the retry", counts(ack), "1 done, 0 asked, 2 before, 0 refused, 0 listed")
		idle(fx)
		st, err := fx.client.JobStatus(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "the job", st.State, task.JobSucceeded)
		for _, opts := range [][]weaver.OperateOption{{weaver.DryRun()}, nil} {
			ack, err = fx.client.DeleteMany(fx.Context(), weaver.Filter{Job: h.ID()}, opts...)
			fx.must(err)
			equal(fx, "the delete", counts(ack), "0 done, 0 asked, 0 before, 3 refused, 0 listed")
			wantError(fx, ack.Refused[0].Err, weaver.ErrState, "belongs to job")
		}
	})

	subtest(t, "older than", func(fx *fixture) {
		broken = false
		old := many(fx, typ, 2)
		idle(fx)
		time.Sleep(time.Hour)
		late := many(fx, typ, 1, weaver.Delay(time.Hour))
		ack, err := fx.client.DeleteMany(fx.Context(), weaver.Filter{}, weaver.OlderThan(2*time.Hour))
		fx.must(err)
		equal(fx, "too young", counts(ack), "0 done, 0 asked, 0 before, 0 refused, 0 listed")
		ack, err = fx.client.DeleteMany(fx.Context(), weaver.Filter{}, weaver.OlderThan(59*time.Minute))
		fx.must(err)
		equal(fx, "old enough", ack.Done, len(old))
		ack, err = fx.client.CancelMany(fx.Context(), weaver.Filter{}, weaver.OlderThan(time.Minute))
		fx.must(err)
		equal(fx, "enqueued just now", ack.Done, 0)
		equal(fx, "it waits", fx.get(late[0]).State, task.Pending)
	})

	subtest(t, "a store that fails in between: the answer says how far it came", func(fx *fixture) {
		ids := many(fx, typ, 6)
		calls := 0
		s := storehook.New(fx.store, &storehook.Hooks{
			Operate: func(_ context.Context, _ []store.Command, next func() ([]store.CommandResult, error)) ([]store.CommandResult, error) {
				if calls++; calls == 3 {
					return nil, store.ErrUnavailable
				}
				return next()
			},
		})
		client, err := weaver.NewClient(s, weaver.ClientConfig{})
		fx.must(err)
		f := weaver.Filter{Limit: 2}
		ack, err := client.CancelMany(fx.Context(), f)
		wantError(fx, err, store.ErrUnavailable, "cancel tasks")
		equal(fx, "what was done", ack.Done, 4)
		equal(fx, "the next one", fx.get(ids[1]).State, task.Ready)
		f.After = ack.After
		ack, err = client.CancelMany(fx.Context(), f)
		fx.must(err)
		equal(fx, "the rest", ack.Done, 2)
	})

	subtest(t, "mistakes", func(fx *fixture) {
		_, err := fx.client.RetryMany(fx.Context(), weaver.Filter{States: []weaver.State{weaver.StateReady}})
		wantError(fx, err, weaver.ErrInvalidOption, "ready")
		_, err = fx.client.DeleteMany(fx.Context(), weaver.Filter{}, weaver.Force())
		wantError(fx, err, weaver.ErrInvalidOption, "Force")
		_, err = fx.client.CancelMany(fx.Context(), weaver.Filter{}, weaver.SeenEpoch(1))
		wantError(fx, err, weaver.ErrInvalidOption, "SeenEpoch")
		wantError(fx, fx.client.Cancel(fx.Context(), task.ID{1}, weaver.DryRun()), weaver.ErrInvalidOption, "DryRun")
	})
}
