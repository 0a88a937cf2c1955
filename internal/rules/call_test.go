package rules_test

import (
	"errors"
	"testing"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// callStep returns a call of total children, of which stored are stored and left are left.
func callStep(total, stored, left int) *task.Step {
	return &task.Step{Name: "c", Kind: task.KindCall, State: task.StepWaiting, Children: total, ChildrenStored: stored, ChildrenLeft: left}
}

func TestResolveCall(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		stored *task.Step
		left   int // of the record
		behind int
		tasks  int
		parent rules.Parent
		add    bool
		want   [3]int // children, stored, left
		err    error
	}{
		{"the first record has all", nil, 3, 0, 3, rules.Parent{}, true, [3]int{3, 3, 3}, nil},
		{"the first of several", nil, 3, 0, 2, rules.Parent{}, true, [3]int{3, 2, 3}, nil},
		{"the next one, when one has ended", callStep(3, 2, 2), 3, 2, 1, rules.Parent{Children: 2}, true, [3]int{3, 3, 2}, nil},
		{"the first one again", callStep(3, 2, 3), 3, 0, 2, rules.Parent{Children: 2}, false, [3]int{3, 2, 3}, nil},
		{"a look", callStep(3, 2, 3), 3, 2, 0, rules.Parent{Children: 2}, false, [3]int{3, 2, 3}, nil},
		{"more than there are", callStep(3, 2, 3), 3, 2, 2, rules.Parent{Children: 2}, false, [3]int{}, store.ErrStepConflict},
		{"more than there are at first", nil, 3, 0, 4, rules.Parent{}, false, [3]int{}, store.ErrStepConflict},
		{"the first one is not the first", nil, 3, 1, 2, rules.Parent{}, false, [3]int{}, store.ErrStepConflict},
		{"no children", nil, 0, 0, 0, rules.Parent{}, false, [3]int{}, store.ErrLimit},
		{"as many as there may be", nil, 4000, 0, 1, rules.Parent{Depth: 7, Children: 6000}, true, [3]int{4000, 1, 4000}, nil},
		{"one too many", nil, 4001, 0, 1, rules.Parent{Children: 6000}, false, [3]int{}, store.ErrLimit},
		{"too many, because of others meanwhile", callStep(3, 2, 3), 3, 2, 1, rules.Parent{Children: task.MaxChildren}, false, [3]int{}, store.ErrLimit},
		{"too deep", nil, 1, 0, 1, rules.Parent{Depth: 8}, false, [3]int{}, store.ErrLimit},
	} {
		step := callStep(0, tc.behind, tc.left)
		add, err := rules.ResolveCall(tc.stored, step, tc.tasks, tc.parent)
		if add != tc.add || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
			t.Errorf("%s: ResolveCall = %v, %v", tc.name, add, err)
		}
		if got := [3]int{step.Children, step.ChildrenStored, step.ChildrenLeft}; err == nil && got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// called turns a need into the edge to a child of a call.
func called(step string, n rules.Need) rules.Need {
	n.Step = step
	return n
}

func TestCallsLeft(t *testing.T) {
	t.Parallel()
	needs := []rules.Need{
		called("c", goodChild), called("c", badChild), called("c", runningChild), called("c", orphanedChild),
		called("d", goodChild), called("e", lateChild), runningChild,
	}
	if got := rules.CallsLeft(needs); len(got) != 2 || got["c"] != 3 || got["e"] != 1 {
		t.Errorf("CallsLeft = %v", got)
	}
	if rules.RevivesCalls([]rules.Need{orphanedChild, badChild, called("c", runningChild), called("c", goodChild)}) {
		t.Error("children revive that are of no call, or did not fail")
	}
	if !rules.RevivesCalls([]rules.Need{called("c", badChild)}) {
		t.Error("a child that failed does not revive")
	}
	again, since := called("c", badChild), called("c", badChild)
	again.Opened, since.Opened = 6, 7
	again.Marked, since.Marked = true, true
	if got := rules.CallOpen(callStep(7, 5, 0), append(needs[2:3], again, since), 7); got != 2+1+1 {
		t.Errorf("CallOpen = %d", got)
	}
}

func TestRecountCall(t *testing.T) {
	t.Parallel()
	completed := func() *task.Step {
		s := callStep(3, 3, 0)
		s.State, s.CompletedAt = task.StepCompleted, now
		return s
	}
	for _, tc := range []struct {
		name  string
		call  *task.Step
		left  int
		steps int
		want  int
		state task.StepState
	}{
		{"some are left", callStep(3, 3, 3), 2, 0, 2, task.StepWaiting},
		{"some are not stored", callStep(3, 1, 3), 1, 0, 3, task.StepWaiting},
		{"none is left", callStep(3, 3, 1), 0, 1, 0, task.StepCompleted},
		{"some failed", completed(), 2, -1, 2, task.StepWaiting},
		{"none failed", completed(), 0, 0, 0, task.StepCompleted},
	} {
		steps := rules.RecountCall(tc.call, tc.left, now)
		if steps != tc.steps || tc.call.ChildrenLeft != tc.want || tc.call.State != tc.state || tc.call.CompletedAt.IsZero() != (tc.state == task.StepWaiting) {
			t.Errorf("%s: %d, %+v", tc.name, steps, tc.call)
		}
	}
}

func TestCallEdgesDoNotCountAsNeeds(t *testing.T) {
	t.Parallel()
	needs := []rules.Need{called("c", runningChild), called("c", badChild), runningChild}
	if got := rules.TaskWaits(task.JoinRerun, needs, rules.Unmarked); got.Open != 1 {
		t.Errorf("a task that decomposed waits for %d", got.Open)
	}
	if got := rules.TaskWaits(task.JoinNone, needs, rules.Unmarked); got.Open != 0 {
		t.Errorf("a task waits for %d", got.Open)
	}
	if rules.WrongChild(needs) != nil {
		t.Error("a child of a call is to blame for a decomposition")
	}
	if err := rules.CheckRetry(task.ID{}, task.Failed, "", task.JoinNone, []rules.Need{called("c", runningChild)}); !errors.Is(err, store.ErrState) {
		t.Errorf("a retry while a child is being cancelled: %v", err)
	}
	if err := rules.CheckRetry(task.ID{}, task.Failed, "", task.JoinNone, needs[1:]); err != nil {
		t.Errorf("a retry: %v", err)
	}
}

func TestCallsOfATaskThatEnds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		waits bool
		state task.State
		asked bool
		want  bool
	}{
		{true, task.Running, false, true},
		{true, task.Pending, false, true},
		{true, task.Blocked, false, true},
		{true, task.Running, true, false},
		{true, task.Failed, false, false},
		{false, task.Running, false, false},
	} {
		if got := rules.ReopensCall(tc.waits, tc.state, tc.asked); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
	if got := rules.CallChild(task.New{}, "all", &task.Step{Name: "build"}, 3, true); got.Node != "all/build[3]" || !got.AllowFailure {
		t.Errorf("a child of a call: %+v", got)
	}
}

func TestLeadsOn(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		state           task.State
		why             task.Waiting
		join            task.Join
		awaited, called bool
		want            bool
	}{
		{task.Pending, task.WaitDeps, "", false, false, true},
		{task.Pending, task.WaitDeps, task.JoinDependency, false, false, false},
		{task.Pending, task.WaitDeps, task.JoinDependency, true, false, true},
		{task.Pending, task.WaitChildren, task.JoinRerun, true, false, true},
		{task.Pending, task.WaitChildren, "", false, false, false},
		{task.Pending, task.WaitChildren, "", true, true, true},
		{task.Pending, task.WaitSignal, "", true, true, true},
		{task.Running, "", "", true, true, true},
		{task.Failed, "", "", true, true, false},
		{task.Running, "", "", false, false, false},
	} {
		if got := rules.LeadsOn(tc.state, tc.why, tc.join, tc.awaited, tc.called); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}
