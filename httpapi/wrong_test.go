package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/store"
)

// mistake is a wrong request and its expected problem.
type mistake struct {
	method, path, body string
	header             []string
	status             int
	name               string
	at                 string // of the first error: the pointer or the parameter
	says               string // in the detail of the problem or of that error
}

const draft = `{"task_type":"acme.billing.charge.v1","input":{"order":"1","amount":1}}`

// Wrong requests are rejected with the place and the reason, on each store.
func TestWrongInput(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, st store.Store) {
		s := newServer(t, serverOptions{store: st})
		elsewhere, err := weaver.NewClient(st, weaver.ClientConfig{Namespace: "elsewhere"})
		s.no(err)
		other, err := elsewhere.EnqueueTasks(t.Context(), weaver.NewDraft("acme.billing.charge.v1", json.RawMessage("{}")))
		s.no(err)
		foreign := other[0].ID.String()
		id := s.enqueue(func(d *httpapi.Draft) { d.Delay = httpapi.Span(time.Hour) }).String()
		etag := s.get("/v1/tasks/" + id).header.Get("ETag")
		moved := s.post("/v1/tasks/"+id+"/reschedule", nil, "If-Match", etag).want(http.StatusOK)
		s.post("/v1/tasks/"+id+"/pause", nil, "If-Match", moved.header.Get("ETag")).want(http.StatusOK)
		old := []string{"If-Match", etag}
		unchanged := s.get("/v1/tasks/" + id).header.Get("ETag")
		task := "/v1/tasks/" + id
		long := strings.Repeat("x", 3<<10)

		for _, m := range []mistake{
			{"GET", "/v1/tasks?after=nonsense", "", nil, 400, "bad-cursor", "", "nonsense"},
			{"GET", "/v1/tasks?after=%00", "", nil, 400, "bad-query", "", ""},
			{"GET", "/v1/jobs?after=nonsense", "", nil, 400, "bad-cursor", "", ""},
			{"GET", "/v1/tasks?limit=-1", "", nil, 400, "bad-query", "limit", "from 1 to 1000"},
			{"GET", "/v1/tasks?limit=0", "", nil, 400, "bad-query", "limit", ""},
			{"GET", "/v1/tasks?limit=1000000000", "", nil, 400, "bad-query", "limit", "from 1 to 1000"},
			{"GET", "/v1/tasks?limit=99999999999999999999", "", nil, 400, "bad-query", "limit", ""},
			{"GET", "/v1/jobs?limit=1001", "", nil, 400, "bad-query", "limit", ""},
			{"GET", "/v1/tasks?limit=1&limit=2", "", nil, 400, "bad-query", "limit", "2 times"},
			{"GET", "/v1/tasks?limt=1", "", nil, 400, "bad-query", "limt", "did you mean limit?"},
			{"GET", "/v1/me?x=1", "", nil, 400, "bad-query", "x", "takes no parameters"},
			{"GET", "/v1/tasks?a=1;b=2", "", nil, 400, "bad-query", "", "semicolon"},
			{"GET", "/v1/tasks?q=%zz", "", nil, 400, "bad-query", "", ""},
			{"GET", "/v1/tasks?q=stat:failed", "", nil, 400, "invalid-query", "q", "stat"},
			{"GET", "/v1/tasks?q=stat:failed", "", nil, 400, "invalid-query", "q", "created>"},
			{"GET", "/v1/tasks?q=state:failed+%22a", "", nil, 400, "invalid-query", "q", ""},
			{"GET", "/v1/tasks?q=" + long, "", nil, 400, "invalid-query", "q", "at most 2048"},
			{"GET", "/v1/tasks?q=" + strings.Repeat("x", 20<<10), "", nil, 414, "url-too-long", "", ""},
			{"GET", "/v1/tasks?state=done", "", nil, 400, "bad-query", "state", "succeeded"},
			{"GET", "/v1/tasks?job=x", "", nil, 400, "bad-query", "job", ""},
			{"GET", "/v1/tasks?parent=x", "", nil, 400, "bad-query", "parent", ""},
			{"GET", task + "?wait=1h", "", nil, 400, "bad-query", "wait", "at most 1m0s"},
			{"GET", task + "?wait=-1s", "", nil, 400, "bad-query", "wait", ""},
			{"GET", task + "?wait=soon", "", nil, 400, "bad-query", "wait", ""},
			{"GET", "/v1/watch?topic=counts&once=1", "", nil, 400, "bad-query", "once", "want true or false"},
			{"GET", "/v1/tasks", "{}", nil, 400, "bad-request", "", "takes no body"},
			{"DELETE", task, `{"reason":"x"}`, nil, 400, "bad-request", "", "takes no body"},

			{"GET", "/v1/tasks/" + foreign, "", nil, 404, "not-found", "", foreign},
			{"GET", "/v1/tasks/" + foreign + "/history", "", nil, 404, "not-found", "", ""},
			{"POST", "/v1/tasks/" + foreign + "/cancel", "", nil, 404, "not-found", "", ""},
			{"DELETE", "/v1/tasks/" + foreign, "", nil, 404, "not-found", "", ""},
			{"GET", "/v1/jobs/" + foreign, "", nil, 404, "not-found", "", ""},
			{"GET", "/v1/tasks/" + foreign + "?wait=1ms", "", nil, 404, "not-found", "", ""},
			{"GET", "/v1/tasks/x", "", nil, 404, "not-found", "id", ""},
			{"GET", task + "/payloads/output", "", nil, 404, "not-found", "", "no output"},
			{"GET", task + "/payloads/secret", "", nil, 404, "not-found", "", "want input"},
			{"GET", task + "/payloads/steps/none", "", nil, 404, "no-such-step", "", ""},

			{"POST", "/v1/tasks", "", nil, 415, "unsupported-media-type", "", ""},
			{"POST", "/v1/tasks", " ", nil, 400, "bad-request", "", "empty"},
			{"POST", "/v1/tasks", draft, []string{"Content-Type", "text/plain"}, 415, "unsupported-media-type", "", "text/plain"},
			{"POST", "/v1/tasks", draft, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "unsupported-media-type", "", ""},
			{"POST", "/v1/tasks", draft, []string{"Content-Encoding", "gzip"}, 415, "unsupported-media-type", "", "gzip"},
			{"POST", task + "/pause", "{\"reason\":\"\xff\"}", nil, 400, "bad-request", "", "not UTF-8"},
			{"POST", "/v1/tasks", "{", nil, 400, "bad-request", "#", "ends too soon"},
			{"POST", "/v1/tasks", draft + "{}", nil, 400, "bad-request", "#", "something follows"},
			{"POST", "/v1/tasks", "null", nil, 422, "invalid-body", "#", "want an object"},
			{"POST", "/v1/tasks", "[]", nil, 422, "invalid-body", "#", "an object"},
			{"POST", "/v1/tasks", `{"queue":"a","queue":"b"}`, nil, 400, "bad-request", "#", `"queue" is there twice`},
			{"POST", "/v1/tasks", `{"task_type":"a","input":{"a":[{"b":1,"b":2}]}}`, nil, 400, "bad-request", "#/input/a/0", `"b" is there twice`},
			{"POST", "/v1/tasks", `{"queue":"a","Queue":"b"}`, nil, 422, "invalid-body", "#/Queue", "did you mean queue?"},
			{"POST", "/v1/tasks", `{"quue":"a"}`, nil, 422, "invalid-body", "#/quue", "did you mean queue?"},
			{"POST", "/v1/tasks", `{"task_type":5}`, nil, 422, "invalid-body", "#/task_type", "want a string"},
			{"POST", "/v1/tasks", `{"task_type":"x"}`, nil, 422, "invalid-body", "#/task_type", ""},
			{"POST", "/v1/tasks", `{"task_type":"acme.billing.none.v1","input":{}}`, nil, 422, "unknown-type", "#/task_type", ""},
			{"POST", "/v1/tasks", `{"task_type":"acme.billing.charge.v1","input":{"order":"1","amount":"5"}}`, nil, 422, "invalid-input", "#/input/amount", ""},
			{"POST", "/v1/tasks", strings.Replace(draft, "{", `{"priority":12,`, 1), nil, 422, "invalid-option", "", "Priority(12)"},
			{"POST", "/v1/tasks", strings.Replace(draft, "{", `{"labels":{"a":1},`, 1), nil, 422, "invalid-body", "#/labels/a", "want a string"},
			{"POST", "/v1/tasks", strings.Replace(draft, "{", `{"metadata":{"a/b":{"c":1}},`, 1), nil, 422, "invalid-body", "#/metadata/a~1b", "want a string"},
			{"POST", "/v1/tasks", strings.Replace(draft, "{", `{"labels":["a"],`, 1), nil, 422, "invalid-body", "#/labels", "want an object"},
			{"POST", "/v1/tasks", strings.Replace(draft, "{", `{"at":"tomorrow",`, 1), nil, 422, "invalid-body", "#/at", "\"tomorrow\" is not a time: use the form 2026"},
			{"POST", "/v1/tasks", strings.Replace(draft, "{", `{"at":"2030-01-01T00:00:00Z","delay":"1h",`, 1), nil, 422, "invalid-body", "#/at", "a delay, too"},
			{"POST", "/v1/tasks/batch", `{"tasks":[` + draft + `,` + strings.Replace(draft, "{", `{"delay":5,`, 1) + `]}`, nil, 422, "invalid-body", "#/tasks/1/delay", "want a string"},
			{"POST", "/v1/tasks", strings.Replace(draft, "{", `{"delay":"soon",`, 1), nil, 422, "invalid-body", "#/delay", "soon"},
			{"POST", "/v1/tasks", strings.Replace(draft, "{", `{"schema_version":9,`, 1), nil, 422, "invalid-body", "#/schema_version", ""},
			{"POST", "/v1/tasks", strings.Replace(draft, "{", `{"idempotency_key":"a",`, 1), []string{"Idempotency-Key", "b"}, 422, "invalid-body", "#/idempotency_key", ""},
			{"POST", "/v1/tasks", draft, []string{"Idempotency-Key", ""}, 400, "bad-query", "Idempotency-Key", "it is empty"},
			{"POST", "/v1/tasks", draft, []string{"Idempotency-Key", "a", "Idempotency-Key", "b"}, 400, "bad-query", "Idempotency-Key", "2 times"},
			{"POST", "/v1/tasks", `{"task_type":"acme.billing.charge.v1","input":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "}", nil, 400, "bad-request", "", "deeper than"},
			{"POST", "/v1/tasks", `{"input":"` + strings.Repeat("x", 9<<20) + `"}`, nil, 413, "body-too-large", "", "8388608"},
			{"POST", task + "/cancel", `{"reason":"` + strings.Repeat("x", 1<<20) + `"}`, nil, 413, "body-too-large", "", "65536"},
			{"POST", "/v1/tasks/batch", `{"tasks":[]}`, nil, 422, "invalid-body", "#/tasks", "1 to 1000"},
			{"POST", "/v1/tasks/batch", `{"tasks":[` + draft + `,{"x":1}]}`, nil, 422, "invalid-body", "#/tasks/1/x", "no field"},
			{"POST", "/v1/tasks/batch", `{"tasks":[` + draft + `,{"task_type":"acme.billing.charge.v1","input":{"order":5,"amount":1}}]}`, nil, 422, "invalid-input", "#/tasks/1/input/order", ""},
			{"POST", "/v1/jobs", `{"name":"x","tasks":[]}`, nil, 422, "invalid-job", "", ""},
			{"POST", "/v1/jobs", `{"name":"x","tasks":[{"node":"a","needs":["b"],` + draft[1:] + `]}`, nil, 422, "invalid-job", "", "b"},

			{"POST", task + "/cancel", "", []string{"If-Match", ""}, 400, "bad-query", "", "it is empty"},
			{"POST", task + "/cancel", "", []string{"If-Match", "nonsense"}, 412, "precondition-failed", "", "nonsense"},
			{"POST", task + "/cancel", "", []string{"If-Match", `W/"1-2"`}, 412, "precondition-failed", "", ""},
			{"POST", task + "/cancel", "", []string{"If-Match", `"1-2", "3-4"`}, 412, "precondition-failed", "", ""},
			{"POST", task + "/unblock", "", nil, 409, "state", "", "blocked"},
			{"POST", task + "/retry", "", nil, 409, "state", "", ""},
			{"DELETE", task, "", nil, 409, "state", "", ""},
			{"POST", task + "/signal", `{"name":"acme.signal.paid","key":"k"}`, nil, 422, "invalid-body", "#/payload", ""},
			{"POST", task + "/repair", `{}`, nil, 422, "invalid-body", "#/input", ""},
			{"POST", task + "/rerun", `{"from":"none"}`, nil, 404, "no-such-step", "", ""},
			{"POST", "/v1/queues/a%00b/pause", "", nil, 400, "bad-query", "", ""},
		} {
			var body any
			if m.body != "" {
				body = m.body
			}
			a := s.do(m.method, m.path, body, m.header...)
			what := fmt.Sprintf("%s %.80s %.80s", m.method, m.path, m.body)
			var p httpapi.Problem
			if err := json.Unmarshal(a.body, &p); err != nil || a.status != m.status || p.Type != httpapi.ProblemBase+m.name || p.Status != m.status {
				t.Errorf("%s: %d %.300s, want %d %s", what, a.status, a.body, m.status, m.name)
				continue
			}
			if strings.Contains(string(a.body), `\u003`) {
				t.Errorf("%s: it is escaped for HTML: %.300s", what, a.body)
			}
			var first httpapi.ProblemError
			if len(p.Errors) > 0 {
				first = p.Errors[0]
			}
			if m.at != "" && first.Pointer+first.Parameter != m.at {
				t.Errorf("%s: the first error is at %q, want %q: %.300s", what, first.Pointer+first.Parameter, m.at, a.body)
			}
			if !strings.Contains(p.Detail+first.Detail, m.says) {
				t.Errorf("%s: it does not say %q: %.300s", what, m.says, a.body)
			}
		}
		// Every verb of a task checks the version in If-Match.
		bodies := map[string]string{"signal": `{"name":"acme.signal.paid","key":"k","payload":1}`, "repair": `{"input":{"order":"1","amount":1}}`}
		for _, r := range s.api.Routes() {
			name, of := strings.CutPrefix(r.Pattern, "/v1/tasks/{id}")
			if !of || r.Method == http.MethodGet {
				continue
			}
			var body any
			if b := bodies[strings.TrimPrefix(name, "/")]; b != "" {
				body = b
			}
			s.do(r.Method, task+name, body, old...).problem(http.StatusPreconditionFailed, "precondition-failed")
			s.do(r.Method, task+name, body, "If-Match", "nonsense").problem(http.StatusPreconditionFailed, "precondition-failed")
		}
		if got := s.get(task).header.Get("ETag"); got != unchanged {
			t.Errorf("what was refused made the ETag %s of %s", got, unchanged)
		}
		if log := s.log.String(); log != "" {
			t.Errorf("mistakes of callers are logged as failures of the server:\n%.2000s", log)
		}
	})
}
