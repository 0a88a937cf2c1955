package httpapi_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/goweaver/weaver/httpapi"
)

// repeat returns a JSON list of n elements.
func repeat(n int, element string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

// Lists and maps of a body that are too long are rejected before their elements are decoded: the
// memory is a small multiple of the body. The test is not parallel, because it measures
// allocations.
func TestLongLists(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	const n = 80_000
	s := newServer(t, serverOptions{direct: true})
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":""`, i)
	}
	dict := "{" + strings.Join(keys, ",") + "}"
	for _, c := range []struct {
		path, body, pointer string
		most                int
	}{
		{"/v1/tasks/batch", `{"tasks":` + repeat(n, "{}") + `}`, "#/tasks", 1000},
		{"/v1/tasks/batch", `{"tasks":[{},{"redact":` + repeat(n, `"a,\"]"`) + `}]}`, "#/tasks/1/redact", 100},
		{"/v1/jobs", `{"tasks":` + repeat(n, ` { } `) + `}`, "#/tasks", 10_000},
		{"/v1/jobs", `{"tasks":[{"needs":` + repeat(n, `"a"`) + `}]}`, "#/tasks/0/needs", 10_000},
		{"/v1/jobs", `{"tasks":[],"metadata":` + dict + `}`, "#/metadata", 1000},
		{"/v1/tasks", `{"expire":` + repeat(n, `{"path":"a","after":"1s"}`) + `}`, "#/expire", 100},
		{"/v1/tasks", `{"labels":` + dict + `}`, "#/labels", 1000},
		{"/v1/tasks/bulk", `{"ids":` + repeat(n, `""`) + `}`, "#/ids", 1000},
	} {
		if c.path == "/v1/tasks/bulk" {
			c.body = `{"ids":` + repeat(2000, `""`) + `}` // its bodies are small
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p := s.post(c.path, c.body).problem(http.StatusUnprocessableEntity, "invalid-body")
		runtime.ReadMemStats(&after)
		if len(p.Errors) != 1 || p.Errors[0].Pointer != c.pointer || !strings.Contains(p.Errors[0].Detail, fmt.Sprintf("000 elements: at most %d are taken", c.most)) {
			t.Errorf("%s: %+v, want one at %s", c.path, p.Errors, c.pointer)
		}
		if used, sent := after.TotalAlloc-before.TotalAlloc, uint64(len(c.body)); used > 60*sent {
			t.Errorf("%s, %s: %d bytes were allocated for a body of %d", c.path, c.pointer, used, sent)
		}
	}
}

// A list with exactly the maximum of elements is accepted.
func TestListsAtTheLimit(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true})
	charged := `{"task_type":"acme.billing.charge.v1","input":{"order":"o-1","amount":5,"card":"4111"}}`
	s.post("/v1/tasks/batch", `{"tasks":`+repeat(1000, charged)+`}`).want(http.StatusCreated)
	for n, want := range map[int]string{0: "want 1 to 1000", 1001: "it has 1001 elements: at most 1000 are taken"} {
		p := s.post("/v1/tasks/batch", `{"tasks":`+repeat(n, charged)+`}`).problem(http.StatusUnprocessableEntity, "invalid-body")
		if len(p.Errors) != 1 || p.Errors[0].Pointer != "#/tasks" || !strings.Contains(p.Errors[0].Detail, want) {
			t.Errorf("%d tasks: %+v, want %q", n, p.Errors, want)
		}
	}
	// Only the schema limits an input.
	s.post("/v1/tasks", `{"task_type":"acme.billing.charge.v1","input":`+repeat(5000, "1")+`}`).problem(http.StatusUnprocessableEntity, "invalid-input")
}

// A job has a maximum of dependencies.
func TestNeedsOfAJob(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true})
	needy := `{"node":"n","task_type":"acme.billing.charge.v1","input":{"order":"o-1","amount":5,"card":"4111"},"needs":` + repeat(9999, `"n"`) + `}`
	p := s.post("/v1/jobs", `{"name":"wide","tasks":`+repeat(21, needy)+`}`).problem(http.StatusUnprocessableEntity, "invalid-body")
	if len(p.Errors) != 1 || p.Errors[0].Pointer != "#/tasks/20" || !strings.Contains(p.Errors[0].Detail, "at most 200000") {
		t.Errorf("the errors are %+v", p.Errors)
	}
}

// The check of a body ends with the time limit of the response.
func TestBodyTakesTooLong(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true, config: func(cfg *httpapi.Config) { cfg.Timeout = 1 }})
	s.post("/v1/tasks", `{"input":`+repeat(5000, "1")).problem(http.StatusServiceUnavailable, "timed-out")
	s.post("/v1/tasks/batch", `{"tasks":`+repeat(700, "{}")+`}`).problem(http.StatusServiceUnavailable, "timed-out")
}
