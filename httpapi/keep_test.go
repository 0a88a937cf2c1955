package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
)

// A task with a completed cleanup is retried or rerun from a step only with keep_steps: alone, with
// others, and in its job.
func TestKeepSteps(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store store.Store) {
		s := newServer(t, serverOptions{store: store})
		one, two := s.enqueue(order("refunded")), s.enqueue(order("refunded"))
		var job httpapi.Submitted
		s.post("/v1/jobs", `{"name":"orders","tasks":[{"node":"a","task_type":"acme.billing.charge.v1","input":{"order":"refunded","amount":1}}]}`).
			want(http.StatusCreated).into(&job)
		s.run()
		const why = `its cleanup "refund" ran`
		refused := func(path string, body any) {
			t.Helper()
			if p := s.post(path, body).problem(http.StatusConflict, "state"); !strings.Contains(p.Detail, why) || !strings.Contains(p.Detail, "keep-steps") {
				t.Errorf("%s is refused with %q", path, p.Detail)
			}
		}
		task := "/v1/tasks/" + one.String()
		refused(task+"/retry", nil)
		refused(task+"/rerun", `{"from":"refund"}`)
		refused("/v1/jobs/"+job.ID.String()+"/retry", nil)
		bulk := s.bulk(httpapi.BulkRequest{Verb: ops.BulkRetry, IDs: []string{one.String(), two.String()}})
		if bulk.Done != 0 || len(bulk.Refused) != 2 || !strings.Contains(bulk.Refused[0].Problem.Detail, why) {
			t.Errorf("in bulk: %+v", bulk)
		}
		s.post("/v1/tasks/bulk", `{"verb":"cancel","q":"state:ready","keep_steps":true}`).problem(http.StatusUnprocessableEntity, "invalid-body")
		s.post(task+"/rerun", `{"keep_steps":true}`).problem(http.StatusUnprocessableEntity, "invalid-option")

		s.post(task+"/rerun", `{"from":"refund","keep_steps":true}`).want(http.StatusCreated)
		s.verb(one, "retry", `{"keep_steps":true}`, weaver.StateReady)
		s.post("/v1/jobs/"+job.ID.String()+"/retry", `{"keep_steps":true}`).want(http.StatusOK)
		if bulk = s.bulk(httpapi.BulkRequest{Verb: ops.BulkRetry, IDs: []string{two.String()}, KeepSteps: true}); bulk.Done != 1 {
			t.Errorf("in bulk with keep_steps: %+v", bulk)
		}
		s.get(task + "/payloads/steps/pay").want(http.StatusOK)
		s.get(task+"/payloads/steps/refund").problem(http.StatusNotFound, "no-such-step")
	})
}

// Both kinds of clients support the option.
func TestClientKeepSteps(t *testing.T) {
	onClients(t, func(s *suite) {
		bad := s.charge("refunded")
		s.run()
		ctx := s.Context()
		s.is(s.c.Retry(ctx, bad.ID()), weaver.ErrState, `its cleanup "refund" ran`)
		_, err := s.c.RerunFrom(ctx, bad.ID(), "refund")
		s.is(err, weaver.ErrState, `its cleanup "refund" ran`)
		_, err = s.c.Rerun(ctx, bad.ID(), weaver.KeepSteps())
		s.is(err, weaver.ErrInvalidOption, "KeepSteps")
		_, err = s.c.RerunFrom(ctx, bad.ID(), "refund", weaver.KeepSteps())
		s.no(err)
		s.no(s.c.Retry(ctx, bad.ID(), weaver.KeepSteps()))
		j := weaver.NewJob("orders")
		j.Add("a", charge.With(chargeIn{Order: "refunded", Amount: 5}))
		h, err := s.client.Submit(ctx, j)
		s.no(err)
		s.run()
		_, err = s.c.RetryJob(ctx, h.ID())
		s.is(err, weaver.ErrState, `its cleanup "refund" ran`)
		_, err = s.c.RetryJob(ctx, h.ID(), weaver.KeepSteps())
		s.no(err)
	})
}
