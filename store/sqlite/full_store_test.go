package sqlite_test

import (
	"testing"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// In a full store every plan equals the plan in an empty store. A retry reads and writes only
// rows of the task and its dependents, for any number of other tasks. A statement that read
// the others once held the writer for 29 ms for each dependent. This holds for analyzed and
// unanalyzed files.
func TestFullStore(t *testing.T) {
	t.Parallel()
	others, dependents := 20_000, 2_000
	if testing.Short() || repeat < 40 {
		others, dependents = 2_000, 100
	}
	statements := statements(t)
	few, full := filledMemory(t, 10), filledMemory(t, others)
	want := map[int]int{0: few.retrySteps(0), dependents: few.retrySteps(dependents)}
	if most := want[0] + dependents*1_000; want[dependents] > most {
		t.Errorf("a retry with %d dependents takes %d steps, over %d", dependents, want[dependents], most)
	}
	check := func(what string) {
		t.Helper()
		full.wantPlans(what, statements)
		for n, steps := range want {
			if got := full.retrySteps(n); got != steps {
				t.Errorf("%s: a retry with %d dependents takes %d steps beside %d others, and %d beside 10", what, n, got, others, steps)
			}
		}
	}
	check("a full store")
	full.analyze()
	check("a full store that was analyzed")
}

// filledMemory returns a fixture on a filled store in memory.
func filledMemory(t *testing.T, n int) *fixture {
	t.Helper()
	db, err := sqlite.OpenMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, db) })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := fixtureOn(t, db)
	f.fill(n)
	return f
}

// retrySteps stores a task with dependents that end when it fails, and returns the number of
// virtual machine steps of its retry.
func (f *fixture) retrySteps(dependents int) int {
	f.Helper()
	sub := f.drafts(1 + dependents)
	root := sub.Tasks[0].ID
	for i := range sub.Tasks[1:] {
		sub.Tasks[1+i].Needs = []task.Edge{{Needs: root, Kind: task.OnSuccess}}
	}
	if err := f.submit(f.Context(), sub); err != nil {
		f.Fatal(err)
	}
	f.fail(root)
	steps := func() int {
		n, err := f.db.WriteSteps(f.Context())
		if err != nil {
			f.Fatal(err)
		}
		return n
	}
	steps()
	got, err := f.db.Operate(f.Context(), fixNS, store.RetryTask{Task: root})
	if err != nil || got[0].Err != nil {
		f.Fatalf("Retry: %v %v", err, got)
	}
	n := steps()
	f.claimOnly(root) // it is not due any more
	return n
}

// claimOnly claims the only due task.
func (f *fixture) claimOnly(id task.ID) store.Claimed {
	f.Helper()
	got := f.claim("w", 2)
	if len(got) != 1 || got[0].Task.ID != id {
		f.Fatalf("claimed %d tasks, want one", len(got))
	}
	return got[0]
}

// fail fails the only due task.
func (f *fixture) fail(id task.ID) {
	f.Helper()
	res, err := f.db.Finish(f.Context(), fixNS, store.Finish{
		Lease: f.claimOnly(id).Lease, Outcome: task.OutcomeFailure, Error: &task.Error{Kind: task.KindHandler, Message: "no luck"},
		Decision: &task.Decision{Kind: task.DecideMarkDead},
	})
	if err != nil || res[0].Err != nil {
		f.Fatalf("Finish: %v %v", err, res)
	}
}
