package explainread_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/explainread"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"weaver why 01ABC":                             explainread.Command("weaver", weaver.DefaultNamespace)("why", "01ABC"),
		"acme --namespace test queue resume 'a b'":     explainread.Command("acme", "test")("queue", "resume", "a b"),
		`weaver --namespace 'it'\''s' why '$(reboot)'`: explainread.Command("weaver", "it's")("why", "$(reboot)"),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// orphaned is a source all of whose running tasks have lost their process.
type orphaned struct{ explainread.Masked }

func (orphaned) Orphans(_ context.Context, ids ...weaver.TaskID) ([]weaver.TaskID, error) {
	return ids, nil
}

// A task whose worker is dead, and one that is due and has no worker, are explained with what
// goes on with them.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	db := memstore.New()
	client, err := weaver.NewClient(db, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	job := weaver.NewJob("two", weaver.Budget{})
	job.Add("one", weaver.NewDraft("acme.test.one.v1", []byte("1")))
	h, err := client.Submit(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	r := explainread.Reader{Source: orphaned{explainread.Masked{Client: client}}, TakeOver: func(j *task.Job) []string {
		if j == nil || j.Name != "two" {
			return []string{"weaver worker"}
		}
		return []string{"weaver worker", "weaver run two.yaml"}
	}}
	e := explain.Explainer{Clock: explain.Clock{Now: time.Now(), Zone: time.UTC}, Command: explainread.Command("weaver", client.Namespace()), Depth: 1}
	tasks, err := client.JobTasks(t.Context(), h.ID())
	if err != nil {
		t.Fatal(err)
	}
	starts := func(runs func(string) bool) (n int) {
		t.Helper()
		r := r
		r.Runs = runs
		for _, id := range []task.ID{tasks[0].ID, h.ID()} {
			x, err := r.Explain(t.Context(), e, id)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range x.Actions {
				if a.Verb == explain.VerbRun {
					n++
				}
			}
		}
		return n
	}
	late := weaver.NewDraft("acme.test.one.v1", []byte("1"), weaver.Delay(time.Hour))
	delayed, err := client.EnqueueTasks(t.Context(), late)
	if err != nil {
		t.Fatal(err)
	}
	r2 := r
	r2.Runs = func(string) bool { return true }
	if x, err := r2.Explain(t.Context(), e, delayed[0].ID); err != nil || !slices.ContainsFunc(x.Actions, func(a explain.Action) bool { return a.Command == "weaver worker" }) {
		t.Errorf("a task that is due later: %+v, %v", x, err)
	}
	is := func(name string) bool { return name == "acme.test.one.v1" }
	if with, without := starts(is), starts(func(string) bool { return false }); with != 4 || without != 0 {
		t.Errorf("a task that is due: %d actions start a worker, and %d of another type; want 4 and 0", with, without)
	}
	if err := db.Join(t.Context(), client.Namespace(), store.WorkerInfo{ID: "w", Name: "here:1", TTL: time.Hour, Types: []string{"acme.test.one.v1"}}); err != nil {
		t.Fatal(err)
	}
	if n := starts(is); n != 0 {
		t.Errorf("a worker is up, and %d actions start one", n)
	}
	got, err := db.Claim(t.Context(), client.Namespace(), store.ClaimRequest{Worker: "w", Name: "here:1", Types: map[string]int{"acme.test.one.v1": 1}, Limit: 1, Slots: 1, TTL: time.Hour, LeaseID: task.NewLeaseID()})
	if err != nil || len(got.Tasks) != 1 {
		t.Fatalf("claimed %+v, %v", got, err)
	}
	quiet := explainread.Reader{Source: r.Source}
	if _, err := quiet.Explain(t.Context(), e, tasks[0].ID); err != nil {
		t.Errorf("without TakeOver: %v", err)
	}
	for _, id := range []task.ID{tasks[0].ID, h.ID()} {
		x, err := r.Explain(t.Context(), e, id)
		if err != nil {
			t.Fatal(err)
		}
		said, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(said), "`weaver worker` or `weaver run two.yaml` goes on") || len(x.Actions) == 0 || x.Actions[0].Command != "weaver worker" {
			t.Errorf("of the %s it says: %s", x.Kind, said)
		}
	}
}
