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
	"github.com/goweaver/weaver/internal/httpcontract"
	"github.com/goweaver/weaver/store"
)

const reasonGiven = `{"reason":"as asked"}`

// Every operation on tasks succeeds, on each store.
func TestTaskOperations(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store store.Store) {
		s := newServer(t, serverOptions{store: store})
		done, bad, asks := s.enqueue(), s.enqueue(order("bad")), s.enqueue(order("ask"))
		s.run()
		for _, path := range []string{
			"", "?wait=1s", "/history", "/attempts", "/decisions", "/steps", "/artifacts", "/needs", "/undo", "/payloads/input", "/payloads/output", "/payloads/steps/pay",
		} {
			s.get("/v1/tasks/" + done.String() + path).want(http.StatusOK)
		}
		s.get("/v1/tasks/" + bad.String() + "/history").want(http.StatusOK)
		var page httpapi.Found
		s.get("/v1/tasks?q=state:failed&limit=1&type=acme.billing.*&queue=billing&after=").want(http.StatusOK).into(&page)
		if len(page.Items) != 1 || page.Items[0].ID != bad {
			t.Errorf("the failed tasks are %+v", page.Items)
		}

		s.verb(asks, "unblock", `{"input":{"yes":true},"reason":"as asked"}`, weaver.StateReady)
		s.verb(asks, "cancel", reasonGiven, weaver.StateCancelled)
		s.verb(bad, "retry", `{"add_attempts":1,"reason":"as asked"}`, weaver.StateReady)
		s.verb(bad, "pause", reasonGiven, weaver.StatePending)
		s.verb(bad, "resume", "", weaver.StateReady)
		s.verb(bad, "signal", `{"name":"acme.signal.paid","key":"k-1","payload":{"by":"ann"}}`, weaver.StateReady)
		later := s.enqueue(func(d *httpapi.Draft) { d.Delay = httpapi.Span(time.Hour) })
		s.verb(later, "reschedule", `{"at":"2099-01-01T00:00:00Z"}`, weaver.StatePending)
		s.verb(later, "reschedule", "", weaver.StateReady)
		s.verb(done, "rerun", `{"idempotency_key":"again","reason":"as asked"}`, "")
		s.post("/v1/tasks/"+done.String()+"/rerun", `{"from":"pay"}`).want(http.StatusCreated)
		s.do(http.MethodDelete, "/v1/tasks/"+done.String(), nil).want(http.StatusNoContent)
		s.get("/v1/tasks/"+done.String()).problem(http.StatusNotFound, "not-found")

		var many httpapi.List[httpapi.Enqueued]
		s.post("/v1/tasks/batch", `{"tasks":[{"task_type":"acme.billing.charge.v1","input":{"order":"1","amount":1}},{"task_type":"acme.billing.charge.v1","input":{"order":"2","amount":2}}]}`).
			want(http.StatusCreated).into(&many)
		if len(many.Items) != 2 {
			t.Errorf("a batch of two made %+v", many.Items)
		}
	})
}

// A task with an input that no worker can read is repaired.
func TestRepairOperation(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{})
	got, err := s.client.EnqueueTasks(t.Context(), weaver.NewDraft("acme.billing.charge.v1", json.RawMessage(`{"order":1}`), weaver.Queue("billing")))
	s.no(err)
	s.run()
	s.verb(got[0].ID, "repair", `{"input":{"order":"o-1","amount":1},"reason":"as asked"}`, weaver.StateReady)
}

// verb sends a verb and checks the state of the task after it.
func (s *server) verb(id weaver.TaskID, name string, body any, want weaver.State) {
	s.Helper()
	if body == "" {
		body = nil
	}
	a := s.post("/v1/tasks/"+id.String()+"/"+name, body)
	if want == "" {
		a.want(http.StatusCreated)
		return
	}
	var task httpapi.Task
	a.want(http.StatusOK).into(&task)
	if task.State != want {
		s.Errorf("after %s the task is %s, want %s", name, task.State, want)
	}
}

const twoTasks = `{"name":"order","tasks":[
	{"node":"first","task_type":"acme.billing.charge.v1","input":{"order":"1","amount":1}},
	{"node":"second","task_type":"acme.billing.charge.v1","input":{"order":"bad","amount":2},"needs":["first"]}]}`

// Every operation on jobs and on the server succeeds, on each store.
func TestJobOperations(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store store.Store) {
		s := newServer(t, serverOptions{store: store})
		var job httpapi.Submitted
		a := s.post("/v1/jobs", twoTasks, "Idempotency-Key", "order-1").want(http.StatusCreated).into(&job)
		at := "/v1/" + a.header.Get("Location")
		if at != "/v1/jobs/"+job.ID.String() {
			t.Errorf("the Location of the job is %q", at)
		}
		s.post("/v1/jobs", twoTasks, "Idempotency-Key", "order-1").want(http.StatusOK)
		s.get(at + "/result").want(http.StatusOK)
		s.run()
		for _, path := range []string{at, at + "/tasks", at + "/tasks?state=failed", at + "/result", "/v1/jobs", "/v1/jobs?state=failed&name=order&limit=1"} {
			s.get(path).want(http.StatusOK)
		}
		s.post(at+"/retry", reasonGiven).want(http.StatusOK)
		s.post(at+"/cancel", nil).want(http.StatusOK)
		s.post("/v1/queues/billing/pause", reasonGiven).want(http.StatusNoContent)
		s.post("/v1/queues/billing/resume", nil).want(http.StatusNoContent)
		for _, path := range []string{"/v1/me", "/healthz", "/readyz", "/openapi.json"} {
			s.get(path).want(http.StatusOK)
			if a := s.do(http.MethodHead, path, nil).want(http.StatusOK); len(a.body) > 0 || a.header.Get("Content-Type") != "application/json" {
				t.Errorf("HEAD %s: %q, Content-Type %q", path, a.body, a.header.Get("Content-Type"))
			}
		}
	})
}

func TestLoginOperations(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{})
	var me httpapi.Me
	a := s.post("/login", map[string]string{"token": "ann's token"}).want(http.StatusOK).into(&me)
	if me.Name != "ann" || strings.Join(me.Access, ",") != "submit,read,payloads,operate" || !strings.HasPrefix(a.header.Get("Set-Cookie"), "weaver_login=") {
		t.Errorf("logged in as %+v, with the cookie %q", me, a.header.Get("Set-Cookie"))
	}
	s.post("/logout", nil).want(http.StatusNoContent)
}

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true})
	s.no(httpcontract.Valid(s.get("/openapi.json").body))
	if testing.Short() {
		return
	}
	for name, mistake := range map[string]func(doc map[string]any){
		"a field that is none":      func(doc map[string]any) { member(doc, "paths", "/v1/me", "get")["operationID"] = "x" },
		"no version":                func(doc map[string]any) { delete(doc, "openapi") },
		"a schema that is none":     func(doc map[string]any) { member(doc, "components", "schemas", "Me")["type"] = "text" },
		"a reference to nothing":    func(doc map[string]any) { delete(member(doc, "components", "schemas"), "Attempt") },
		"one id for two operations": func(doc map[string]any) { member(doc, "paths", "/v1/me", "get")["operationId"] = "getTask" },
		"a parameter of no path":    func(doc map[string]any) { delete(member(doc, "paths", "/v1/tasks/{id}", "get"), "parameters") },
	} {
		var doc map[string]any
		s.get("/openapi.json").into(&doc)
		mistake(doc)
		raw, err := json.Marshal(doc)
		s.no(err)
		if httpcontract.Valid(raw) == nil {
			t.Errorf("%s: the document is taken for valid", name)
		}
	}
}

// The contract check detects a document that declares less than the API returns, for every part of
// a response.
func TestContractSeesWhatIsNotDeclared(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true})
	s.enqueue()
	for name, change := range map[string]func(operation map[string]any){
		"status": func(op map[string]any) { delete(member(op, "responses"), "200") },
		"media": func(op map[string]any) {
			member(op, "responses", "200")["content"] = map[string]any{"text/plain": map[string]any{}}
		},
		"body":      func(op map[string]any) { member(op, "responses", "200")["content"] = nil },
		"header":    func(op map[string]any) { delete(member(op, "responses", "200"), "headers") },
		"parameter": func(op map[string]any) { delete(op, "parameters") },
		"property": func(op map[string]any) {
			member(op, "responses", "200", "content", "application/json")["schema"] = map[string]any{"type": "object", "properties": map[string]any{}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var doc map[string]any
			s.get("/openapi.json").into(&doc)
			change(member(doc, "paths", "/v1/tasks/{id}", "get"))
			raw, err := json.Marshal(doc)
			s.no(err)
			found := s.held(t, raw, "/v1/tasks/"+s.enqueue().String()+"?wait=1ms")
			if len(found) != 1 {
				t.Errorf("the contract says %q", found)
			}
		})
	}
}

// member returns the object at a path of keys.
func member(n map[string]any, keys ...string) map[string]any {
	for _, key := range keys {
		n, _ = n[key].(map[string]any)
	}
	return n
}

// held returns the errors of checking a response against another document.
func (s *server) held(t *testing.T, document []byte, path string) []string {
	t.Helper()
	contract, err := httpcontract.Read(document)
	s.no(err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, http.NoBody)
	s.no(err)
	said := &complaints{TB: t}
	client := &http.Client{Transport: contract.Transport(said, handlerTransport{s.api}, "", nil)}
	res, err := client.Do(r)
	s.no(err)
	s.no(res.Body.Close())
	return said.all
}

// complaints collects the errors of a test.
type complaints struct {
	testing.TB
	all []string
}

func (c *complaints) Errorf(format string, args ...any) {
	c.all = append(c.all, fmt.Sprintf(format, args...))
}
