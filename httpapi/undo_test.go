//go:build !js

package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
)

var saga = weaver.Define[int, weaver.None]("acme.billing.saga.v1", weaver.NoRetry(), weaver.CleanupWhenCancelled())

// unpaid returns a handler that fails, and whose refund fails while the account is gone.
func unpaid(gone *bool) weaver.Handler {
	return saga.Handler(func(ctx context.Context, _ int) (weaver.None, error) {
		err := weaver.Do(ctx, "pay", func(context.Context) error { return nil })
		if err == nil {
			err = errors.New("no courier")
		}
		return weaver.None{}, errors.Join(err, weaver.Cleanup(ctx, "refund", func(context.Context) error {
			if *gone {
				return weaver.Permanent(errors.New("no such account"))
			}
			return nil
		}))
	})
}

// An undo that was given up is retried, alone and with others, or accepted.
func TestUndoVerbs(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store store.Store) {
		s := newServer(t, serverOptions{store: store})
		enqueue := func() weaver.TaskID {
			h, err := saga.Enqueue(s.Context(), s.client, 1)
			s.no(err)
			return h.ID()
		}
		one, two, three := enqueue(), enqueue(), enqueue()
		gone := true
		s.run(unpaid(&gone))
		path := "/v1/tasks/" + one.String()
		refused := func(verb string, body any, want string) {
			t.Helper()
			if p := s.post(path+"/"+verb, body).problem(http.StatusConflict, "state"); !strings.Contains(p.Detail, want) {
				t.Errorf("%s is refused with %q, want %q", verb, p.Detail, want)
			}
		}
		refused("retry", nil, "weaver task retry "+one.String()+" --cleanup")
		s.post("/v1/tasks/bulk", `{"verb":"cancel","q":"state:ready","cleanup":true}`).problem(http.StatusUnprocessableEntity, "invalid-body")
		s.post(path+"/retry", `{"cleanup":true,"keep_steps":true}`).problem(http.StatusUnprocessableEntity, "invalid-option")

		s.verb(one, "cancel", `{"abandon_undo":true,"reason":"paid back"}`, weaver.StateFailed)
		refused("cancel", `{"abandon_undo":true}`, "was abandoned already")
		refused("retry", nil, "its undo was abandoned")

		gone = false
		s.verb(two, "retry", `{"cleanup":true}`, weaver.StatePending)
		if bulk := s.bulk(httpapi.BulkRequest{Verb: ops.BulkRetry, Q: "undo:failed", Cleanup: true}); bulk.Done != 1 || len(bulk.Refused) != 0 {
			t.Errorf("in bulk: %+v", bulk)
		}
		if bulk := s.bulk(httpapi.BulkRequest{Verb: ops.BulkCancel, IDs: []string{three.String()}, Force: true}); bulk.Done != 0 ||
			len(bulk.Refused) != 1 || !strings.Contains(bulk.Refused[0].Problem.Detail, "--abandon-undo") {
			t.Errorf("a forced cancel in bulk: %+v", bulk)
		}
		s.run(unpaid(&gone))
		for _, id := range []weaver.TaskID{two, three} {
			var got httpapi.Task
			s.get("/v1/tasks/" + id.String()).want(http.StatusOK).into(&got)
			if got.State != weaver.StateFailed || got.Undo != nil {
				t.Errorf("task %s is %s, %+v", id, got.State, got.Undo)
			}
		}
	})
}

// Metrics count the undos that began, their failed tries, and those that were given up.
func TestMetricsOfUndos(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, serverOptions{direct: true})
		m := httpapi.NewMetrics()
		var ids []weaver.TaskID
		for n := range 2 {
			h, err := saga.Enqueue(t.Context(), s.client, n)
			s.no(err)
			ids = append(ids, h.ID())
		}
		stop := engineOf(t, s.store, m, saga.Handler(func(ctx context.Context, n int) (weaver.None, error) {
			return weaver.None{}, errors.Join(errors.New("no courier"), weaver.Cleanup(ctx, "refund", func(context.Context) error {
				if n == 1 {
					return weaver.Permanent(errors.New("no such account"))
				} else if weaver.Current(ctx).AttemptNo < 3 {
					return errors.New("psp 503")
				}
				return nil
			}))
		}))
		for _, id := range ids {
			_, _ = s.client.Wait(t.Context(), id)
		}
		stop()
		compare(t, m, []string{"weaver_undos_total"}, `
# TYPE weaver_undos_total counter
weaver_undos_total{result="began",type="acme.billing.saga.v1"} 2
weaver_undos_total{result="failed",type="acme.billing.saga.v1"} 1
weaver_undos_total{result="given_up",type="acme.billing.saga.v1"} 1
`)
	})
}

// Both kinds of clients support the options.
func TestClientUndoVerbs(t *testing.T) {
	onClients(t, func(s *suite) {
		h, err := saga.Enqueue(s.Context(), s.client, 1)
		s.no(err)
		gone := true
		s.run(unpaid(&gone))
		ctx := s.Context()
		s.is(s.c.Retry(ctx, h.ID()), weaver.ErrState, "its undo was given up")
		s.no(s.c.Retry(ctx, h.ID(), weaver.Cleanups()))
		s.no(s.c.Cancel(ctx, h.ID(), weaver.AbandonUndo()))
		s.is(s.c.Cancel(ctx, h.ID(), weaver.AbandonUndo()), weaver.ErrState, "was abandoned already")
		_, err = s.c.RetryJob(ctx, weaver.JobID{1}, weaver.Cleanups())
		if err == nil {
			s.Error("a job is retried with Cleanups")
		}
	})
}

var trial = weaver.Define[string, string]("acme.billing.trial.v1", weaver.NoRetry())

// The plan lists the steps that a cancel would undo, without values. A dry run of many cancels
// counts them.
func TestUndoPlan(t *testing.T) {
	onClients(t, func(s *suite) {
		undo := weaver.Undo(func(context.Context, weaver.Undoing[string]) error { return nil })
		work := trial.Handler(func(ctx context.Context, secret string) (string, error) {
			for _, opts := range [][]weaver.StepOption{{undo}, nil} {
				name := fmt.Sprint("step ", len(opts))
				if _, err := weaver.Step(ctx, name, func(context.Context) (string, error) { return secret, nil }, opts...); err != nil {
					return "", err
				}
			}
			return "", weaver.Sleep(ctx, "trial", time.Hour)
		})
		h, err := trial.Enqueue(s.Context(), s.client, "4111-22")
		s.no(err)
		s.run(work)

		plan := func() string {
			p, err := s.c.UndoPlan(s.Context(), h.ID())
			s.no(err)
			said := string(p.State)
			if p.Phase != nil {
				said += " to end " + string(p.Phase.EndsAs)
			}
			for _, e := range p.Effects {
				said += fmt.Sprintf(", %s %s %s %t", e.Step, e.Effect, e.Undo, e.Key == h.ID().String()+":"+e.Step && !e.At.IsZero())
			}
			return said
		}
		want := func(want string) {
			s.Helper()
			if got := plan(); got != want {
				s.Errorf("the plan is %s, want %s", got, want)
			}
		}
		want("pending, step 1 confirmed declared true, step 0 confirmed none true")
		if a := s.get("/v1/tasks/" + h.ID().String() + "/undo").want(http.StatusOK); strings.Contains(string(a.body), "4111-22") {
			s.Errorf("the plan has a value: %s", a.body)
		}
		if bulk := s.bulk(httpapi.BulkRequest{Verb: ops.BulkCancel, Q: "state:pending", DryRun: true}); bulk.Done != 1 || bulk.UndoneFirst != 1 {
			s.Errorf("a dry run of cancels: %+v", bulk)
		}
		s.no(s.c.Cancel(s.Context(), h.ID()))
		want("pending to end cancelled, step 1 confirmed declared true, step 0 confirmed none true")
		s.run(work)
		want("cancelled, step 0 confirmed none true, step 1 confirmed undone true")

		_, err = s.c.UndoPlan(s.Context(), weaver.TaskID{1})
		s.is(err, weaver.ErrNotFound)
		s.get("/v1/tasks/x/undo").problem(http.StatusNotFound, "not-found")
	})
}
