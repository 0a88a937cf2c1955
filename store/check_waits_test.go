package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The tasks of the sound snapshot with waits.
const (
	caller  = iota // suspended for a call with three children, two of them stored
	endedOf        // a finished child
	runsOf         // a due child
	waiter         // suspended for a signal, has taken one and keeps one with another name
)

func soundWaits() *store.Snapshot {
	s := &store.Snapshot{Now: now, Tasks: make([]task.Task, 4)}
	for n := range s.Tasks {
		s.Tasks[n] = task.Task{ID: id(n), Type: taskType, Queue: "q", Priority: 5, MaxAttempts: 3, State: task.Pending, AttemptNo: 1, Epoch: 1}
	}
	s.Tasks[caller].Waiting = task.WaitChildren
	s.Tasks[endedOf].State, s.Tasks[endedOf].FinishedAt = task.Succeeded, now
	s.Tasks[runsOf].State, s.Tasks[runsOf].AttemptNo = task.Ready, 0
	s.Tasks[waiter].Waiting, s.Tasks[waiter].WakeSeq, s.Tasks[waiter].StepCount = task.WaitSignal, 1, 1
	s.Dispatch = []store.DispatchRow{{Task: id(runsOf), Queue: "q", Type: taskType, Priority: 5, AvailableAt: now}}
	s.Edges = []store.EdgeRow{
		{Task: id(caller), Needs: id(endedOf), Kind: task.OnDone, Step: "c", Awaited: 1, Done: true, EndedState: task.Succeeded},
		{Task: id(caller), Needs: id(runsOf), Kind: task.OnDone, Step: "c", Awaited: 1},
	}
	s.Steps = []task.Step{
		{TaskID: id(caller), Name: "c", Kind: task.KindCall, State: task.StepWaiting, Children: 3, ChildrenStored: 2, ChildrenLeft: 2},
		{TaskID: id(waiter), Name: "a", Kind: task.KindSignal, State: task.StepCompleted, Signal: "s", Value: json.RawMessage(`1`), CompletedAt: now},
		{TaskID: id(waiter), Name: "b", Kind: task.KindSignal, State: task.StepWaiting, Signal: "s", Index: 1},
	}
	s.Signals = []task.Signal{
		{TaskID: id(waiter), Seq: 1, Name: "s", Key: "1", Payload: json.RawMessage(`1`), Step: "a"},
		{TaskID: id(waiter), Seq: 2, Name: "t", Key: "1", Payload: json.RawMessage(`2`)},
	}
	return s
}

// Each case breaks one rule, which exactly one check detects.
func TestCheckFindsInWaits(t *testing.T) {
	t.Parallel()
	if got := store.Check(soundWaits()); len(got) != 0 {
		t.Fatalf("Check of a sound snapshot found %v", got)
	}
	for _, c := range []struct {
		name      string
		invariant string
		of        int
		text      string
		break_    func(s *store.Snapshot)
	}{
		{"a child too many is left", "I7", caller, "children_left 3, and 2 are open or not stored", func(s *store.Snapshot) { s.Steps[0].ChildrenLeft = 3 }},
		{"a child is not counted", "I7", caller, "children_left 2, and 1 are open or not stored", func(s *store.Snapshot) { s.Steps[0].Children = 2 }},
		{"a call waits for nothing", "I7", caller, "waits with children_left 0", func(s *store.Snapshot) {
			s.Steps[0].Children, s.Steps[0].ChildrenStored, s.Steps[0].ChildrenLeft = 1, 1, 0
			s.Edges = s.Edges[:1]
		}},
		{"a child that the call does not know of", "I7", caller, "1 children stored of 3, and there are 2", func(s *store.Snapshot) { s.Steps[0].ChildrenStored = 1 }},
		{"a call that is complete has an open edge", "I7", caller, "is completed with children_left 0 and 1 open edges", func(s *store.Snapshot) {
			s.Steps[0].State, s.Steps[0].CompletedAt, s.Steps[0].ChildrenLeft = task.StepCompleted, now, 0
			s.Tasks[caller].State, s.Tasks[caller].Waiting, s.Tasks[caller].StepCount = task.Blocked, task.WaitManual, 1
		}},
		{"an edge without a call", "I7", caller, `call "x" that it did not make`, func(s *store.Snapshot) {
			s.Edges = append(s.Edges, store.EdgeRow{Task: id(caller), Needs: id(waiter), Kind: task.OnDone, Step: "x", Awaited: 1})
		}},
		{"an edge of another kind", "I7", caller, "of the kind success", func(s *store.Snapshot) { s.Edges[1].Kind = task.OnSuccess }},
		{"an edge without an end", "I7", caller, `done true and the end ""`, func(s *store.Snapshot) { s.Edges[0].EndedState = "" }},
		{"an end that was not counted", "I7", caller, "which ended succeeded, is not done", func(s *store.Snapshot) {
			s.Edges[0].Done, s.Edges[0].EndedState, s.Steps[0].ChildrenLeft = false, "", 3
		}},
		{"a child that is gone", "I7", caller, "which does not exist", func(s *store.Snapshot) { s.Edges[1].Needs = id(99) }},
		{"a child that goes on when its parent has ended", "I7", caller, "was not asked to end", func(s *store.Snapshot) {
			s.Tasks[caller].State, s.Tasks[caller].Waiting, s.Tasks[caller].FinishedAt = task.Failed, "", now
		}},
		{"a wait that is over at no time", "I6", waiter, `"a" is completed with completed_at 0001`, func(s *store.Snapshot) { s.Steps[1].CompletedAt = time.Time{} }},
		{"a name that waits and is completed", "I6", waiter, `"b" waits, or has only begun, and is completed`, func(s *store.Snapshot) {
			s.Steps = append(s.Steps, task.Step{TaskID: id(waiter), Name: "b", Kind: task.KindStep, State: task.StepCompleted, CompletedAt: now})
			s.Tasks[waiter].StepCount = 2
		}},
		{"more wakes than waits that are over", "I14", waiter, "wake_seq 2 with 1 waits", func(s *store.Snapshot) { s.Tasks[waiter].WakeSeq = 2 }},
		{"suspended for nothing", "I14", waiter, "none of its steps waits", func(s *store.Snapshot) { s.Steps = s.Steps[:2] }},
		{"a signal that should have been taken", "I14", waiter, `keeps signal 2, for whose name "s"`, func(s *store.Snapshot) { s.Signals[1].Name = "s" }},
		{"a signal that no wait has", "I14", waiter, `taken by the step "b"`, func(s *store.Snapshot) { s.Signals[0].Step = "b" }},
		{"a signal with another value", "I14", waiter, "not completed with it", func(s *store.Snapshot) { s.Signals[0].Payload = json.RawMessage(`3`) }},
		{"a signal of an unknown task", "I14", 99, "a signal is of task", func(s *store.Snapshot) { s.Signals[1].TaskID = id(99) }},
		{"a suspended task without a time has a row", "I9", waiter, "1 dispatch rows", func(s *store.Snapshot) { dispatchLike(s, waiter) }},
		{"a suspended task with a time has none", "I9", waiter, "0 dispatch rows", func(s *store.Snapshot) { s.Tasks[waiter].ReadyAt = now }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := soundWaits()
			c.break_(s)
			expect(t, store.Check(s), c.invariant, id(c.of).String(), c.text)
		})
	}
}

// A retry recounts the ends of children of a task that has ended or was asked to.
func TestCheckAllowsCallsOfATaskThatEnds(t *testing.T) {
	t.Parallel()
	for _, end := range []func(t *task.Task){
		func(t *task.Task) { t.State, t.Waiting, t.FinishedAt = task.Cancelled, "", now },
		func(t *task.Task) {
			t.State, t.Waiting, t.CancelRequested = task.Running, "", true
			t.LeaseID, t.LeaseExpiresAt = lease, now
		},
	} {
		s := soundWaits()
		end(&s.Tasks[caller])
		s.Tasks[runsOf].State, s.Tasks[runsOf].FinishedAt = task.Cancelled, now
		s.Edges[1].Done, s.Edges[1].EndedState, s.Dispatch = true, task.Cancelled, nil
		if got := store.Check(s); len(got) != 0 {
			t.Errorf("Check found %v", got)
		}
	}
}
