package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
)

// An input that the store does not take is not checked by the schema first.
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

// So many large inputs are checked at a time; small ones do not wait for them.
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
