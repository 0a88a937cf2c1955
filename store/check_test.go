package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The tasks of the sound snapshot, by role.
const (
	ready = iota
	later
	runs    // with the key
	waits   // waits for the key
	ended   // with an attempt, two steps and a decision
	stuck   // blocked
	first   // in the job, succeeded
	second  // in the job, running
	third   // in the job, needs first and second
	skipped // in the job, not needed any more
	tasks
)

const taskType = "acme.test.check.v1"

func id(n int) task.ID { return task.ID{15: byte(n + 1)} }

var (
	now   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	jobID = id(100)
	lease = task.LeaseID{1}
)

// sound returns a valid snapshot with rows of every kind.
func sound() *store.Snapshot {
	s := &store.Snapshot{Now: now, Tasks: make([]task.Task, tasks)}
	for n := range s.Tasks {
		s.Tasks[n] = task.Task{ID: id(n), Type: taskType, Queue: "q", Priority: 5, MaxAttempts: 3, State: task.Ready}
	}
	is := func(n int, state task.State, why task.Waiting) *task.Task {
		t := &s.Tasks[n]
		t.State, t.Waiting = state, why
		switch {
		case state.Terminal():
			t.FinishedAt = now
		case state == task.Running:
			t.LeaseID, t.LeasedBy, t.LeaseExpiresAt = lease, "w", now.Add(time.Second)
			t.Epoch, t.AttemptNo = 1, 1
		}
		return t
	}
	dispatch := func(n int, at time.Time) {
		t := &s.Tasks[n]
		s.Dispatch = append(s.Dispatch, store.DispatchRow{
			Task: t.ID, Queue: t.Queue, Type: t.Type, Priority: t.Priority, AvailableAt: at, ConcurrencyKey: t.ConcurrencyKey,
		})
	}

	dispatch(ready, now)
	s.Tasks[ready].IdempotencyKey = "one"
	is(later, task.Pending, task.WaitRetry).IdempotencyKey = "two"
	dispatch(later, now.Add(time.Hour))

	is(runs, task.Running, task.WaitNone).ConcurrencyKey = "k"
	is(waits, task.Ready, task.WaitNone).ConcurrencyKey = "k"
	s.Keys = []store.KeyRow{{Key: "k", Held: 1, Cap: 1}}
	s.Waiters = []store.WaiterRow{{Key: "k", DueAt: now, Task: id(waits), Queue: "q", Type: taskType}}

	t := is(ended, task.Succeeded, task.WaitNone)
	t.AttemptNo, t.AttemptCount, t.Epoch, t.StepCount = 2, 2, 5, 2
	s.Attempts = []task.Attempt{{TaskID: id(ended), No: 1, Epoch: 3}, {TaskID: id(ended), No: 2, Epoch: 5}}
	s.Decisions = []task.Decision{{TaskID: id(ended), AttemptNo: 1, Kind: task.DecideRetry}}
	s.Steps = []task.Step{
		{TaskID: id(ended), Name: "a", State: task.StepFailed},
		{TaskID: id(ended), Name: "a", State: task.StepCompleted},
		{TaskID: id(ended), Name: "b", Index: 1, State: task.StepCompleted},
	}
	is(stuck, task.Blocked, task.WaitManual)

	is(first, task.Succeeded, task.WaitNone)
	is(second, task.Running, task.WaitNone)
	is(third, task.Pending, task.WaitDeps).RemainingDeps = 1
	is(skipped, task.Cancelled, task.WaitNone).Error = &task.Error{Kind: task.KindNotNeeded}
	for n := first; n <= skipped; n++ {
		s.Tasks[n].JobID = jobID
	}
	s.Edges = []store.EdgeRow{
		{Task: id(third), Needs: id(first), Kind: task.OnSuccess, Done: true},
		{Task: id(third), Needs: id(second), Kind: task.OnDone},
		{Task: id(skipped), Needs: id(first), Kind: task.OnFailed, Done: true},
	}
	s.Jobs = []task.Job{{ID: jobID, State: task.JobRunning, Counters: task.JobCounters{Total: 4, Unfinished: 2, Movable: 1, Succeeded: 1}}}
	return s
}

func TestCheckFindsNothing(t *testing.T) {
	t.Parallel()
	if got := store.Check(sound()); len(got) != 0 {
		t.Errorf("Check of a sound snapshot found %v", got)
	}
	if got := store.Check(&store.Snapshot{Now: now}); len(got) != 0 {
		t.Errorf("Check of an empty snapshot found %v", got)
	}
}

// A task holds its key from one attempt of its undo phase to the next, in a dispatch row
// without the key.
func TestCheckAllowsAKeyHeldInThePhase(t *testing.T) {
	t.Parallel()
	s := sound()
	s.Tasks[later].Waiting, s.Tasks[later].ConcurrencyKey = task.WaitUndo, "held"
	s.Tasks[later].Undo = &task.UndoPhase{EndsAs: task.Cancelled, HoldsKey: true}
	s.Keys = append(s.Keys, store.KeyRow{Key: "held", Held: 1, Cap: 1})
	if got := store.Check(s); len(got) != 0 {
		t.Errorf("Check found %v", got)
	}
	s.Tasks[later].Undo.HoldsKey = false
	if got := store.Check(s); len(got) != 2 || got[0].Invariant != "I9" || got[1].Invariant != "I11" {
		t.Errorf("Check of a key that is not held found %v", got)
	}
}

// Each case breaks one rule, which exactly one check detects.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		invariant string
		of        task.ID
		text      string // text of the violation
		break_    func(s *store.Snapshot)
	}{
		{"an unknown state", "I3", id(stuck), "unknown state", func(s *store.Snapshot) { s.Tasks[stuck].State, s.Tasks[stuck].Waiting = "stale", "" }},
		{"an end without a time", "I3", id(ended), "no finished_at", func(s *store.Snapshot) { s.Tasks[ended].FinishedAt = time.Time{} }},
		{"a time without an end", "I3", id(ready), "has finished_at", func(s *store.Snapshot) { s.Tasks[ready].FinishedAt = now }},
		{"an ended task is dispatched", "I3", id(ended), "still dispatched", func(s *store.Snapshot) { dispatchLike(s, ended) }},
		{"an ended task waits for its key", "I3", id(ended), "still dispatched", func(s *store.Snapshot) {
			s.Tasks[ended].ConcurrencyKey = "k"
			s.Waiters = append(s.Waiters, store.WaiterRow{Key: "k", DueAt: now, Task: id(ended), Queue: "q", Type: taskType})
		}},
		{"a running task waits", "I3", id(runs), "waiting reason retry", func(s *store.Snapshot) { s.Tasks[runs].Waiting = task.WaitRetry }},
		{"a ready task waits", "I3", id(ready), "waiting reason delay", func(s *store.Snapshot) { s.Tasks[ready].Waiting = task.WaitDelay }},

		{"a lease id without a run", "R2", id(ready), "has a lease", func(s *store.Snapshot) { s.Tasks[ready].LeaseID = lease }},
		{"a holder without a run", "R2", id(ended), "has a lease", func(s *store.Snapshot) { s.Tasks[ended].LeasedBy = "w" }},
		{"a lease's end without a run", "R2", id(stuck), "has a lease", func(s *store.Snapshot) { s.Tasks[stuck].LeaseExpiresAt = now }},
		{"a run without a lease id", "R2", id(runs), "no lease id", func(s *store.Snapshot) { s.Tasks[runs].LeaseID = task.LeaseID{} }},
		{"a run without a lease's end", "R2", id(runs), "no end", func(s *store.Snapshot) { s.Tasks[runs].LeaseExpiresAt = time.Time{} }},

		{"an epoch that falls", "I4", id(ended), "attempt 2 is 2, not above the 3 of attempt 1", func(s *store.Snapshot) { s.Attempts[1].Epoch = 2 }},
		{"an epoch that stays", "I4", id(ended), "attempt 2 is 3, not above", func(s *store.Snapshot) { s.Attempts[1].Epoch = 3 }},
		{"an epoch above the task's", "I4", id(ended), "above its own, 4", func(s *store.Snapshot) { s.Tasks[ended].Epoch = 4 }},
		{"a run under an epoch that was used", "I4", id(runs), "attempt 2 is 1, not above the 1", func(s *store.Snapshot) {
			s.Tasks[runs].AttemptNo = 2
			s.Attempts = append(s.Attempts, task.Attempt{TaskID: id(runs), No: 1, Epoch: 1})
		}},
		{"an attempt of an unknown task", "I4", id(99), "an attempt is of task", func(s *store.Snapshot) { s.Attempts = append(s.Attempts, task.Attempt{TaskID: id(99)}) }},
		{"a decision to decompose without children", "I4", id(ended), "names 0 children", func(s *store.Snapshot) { s.Decisions[0].Kind = task.DecideDecompose }},
		{"a decision of an unknown task", "I4", id(99), "a decision is of task", func(s *store.Snapshot) { s.Decisions[0].TaskID = id(99) }},

		{"a step completed twice", "I6", id(ended), `"a" is completed more than once`, func(s *store.Snapshot) { s.Steps[0].State = task.StepCompleted }},
		{"a past cleanup that failed", "I6", id(ended), `its past cleanup "a" is failed`, func(s *store.Snapshot) {
			s.Steps = append(s.Steps, task.Step{TaskID: id(ended), Name: "a", Kind: task.KindCleanup, State: task.StepFailed, Undo: task.UndoSkipped})
		}},
		{"a step that is not counted", "I6", id(ended), "2 completed steps with step_count 1", func(s *store.Snapshot) { s.Tasks[ended].StepCount = 1 }},
		{"a step of an unknown task", "I6", id(99), "a step is of task", func(s *store.Snapshot) { s.Steps[0].TaskID = id(99) }},

		{"a miscounted need", "I7", id(third), "remaining_deps 2 with 1 open", func(s *store.Snapshot) { s.Tasks[third].RemainingDeps = 2 }},
		{"an edge that is done to a task that runs", "I7", id(third), "has not ended, is done", func(s *store.Snapshot) {
			s.Edges = append(s.Edges, store.EdgeRow{Task: id(third), Needs: id(runs), Kind: task.OnDone, Done: true})
		}},
		{"a task could start before its need", "I7", id(ready), "has not ended, is done", func(s *store.Snapshot) {
			s.Edges = append(s.Edges, store.EdgeRow{Task: id(ready), Needs: id(runs), Kind: task.OnFailed, Done: true})
		}},
		{"an edge to what ended", "I7", id(skipped), "ended succeeded, is not done", func(s *store.Snapshot) { s.Edges[2].Done = false }},
		{"a wait for nothing", "I7", id(third), "all decided", func(s *store.Snapshot) {
			s.Edges[1].Needs, s.Edges[1].Done, s.Tasks[third].RemainingDeps = id(ended), true, 0
		}},
		{"a wait though a failure lets it start", "I7", id(third), "remaining_deps 1 with 0 open", func(s *store.Snapshot) {
			s.Tasks[skipped].Error.Kind = task.KindDeadline
			s.Jobs[0].Counters.Failed = 1
			s.Edges = append(s.Edges, store.EdgeRow{Task: id(third), Needs: id(skipped), Kind: task.OnFailed, Done: true})
			s.Edges[1].Kind = task.OnFailed
		}},
		{"a start before the first failure", "I7", id(ready), "has remaining_deps 0 with 1 open needs", func(s *store.Snapshot) {
			s.Edges = append(s.Edges, store.EdgeRow{Task: id(ready), Needs: id(second), Kind: task.OnFailed})
		}},
		{"a wait for a need that cannot be met", "I7", id(third), "which ended cancelled, cannot be met", func(s *store.Snapshot) {
			s.Edges = append(s.Edges, store.EdgeRow{Task: id(third), Needs: id(skipped), Kind: task.OnSuccess, Done: true})
		}},
		{"a blocked task with an open need", "I7", id(stuck), "1 open needs", func(s *store.Snapshot) { needs(s, stuck, second) }},
		{"a ready task with an open need", "I7", id(ready), "1 open needs", func(s *store.Snapshot) { needs(s, ready, second) }},
		{"a running task with an open need", "I7", id(runs), "1 open needs", func(s *store.Snapshot) { needs(s, runs, second) }},
		{"a succeeded task with an open need", "I7", id(ended), "1 open needs", func(s *store.Snapshot) { needs(s, ended, second) }},
		{"a step that began and is completed", "I6", id(ended), `"a" waits, or has only begun, and is completed`, func(s *store.Snapshot) { s.Steps[0].State = task.StepBegun }},
		{"a need that is gone", "I7", id(third), "which does not exist", func(s *store.Snapshot) { s.Edges[0].Needs = id(99) }},
		{"an edge of an unknown task", "I7", id(99), "an edge is of task", func(s *store.Snapshot) { s.Edges[2].Task = id(99) }},

		{"a lease that ended long ago", "I8", id(second), "no reaper took it", func(s *store.Snapshot) {
			s.Tasks[second].LeaseExpiresAt = now.Add(-2*time.Minute - time.Microsecond)
		}},

		{"a ready task without a row", "I9", id(ready), "0 dispatch rows and 0 waiter rows", func(s *store.Snapshot) { s.Dispatch = s.Dispatch[1:] }},
		{"a delayed task without a row", "I9", id(later), "0 dispatch rows and 0 waiter rows", func(s *store.Snapshot) { s.Dispatch = s.Dispatch[:1] }},
		{"two rows", "I9", id(ready), "2 dispatch rows", func(s *store.Snapshot) { dispatchLike(s, ready) }},
		{"a waiter that is dispatched", "I9", id(waits), "1 dispatch rows and 1 waiter rows", func(s *store.Snapshot) { dispatchLike(s, waits) }},
		{"a running task with a row", "I9", id(runs), "1 dispatch rows", func(s *store.Snapshot) { dispatchLike(s, runs) }},
		{"a blocked task with a row", "I9", id(stuck), "1 dispatch rows", func(s *store.Snapshot) { dispatchLike(s, stuck) }},
		{"a needy task with a row", "I9", id(third), "1 dispatch rows", func(s *store.Snapshot) { dispatchLike(s, third) }},
		{"a row of another queue", "I9", id(ready), "another lane", func(s *store.Snapshot) { s.Dispatch[0].Queue = "x" }},
		{"a row of another type", "I9", id(ready), "another lane", func(s *store.Snapshot) { s.Dispatch[0].Type = "x" }},
		{"a row of another priority", "I9", id(ready), "another lane", func(s *store.Snapshot) { s.Dispatch[0].Priority = 1 }},
		{"a row of another key", "I9", id(ready), "another lane", func(s *store.Snapshot) { s.Dispatch[0].ConcurrencyKey = "x" }},
		{"a ready task that is due later", "I9", id(ready), "only due at", func(s *store.Snapshot) { s.Dispatch[0].AvailableAt = now.Add(time.Second) }},
		{"a waiter of another key", "I9", id(waits), `waits for the key "k" instead of "x"`, func(s *store.Snapshot) { s.Tasks[waits].ConcurrencyKey = "x" }},
		{"a waiter of another queue", "I9", id(waits), `waits in the lane of queue "x", type "acme.test.check.v1", group "" instead of "q", "acme.test.check.v1", ""`, func(s *store.Snapshot) { s.Waiters[0].Queue = "x" }},
		{"a waiter of another group", "I9", id(waits), `group "x" instead of`, func(s *store.Snapshot) { s.Waiters[0].Group = "x" }},
		{"a waiter of another type", "I9", id(waits), `waits in the lane of queue "q", type "x"`, func(s *store.Snapshot) { s.Waiters[0].Type = "x" }},
		{"a waiter that is not due", "I9", id(waits), "only due at", func(s *store.Snapshot) { s.Waiters[0].DueAt = now.Add(time.Second) }},
		{"a waiting task that is to be cancelled", "I9", id(later), "asked to cancel", func(s *store.Snapshot) { s.Tasks[later].CancelRequested = true }},
		{"a dispatch row of an unknown task", "I9", id(99), "a dispatch row is of task", func(s *store.Snapshot) { s.Dispatch = append(s.Dispatch, store.DispatchRow{Task: id(99)}) }},
		{"a waiter row of an unknown task", "I9", id(99), "a waiter row is of task", func(s *store.Snapshot) {
			s.Waiters = append(s.Waiters, store.WaiterRow{Key: "k", DueAt: now, Task: id(99)})
		}},

		{"more attempts than allowed", "I10", id(ready), "used 4 attempts of 3", func(s *store.Snapshot) { s.Tasks[ready].AttemptCount = 4 }},
		{"more attempts than numbers", "I10", id(ended), "2 ended attempts with attempt_no 1", func(s *store.Snapshot) { s.Tasks[ended].AttemptNo = 1 }},
		{"an ended attempt under the number that runs", "I10", id(runs), "1 ended attempts with attempt_no 1", func(s *store.Snapshot) {
			s.Tasks[runs].Epoch = 2
			s.Attempts = append(s.Attempts, task.Attempt{TaskID: id(runs), No: 1, Epoch: 1})
		}},

		{"an undo that is not counted", "I15", id(ended), "has 1 steps to undo with undo_open 0", func(s *store.Snapshot) { s.Steps[1].Undo = task.UndoOpen }},
		{"an end with an open undo", "I15", id(skipped), "has 1 steps to undo", func(s *store.Snapshot) {
			s.Tasks[skipped].UndoOpen = 1
			s.Steps = append(s.Steps, task.Step{TaskID: id(skipped), Name: "s", State: task.StepBegun, Undo: task.UndoOpen})
		}},
		{"a number above the task's", "I15", id(ended), "undo_no 3, above its own, 0", func(s *store.Snapshot) { s.Steps[1].UndoNo = 3 }},
		{"an undo before a point of no return", "I15", id(ended), `"a" began before a point of no return`, func(s *store.Snapshot) {
			s.Tasks[ended].UndoOpen, s.Tasks[ended].UndoNo = 1, 1
			s.Steps[1].Undo, s.Steps[1].UndoNo, s.Steps[2].Kind, s.Steps[2].UndoNo = task.UndoOpen, 1, task.KindPoint, 1
		}},
		{"a wait for an undo without a phase", "I15", id(later), "no undo phase", func(s *store.Snapshot) { s.Tasks[later].Waiting = task.WaitUndo }},
		{"another wait in the phase", "I15", id(later), `waits for "retry" in its undo phase`, func(s *store.Snapshot) {
			s.Tasks[later].Undo = &task.UndoPhase{EndsAs: task.Failed}
		}},
		{"an end in the phase", "I15", id(ended), "in its undo phase", func(s *store.Snapshot) { s.Tasks[ended].Undo = &task.UndoPhase{EndsAs: task.Failed} }},
		{"a phase that gave up and goes on", "I15", id(later), "gave its undo up: true", func(s *store.Snapshot) {
			s.Tasks[later].Waiting, s.Tasks[later].Undo = task.WaitUndo, &task.UndoPhase{EndsAs: task.Failed, GaveUp: true}
		}},
		{"a phase that ends nowhere", "I15", id(later), `is to end "succeeded"`, func(s *store.Snapshot) {
			s.Tasks[later].Waiting, s.Tasks[later].Undo = task.WaitUndo, &task.UndoPhase{EndsAs: task.Succeeded}
		}},
		{"an undo task of another task", "I15", id(later), "and is to undo", func(s *store.Snapshot) {
			s.Tasks[later].Waiting, s.Tasks[later].Undo = task.WaitUndo, &task.UndoPhase{EndsAs: task.Succeeded, Of: id(ended)}
		}},
		{"an undo task outside of a phase", "I15", id(later), "is in no undo phase", func(s *store.Snapshot) { s.Tasks[later].UndoOf = id(ended) }},
		{"an undo task that is to fail", "I15", id(later), `is to end "failed"`, func(s *store.Snapshot) {
			s.Tasks[later].UndoOf, s.Tasks[later].Waiting, s.Tasks[later].Undo = id(ended), task.WaitUndo, &task.UndoPhase{EndsAs: task.Failed, Of: id(ended)}
		}},
		{"an undo task of one that runs", "I15", id(later), "which is running", func(s *store.Snapshot) {
			s.Tasks[later].UndoOf, s.Tasks[later].Waiting, s.Tasks[later].Undo = id(runs), task.WaitUndo, &task.UndoPhase{EndsAs: task.Succeeded, Of: id(runs)}
		}},
		{"an undo task that undid nothing", "I15", id(later), "which is not undone", func(s *store.Snapshot) {
			s.Tasks[later].UndoOf, s.Tasks[later].Waiting, s.Tasks[later].Undo = id(ended), task.WaitUndo, &task.UndoPhase{EndsAs: task.Succeeded, Of: id(ended)}
			s.Steps = append(s.Steps, task.Step{TaskID: id(later), Name: "a", Kind: task.KindUndo, State: task.StepCompleted})
		}},
		{"a round that is missing", "I15", id(ended), `"a" has no round 0 of 2`, func(s *store.Snapshot) {
			s.Steps[1].Round = 2
			s.Steps = append(s.Steps, task.Step{TaskID: id(ended), Name: "a", State: task.StepCompleted, Undo: task.UndoUndone, Round: 1})
		}},
		{"a step in the round that was undone", "I15", id(ended), `"a" is in round 0 after 1`, func(s *store.Snapshot) {
			s.Steps = append(s.Steps, task.Step{TaskID: id(ended), Name: "a", State: task.StepBegun, Undo: task.UndoSkipped})
		}},
		{"an undo of nothing", "I15", id(ended), `has 1 undos of the step "a" in round 0, which is undone: false`, func(s *store.Snapshot) {
			s.Steps = append(s.Steps, task.Step{TaskID: id(ended), Name: "a", Kind: task.KindUndo, State: task.StepCompleted})
		}},
		{"two undos of a step", "I15", id(ended), `has 2 undos of the step "z"`, func(s *store.Snapshot) {
			undo := task.Step{TaskID: id(ended), Name: "z", Kind: task.KindUndo, State: task.StepCompleted}
			s.Steps = append(s.Steps, task.Step{TaskID: id(ended), Name: "z", State: task.StepBegun, Undo: task.UndoUndone}, undo, undo)
		}},

		{"one idempotency key twice", "I11", id(later), "same idempotency key", func(s *store.Snapshot) { s.Tasks[later].IdempotencyKey = "one" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := sound()
			c.break_(s)
			expect(t, store.Check(s), c.invariant, c.of.String(), c.text)
		})
	}
}

// Violations name keys and jobs.
func TestCheckFindsInKeysAndJobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		invariant string
		of        string
		text      string
		break_    func(s *store.Snapshot)
	}{
		{"a key held too often", "I11", "k", "held 2 times, and 1 tasks run", func(s *store.Snapshot) { s.Keys[0].Held = 2 }},
		{"a key that no task holds on record", "I11", "x", "held 0 times, and 1 tasks run", func(s *store.Snapshot) { s.Tasks[second].ConcurrencyKey = "x" }},
		{"a wait for a key with room", "I11", "k", `waiters of type "acme.test.check.v1", group "" in queue "q" (1) and no due dispatch row of that lane, though 1 hold it, of 2`, func(s *store.Snapshot) { s.Keys[0].Cap = 2 }},
		{"a wait for a key that only tomorrow's row is for", "I11", "k", "no due dispatch row", func(s *store.Snapshot) {
			s.Keys[0].Cap = 2
			s.Tasks[later].ConcurrencyKey, s.Dispatch[1].ConcurrencyKey = "k", "k"
		}},
		{"a wait for a key that only a row of another type is for", "I11", "k", "no due dispatch row", func(s *store.Snapshot) {
			s.Keys[0].Cap = 2
			s.Tasks[ready].ConcurrencyKey, s.Dispatch[0].ConcurrencyKey = "k", "k"
			s.Tasks[ready].Type, s.Dispatch[0].Type = "acme.test.other.v1", "acme.test.other.v1"
		}},
		{"a wait for a key that only a row of another queue is for", "I11", "k", "no due dispatch row", func(s *store.Snapshot) {
			s.Keys[0].Cap = 2
			s.Tasks[ready].ConcurrencyKey, s.Dispatch[0].ConcurrencyKey = "k", "k"
			s.Tasks[ready].Queue, s.Dispatch[0].Queue = "other", "other"
		}},
		{"a wait for a key that only a row of another key is for", "I11", "k", "no due dispatch row", func(s *store.Snapshot) {
			s.Keys[0].Cap = 2
			s.Tasks[ready].ConcurrencyKey, s.Dispatch[0].ConcurrencyKey = "x", "x"
		}},
		{"a wait for a key without a row", "I11", "x", "though 0 hold it", func(s *store.Snapshot) {
			s.Tasks[waits].ConcurrencyKey, s.Waiters[0].Key = "x", "x"
		}},
		{"a job that counts an attempt that was not made", "I13", jobID.String(), "used 1 attempts, and its tasks 0 to 0", func(s *store.Snapshot) {
			s.Jobs[0].AttemptsUsed = 1
		}},
		{"a job that does not count an attempt", "I13", jobID.String(), "used 0 attempts, and its tasks 1 to 1", func(s *store.Snapshot) {
			s.Jobs[0].Budget.MaxTotalAttempts = 9
			s.Tasks[first].AttemptNo, s.Tasks[first].Epoch = 1, 1
			s.Attempts = append(s.Attempts, task.Attempt{TaskID: id(first), No: 1, Epoch: 1, Outcome: task.OutcomeSuccess, OutcomeHash: "h"})
		}},
		{"a job with another cost than its tasks", "I13", jobID.String(), "spent 3, and its tasks 0", func(s *store.Snapshot) {
			s.Jobs[0].Budget.MaxCost, s.Jobs[0].Cost = 9, 3
		}},
		{"a task with another cost than its steps", "I13", id(ended).String(), "spent 0, and its steps 7", func(s *store.Snapshot) { s.Steps[1].Cost = 7 }},
		{"work that is left when the budget is used up", "I13", jobID.String(), "have not ended and were not asked to", func(s *store.Snapshot) {
			s.Jobs[0].Budget.MaxCost, s.Jobs[0].Cost, s.Tasks[first].Cost, s.Tasks[first].StepCount = 9, 10, 10, 1
			s.Steps = append(s.Steps, task.Step{TaskID: id(first), Name: "s", State: task.StepCompleted, Cost: 10})
		}},
		{"a job that was ended for a budget that it has left", "I13", jobID.String(), "has not used its budget up", func(s *store.Snapshot) { s.Jobs[0].ExhaustedAt = now }},
		{"miscounted tasks", "I12", jobID.String(), "and its tasks are", func(s *store.Snapshot) { s.Jobs[0].Counters.Failed = 1 }},
		{"a failure that is allowed and counted", "I12", jobID.String(), "and its tasks are", func(s *store.Snapshot) {
			s.Tasks[skipped].AllowFailure, s.Tasks[skipped].Error.Kind = true, task.KindDeadline
			s.Jobs[0].Counters.Failed = 1
		}},
		{"a job in another state", "I12", jobID.String(), "its counters say running", func(s *store.Snapshot) { s.Jobs[0].State = task.JobBlocked }},
		{"a job that goes on and has ended", "I12", jobID.String(), "is running with finished_at", func(s *store.Snapshot) { s.Jobs[0].FinishedAt = now }},
		{"a job that ended at no time", "I12", id(101).String(), "is succeeded with finished_at 0001", func(s *store.Snapshot) {
			s.Jobs = append(s.Jobs, task.Job{ID: id(101), State: task.JobSucceeded, Counters: task.JobCounters{Total: 1, Succeeded: 1}})
			s.Tasks[ended].JobID = id(101)
		}},
		{"a task of a job that is gone", "I12", id(ended).String(), "belongs to job", func(s *store.Snapshot) { s.Tasks[ended].JobID = id(99) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := sound()
			c.break_(s)
			expect(t, store.Check(s), c.invariant, c.of, c.text)
		})
	}
}

// A retried need runs at the same time as dependents that started after its first end.
func TestCheckAllowsWhatStartedBeforeItsNeedWasRetried(t *testing.T) {
	t.Parallel()
	s := sound()
	s.Tasks[later].AttemptNo = 1
	for _, n := range []int{runs, stuck, ended, later} {
		s.Edges = append(s.Edges, store.EdgeRow{Task: id(n), Needs: id(second), Kind: task.OnDone, Done: true})
	}
	if got := store.Check(s); len(got) != 0 {
		t.Errorf("Check found %v", got)
	}
}

// A due row of a lane with waiters satisfies the check of a key with free room, also in a paused
// queue.
func TestCheckAllowsAWaitForWhatIsDue(t *testing.T) {
	t.Parallel()
	for _, paused := range [][]string{nil, {"q"}} {
		s := sound()
		s.Paused = paused
		s.Keys[0].Cap = 2
		s.Tasks[ready].ConcurrencyKey, s.Dispatch[0].ConcurrencyKey = "k", "k"
		if got := store.Check(s); len(got) != 0 {
			t.Errorf("with the paused queues %q Check found %v", paused, got)
		}
	}
}

// expect fails the test unless got is exactly the given violation.
func expect(t *testing.T, got []store.Violation, invariant, id, text string) {
	t.Helper()
	if len(got) != 1 {
		t.Fatalf("Check found %d violations, want one: %v", len(got), got)
	}
	v := got[0]
	if v.Invariant != invariant || v.ID != id || !strings.Contains(v.Text, text) {
		t.Errorf("Check found %s of %s, %q; want %s of %s, %q", v.Invariant, v.ID, v.Text, invariant, id, text)
	}
	if !strings.Contains(v.Text, id) || !strings.HasPrefix(v.String(), invariant+": ") {
		t.Errorf("the violation %q does not name the invariant and the id", v)
	}
}

// dispatchLike adds a dispatch row of a task's own lane.
func dispatchLike(s *store.Snapshot, n int) {
	t := &s.Tasks[n]
	s.Dispatch = append(s.Dispatch, store.DispatchRow{
		Task: t.ID, Queue: t.Queue, Type: t.Type, Priority: t.Priority, AvailableAt: now, ConcurrencyKey: t.ConcurrencyKey,
	})
}

// needs adds an open edge and counts it.
func needs(s *store.Snapshot, n, need int) {
	s.Edges = append(s.Edges, store.EdgeRow{Task: id(n), Needs: id(need), Kind: task.OnSuccess})
	s.Tasks[n].RemainingDeps++
}
