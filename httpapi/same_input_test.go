package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
)

// A repeated key with another input is reported.
func TestInputDiffers(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true})
	body := func(amount, more string) string {
		return `{"task_type":"acme.billing.charge.v1","input":{"order":"1","amount":` + amount + `},"idempotency_key":"k"` + more + `}`
	}
	send := func(text string, status int) (e httpapi.Enqueued) {
		t.Helper()
		s.post("/v1/tasks", text).want(status).into(&e)
		return e
	}
	first := send(body("5", ""), http.StatusCreated)
	if e := send(body(" 5 ", `,"require_same_input":true`), http.StatusOK); e.InputDiffers || e.ID != first.ID {
		t.Errorf("the same input: %+v", e)
	}
	if e := send(body("6", ""), http.StatusOK); !e.InputDiffers || e.ID != first.ID {
		t.Errorf("another input: %+v", e)
	}
	if n := strings.Count(s.log.String(), "came again with another input, which was not taken\" task_id="+first.ID.String()); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, s.log)
	}
	p := s.post("/v1/tasks", body("6", `,"require_same_input":true`)).problem(http.StatusConflict, "conflict")
	if !strings.Contains(p.Detail, "another input") {
		t.Errorf("the conflict is %+v", p)
	}
	var list httpapi.List[httpapi.Enqueued]
	s.post("/v1/tasks/batch", `{"tasks":[`+body("7", "")+`,`+body("5", "")+`]}`).want(http.StatusCreated).into(&list)
	if len(list.Items) != 2 || !list.Items[0].InputDiffers || list.Items[1].InputDiffers {
		t.Errorf("of a batch: %+v", list.Items)
	}
}

// RequireSameInput has the same effect over HTTP.
func TestClientRequiresSameInput(t *testing.T) {
	t.Parallel()
	onClients(t, func(s *suite) {
		key, same := weaver.IdempotencyKey("k"), weaver.RequireSameInput()
		_, err := charge.Enqueue(s.Context(), s.c, chargeIn{Order: "o"}, key, same)
		s.no(err)
		_, err = charge.Enqueue(s.Context(), s.c, chargeIn{Order: "o", Amount: 1}, key, same)
		s.is(err, weaver.ErrConflict)
		_, err = s.c.EnqueueTasks(s.Context(), charge.With(chargeIn{}, key, same), charge.With(chargeIn{}))
		s.is(err, weaver.ErrInvalidOption)
	})
}
