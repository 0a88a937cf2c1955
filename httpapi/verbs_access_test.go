package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/ops"
)

// byHeader grants a request the access in its header As, or full access without that header. Unlike
// ParseAccess it adds no implied access.
func byHeader(cfg *httpapi.Config) {
	cfg.Authorize = func(r *http.Request) (httpapi.Principal, error) {
		who := httpapi.Principal{Name: "ann", Access: httpapi.Full}
		if list := r.Header.Get("As"); list != "" {
			who.Access = 0
			for name := range strings.SplitSeq(list, ",") {
				who.Access |= map[string]httpapi.Access{"submit": httpapi.Submit, "read": httpapi.Read, "payloads": httpapi.Payloads, "operate": httpapi.Operate}[name]
			}
		}
		return who, nil
	}
}

// A verb's new input needs the same access as an enqueue, and is checked against the same schema.
func TestNewInputOfVerbs(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true, config: byHeader})
	operator, both := []string{"As", "read,operate"}, []string{"As", "submit,read,operate"}
	id := s.enqueue(order("ask"))
	s.run()
	task := "/v1/tasks/" + id.String()
	const right, wrong = `{"input":{"order":"2","amount":2}}`, `{"input":{"order":"2","amount":"2"}}`

	for path, body := range map[string]string{task + "/rerun": right, task + "/repair": right} {
		if p := s.post(path, body, operator...).problem(http.StatusForbidden, "forbidden"); !strings.Contains(p.Detail, "submit") {
			t.Errorf("%s: %s", path, p.Detail)
		}
	}
	for _, body := range []string{`{"input":null}`, `{"with":{"queue":"other"}}`, `{"with":{"labels":{"a":"b"}}}`, `{"from":"pay","with":{"priority":1}}`} {
		s.post(task+"/rerun", body, operator...).problem(http.StatusForbidden, "forbidden")
	}
	for i, body := range []any{nil, `{}`, `{"reason":"again"}`, `{"from":"pay"}`, `{"idempotency_key":"k"}`, `{"with":{"idempotency_key":"l"}}`, `{"with":{}}`} {
		if s.post(task+"/rerun", body, operator...); s.post(task+"/rerun", body, operator...).status >= 300 {
			t.Errorf("rerun %d with %v is refused", i, body)
		}
	}

	var before, after httpapi.Found
	s.get("/v1/tasks").into(&before)
	for _, verb := range []string{"/rerun", "/repair"} {
		if p := s.post(task+verb, wrong, both...).problem(http.StatusUnprocessableEntity, "invalid-input"); len(p.Errors) != 1 || p.Errors[0].Pointer != "#/input/amount" {
			t.Errorf("%s with a wrong input: %+v", verb, p)
		}
		s.post("/v1/tasks/01ARZ3NDEKTSV4RRFFQ69G5FAV"+verb, right, both...).problem(http.StatusNotFound, "not-found")
	}
	if s.get("/v1/tasks").into(&after); len(after.Items) != len(before.Items) || s.stateOf(id) != weaver.StateBlocked {
		t.Errorf("what was refused changed %d tasks to %d, the task is %s", len(before.Items), len(after.Items), s.stateOf(id))
	}
	s.post(task+"/rerun", right, both...).want(http.StatusCreated)
	s.post(task+"/repair", right, both...).want(http.StatusOK)

	// An unannounced type or version has no schema.
	got, err := s.client.EnqueueTasks(t.Context(), weaver.NewDraft("acme.billing.none.v1", json.RawMessage("{}")), weaver.NewDraft("acme.billing.charge.v1", json.RawMessage("{}"), weaver.SchemaVersion(9)))
	s.no(err)
	for i, want := range []string{"unknown-type", "invalid-body"} {
		for _, verb := range []string{"/rerun", "/repair"} {
			if p := s.post("/v1/tasks/"+got[i].ID.String()+verb, right).problem(http.StatusUnprocessableEntity, want); len(p.Errors) != 1 || p.Errors[0].Pointer != "#/input" {
				t.Errorf("%s of %s: %+v", verb, got[i].Type, p)
			}
		}
	}
	if document := string(s.get("/openapi.json").body); !strings.Contains(document, "Access: submit,read,operate.") || !strings.Contains(document, "with options in with, submit, too.") {
		t.Error("the document does not say what access rerun and repair need")
	}
}

// A principal with operate and without read, which a program's Authorize can return, may use no
// verbs: their responses would show tasks.
func TestOperateAloneReadsNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true, config: byHeader})
	id := s.enqueue().String()
	verbs := 0
	for _, r := range s.api.Routes() {
		if !r.Access.Has(httpapi.Operate) {
			continue
		}
		verbs++
		var body any
		if r.ID == "changeTasks" {
			body = httpapi.BulkRequest{Verb: ops.BulkCancel, Q: "state:ready", DryRun: true}
		}
		s.do(r.Method, strings.NewReplacer("{id}", id, "{name}", "billing").Replace(r.Pattern), body, "As", "submit,operate").problem(http.StatusForbidden, "forbidden")
	}
	if verbs < 15 {
		t.Errorf("only %d routes are for operators", verbs)
	}
}

// A header that requests more safety is applied or rejected.
func TestSafetyHeaders(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true})
	created := s.enqueue()
	id := created.String()
	obeyed := map[string]int{}
	for _, r := range s.api.Routes() {
		for _, name := range []string{"Idempotency-Key", "If-Match"} {
			if slices.Contains(r.Headers, name) {
				obeyed[name]++
				continue
			}
			if name == "Idempotency-Key" && !r.Creates {
				continue // a repetition creates nothing
			}
			p := s.do(r.Method, probe(r), nil, name, `"1-1"`).problem(http.StatusBadRequest, "bad-query")
			if len(p.Errors) != 1 || p.Errors[0].Parameter != name {
				t.Errorf("%s with %s: %+v", r.ID, name, p)
			}
		}
	}
	if obeyed["Idempotency-Key"] != 4 || obeyed["If-Match"] != 11 {
		t.Errorf("the headers are taken by %v routes", obeyed)
	}
	s.post("/v1/tasks/"+id+"/pause", nil, "Idempotency-Key", "k").want(http.StatusOK)
	s.post("/v1/tasks/"+id+"/resume", nil, "Idempotency-Key", "k").want(http.StatusOK)
	for range 2 {
		s.post("/v1/tasks/"+id+"/signal", `{"name":"paid","payload":1}`, "Idempotency-Key", "k").want(http.StatusOK)
	}
	if h, err := s.client.History(t.Context(), created); err != nil || len(h.Signals) != 1 {
		t.Errorf("a signal that was sent twice under one key: %v, %+v", err, h.Signals)
	}
	s.post("/v1/tasks/batch", `{"tasks":[`+draft+`]}`, "Idempotency-Key", "k").problem(http.StatusBadRequest, "bad-query")
	var list httpapi.Found
	if s.get("/v1/tasks").into(&list); len(list.Items) != 1 {
		t.Errorf("what was refused made %d tasks", len(list.Items)-1)
	}

	again := "/v1/tasks/" + id + "/rerun"
	for i, body := range []any{nil, `{"idempotency_key":"k"}`, `{"with":{"idempotency_key":"k"}}`, `{"idempotency_key":"k","with":{"idempotency_key":"k"}}`} {
		if a := s.post(again, body, "Idempotency-Key", "k"); a.status != map[bool]int{true: http.StatusCreated, false: http.StatusOK}[i == 0] {
			t.Errorf("rerun %d under the key: %d %s", i, a.status, a.body)
		}
	}
	for body, at := range map[string]string{
		`{"idempotency_key":"l"}`:                                "#/idempotency_key",
		`{"with":{"idempotency_key":"l"}}`:                       "#/with/idempotency_key",
		`{"idempotency_key":"k","with":{"idempotency_key":"l"}}`: "#/with/idempotency_key",
	} {
		if p := s.post(again, body, "Idempotency-Key", "k").problem(http.StatusUnprocessableEntity, "invalid-body"); p.Errors[0].Pointer != at {
			t.Errorf("rerun with %s: %+v", body, p.Errors)
		}
	}
	s.post(again, `{"idempotency_key":"l","with":{"idempotency_key":"m"}}`).problem(http.StatusUnprocessableEntity, "invalid-body")
}
