package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
)

// A task type with a redacted field, and an input that principals with payloads may see.
const (
	redacted = "4111-SECRET"
	plain    = "order-PLAIN"
)

// A redacted field appears in no response, frame, error or log line, for any principal. A value
// appears in no output for principals without payloads.
func TestNoAnswerLeaks(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	synctest.Test(t, noAnswerLeaks)
}

func noAnswerLeaks(t *testing.T) {
	s := newServer(t, serverOptions{store: onSQLite(t), direct: true})
	input := fmt.Sprintf(`{"order":%q,"amount":5,"card":%q}`, plain, redacted)
	declined := weaver.Define[chargeIn, chargeOut]("acme.billing.declined.v1", weaver.MaxAttempts(1))
	handler := declined.Handler(func(_ context.Context, in chargeIn) (chargeOut, error) {
		return chargeOut{}, errors.New("the bank refused " + in.Card)
	})
	s.no(s.client.AnnounceTypes(t.Context(), declined.Info()))
	s.no(s.client.KeepEvents(t.Context(), time.Hour))
	var ids []string
	for _, typ := range []string{"acme.billing.charge.v1", "acme.billing.declined.v1"} {
		a := s.post("/v1/tasks", fmt.Sprintf(`{"task_type":%q,"input":%s}`, typ, input)).want(http.StatusCreated)
		ids = append(ids, strings.TrimPrefix(a.header.Get("Location"), "tasks/"))
	}
	a := s.post("/v1/jobs", fmt.Sprintf(`{"name":"x","tasks":[{"node":"n","task_type":"acme.billing.declined.v1","input":%s}]}`, input)).want(http.StatusCreated)
	job := strings.TrimPrefix(a.header.Get("Location"), "jobs/")
	s.run(handler)

	reader := newServer(t, serverOptions{store: s.store, direct: true, config: func(cfg *httpapi.Config) {
		cfg.Authorize = httpapi.Open(httpapi.Principal{Name: "reader", Access: httpapi.Read | httpapi.Operate})
	}})
	answers, failure := 0, false
	for _, r := range s.api.Routes() {
		for _, id := range append(ids, job) {
			if r.Method != http.MethodGet || strings.HasPrefix(r.Pattern, "/v1/jobs/{id}") != (id == job) && strings.Contains(r.Pattern, "{id}") {
				continue
			}
			path := strings.NewReplacer("{id}", id, "{what}", "input", "{name}", "pay").Replace(r.Pattern)
			switch r.ID {
			case "followEvents":
				path += "?after=0"
			case "watch":
				path += "?topic=tasks:&topic=counts&topic=" + map[bool]string{true: "job:", false: "task:"}[id == job] + id
			}
			for _, at := range []*server{s, reader} {
				status, body := at.begins(path)
				failure = failure || r.ID == "followEvents" && strings.Contains(body, `"event":"task.failed"`)
				if status == http.StatusOK {
					answers++
				}
				if strings.Contains(body, redacted) {
					t.Errorf("GET %s shows what is redacted: %s", path, body)
				}
				if at == reader && strings.Contains(body, plain) {
					t.Errorf("GET %s shows a value without the access to values: %s", path, body)
				}
			}
		}
	}
	if answers < 40 || !failure {
		t.Errorf("only %d answers were looked at, in the stream of events the end of a task: %t", answers, failure)
	}
	if _, body := s.begins("/v1/tasks/" + ids[0] + "/payloads/input"); !strings.Contains(body, plain) || !strings.Contains(body, "[redacted]") {
		t.Errorf("the input is shown as %s", body)
	}
	for _, wrong := range []string{
		fmt.Sprintf(`{"order":5,"amount":5,"card":%q}`, redacted), fmt.Sprintf(`{"order":"1","amount":5,"card":{%q:1}}`, redacted), fmt.Sprintf(`{"order":"1","amount":5,"card":[%q]}`, redacted),
	} {
		if a := s.post("/v1/tasks", fmt.Sprintf(`{"task_type":"acme.billing.charge.v1","input":%s}`, wrong)); strings.Contains(string(a.body), redacted) || a.status != http.StatusUnprocessableEntity {
			t.Errorf("the problem of a wrong input is %d %s", a.status, a.body)
		}
	}
	if log := s.log.String() + reader.log.String(); strings.Contains(log, redacted) {
		t.Errorf("the log has it: %s", log)
	}
}

// begins returns a response, or the beginning of a stream.
func (s *server) begins(path string) (status int, body string) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	if strings.HasPrefix(path, "/v1/watch") || strings.HasPrefix(path, "/v1/events") { // they do not end
		defer time.AfterFunc(200*time.Millisecond, cancel).Stop()
	}
	rec := httptest.NewRecorder()
	defer func() { // a stream that was cut before it began panics
		p := recover()
		if err, _ := p.(error); p != nil && !errors.Is(err, http.ErrAbortHandler) {
			panic(p)
		}
	}()
	s.api.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1"+strings.ReplaceAll(path, " ", "%20"), http.NoBody))
	return rec.Code, rec.Body.String()
}
