package propagate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var (
	now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	job = task.ID{99}
)

var (
	succeeded = task.End{State: task.Succeeded}
	failed    = task.End{State: task.Failed, Kind: task.KindHandler}
)

func TestAnEmptyBatchDoesNothing(t *testing.T) {
	t.Parallel()
	var b propagate.Batch
	b.FreeKey("")
	b.End(id(1), succeeded, false)
	b.Count(job, propagate.Unfinished(task.Ready, ""), propagate.Unfinished(task.Running, ""))
	b.Recount(task.ID{})
	newGraph().run(t, &b)
}

// Waiters are older than tasks of the batch that queue again, so keys wake first.
func TestPhases(t *testing.T) {
	t.Parallel()
	g := newGraph([2]byte{1, 2})
	var b propagate.Batch
	b.Dispatch(store.DispatchRow{Task: id(9), AvailableAt: now.Add(time.Second)})
	b.Dispatch(store.DispatchRow{Task: id(8), AvailableAt: now})
	b.End(id(1), succeeded, true)
	b.Count(job, propagate.Unfinished(task.Running, ""), propagate.Contribution{End: succeeded})
	b.FreeKey("b")
	b.FreeKey("a")
	b.FreeKey("b")
	got := g.run(t, &b,
		"wake [a b]", "dispatch 8 in 0s, 9 in 1s", "mark 1", "lower 2 by 1", "ready 2 ready/", "dispatch 2 in 0s", "count 1")
	if !slices.Equal(jobsOf(got.Jobs), []task.ID{job}) || len(got.Ended) != 0 {
		t.Errorf("result %+v", got)
	}
	// The need succeeded; its dependent became ready, which counts as before.
	if want := (task.JobCounters{Unfinished: -1, Succeeded: 1}); g.jobs[job] != want {
		t.Errorf("counters %+v, want %+v", g.jobs[job], want)
	}
	g.log = nil
	g.run(t, &b) // the batch is empty again
}

// Lists are sorted by their first field, for any order of the moves, because stores lock rows
// in that order.
func TestListsAreSorted(t *testing.T) {
	t.Parallel()
	var edges [][2]byte
	var lower, ready, dispatch []string
	var jobs []task.ID
	var b propagate.Batch
	for n := byte(29); n >= 20; n-- {
		edges = append(edges, [2]byte{1, n})
		b.Recount(id(n + 100))
	}
	for n := byte(20); n < 30; n++ {
		lower = append(lower, fmt.Sprintf("%d by 1", n))
		ready = append(ready, fmt.Sprintf("%d ready/", n))
		dispatch = append(dispatch, fmt.Sprintf("%d in 0s", n))
		jobs = append(jobs, id(n+100))
	}
	g := newGraph(edges...)
	b.End(id(1), succeeded, true)
	got := g.run(t, &b, "mark 1", "lower "+strings.Join(lower, ", "), "ready "+strings.Join(ready, ", "),
		"dispatch "+strings.Join(dispatch, ", "), "count 11")
	if want := append([]task.ID{job}, jobs...); !slices.Equal(jobsOf(got.Jobs), want) {
		t.Errorf("jobs %v, want %v", got.Jobs, want)
	}
}

// Recount derives the state of a job whose tasks did not move.
func TestRecount(t *testing.T) {
	t.Parallel()
	var b propagate.Batch
	b.Recount(job)
	if got := newGraph().run(t, &b, "count 1"); !slices.Equal(jobsOf(got.Jobs), []task.ID{job}) {
		t.Errorf("jobs %v", got.Jobs)
	}
}

func TestTwoNeedsOfOneBatchBothCount(t *testing.T) {
	t.Parallel()
	for _, order := range [][]byte{{1, 2}, {2, 1}} {
		g := newGraph([2]byte{1, 3}, [2]byte{2, 3})
		g.ready[id(3)] = now.Add(time.Hour)
		var b propagate.Batch
		for _, n := range order {
			b.End(id(n), succeeded, true)
		}
		g.run(t, &b, "mark 1, 2", "lower 3 by 2", "ready 3 pending/delay", "dispatch 3 in 1h0m0s", "count 1")
	}
}

func TestADependentWithOpenNeedsWaits(t *testing.T) {
	t.Parallel()
	g := newGraph([2]byte{1, 3}, [2]byte{2, 3})
	var b propagate.Batch
	b.End(id(1), succeeded, true)
	g.run(t, &b, "mark 1", "lower 3 by 1")
}

// A failed need ends its dependents, their dependents, and so on. A task reached by two paths
// ends once.
func TestUnmetNeedsPassOn(t *testing.T) {
	t.Parallel()
	g := newGraph([2]byte{1, 2}, [2]byte{1, 3}, [2]byte{2, 4}, [2]byte{3, 4}, [2]byte{4, 5})
	var b propagate.Batch
	b.End(id(1), failed, true)
	got := g.run(t, &b,
		"mark 1", "lower 2 by 1, 3 by 1", "nodes 2", "cancel 2 dependency_failed, 3 dependency_failed",
		"mark 2, 3", "lower 4 by 2", "nodes 1", "cancel 4 dependency_failed",
		"mark 4", "lower 5 by 1", "nodes 1", "cancel 5 dependency_failed",
		"mark 5", "count 1")
	if !slices.Equal(got.Ended, []task.ID{id(2), id(3), id(4), id(5)}) {
		t.Errorf("ended %v", got.Ended)
	}
	if want := (task.JobCounters{Unfinished: -4, Failed: 4}); g.jobs[job] != want {
		t.Errorf("counters %+v, want %+v", g.jobs[job], want)
	}
	if want := "it needs task " + id(2).String() + ", which ended cancelled"; g.ended[id(4)].Message != want {
		t.Errorf("message %q, want %q", g.ended[id(4)].Message, want)
	}
}

// Work beyond the limit is left to chores, and the rest of the batch is done.
func TestTheLimitLeavesChores(t *testing.T) {
	t.Parallel()
	g := newGraph([2]byte{1, 4}, [2]byte{1, 5}, [2]byte{2, 6}, [2]byte{3, 7})
	g.limit, g.more = 1, []string{"k"}
	var b propagate.Batch
	for n := byte(1); n <= 3; n++ {
		b.End(id(n), succeeded, true)
	}
	b.FreeKey("j")
	b.FreeKey("k")
	got := g.run(t, &b, "wake [j k]", "mark 1, 2, 3", "chores [] [1 2 3]", "lower 4 by 1", "ready 4 ready/", "dispatch 4 in 0s", "chores [k] []", "count 1")
	if got.Marked != 1 || !got.Chores {
		t.Errorf("result %+v", got)
	}
}

// A dependent that ends by the last markable edge leaves its own edges to chores.
func TestTheLimitIsThatOfAllLevels(t *testing.T) {
	t.Parallel()
	g := newGraph([2]byte{1, 2}, [2]byte{2, 3})
	g.limit = 1
	var b propagate.Batch
	b.End(id(1), failed, true)
	g.run(t, &b, "mark 1", "lower 2 by 1", "nodes 1", "cancel 2 dependency_failed", "chores [] [2]", "count 1")
}

// A dependent that cannot run is decided by all of its ended needs, including needs whose
// edges a chore has not marked yet.
func TestUnmarkedNeedsCount(t *testing.T) {
	t.Parallel()
	g := newGraph()
	g.add(2, 3, task.OnFailed)
	g.unmarked = []propagate.Edge{{Dependent: id(3), EndedNeed: rules.EndedNeed{Need: id(1), Kind: task.OnSuccess, End: task.End{State: task.Failed}}}}
	var b propagate.Batch
	b.End(id(2), succeeded, true)
	g.run(t, &b, "mark 2", "lower 3 by 1", "nodes 1", "cancel 3 dependency_failed", "mark 3", "count 1")
}

// A dependent that runs if one of its needs fails starts at the first failure, regardless of
// the other needs.
func TestTheFirstFailureStarts(t *testing.T) {
	t.Parallel()
	g := newGraph()
	for need := byte(1); need <= 3; need++ {
		g.add(need, 4, task.OnFailed)
	}
	var b propagate.Batch
	b.End(id(1), succeeded, true)
	g.run(t, &b, "mark 1", "lower 4 by 1")
	g.log = nil
	b.End(id(2), failed, true)
	g.run(t, &b, "mark 2", "lower 4 by 1", "ready 4 ready/", "dispatch 4 in 0s", "count 1")
}

// The dependent is not needed once every need has ended without failing. Its own dependents
// are then not needed either.
func TestNoFailureIsNotNeeded(t *testing.T) {
	t.Parallel()
	g := newGraph()
	g.add(1, 3, task.OnFailed)
	g.add(2, 3, task.OnFailed)
	g.add(3, 4, task.OnSuccess)
	var b propagate.Batch
	b.End(id(1), succeeded, true)
	g.run(t, &b, "mark 1", "lower 3 by 1")
	g.log = nil
	b.End(id(2), task.End{State: task.Cancelled, Kind: task.KindCancelled}, true)
	g.run(t, &b, "mark 2", "lower 3 by 1", "group 1", "nodes 1", "cancel 3 not_needed",
		"mark 3", "lower 4 by 1", "nodes 1", "cancel 4 not_needed", "mark 4", "count 1")
	if want := "not needed: it runs if task " + id(1).String() + " or another of its needs fails, and none of them did"; g.ended[id(3)].Message != want {
		t.Errorf("message %q, want %q", g.ended[id(3)].Message, want)
	}
	if want := (task.JobCounters{Unfinished: -2}); g.jobs[job] != want {
		t.Errorf("counters %+v, want %+v", g.jobs[job], want)
	}
}

// An allowed failure satisfies edges of the kind success.
func TestAnAllowedFailureMeetsNeeds(t *testing.T) {
	t.Parallel()
	g := newGraph([2]byte{1, 2})
	var b propagate.Batch
	b.End(id(1), task.End{State: task.Failed, AllowFailure: true}, true)
	g.run(t, &b, "mark 1", "lower 2 by 1", "ready 2 ready/", "dispatch 2 in 0s", "count 1")
}

// Tasks of a job that a chore cancels are left to the chore.
func TestTasksOfACancelledJobAreLeft(t *testing.T) {
	t.Parallel()
	g := newGraph([2]byte{1, 2})
	g.cancelling = true
	var b propagate.Batch
	b.End(id(1), failed, true)
	g.run(t, &b, "mark 1", "lower 2 by 1")
}

// An undo task is decided when all its needs have ended. It cannot run once a need's undo was
// given up. The chore that cancels its job leaves it alone.
func TestUndoTasks(t *testing.T) {
	t.Parallel()
	good := rules.UndoNeed{Kind: task.OnUndo, End: succeeded, Began: true, Name: "one"}
	bad := rules.UndoNeed{Kind: task.OnDone, End: failed}
	for _, c := range []struct {
		needs []rules.UndoNeed
		end   task.End
		want  []string
	}{
		{[]rules.UndoNeed{good}, succeeded, []string{"undo needs of 3", "cancel 3 not_needed", "mark 3", "count 1"}},
		{[]rules.UndoNeed{good, bad}, failed, []string{"undo needs of 3", "undo 3 succeeded", "dispatch 3 in 0s", "count 1"}},
		{[]rules.UndoNeed{good}, task.End{State: task.Failed, Kind: task.KindUndoFailed}, []string{"nodes 1", "cancel 3 undo_failed", "mark 3", "count 1"}},
	} {
		g := newGraph()
		g.add(1, 3, task.OnUndo)
		g.add(2, 3, task.OnDone)
		g.undo, g.cancelling = c.needs, true
		var b propagate.Batch
		b.End(id(2), succeeded, true)
		g.run(t, &b, "mark 2", "lower 3 by 1")
		g.log = nil
		b.End(id(1), c.end, true)
		g.run(t, &b, append([]string{"mark 1", "lower 3 by 1"}, c.want...)...)
	}
}

func TestAnErrorEndsTheRun(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"wake", "dispatch", "mark", "lower", "ready", "cancelling", "unmarked", "group", "nodes", "cancel", "chores", "count"} {
		g := newGraph([2]byte{1, 2}, [2]byte{3, 4})
		g.add(3, 5, task.OnFailed)
		g.fail, g.more = op, []string{"k"}
		var b propagate.Batch
		b.FreeKey("k")
		b.End(id(1), failed, true)
		b.End(id(3), succeeded, true)
		if _, err := b.Run(g, now, g.limit); !errors.Is(err, errBroken) || !strings.HasPrefix(g.log[len(g.log)-1], op+" ") {
			t.Errorf("%s failed: %v after %v", op, err, g.log)
		}
	}
}

func TestAnErrorOfDispatchEndsTheRun(t *testing.T) {
	t.Parallel()
	g := newGraph([2]byte{1, 2})
	g.fail = "dispatch"
	var b propagate.Batch
	b.Dispatch(store.DispatchRow{Task: id(9), AvailableAt: now})
	b.End(id(1), succeeded, true)
	if _, err := b.Run(g, now, g.limit); !errors.Is(err, errBroken) || !slices.Equal(g.log, []string{"dispatch 9 in 0s"}) {
		t.Errorf("%v after %v", err, g.log)
	}
}
