package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Counts, queues, workers and types are reported on each store.
func TestOverview(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, db store.Store) {
		s := newServer(t, serverOptions{store: db})
		s.enqueue(order("bad"))
		s.run()
		s.enqueue()
		s.enqueue()

		var counts httpapi.Counts
		s.get("/v1/counts").want(http.StatusOK).into(&counts)
		if counts.At.IsZero() || counts.States[task.Failed].N != 1 || counts.States[task.Ready].N != 2 || counts.Types["acme.billing.charge.v1"].N != 3 || counts.Queues["billing"].N != 3 {
			t.Errorf("counts: %+v", counts)
		}

		s.post("/v1/types/acme.billing.charge.v1/pause", reasonGiven).want(http.StatusNoContent)
		var queues httpapi.List[store.Queue]
		s.get("/v1/queues").want(http.StatusOK).into(&queues)
		if last := queues.Items[len(queues.Items)-1]; queues.Items[0].Name != "billing" || queues.Items[0].OldestDue.IsZero() || last.Type != "acme.billing.charge.v1" || !last.Paused {
			t.Errorf("queues: %+v", queues.Items)
		}

		var workers httpapi.List[store.WorkerStatus]
		s.get("/v1/workers").want(http.StatusOK).into(&workers)
		if workers.Items == nil {
			t.Error("the list of workers is null")
		}

		var types httpapi.List[httpapi.TaskType]
		s.get("/v1/types").want(http.StatusOK).into(&types)
		if len(types.Items) != 1 || types.Items[0].Name != "acme.billing.charge.v1" || types.Items[0].Input != nil || !types.Items[0].Paused {
			t.Errorf("types: %+v", types.Items)
		}
		var one httpapi.TaskType
		s.get("/v1/types/acme.billing.charge.v1").want(http.StatusOK).into(&one)
		if one.Input == nil || one.Output == nil || one.AnnouncedBy == "" || one.Pause == nil || one.Pause.Actor != "ann" || one.Pause.Reason != "as asked" {
			t.Errorf("the type: %+v", one)
		}
		s.post("/v1/types/acme.billing.charge.v1/resume", nil).want(http.StatusNoContent)
		one = httpapi.TaskType{}
		if s.get("/v1/types/acme.billing.charge.v1").into(&one); one.Paused || one.Pause != nil {
			t.Errorf("after its pause the type is %+v", one)
		}
		s.get("/v1/types/acme.other.v1").problem(http.StatusNotFound, "not-found")
		s.get("/v1/types/UPPER").problem(http.StatusNotFound, "not-found")
	})
}

// An empty store returns empty lists, and a running worker is listed.
func TestWorkersAreListed(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{})
	for _, path := range []string{"/v1/workers", "/v1/queues", "/v1/audit"} {
		var list httpapi.List[any]
		if s.get(path).want(http.StatusOK).into(&list); list.Items == nil || len(list.Items) != 0 {
			t.Errorf("%s of an empty store: %v", path, list.Items)
		}
	}
	s.no(s.store.Join(t.Context(), weaver.DefaultNamespace, workerInfo))
	var workers httpapi.List[store.WorkerStatus]
	s.get("/v1/workers").want(http.StatusOK).into(&workers)
	if len(workers.Items) != 1 || workers.Items[0].Name != "here:1" || workers.Items[0].LastSeen.IsZero() {
		t.Errorf("workers: %+v", workers.Items)
	}
	var one httpapi.TaskType
	if s.get("/v1/types/acme.billing.charge.v1").into(&one); one.Workers != 1 {
		t.Errorf("%d workers handle the type, want 1", one.Workers)
	}
}

// The audit log has the principal's name, and is read page by page.
func TestAudit(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{})
	for _, queue := range []string{"a", "b", "c"} {
		s.post("/v1/queues/"+queue+"/pause", `{"reason":"as asked","force":true}`).want(http.StatusNoContent)
	}
	read := func(query string) (page httpapi.Page[store.AuditEntry]) {
		s.get("/v1/audit" + query).want(http.StatusOK).into(&page)
		return page
	}
	first := read("?limit=2")
	if len(first.Items) != 2 || first.Items[0].Target != "c" || first.Items[0].Actor != "ann" || first.Items[0].Reason != "as asked" || first.Next == "" {
		t.Fatalf("the first page: %+v", first)
	}
	if rest := read("?limit=2&after=" + first.Next); len(rest.Items) != 1 || rest.Items[0].Target != "a" {
		t.Errorf("the second page: %+v", rest)
	}
	if of := read("?target=b&actor=ann&verb=" + first.Items[0].Verb); len(of.Items) != 1 {
		t.Errorf("of one queue: %+v", of)
	}
	if none := read("?actor=bob"); len(none.Items) != 0 {
		t.Errorf("by nobody: %+v", none)
	}
	s.get("/v1/audit?after=x").problem(http.StatusBadRequest, "bad-cursor")
	s.get("/v1/audit?limit=0").problem(http.StatusBadRequest, "bad-query")
	s.get("/v1/audit?limit=1001").problem(http.StatusBadRequest, "bad-query")
}

// A feature is reported if its routes exist.
func TestFeatures(t *testing.T) {
	t.Parallel()
	has := func(change func(*httpapi.Config)) map[string]bool {
		var f httpapi.Features
		newServer(t, serverOptions{config: change}).get("/v1/features").want(http.StatusOK).into(&f)
		if f.Namespace != weaver.DefaultNamespace {
			t.Errorf("the namespace is %q", f.Namespace)
		}
		return f.Features
	}
	f := has(nil)
	if !f["bulk"] || !f["explanations"] || !f["login"] || !f["types"] || !f["schedules"] || !f["limits"] {
		t.Errorf("features: %v", f)
	}
	if _, told := f["command_logs"]; !told || f["command_logs"] {
		t.Errorf("what is not there is not told as false: %v", f)
	}
	if f := has(func(c *httpapi.Config) { c.Login = nil }); f["login"] {
		t.Error("without Login there is a login")
	}
}

// An unknown queue or type cannot be paused without force: the pause would have no effect.
func TestPauseOfNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true})
	for _, c := range []struct{ path, meant string }{
		{"/v1/queues/biling/pause", "billing"},
		{"/v1/queues/nothing/pause", ""},
		{"/v1/types/acme.billing.charg.v1/pause", "acme.billing.charge.v1"},
		{"/v1/types/acme.other.thing.v1/pause", ""},
	} {
		p := s.post(c.path, reasonGiven).problem(http.StatusNotFound, "not-found")
		if len(p.Errors) != 1 || p.Errors[0].Parameter != "name" || p.Errors[0].Meant != c.meant || (c.meant != "") != strings.Contains(p.Errors[0].Detail, "did you mean "+c.meant+"?") {
			t.Errorf("%s: %+v, want %q meant", c.path, p.Errors, c.meant)
		}
		s.post(c.path, `{"force":true}`).want(http.StatusNoContent)
		s.post(c.path, nil).want(http.StatusNoContent) // it is paused, so it is known
	}
	for _, path := range []string{"/v1/queues/default/pause", "/v1/queues/billing/pause", "/v1/types/acme.billing.charge.v1/pause", "/v1/queues/never/resume"} {
		s.post(path, nil).want(http.StatusNoContent)
	}
}
