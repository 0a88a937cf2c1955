package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// partsOf returns a job that is stored in six parts of the weight 6. The decision is the first
// commit. Its last task needs all tasks without needs.
func (f *fixture) partsOf(change ...func(*task.New)) store.Submission {
	sub := f.drafts(21, change...)
	sub.Job = &task.NewJob{ID: f.ids.New(), Name: "large", IdempotencyKey: "once"}
	for i := range sub.Tasks {
		n := &sub.Tasks[i]
		n.Node = fmt.Sprint("n", i)
		switch {
		case i == 20:
			for j := range 16 {
				n.Needs = append(n.Needs, task.Edge{Needs: sub.Tasks[j].ID, Kind: []task.EdgeKind{task.OnSuccess, task.OnDone}[j/8]})
			}
		case i >= 16: // a chain against the order of the submission
			n.Needs = []task.Edge{{Needs: sub.Tasks[(i+1)%20].ID, Kind: task.OnSuccess}}
		}
	}
	return sub
}

const partsCommits = 7 // of partsOf, including the decision

func partsFixture(t *testing.T) *fixture {
	t.Helper()
	return fileFixture(t).inParts(6)
}

// cutShort stores a job of partsOf with a process that dies after some commits.
func cutShort(t *testing.T, commits int, change ...func(*task.New)) (*fixture, store.Submission) {
	t.Helper()
	f := partsFixture(t)
	sub := f.partsOf(change...)
	f.dieAfter(commits)
	if err := f.submit(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	return f, sub
}

// inParts stores jobs that weigh more in parts.
func (f *fixture) inParts(weight int) *fixture {
	f.db.Whole, f.db.Part = weight, weight
	return f
}

// runsWhole runs the tasks of a job, and checks that each runs once, after its needs.
func (f *fixture) runsWhole(sub store.Submission) {
	f.Helper()
	ran := map[task.ID]bool{}
	for {
		cs := f.claim("w", 5)
		if len(cs) == 0 {
			break
		}
		for i := range cs {
			id := cs[i].Task.ID
			if ran[id] {
				f.Errorf("the task %s ran twice", cs[i].Task.Node)
			}
			ran[id] = true
			for j := range sub.Tasks {
				for _, e := range sub.Tasks[j].Needs {
					if sub.Tasks[j].ID == id && !ran[e.Needs] {
						f.Errorf("the task %s ran before a need", cs[i].Task.Node)
					}
				}
			}
		}
		f.finish(cs...)
	}
	if len(ran) != len(sub.Tasks) {
		f.Errorf("%d of %d tasks ran", len(ran), len(sub.Tasks))
	}
	f.sound(idsOf(sub)...)
	if got := f.one("SELECT state FROM weaver_jobs"); got != string(task.JobSucceeded) {
		f.Errorf("the job is %s", got)
	}
	if n := f.count("SELECT (SELECT count(*) FROM weaver_drafts) + (SELECT count(*) FROM weaver_chores)"); n > 0 {
		f.Errorf("%d drafts and chores are left", n)
	}
}

// Whichever commit fails, or is done without a reply, the job is stored as a whole or not at
// all. Repeating the submission stores it once.
func TestLargeJob_CutShort(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		for at := range partsCommits {
			t.Run(fmt.Sprintf("at commit %d, which is done: %v", at, lost), func(t *testing.T) {
				t.Parallel()
				f := partsFixture(t)
				sub := f.partsOf()
				n := 0
				f.db.OnCommit(func(commit func() error) error {
					switch n++; {
					case n <= at || n == at+1 && lost:
						if err := commit(); err != nil || n <= at {
							return err
						}
					}
					return errOwn
				})
				_, err := f.db.Enqueue(t.Context(), fixNS, nil, sub)
				f.db.OnCommit(nil)
				if (err == nil) != (at > 0) {
					t.Fatalf("Enqueue: %v", err)
				}
				f.chores() // the check holds at every stage
				other := f.elsewhere().inParts(6)
				if at == 0 && !lost {
					other.reapChores()
					other.sound()
				} else if got := other.one("SELECT total || ' ' || state FROM weaver_jobs"); got != "21 running" {
					t.Errorf("the job counts %s", got)
				}
				if at < partsCommits-1 || !lost {
					if cs := other.claim("w", 1); len(cs) > 0 {
						t.Fatal("a task is claimable before the last part")
					}
				}
				again := f.partsOf()
				if at%2 == 0 { // the caller's retry has other IDs, the client's retry has the same
					again = sub
				}
				if at == 4 || at == 0 && lost { // by a process that would store it in one transaction
					if err := f.elsewhere().submit(t.Context(), again); err != nil {
						t.Fatal(err)
					}
				}
				got, err := other.db.Enqueue(t.Context(), fixNS, nil, again)
				if err != nil {
					t.Fatal(err)
				}
				if was := at > 0 || lost; was && at%2 == 1 && (got[0].Job != sub.Job.ID || got[0].Disposition != store.DispositionExisting) {
					t.Errorf("the second submission is answered with %+v", got[0])
				}
				if at == 0 && !lost {
					sub = again
				}
				other.runsWhole(sub)
			})
		}
	}
}

// A reaper of another process completes the submission.
func TestLargeJob_Reaped(t *testing.T) {
	t.Parallel()
	for commits := 1; commits < partsCommits; commits += 3 {
		f, sub := cutShort(t, commits)
		other := f.elsewhere()
		heard := other.notices()
		if got := other.reapChores(); got != partsCommits-commits {
			t.Errorf("after %d commits %d reaps did the rest, want %d", commits, got, partsCommits-commits)
		}
		other.await(heard, "due tasks", func(n store.Notice) bool { return n.Due })
		other.runsWhole(sub)
	}
}

// A job with a permanently refused task ends, and reapers continue.
func TestLargeJob_Refused(t *testing.T) {
	t.Parallel()
	for _, reaped := range []bool{false, true} {
		f := partsFixture(t)
		sub := f.partsOf()
		sub.Tasks[3].Type = "acme.refused.v1" // in one of the last parts
		f.exec("CREATE TRIGGER refuses BEFORE INSERT ON weaver_tasks WHEN NEW.task_type = 'acme.refused.v1' BEGIN SELECT RAISE(ABORT, 'no'); END")
		if reaped {
			f.dieAfter(2)
		}
		err := f.submit(t.Context(), sub)
		if reaped {
			f = f.elsewhere()
			f.reapChores()
		}
		if refused := errors.Is(err, store.ErrRefused); refused == reaped {
			t.Errorf("Enqueue, of which reapers do the rest: %v: %v", reaped, err)
		}
		if got := f.one("SELECT state || ' ' || (SELECT count(*) FROM weaver_drafts) || ' ' || (SELECT count(*) FROM weaver_chores) || ' ' || cancel_reason FROM weaver_jobs"); !strings.HasPrefix(got, "cancelled 0 0 its tasks cannot be stored: ") {
			t.Errorf("the job, drafts and chores: %s", got)
		}
		f.chores() // the check holds
	}
}

// A context that ends after the decision leaves the rest to reapers.
func TestLargeJob_ContextEnds(t *testing.T) {
	t.Parallel()
	f := partsFixture(t)
	sub := f.partsOf()
	ctx, cancel := context.WithCancel(t.Context())
	f.db.OnCommit(func(commit func() error) error {
		err := commit()
		cancel()
		return err
	})
	err := f.submit(ctx, sub)
	f.db.OnCommit(nil)
	if err != nil && f.count("SELECT count(*) FROM weaver_jobs") == 0 {
		t.Fatal(err)
	}
	f.reapChores()
	f.runsWhole(sub)
}

// No transaction inserts more than a part.
func TestLargeJob_IsBounded(t *testing.T) {
	t.Parallel()
	f := partsFixture(t)
	var most, last, commits int
	f.db.OnCommit(func(commit func() error) error {
		err := commit()
		now := f.count("SELECT 2 * (SELECT count(*) FROM weaver_tasks) + (SELECT count(*) FROM weaver_task_dependencies)")
		most, last, commits = max(most, now-last), now, commits+1
		return err
	})
	sub := f.partsOf()
	if err := f.submit(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	f.db.OnCommit(nil)
	if most > 12 || commits != partsCommits {
		t.Errorf("%d commits, of which one inserts %d halves of a task; want %d with 12 at most", commits, most, partsCommits)
	}
	f.runsWhole(sub)
}

// Commands find the whole job.
func TestLargeJob_CommandsBetweenParts(t *testing.T) {
	t.Parallel()
	all := map[string]struct {
		cmd   func(sub *store.Submission) store.Command
		check func(f *fixture, got store.CommandResult)
		ends  bool
	}{
		"cancel job": {
			func(sub *store.Submission) store.Command {
				return store.CancelJob{Job: sub.Job.ID, Audit: store.Audit{By: "ann"}}
			},
			func(f *fixture, got store.CommandResult) {
				if got.Cancelled != 21 || f.count("SELECT count(*) FROM weaver_tasks WHERE state = 'cancelled' AND cancel_by = 'ann'") != 21 {
					f.Errorf("%+v", got)
				}
			}, true,
		},
		"delete job": {
			func(sub *store.Submission) store.Command { return store.DeleteJob{Job: sub.Job.ID} },
			func(f *fixture, got store.CommandResult) { says(f.T, got.Err, store.ErrState) }, false,
		},
		"cancel a task that was not stored": {
			func(sub *store.Submission) store.Command { return store.CancelTask{Task: sub.Tasks[20].ID} },
			func(f *fixture, got store.CommandResult) {
				if got.Err != nil || got.State != task.Cancelled {
					f.Errorf("%+v", got)
				}
			}, true,
		},
		"signal": {
			func(sub *store.Submission) store.Command {
				return store.SendSignal{Task: sub.Tasks[16].ID, Name: "go", Key: "1", Payload: json.RawMessage("1")}
			},
			func(f *fixture, got store.CommandResult) {
				if got.Err != nil {
					f.Error(got.Err)
				}
			}, false,
		},
	}
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, sub := cutShort(t, 3)
			other := f.elsewhere()
			if name == "cancel a task that was not stored" { // its row is in the first part
				if n := other.count("SELECT count(*) FROM weaver_tasks WHERE remaining_deps = 16"); n != 1 {
					t.Fatal("the last task is not stored")
				}
			}
			got := other.operate(c.cmd(&sub))
			if n := other.count("SELECT count(*) FROM weaver_drafts"); n > 0 {
				t.Errorf("%d parts are left", n)
			}
			c.check(other, got)
			other.reapChores()
			if other.chores(); !c.ends {
				other.runsWhole(sub)
			}
		})
	}
}

// A command that cannot store the remaining parts does nothing.
func TestLargeJob_CommandFails(t *testing.T) {
	t.Parallel()
	f, sub := cutShort(t, 3)
	f.dieAfter(2)
	if _, err := f.db.Operate(t.Context(), fixNS, store.CancelJob{Job: sub.Job.ID}); err == nil {
		t.Error("the command was applied to a part of the job")
	}
	f.db.OnCommit(nil)
	f.reapChores()
	f.runsWhole(sub)
}

// Deadlines that pass before the last part end all tasks, as in one transaction.
func TestLargeJob_DeadlineBetweenParts(t *testing.T) {
	t.Parallel()
	for commits := 1; commits < partsCommits; commits += 2 {
		f := partsFixture(t)
		sub := f.partsOf()
		sub.Job.Budget.MaxDuration = time.Minute
		f.dieAfter(commits)
		if err := f.submit(t.Context(), sub); err != nil {
			t.Fatal(err)
		}
		f.db.OnCommit(nil)
		f.db.ShiftClock(time.Hour)
		for range 3 * partsCommits {
			if _, err := f.db.Reap(t.Context(), fixNS, store.ReapRequest{Worker: "reaper", TTL: fixTTL}); err != nil {
				t.Fatal(err)
			}
			f.chores()
		}
		f.states(map[task.State]int{task.Cancelled: 21})
		if cs := f.claim("w", 1); len(cs) > 0 {
			t.Error("a task runs after its deadline")
		}
	}
}

// A delay counts from the submission, regardless of when its part is stored.
func TestLargeJob_DelayBetweenParts(t *testing.T) {
	t.Parallel()
	f, sub := cutShort(t, 2, func(n *task.New) { n.Delay = time.Minute })
	f.db.OnCommit(nil)
	f.db.ShiftClock(time.Hour)
	f.reapChores()
	f.runsWhole(sub)
}

// Inputs that are blobs are in use from the decision on. They are replaced like others while
// they are drafts.
func TestLargeJob_InputsOfDrafts(t *testing.T) {
	t.Parallel()
	f := partsFixture(t)
	b := f.upload("a")
	sub := f.partsOf()
	sub.Tasks[3].Input = b.Value()
	f.dieAfter(2)
	if err := f.submit(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	f.db.OnCommit(nil)
	f.chores()
	if got, err := f.db.Collect(t.Context(), fixNS, store.CollectRequest{Blobs: &store.CollectBlobs{Pending: 1}}); err != nil || len(got.Blobs.Delete) > 0 {
		t.Errorf("a collector is to delete %v, %v", got.Blobs.Delete, err)
	}
	var swaps []store.ValueSwap
	for after := ""; ; {
		values, next, err := f.values(after)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			if v.Kind == store.ValueDraft && v.Task != sub.Tasks[3].ID {
				swaps = append(swaps, store.ValueSwap{ValueAt: v.ValueAt, Old: v.Value, New: json.RawMessage(`"` + v.Task.String() + `"`)})
			}
		}
		if after = next; after == "" {
			break
		}
	}
	if len(swaps) != f.count("SELECT sum(children) FROM weaver_drafts")-1 || len(swaps) < 15 {
		t.Fatalf("%d drafts were walked", len(swaps))
	}
	if n, err := f.swap(swaps); n != len(swaps) || err != nil {
		t.Fatalf("%d of %d were replaced, %v", n, len(swaps), err)
	}
	f.reapChores()
	f.chores()
	snap, err := f.db.Snapshot(t.Context(), fixNS)
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[task.ID]string{}
	for i := range snap.Tasks {
		inputs[snap.Tasks[i].ID] = string(snap.Tasks[i].Input)
	}
	for _, s := range swaps {
		if got := inputs[s.Task]; got != string(s.New) {
			t.Errorf("a task has the input %s, want %s", got, s.New)
		}
	}
	if got := f.one("SELECT group_concat(state) FROM weaver_blobs"); got != "live" {
		t.Errorf("the blob is %s", got)
	}
	if n := f.count("SELECT count(*) FROM weaver_artifacts WHERE kind = 'draft'"); n > 0 {
		t.Errorf("the job still holds %d blobs", n)
	}
	f.runsWhole(sub)
}

// Inputs replaced in the store take precedence over the drafts in this process's memory.
func TestLargeJob_ReplacedBetweenParts(t *testing.T) {
	t.Parallel()
	f, sub := cutShort(t, 2)
	f.db.OnCommit(nil)
	f.exec(`UPDATE weaver_drafts SET drafts = replace(drafts, 'eyJuIjoxfQ==', 'eyJuIjoyfQ==')`)
	if err := f.submit(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	if got := f.count(`SELECT count(*) FROM weaver_tasks WHERE input = '{"n":2}'`); got != 20 {
		t.Errorf("%d tasks have the new input, want 20", got)
	}
	f.runsWhole(sub)
}
