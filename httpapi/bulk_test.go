package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

var workerInfo = store.WorkerInfo{ID: "w", Name: "here:1", TTL: time.Minute, Types: []string{"acme.billing.charge.v1"}}

// bulk sends one bulk request.
func (s *server) bulk(body any) (res httpapi.BulkResult) {
	s.Helper()
	s.post("/v1/tasks/bulk", body).want(http.StatusOK).into(&res)
	return res
}

// A dry run lists the effects and fixes the set. The calls after it change exactly that set, page
// by page, and the audit log has the principal's name.
func TestBulk(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, db store.Store) {
		s := newServer(t, serverOptions{store: db})
		var bad []weaver.TaskID
		for range 5 {
			bad = append(bad, s.enqueue(order("bad")))
		}
		done := s.enqueue()
		s.run()

		dry := s.bulk(httpapi.BulkRequest{Verb: ops.BulkRetry, Q: "state:failed type:acme.billing.*", DryRun: true})
		if dry.Done != 5 || dry.States[task.Failed] != 5 || len(dry.Samples) != 5 || dry.Samples[0].ID != bad[4] || dry.Newest != bad[4] || dry.Next != "" {
			t.Fatalf("the dry run: %+v", dry)
		}
		if s.stateOf(bad[0]) != weaver.StateFailed {
			t.Fatal("a dry run changed a task")
		}
		late := s.enqueue(order("bad"))
		s.run()

		req := httpapi.BulkRequest{Verb: ops.BulkRetry, Q: "state:failed", Newest: dry.Newest.String(), Reason: "the bank is back", Limit: 2}
		total, calls := 0, 0
		for {
			res := s.bulk(req)
			total, calls = total+res.Done, calls+1
			if req.Next = res.Next; res.Next == "" {
				break
			}
		}
		if total != 5 || calls < 3 {
			t.Errorf("%d tasks were retried in %d calls, want 5 in 3 or more", total, calls)
		}
		for _, id := range bad {
			if got := s.stateOf(id); got != weaver.StateReady {
				t.Errorf("a task is %s after its retry", got)
			}
		}
		if got := s.stateOf(late); got != weaver.StateFailed {
			t.Errorf("a task that is newer than newest is %s", got)
		}
		var audit httpapi.Page[store.AuditEntry]
		s.get("/v1/audit?verb=retry").into(&audit)
		if len(audit.Items) != 5 || audit.Items[0].Actor != "ann" || audit.Items[0].Reason != "the bank is back" {
			t.Errorf("the audit: %+v", audit.Items)
		}

		some := s.bulk(httpapi.BulkRequest{Verb: ops.BulkCancel, IDs: []string{bad[0].String(), done.String(), task.NewIDs(nil).New().String()}})
		if some.Done != 1 || some.Done+some.AlreadyDone+len(some.Refused) != 3 {
			t.Errorf("of three ids: %+v", some)
		}
		refused := s.bulk(httpapi.BulkRequest{Verb: ops.BulkUnblock, IDs: []string{late.String()}})
		if len(refused.Refused) != 1 || refused.Refused[0].ID != late || refused.Refused[0].Problem.Type != httpapi.ProblemBase+"state" {
			raw, _ := json.Marshal(refused)
			t.Errorf("the unblock of a failed task: %s", raw)
		}
	})
}

func TestBulkRefuses(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true})
	id := s.enqueue().String()
	many := strings.Repeat(`"`+id+`",`, 1001)
	for body, at := range map[string]string{
		`{}`:                                                  "#/verb",
		`{"verb":"explode","q":"x"}`:                          "#/verb",
		`{"verb":"retry"}`:                                    "#/q",
		`{"verb":"retry","q":""}`:                             "#/q",
		`{"verb":"retry","ids":["a"]}`:                        "#/ids/0",
		`{"verb":"retry","q":"x","ids":[]}`:                   "#/ids",
		`{"verb":"retry","q":"x","limit":-1}`:                 "#/limit",
		`{"verb":"retry","q":"x","limit":1000000000}`:         "#/limit",
		`{"verb":"retry","q":"x","force":true}`:               "#/force",
		`{"verb":"retry","q":"x","newest":"x"}`:               "#/newest",
		`{"verb":"retry","ids":[],"newest":"` + id + `"}`:     "#/newest",
		`{"verb":"retry","ids":[` + many[:len(many)-1] + `]}`: "#/ids",
	} {
		if p := s.post("/v1/tasks/bulk", body).problem(http.StatusUnprocessableEntity, "invalid-body"); len(p.Errors) != 1 || p.Errors[0].Pointer != at {
			t.Errorf("%.80s: %+v, want a mistake at %s", body, p.Errors, at)
		}
	}
	for q, column := range map[string]int{"state:failed colour:red": 14, `state:failed \"x`: 14, strings.Repeat("a", 3<<10): 0} {
		p := s.post("/v1/tasks/bulk", fmt.Sprintf(`{"verb":"retry","q":"%s"}`, q)).problem(http.StatusBadRequest, "invalid-query")
		if len(p.Errors) != 1 || p.Errors[0].Pointer != "#/q" || p.Errors[0].Column != column {
			t.Errorf("q %.40s: %+v, want column %d", q, p.Errors, column)
		}
	}
	s.post("/v1/tasks/bulk", `{"verb":"retry","q":"x","next":"y"}`).problem(http.StatusBadRequest, "bad-cursor")
	s.post("/v1/tasks/bulk", `{"verb":"delete","q":"state:running"}`).problem(http.StatusUnprocessableEntity, "invalid-option")
	s.get("/v1/tasks/bulk").problem(http.StatusMethodNotAllowed, "method-not-allowed")
}

// failsAfter is a store that fails after the given number of commands.
type failsAfter struct {
	*memstore.Store
	left atomic.Int64
}

func (f *failsAfter) Operate(ctx context.Context, ns string, cmds ...store.Command) ([]store.CommandResult, error) {
	if f.left.Add(-int64(len(cmds))) < 0 {
		return nil, fmt.Errorf("%w: the network is down", store.ErrUnavailable)
	}
	return f.Store.Operate(ctx, ns, cmds...)
}

// The response reports the changes before the store failed, and the next call continues after them.
func TestBulkTellsWhatWasDone(t *testing.T) {
	t.Parallel()
	db := &failsAfter{Store: memstore.New()}
	db.left.Store(1000)
	s := newServer(t, serverOptions{store: db, direct: true})
	var drafts []weaver.Draft
	for range 250 {
		drafts = append(drafts, charge.With(chargeIn{Order: "o"}))
	}
	_, err := s.client.EnqueueTasks(t.Context(), drafts...)
	s.no(err)
	req := httpapi.BulkRequest{Verb: ops.BulkCancel, Q: "state:ready"}
	db.left.Store(120)
	res := s.bulk(req)
	if res.Done != 100 || res.Next == "" || res.Trouble != "The store cannot be reached." || !strings.Contains(s.log.String(), "the network is down") {
		t.Fatalf("cut off in the middle: %+v", res)
	}
	req.Next = res.Next
	s.post("/v1/tasks/bulk", req).problem(http.StatusServiceUnavailable, "store-unavailable")
	db.left.Store(1000)
	if res := s.bulk(req); res.Done != 150 || res.Next != "" || res.Trouble != "" {
		t.Errorf("the rest: %+v", res)
	}
}

// A time that the program has not set does not select all tasks.
func TestTimeThatIsNotSet(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true})
	id := s.enqueue()
	for _, verb := range []string{"cancel", "delete"} {
		p := s.post("/v1/tasks/bulk", `{"verb":"`+verb+`","q":"created<0001-01-01T00:00:00Z"}`).problem(http.StatusBadRequest, "invalid-query")
		if len(p.Errors) != 1 || p.Errors[0].Pointer != "#/q" || p.Errors[0].Column != 9 || !strings.Contains(p.Errors[0].Detail, "before 1970") {
			t.Errorf("%s: %+v", verb, p)
		}
	}
	for _, name := range []string{"created_after", "created_before"} {
		p := s.get("/v1/tasks?"+name+"=0001-01-01T00:00:00Z").problem(http.StatusBadRequest, "bad-query")
		if !strings.Contains(p.Error(), "before 1970: is it a time that was not set?") {
			t.Errorf("%s: %v", name, p)
		}
	}
	var found httpapi.Found
	s.get("/v1/tasks?created_after=1970-01-01T00:00:00Z").want(http.StatusOK).into(&found)
	if len(found.Items) != 1 || s.stateOf(id) != "ready" {
		t.Errorf("%d tasks, and that is %s", len(found.Items), s.stateOf(id))
	}
}
