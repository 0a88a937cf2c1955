package sqlite_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// decomposing returns the end of an attempt that decomposes into n children.
func (f *fixture) decomposing(c store.Claimed, join task.Join, n int) store.Finish {
	fin := store.Finish{Lease: c.Lease, Outcome: task.OutcomeDecompose, Join: join, CodeVersion: 1, Output: json.RawMessage("1")}
	for i := range n {
		fin.Children = append(fin.Children, f.draft(func(n *task.New) { n.Input = json.RawMessage(fmt.Sprintf(`{ "i":%d, "c":"<&>"}`, i)) }))
	}
	return fin
}

// parentOf submits a job of one task and claims the task.
func (f *fixture) parentOf() store.Claimed {
	f.Helper()
	sub := f.drafts(1)
	sub.Job = &task.NewJob{ID: f.ids.New(), Name: "tree"}
	sub.Tasks[0].Node = "all"
	if err := f.submit(f.Context(), sub); err != nil {
		f.Fatal(err)
	}
	return f.claim("w", 1)[0]
}

// The children of a decompose are stored bite by bite. Other processes continue if the first
// one ends between two bites, regardless of their parent's fate.
func TestChildrenAreStoredInBites(t *testing.T) {
	t.Parallel()
	n := 3*rules.MaxMoves + 7
	end := func(f *fixture, other *fixture) {
		f.Helper()
		for _, v := range f.chores() {
			f.Errorf("a chore is left: %+v", v)
		}
		if got := f.count("SELECT count(*) FROM weaver_drafts"); got != 0 {
			f.Errorf("%d rows of drafts are left", got)
		}
		for left := n; left > 0; {
			cs := other.claim("w", min(left, 500))
			if len(cs) == 0 {
				f.Fatalf("%d children are not claimable", left)
			}
			for i := range cs {
				var in struct {
					I int    `json:"i"`
					C string `json:"c"`
				}
				if err := json.Unmarshal(cs[i].Task.Input, &in); err != nil || cs[i].Task.Node != fmt.Sprintf("all/decompose[%d]", in.I) ||
					string(cs[i].Task.Input) != fmt.Sprintf(`{ "i":%d, "c":"<&>"}`, in.I) {
					f.Fatalf("the child %q has the input %s, %v", cs[i].Task.Node, cs[i].Task.Input, err)
				}
			}
			other.finish(cs...)
			left -= len(cs)
		}
		other.reapChores()
		f.chores()
		f.states(map[task.State]int{task.Succeeded: n + 1})
	}
	decompose := func(f *fixture, commits int) task.ID {
		f.Helper()
		c := f.parentOf()
		f.dieAfter(commits)
		fin := f.decomposing(c, task.JoinComplete, n)
		if got, err := f.db.Finish(f.Context(), fixNS, fin); err != nil || got[0].Err != nil || got[0].Waiting != task.WaitChildren {
			f.Fatalf("Finish: %+v, %v", got, err)
		}
		f.db.OnCommit(nil)
		f.chores() // the check holds at every stage
		if got := f.count("SELECT remaining_deps FROM weaver_tasks WHERE parent_task_id IS NULL"); got != n {
			f.Errorf("the parent waits for %d children, want %d", got, n)
		}
		if got := f.count("SELECT total FROM weaver_jobs"); got != n+1 {
			f.Errorf("the job has %d tasks, want %d", got, n+1)
		}
		return c.Task.ID
	}
	t.Run("at once", func(t *testing.T) {
		t.Parallel()
		f := fileFixture(t)
		decompose(f, 100)
		f.states(map[task.State]int{task.Ready: n, task.Pending: 1})
		end(f, f)
	})
	for commits := 1; commits < 4; commits++ {
		t.Run(fmt.Sprintf("cut short after %d", commits), func(t *testing.T) {
			t.Parallel()
			f := fileFixture(t)
			decompose(f, commits)
			f.states(map[task.State]int{task.Ready: commits * rules.MaxMoves, task.Pending: 1})
			other := f.elsewhere()
			if got := other.reapChores(); got != 4-commits {
				t.Errorf("%d reaps did the rest, want %d", got, 4-commits)
			}
			end(f, other)
		})
	}
	t.Run("its parent is cancelled, and retried", func(t *testing.T) {
		t.Parallel()
		f := fileFixture(t)
		id := decompose(f, 1)
		f.operate(store.CancelTask{Task: id})
		says(t, f.operate(store.DeleteTask{Task: id}).Err, store.ErrState, "belongs to job")
		f.reapChores()
		f.chores()
		f.states(map[task.State]int{task.Cancelled: n + 1})
		if got := f.operate(store.RetryTask{Task: id}); got.Err != nil {
			t.Fatal(got.Err)
		}
		f.reapChores()
		end(f, f)
	})
	t.Run("its parent is retried before all are stored", func(t *testing.T) {
		t.Parallel()
		f := fileFixture(t)
		id := decompose(f, 1)
		f.operate(store.CancelTask{Task: id})
		if got := f.operate(store.RetryTask{Task: id}); got.Err != nil {
			t.Fatal(got.Err)
		}
		f.chores()
		f.reapChores()
		end(f, f)
	})
	t.Run("its job is cancelled", func(t *testing.T) {
		t.Parallel()
		f := fileFixture(t)
		id := decompose(f, 1)
		h, err := f.db.History(t.Context(), fixNS, id)
		if err != nil {
			t.Fatal(err)
		}
		f.operate(store.CancelJob{Job: h.Task.JobID})
		f.reapChores()
		f.chores()
		f.states(map[task.State]int{task.Cancelled: n + 1})
	})
}

// No transaction of a decompose stores more children than rules.MaxMoves, for any number of
// children and of decomposing tasks in one batch.
func TestDecomposeIsBounded(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	f.enqueue(3)
	var fins []store.Finish
	for i, c := range f.claim("w", 3) {
		fins = append(fins, f.decomposing(c, task.JoinRerun, []int{300, 300, 2000}[i]))
	}
	most, last := 0, 3
	f.db.OnCommit(func(commit func() error) error {
		err := commit()
		now := f.count("SELECT count(*) FROM weaver_tasks")
		most, last = max(most, now-last), now
		return err
	})
	if _, err := f.db.Finish(t.Context(), fixNS, fins...); err != nil {
		t.Fatal(err)
	}
	f.db.OnCommit(nil)
	if most > rules.MaxMoves {
		t.Errorf("a transaction stored %d children", most)
	}
	f.states(map[task.State]int{task.Ready: 2600, task.Pending: 3})
}

// The retry of a task with many children reads their edges, and leaves their revival to
// chores: it writes no child in the same transaction.
func TestRetryOfAParentIsBounded(t *testing.T) {
	t.Parallel()
	n := 3 * rules.MaxMoves
	for name, wait := range map[string]func(f *fixture, c store.Claimed){
		"a decomposition": func(f *fixture, c store.Claimed) {
			if _, err := f.db.Finish(t.Context(), fixNS, f.decomposing(c, task.JoinRerun, n)); err != nil {
				t.Fatal(err)
			}
		},
		"a call": func(f *fixture, c store.Claimed) {
			all := f.drafts(n).Tasks
			for at := 0; at < n; at += rules.MaxMoves {
				step := task.Step{Name: "all", Kind: task.KindCall, State: task.StepWaiting, Try: 1, ChildrenLeft: n, ChildrenStored: at}
				got, err := f.db.Record(t.Context(), fixNS, store.Record{Lease: c.Lease, Step: &step, Tasks: all[at : at+rules.MaxMoves]})
				if err != nil || got[0].Err != nil {
					t.Fatal(err, got)
				}
			}
			fin := store.Finish{Lease: c.Lease, Outcome: task.OutcomeSuspended, Waiting: task.WaitChildren}
			if _, err := f.db.Finish(t.Context(), fixNS, fin); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fileFixture(t)
			c := f.parentOf()
			wait(f, c)
			f.operate(store.CancelTask{Task: c.Task.ID})
			f.reapChores()
			f.states(map[task.State]int{task.Cancelled: n + 1})
			f.dieAfter(1)
			if got := f.operate(store.RetryTask{Task: c.Task.ID}); got.Err != nil {
				t.Fatal(got.Err)
			}
			f.db.OnCommit(nil)
			f.chores()
			if got := f.count("SELECT count(*) FROM weaver_tasks WHERE parent_task_id IS NOT NULL AND state <> 'cancelled'"); got != 0 {
				t.Errorf("the first transaction brought %d children back", got)
			}
			f.reapChores()
			f.chores()
			if got := f.count("SELECT count(*) FROM weaver_tasks WHERE parent_task_id IS NOT NULL AND state = 'ready'"); got != n {
				t.Errorf("%d children are back, want %d", got, n)
			}
		})
	}
}
