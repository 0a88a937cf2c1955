package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The suite in storetest covers the results of work that exceeds one transaction. These tests
// check that it takes several transactions, and that a crash between two leaves nothing half
// done.

// fan submits a job of a task and n dependents, each with an edge of the kind, unless change
// removes the edge of the last one.
func (f *fixture) fan(n int, kind task.EdgeKind, change ...func(last *task.New)) (job, need task.ID) {
	f.Helper()
	sub := f.drafts(n + 1)
	sub.Job = &task.NewJob{ID: f.ids.New(), Name: "fan"}
	need = sub.Tasks[0].ID
	for i := range sub.Tasks {
		if sub.Tasks[i].Node = fmt.Sprint("n", i); i > 0 {
			sub.Tasks[i].Needs = []task.Edge{{Needs: need, Kind: kind}}
		}
	}
	for _, c := range change {
		c(&sub.Tasks[n])
	}
	if err := f.submit(f.Context(), sub); err != nil {
		f.Fatal(err)
	}
	return sub.Job.ID, need
}

func (f *fixture) operate(cmd store.Command) store.CommandResult {
	f.Helper()
	got, err := f.db.Operate(f.Context(), fixNS, cmd)
	if err != nil {
		f.Fatalf("%T: %v", cmd, err)
	}
	return got[0]
}

// dieAfter fails all commits after the first n, as if the process died there.
func (f *fixture) dieAfter(n int) {
	f.db.OnCommit(func(commit func() error) error {
		if n--; n < 0 {
			return errOwn
		}
		return commit()
	})
}

func (f *fixture) chores() []store.ChoreRow {
	f.Helper()
	snap, err := f.db.Snapshot(f.Context(), fixNS)
	if err != nil {
		f.Fatal(err)
	}
	for _, v := range store.Check(snap) {
		f.Errorf("store.Check: %v", v)
	}
	return snap.Chores
}

// elsewhere opens the same file as another process would.
func (f *fixture) elsewhere() *fixture {
	f.Helper()
	return &fixture{T: f.T, db: openFile(f.T, f.db.Path()), ids: f.ids}
}

// reapChores works off all chores and returns the number of reaps.
func (f *fixture) reapChores() int {
	f.Helper()
	for n := 1; ; n++ {
		got, err := f.db.Reap(f.Context(), fixNS, store.ReapRequest{Worker: "reaper", TTL: fixTTL})
		if err != nil {
			f.Fatal(err)
		}
		if !got.Chores {
			return n
		}
	}
}

func (f *fixture) states(want map[task.State]int) {
	f.Helper()
	for state, n := range want {
		if got := f.count(fmt.Sprintf("SELECT count(*) FROM weaver_tasks WHERE state = '%s'", state)); got != n {
			f.Errorf("%d tasks are %s, want %d", got, state, n)
		}
	}
}

func TestManyDependentsAreLeftToReapers(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	n := 2*rules.MaxMoves + 1
	f.fan(n, task.OnSuccess)
	f.finish(f.claim("w", 1)...)
	f.states(map[task.State]int{task.Ready: rules.MaxMoves, task.Pending: n - rules.MaxMoves})
	if got := f.chores(); len(got) != 1 || got[0].Kind != store.ChoreEdges {
		t.Errorf("the chores are %+v", got)
	}
	other := f.elsewhere()
	if got := other.reapChores(); got != 2 {
		t.Errorf("%d reaps did the rest, want 2", got)
	}
	other.states(map[task.State]int{task.Ready: n})
	if got := f.chores(); len(got) != 0 {
		t.Errorf("chores are left: %+v", got)
	}
}

func TestCancelOfAJobThatWasCutShort(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	n := 2 * rules.MaxMoves
	job, need := f.fan(n, task.OnDone, func(last *task.New) { last.Needs = nil })
	f.dieAfter(1)
	got := f.operate(store.CancelJob{Job: job, Audit: store.Audit{By: "ann"}})
	if got.Cancelled != rules.MaxMoves {
		t.Errorf("%+v, want what the first transaction did", got)
	}
	f.db.OnCommit(nil)
	f.chores()
	// The task without needs is ready. It must not start, and no task may be retried yet.
	f.states(map[task.State]int{task.Ready: 1})
	for other := f.elsewhere(); len(f.chores()) > 0; {
		claim, err := other.db.Claim(t.Context(), fixNS, fixClaim("w", 10))
		if err != nil || len(claim.Tasks) > 0 || claim.Next == 0 {
			t.Fatalf("a claim while the job is being cancelled: %+v, %v", claim, err)
		}
		says(t, other.operate(store.RetryTask{Task: need}).Err, store.ErrState, job.String(), "again in a moment")
		if _, err := other.db.Reap(t.Context(), fixNS, store.ReapRequest{Worker: "reaper", TTL: fixTTL}); err != nil {
			t.Fatal(err)
		}
		if len(f.chores()) == 1 && f.chores()[0].Kind == store.ChoreEdges {
			break
		}
	}
	f.reapChores()
	f.states(map[task.State]int{task.Cancelled: n + 1})
	if got := f.count("SELECT count(*) FROM weaver_tasks WHERE cancel_by = 'ann'"); got != n+1 {
		t.Errorf("%d tasks were cancelled by the command, want all %d", got, n+1)
	}
}

func TestRetryThatWasCutShort(t *testing.T) {
	t.Parallel()
	for _, cancelled := range []bool{false, true} {
		t.Run(fmt.Sprintf("the root is cancelled meanwhile: %v", cancelled), func(t *testing.T) {
			t.Parallel()
			f := fixtureOn(t, openFile(t, filepath.Join(t.TempDir(), "w.db")))
			n := rules.MaxMoves + 10
			_, need := f.fan(n, task.OnSuccess)
			f.operate(store.CancelTask{Task: need})
			f.reapChores()
			f.states(map[task.State]int{task.Cancelled: n + 1})
			f.dieAfter(1)
			if got := f.operate(store.RetryTask{Task: need}); got.Err != nil {
				t.Fatal(got.Err)
			}
			f.db.OnCommit(nil)
			if got := f.chores(); len(got) != 1 || got[0].Kind != store.ChoreRevive {
				t.Fatalf("the chores are %+v", got)
			}
			other := f.elsewhere()
			if got := other.claim("w", 1); len(got) > 0 {
				t.Errorf("the task was claimed before its dependents were back")
			}
			if cancelled {
				f.operate(store.CancelTask{Task: need})
				other.reapChores()
				f.chores()
				f.states(map[task.State]int{task.Cancelled: n + 1})
				return
			}
			other.reapChores()
			f.chores()
			f.states(map[task.State]int{task.Ready: 1, task.Pending: n})
			if got := other.claim("w", 2); len(got) != 1 || got[0].Task.ID != need {
				t.Errorf("%d tasks were claimed, want the one that was retried", len(got))
			}
		})
	}
}

// A dependent that ends while a chore revives others is not revived with them if its cleanup
// completed, unless the retry keeps steps.
func TestRetryLeavesOutWhatCleanedUpMeanwhile(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprintf("keeps steps: %v", keep), func(t *testing.T) {
			t.Parallel()
			f := fixtureOn(t, openFile(t, filepath.Join(t.TempDir(), "w.db")))
			n := rules.MaxMoves + 10
			_, need := f.fan(n, task.OnSuccess, func(last *task.New) { last.Needs = nil })
			f.operate(store.CancelTask{Task: need})
			f.reapChores()
			f.states(map[task.State]int{task.Cancelled: n, task.Ready: 1})
			f.dieAfter(1)
			if got := f.operate(store.RetryTask{Task: need, KeepSteps: keep}); got.Err != nil {
				t.Fatal(got.Err)
			}
			f.db.OnCommit(nil)

			other := f.elsewhere()
			list, _, err := other.db.List(t.Context(), fixNS, store.Filter{States: []task.State{task.Cancelled}, Limit: 1})
			if err != nil || len(list) != 1 {
				t.Fatalf("%d tasks are to come back, %v", len(list), err)
			}
			lastNeed := list[0].ID
			c := other.claim("w", 1)[0]
			rec := store.Record{Lease: c.Lease, Step: &task.Step{Name: "refund", Kind: task.KindCleanup, State: task.StepCompleted, Try: 1, Value: []byte("null")}}
			if got, err := other.db.Record(t.Context(), fixNS, rec); err != nil || got[0].Err != nil {
				t.Fatal(err, got)
			}
			fin := store.Finish{Lease: c.Lease, Outcome: task.OutcomeAddDependency, DependsOn: lastNeed, CodeVersion: 1}
			if got, err := other.db.Finish(t.Context(), fixNS, fin); err != nil || got[0].Err != nil || got[0].State != task.Cancelled {
				t.Fatalf("the dependent ended as %+v, %v", got, err)
			}
			other.reapChores()
			want := map[task.State]int{task.Ready: 1, task.Pending: n - 1, task.Cancelled: 1}
			if keep {
				want = map[task.State]int{task.Ready: 1, task.Pending: n}
			}
			f.states(want)
		})
	}
}

// Each bite costs as much as the one before, regardless of the finished work.
func TestBitesDoNotGrow(t *testing.T) {
	t.Parallel()
	f := memoryFixture(t)
	f.fan(4*rules.MaxMoves, task.OnSuccess)
	f.finish(f.claim("w", 1)...)
	var steps []int
	for more := true; more; {
		if _, err := f.db.WriteSteps(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := f.db.Reap(t.Context(), fixNS, store.ReapRequest{Worker: "reaper", TTL: fixTTL})
		if err != nil {
			t.Fatal(err)
		}
		n, err := f.db.WriteSteps(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		steps, more = append(steps, n), got.Chores
	}
	if n := len(steps); n != 3 || steps[n-2] > steps[0]+500 {
		t.Errorf("the reaps took %d steps, want 3 with as many in each", steps)
	}
}
