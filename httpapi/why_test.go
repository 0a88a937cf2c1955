package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/task"
)

func TestWhy(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store weaver.Store) {
		s := newServer(t, serverOptions{store: store})
		bad, asks := s.enqueue(order("bad")), s.enqueue(order("ask"))
		var job httpapi.Submitted
		s.post("/v1/jobs", twoTasks).want(http.StatusCreated).into(&job)
		s.run()

		x := s.why("/v1/tasks/" + bad.String() + "/why?depth=3")
		if x.Kind != "task" || x.ID != bad || x.State != "failed" || !strings.Contains(x.Summary, "the card was refused") || len(x.Past) == 0 || !strings.Contains(x.Title, bad.String()) {
			t.Errorf("why it failed: %+v", x)
		}
		s.acts(x, explain.VerbRetry)
		if got := s.stateOf(bad); got != weaver.StateReady {
			t.Errorf("after the action the task is %s", got)
		}
		if x := s.why("/v1/tasks/" + asks.String() + "/why"); x.State != "blocked" || !strings.Contains(x.Summary, "look at it") {
			t.Errorf("why it is blocked: %+v", x)
		} else if s.acts(x, explain.VerbUnblock); s.stateOf(asks) != weaver.StateReady {
			t.Error("after the action the task is not ready")
		}
		jobPath := "/v1/jobs/" + job.ID.String()
		if x := s.why(jobPath + "/why"); x.Kind != "job" || x.State != "failed" || len(x.Because) == 0 {
			t.Errorf("why the job failed: %+v", x)
		} else {
			s.acts(x, explain.VerbRetry)
		}

		// A task is no job, and the other way round.
		s.get("/v1/jobs/"+bad.String()+"/why").problem(http.StatusNotFound, "not-found")
		s.get("/v1/tasks/"+job.ID.String()+"/why").problem(http.StatusNotFound, "not-found")
	})
}

// why reads an explanation.
func (s *server) why(path string) (x httpapi.Explanation) {
	s.Helper()
	s.get(path).want(http.StatusOK).into(&x)
	return x
}

// acts does what an explanation offers, as it says.
func (s *server) acts(x httpapi.Explanation, verb explain.Verb) {
	s.Helper()
	for _, a := range x.Actions {
		if a.Verb != verb || a.NeedsInput {
			continue
		}
		if r := a.Request; r == nil || r.Method != http.MethodPost || strings.HasPrefix(r.Path, "/") || r.Body == nil || !strings.HasPrefix(a.Command, "weaver ") {
			s.Fatalf("the action %+v is the request %+v", a.Action, r)
		}
		s.do(a.Request.Method, "/"+a.Request.Path, a.Request.Body).want(http.StatusOK)
		return
	}
	s.Fatalf("there is no action %s: %+v", verb, x.Actions)
}

// An explanation shows nothing that the task says to mask.
func TestWhyIsMasked(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{})
	id := s.enqueue(func(d *httpapi.Draft) { d.Input = []byte(`{"order":"x","amount":1,"card":"4929-1234"}`) })
	e, err := weaver.New(s.store, weaver.Config{Handlers: []weaver.Handler{leaks}})
	s.no(err)
	s.no(e.RunUntilIdle(t.Context()))
	a := s.get("/v1/tasks/" + id.String() + "/why").want(http.StatusOK)
	if text := string(a.body); strings.Contains(text, "4929") || !strings.Contains(text, "no such card") {
		t.Errorf("the explanation is %s", text)
	}
}

func TestWhyRefuses(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true})
	id := s.enqueue().String()
	for _, depth := range []string{"0", "-1", "101", "x", "1e3"} {
		s.get("/v1/tasks/"+id+"/why?depth="+depth).problem(http.StatusBadRequest, "bad-query")
	}
	s.get("/v1/tasks/x/why").problem(http.StatusNotFound, "no-route")
	for _, kind := range []string{"tasks", "jobs"} {
		s.get("/v1/"+kind+"/"+task.NewIDs(nil).New().String()+"/why").problem(http.StatusNotFound, "not-found")
	}
}

// leaks says its secret in its error.
var leaks = charge.Handler(func(_ context.Context, in chargeIn) (chargeOut, error) {
	return chargeOut{}, fmt.Errorf("no such card: %s", in.Card)
})
