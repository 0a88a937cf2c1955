package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store/memstore"
)

// An input that is too large for the store is not checked against the schema.
func TestInputTooLargeForTheStore(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true})
	large := `{"task_type":"acme.billing.charge.v1","input":` + repeat(weaver.DefaultInlineLimit, "1") + `}`
	s.post("/v1/tasks", large).problem(http.StatusRequestEntityTooLarge, "payload-too-large")
	p := s.post("/v1/tasks/batch", `{"tasks":[`+large+`]}`).problem(http.StatusRequestEntityTooLarge, "payload-too-large")
	if len(p.Errors) != 1 || p.Errors[0].Pointer != "#/tasks/0" || !strings.Contains(p.Detail, "131073 bytes") {
		t.Errorf("the problem is %+v", p)
	}
}

// The number of concurrent checks of large inputs is limited; small inputs do not wait for them.
func TestLargeInputsWaitForTheirTurn(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	s := newServer(t, serverOptions{direct: true, config: func(cfg *httpapi.Config) {
		client, err := weaver.NewClient(cfg.Client.Store(), weaver.ClientConfig{InlineLimit: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Client, cfg.Timeout = client, time.Second
	}})
	large := `{"task_type":"acme.billing.charge.v1","input":` + repeat(weaver.DefaultInlineLimit/2+1, "1") + `}`
	s.enqueue()
	release := s.api.HoldLargeInputs()
	s.post("/v1/tasks", large).problem(http.StatusServiceUnavailable, "timed-out")
	s.enqueue()
	release()
	s.post("/v1/tasks", large).problem(http.StatusUnprocessableEntity, "invalid-input")
}

// A server that runs a type's tasks also applies the type's own checks, to new tasks and to new
// inputs.
func TestInputOfAKnownType(t *testing.T) {
	t.Parallel()
	typ := weaver.Define[checkedIn, bool]("acme.test.checked.v1")
	st := memstore.New()
	client, err := weaver.NewClient(st, weaver.ClientConfig{Handlers: []weaver.Handler{
		typ.Handler(func(context.Context, checkedIn) (bool, error) { return true, nil }),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Announce(t.Context(), client, typ); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, serverOptions{store: st, config: func(c *httpapi.Config) { c.Client = client }})
	p := s.post("/v1/tasks", `{"task_type":"acme.test.checked.v1","input":{"odd":2}}`).problem(http.StatusUnprocessableEntity, "invalid-input")
	if len(p.Errors) != 1 || p.Errors[0].Pointer != "#/input" || !strings.Contains(p.Errors[0].Detail, "2 is even") {
		t.Errorf("the problem is %+v", p)
	}
	p = s.post("/v1/jobs", `{"name":"j","tasks":[{"node":"a","task_type":"acme.test.checked.v1","input":{"odd":4}}]}`).problem(http.StatusUnprocessableEntity, "invalid-input")
	if len(p.Errors) != 1 || p.Errors[0].Pointer != "#/tasks/0/input" {
		t.Errorf("the problem is %+v", p)
	}
	s.post("/v1/tasks", `{"task_type":"acme.test.checked.v1","input":{"odd":3}}`).want(http.StatusCreated)
}

type checkedIn struct {
	Odd int `json:"odd"`
}

// Validate implements weaver's check of inputs.
func (c checkedIn) Validate() error {
	if c.Odd%2 == 0 {
		return fmt.Errorf("%d is even", c.Odd)
	}
	return nil
}

// A null is not a label.
func TestNullLabel(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true})
	p := s.post("/v1/tasks", `{"task_type":"acme.billing.charge.v1","input":{"order":"o-1","amount":5},"labels":{"a":null}}`).problem(http.StatusUnprocessableEntity, "invalid-body")
	if len(p.Errors) != 1 || p.Errors[0].Pointer != "#/labels/a" {
		t.Errorf("the problem is %+v", p)
	}
}
