package httpapi_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A job is read as a graph and as a timeline, page by page, and deleted with its tasks.
func TestGraphAndTimeline(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, db store.Store) {
		s := newServer(t, serverOptions{store: db})
		var job httpapi.Submitted
		s.post("/v1/jobs", twoTasks).want(http.StatusCreated).into(&job)
		at := "/v1/jobs/" + job.ID.String()
		var g store.Graph
		s.get(at + "/graph").want(http.StatusOK).into(&g)
		if len(g.Nodes) != 2 || len(g.Edges) != 1 || g.Edges[0].From != g.Nodes[0].ID || g.Edges[0].To != g.Nodes[1].ID || g.Next != "" {
			t.Errorf("the graph: %+v", g)
		}
		var first store.Graph
		s.get(at + "/graph?limit=1").want(http.StatusOK).into(&first)
		if len(first.Nodes) != 1 || first.Edges == nil || len(first.Edges) != 0 || first.Next == "" {
			t.Errorf("the first page of the graph: %+v", first)
		}
		var line httpapi.Timeline
		if s.get(at + "/timeline").want(http.StatusOK).into(&line); line.Items == nil || len(line.Items) != 0 || line.At.IsZero() {
			t.Errorf("the timeline of a job that has not begun: %+v", line)
		}
		s.do(http.MethodDelete, at, nil).problem(http.StatusConflict, "state")

		s.run()
		s.post(at+"/retry", nil).want(http.StatusOK)
		s.run()
		line = s.timeline(at + "/timeline")
		if len(line.Items) != 3 || line.Items[0].Node != "first" || line.Items[0].Outcome != task.OutcomeSuccess || line.Items[2].Attempt != 2 ||
			line.Items[2].Error != task.KindHandler || line.Items[0].Worker == "" || line.Items[1].Started.Before(line.Items[0].Ended) || line.Items[2].Ended.IsZero() {
			t.Errorf("the timeline: %+v", line.Items)
		}
		page := s.timeline(at + "/timeline?limit=1")
		if rest := s.timeline(at + "/timeline?limit=1&after=" + page.Next); len(page.Items) != 1 || len(rest.Items) != 2 || rest.Next != "" {
			t.Errorf("two pages of the timeline: %+v, %+v", page, rest)
		}

		var gone httpapi.DeletedJob
		if s.do(http.MethodDelete, at, nil).want(http.StatusOK).into(&gone); gone.Tasks != 2 {
			t.Errorf("deleted: %+v", gone)
		}
		for _, path := range []string{"", "/graph", "/timeline"} {
			s.get(at+path).problem(http.StatusNotFound, "not-found")
		}
		for _, query := range []string{"/graph?limit=10001", "/graph?limit=-1", "/timeline?limit=201", "/timeline?limit=1000000000"} {
			s.get(at+query).problem(http.StatusBadRequest, "bad-query")
		}
		s.get(at+"/graph?after=x").problem(http.StatusBadRequest, "bad-cursor")
	})
}

func (s *server) timeline(path string) (line httpapi.Timeline) {
	s.Helper()
	s.get(path).want(http.StatusOK).into(&line)
	return line
}

func TestChildren(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{})
	parent := weaver.Define[int, string]("acme.test.parent.v1", weaver.NoRetry())
	h, err := parent.Enqueue(t.Context(), s.client, 2)
	s.no(err)
	s.run(parent.Handler(func(ctx context.Context, n int) (string, error) {
		children, err := weaver.Children(ctx)
		if err != nil || len(children) > 0 {
			return "done", err
		}
		return "", weaver.Decompose(weaver.JoinRerun, charge.With(chargeIn{Order: "a", Card: "4111"}), charge.With(chargeIn{Order: "bad"}))
	}))
	at := "/v1/tasks/" + h.ID().String() + "/children"
	var all, failed httpapi.Found
	s.get(at).want(http.StatusOK).into(&all)
	s.get(at + "?q=state:failed").want(http.StatusOK).into(&failed)
	if len(all.Items) != 2 || all.Items[0].ParentID != h.ID() || all.Items[0].Input != nil || len(failed.Items) != 1 {
		t.Errorf("children: %+v; failed: %+v", all.Items, failed.Items)
	}
	s.get(at+"?parent="+h.ID().String()).problem(http.StatusBadRequest, "bad-query")
	s.get("/v1/tasks/"+task.NewIDs(nil).New().String()+"/children").problem(http.StatusNotFound, "not-found")
}
