package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

func TestWhy(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, db store.Store) {
		s := newServer(t, serverOptions{store: db})
		bad, asks := s.enqueue(order("bad")), s.enqueue(order("ask"))
		if st := s.why("/v1/tasks/" + asks.String() + "/why").Start; st == nil || !strings.Contains(st.Reason, "no live worker") || st.Ahead.N != 1 || !st.Latest.IsZero() {
			t.Errorf("when a task starts without a worker: %+v", st)
		}
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

		// A task's ID does not name a job, and vice versa.
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

// acts sends the request of an offered action.
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

// An explanation masks the values that the task says to mask, even if the program that recorded an
// error did not mask them.
func TestWhyIsMasked(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{store: unmasked{memstore.New()}})
	var job httpapi.Submitted
	s.post("/v1/jobs", `{"name":"pay","tasks":[{"node":"first","task_type":"acme.billing.charge.v1","input":{"order":"bad","amount":1,"card":"4929-1234"}},
		{"node":"then","task_type":"acme.billing.charge.v1","input":{"order":"2","amount":1},"needs":["first"]}]}`).want(http.StatusCreated).into(&job)
	s.run()
	tasks, err := s.client.JobTasks(t.Context(), job.ID)
	s.no(err)
	for _, path := range []string{"/v1/jobs/" + job.ID.String(), "/v1/tasks/" + tasks[0].ID.String(), "/v1/tasks/" + tasks[1].ID.String()} {
		a := s.get(path + "/why").want(http.StatusOK)
		if text := string(a.body); strings.Contains(text, "4929-") || !strings.Contains(text, "no such card") {
			t.Errorf("the explanation is %s", text)
		}
	}
}

// unmasked is a store in which another program wrote a secret into the errors.
type unmasked struct{ *memstore.Store }

func (u unmasked) History(ctx context.Context, ns string, id weaver.TaskID) (store.History, error) {
	h, err := u.Store.History(ctx, ns, id)
	h.Task.Error = tell(h.Task.Error)
	for i := range h.Attempts {
		h.Attempts[i].Error = tell(h.Attempts[i].Error)
	}
	return h, err
}

func (u unmasked) List(ctx context.Context, ns string, f store.Filter) ([]task.Task, string, error) {
	list, next, err := u.Store.List(ctx, ns, f)
	for i := range list {
		list[i].Error = tell(list[i].Error)
	}
	return list, next, err
}

func tell(e *task.Error) *task.Error {
	if e == nil || e.Kind != task.KindHandler {
		return e
	}
	told := *e
	told.Message = "no such card: 4929-1234"
	return &told
}

func TestWhyRefuses(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true})
	id := s.enqueue().String()
	for _, depth := range []string{"0", "-1", "101", "x", "1e3"} {
		s.get("/v1/tasks/"+id+"/why?depth="+depth).problem(http.StatusBadRequest, "bad-query")
	}
	s.get("/v1/tasks/x/why").problem(http.StatusNotFound, "not-found")
	for _, kind := range []string{"tasks", "jobs"} {
		s.get("/v1/"+kind+"/"+task.NewIDs(nil).New().String()+"/why").problem(http.StatusNotFound, "not-found")
	}
}
