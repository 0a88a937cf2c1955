package rules_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// child returns the edge to a child of an attempt, with the child's end.
func child(attempt int, state task.State, kind, cancel task.ErrorKind) rules.Need {
	n := rules.Need{Awaited: attempt, CancelKind: cancel, Marked: state.Terminal(), Name: string(state)}
	n.Kind, n.End = task.OnDone, task.End{State: state, Kind: kind}
	return n
}

var (
	goodChild     = child(1, task.Succeeded, "", "")
	badChild      = child(1, task.Failed, task.KindHandler, "")
	runningChild  = child(1, task.Running, "", "")
	orphanedChild = child(1, task.Cancelled, task.KindCancelled, task.KindParentEnded)
	lateChild     = child(1, task.Cancelled, task.KindDeadline, task.KindDeadline)
)

func TestResolveDecompose(t *testing.T) {
	t.Parallel()
	children := func(n int) []task.New {
		list := make([]task.New, n)
		for i := range list {
			list[i].ID = task.ID{1, byte(i), byte(i >> 8)}
		}
		return list
	}
	for _, tc := range []struct {
		name     string
		children int
		join     task.Join
		parent   rules.Parent
		cancel   rules.CancelRequest
		state    task.State
		waiting  task.Waiting
		outcome  task.Outcome
		output   string
		counts   bool
	}{
		{"rerun", 2, task.JoinRerun, rules.Parent{}, rules.CancelRequest{}, task.Pending, task.WaitChildren, task.OutcomeDecompose, "", false},
		{"complete", 1, task.JoinComplete, rules.Parent{}, rules.CancelRequest{}, task.Pending, task.WaitChildren, task.OutcomeDecompose, "7", false},
		{"as many as there may be", 4000, task.JoinRerun, rules.Parent{Depth: 7, Children: 6000}, rules.CancelRequest{}, task.Pending, task.WaitChildren, task.OutcomeDecompose, "", false},
		{"one too many", 4001, task.JoinRerun, rules.Parent{Children: 6000}, rules.CancelRequest{}, task.Failed, "", task.OutcomeFailure, "", true},
		{"too deep", 1, task.JoinComplete, rules.Parent{Depth: 8}, rules.CancelRequest{}, task.Failed, "", task.OutcomeFailure, "", true},
		{"to be cancelled", 1, task.JoinRerun, rules.Parent{}, rules.CancelRequest{Kind: task.KindCancelled}, task.Cancelled, "", task.OutcomeCancelled, "", true},
	} {
		f := store.Finish{Outcome: task.OutcomeDecompose, Join: tc.join, Children: children(tc.children), Output: json.RawMessage("7")}
		got := rules.ResolveDecompose(&f, tc.parent, tc.cancel, time.Time{}, now)
		if got.State != tc.state || got.Waiting != tc.waiting || got.Outcome != tc.outcome || string(got.JoinOutput) != tc.output || got.CountsAttempt() != tc.counts {
			t.Errorf("%s: %+v", tc.name, got)
		}
		if waits := got.State == task.Pending; waits != (got.Join != task.JoinNone) || waits && got.Join != tc.join {
			t.Errorf("%s: the join is %q", tc.name, got.Join)
		}
	}
	f := store.Finish{Outcome: task.OutcomeDecompose, Join: task.JoinRerun, Children: children(1)}
	if got := rules.ReplayedResult(&f, rules.Recorded{Outcome: task.OutcomeFailure, Error: &task.Error{Kind: task.KindValidation}, At: now}); got.State != task.Failed {
		t.Errorf("a decompose over a limit, reported again: %+v", got)
	}
	if got := rules.ReplayedResult(&f, rules.Recorded{Outcome: task.OutcomeDecompose, At: now}); got.State != task.Pending || got.Waiting != task.WaitChildren {
		t.Errorf("a decompose, reported again: %+v", got)
	}
}

func TestChildOf(t *testing.T) {
	t.Parallel()
	for parent, want := range map[string]string{"": "decompose[3]", "all": "all/decompose[3]", "all/decompose[1]": "all/decompose[1]/decompose[3]"} {
		if got := rules.ChildOf(task.New{}, parent, 3, true); got.Node != want || !got.AllowFailure {
			t.Errorf("a child of %q: %q, %v", parent, got.Node, got.AllowFailure)
		}
	}
	if got := rules.ChildOf(task.New{Node: "convert[a]"}, "convert", 3, false); got.Node != "convert[a]" {
		t.Errorf("a child with a name of its own is called %q", got.Node)
	}
}

func TestTaskWaitsForChildren(t *testing.T) {
	t.Parallel()
	list := append(edges(needs(open), ifFailed(open)), goodChild, runningChild, runningChild)
	if got := rules.TaskWaits(task.JoinRerun, list, rules.Unmarked); got != (rules.Waits{Open: 2, IfFailed: rules.NoIfFailed}) {
		t.Errorf("a task that waits for children: %+v", got)
	}
	if got := rules.TaskWaits(task.JoinNone, list, rules.Unmarked); got != (rules.Waits{Open: 2, IfFailed: 1}) {
		t.Errorf("one that waits for its needs: %+v", got)
	}
	for name, tc := range map[string]struct {
		needs []rules.Need
		want  bool
	}{
		"all succeeded":                        {[]rules.Need{goodChild, goodChild}, false},
		"one failed":                           {[]rules.Need{goodChild, badChild}, true},
		"one was cancelled":                    {[]rules.Need{orphanedChild}, true},
		"one of an earlier wave":               {[]rules.Need{badChild, child(4, task.Succeeded, "", "")}, false},
		"one has not ended":                    {[]rules.Need{runningChild}, false},
		"a need failed, but it is not a child": {edges(ifDone(failed)), false},
	} {
		if got := rules.WrongChild(tc.needs) != nil; got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestEndedError(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 600)
	for _, tc := range []struct {
		state task.State
		err   *task.Error
		want  *task.Error
	}{
		{task.Failed, nil, nil},
		{task.Succeeded, &task.Error{Kind: task.KindHandler}, nil},
		{task.Failed, &task.Error{Kind: task.KindHandler, Code: "c", Message: long[:1024], Step: "s", Stack: "x"}, &task.Error{Kind: task.KindHandler, Code: "c", Message: long[:1024]}},
		{task.Cancelled, &task.Error{Kind: task.KindCancelled, Message: "x" + long}, &task.Error{Kind: task.KindCancelled, Message: "x" + long[:1022]}},
	} {
		if got := rules.EndedError(tc.state, tc.err); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s, %+v: %+v", tc.state, tc.err, got)
		}
	}
}

func TestReviveWithChildren(t *testing.T) {
	t.Parallel()
	const rerun, complete = task.JoinRerun, task.JoinComplete
	for _, tc := range []struct {
		name  string
		join  task.Join
		end   task.ErrorKind
		needs []rules.Need
		open  int // children that it waits for; 0: it runs
		retry bool
	}{
		{"children ended with it", rerun, task.KindCancelled, []rules.Need{goodChild, orphanedChild, badChild}, 1, true},
		{"they missed its deadline", rerun, task.KindDeadline, []rules.Need{lateChild, orphanedChild}, 2, true},
		{"they missed their own", rerun, task.KindCancelled, []rules.Need{lateChild}, 0, true},
		{"it did not wait any more", task.JoinNone, task.KindHandler, []rules.Need{orphanedChild, runningChild}, 0, true},
		{"a child failed, with which it ends", complete, task.KindDependencyFailed, []rules.Need{goodChild, badChild}, 0, false},
		{"such a child is retried", complete, task.KindDependencyFailed, []rules.Need{goodChild, func() rules.Need { n := runningChild; n.Marked = true; return n }()}, 1, true},
		{"a child is still being cancelled", rerun, task.KindCancelled, []rules.Need{orphanedChild, runningChild}, 2, false},
	} {
		got := rules.Revive(&rules.Revived{Needs: tc.needs, End: tc.end, Join: tc.join}, now)
		if waits := got.Waiting == task.WaitChildren; got.Waits.Open != tc.open || waits != (tc.open > 0) || waits && got.Join != tc.join || !waits && got.Join != task.JoinNone {
			t.Errorf("%s: %+v", tc.name, got)
		}
		if err := rules.CheckRetry(task.ID{1}, task.Failed, tc.end, tc.join, tc.needs); (err == nil) != tc.retry {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if got := rules.Revive(&rules.Revived{Needs: []rules.Need{goodChild}, End: task.KindCancelled, Join: rerun, Unstored: 3}, now); got.Waits.Open != 3 || got.Join != rerun {
		t.Errorf("a task whose children are not all stored: %+v", got)
	}
	if !rules.RevivesDependent(task.Failed, task.KindDependencyFailed, complete, []rules.Need{goodChild, runningChild}) {
		t.Error("a parent whose last bad child is retried does not revive")
	}
	if rules.RevivesDependent(task.Failed, task.KindDependencyFailed, complete, []rules.Need{badChild, runningChild}) {
		t.Error("a parent with a bad child left revives")
	}
	for _, tc := range []struct {
		state   task.State
		why     task.Waiting
		join    task.Join
		awaited bool
		want    bool
	}{
		{task.Pending, task.WaitChildren, rerun, true, true},
		{task.Pending, task.WaitChildren, rerun, false, false},
		{task.Pending, task.WaitDeps, task.JoinNone, true, false},
		{task.Pending, task.WaitDeps, task.JoinDependency, true, false},
		{task.Pending, task.WaitDeps, task.JoinDependency, false, false},
		{task.Ready, task.WaitNone, rerun, true, false},
		{task.Cancelled, task.WaitNone, rerun, true, false},
	} {
		if got := rules.ReopensEdge(tc.state, tc.why, 1, tc.join, tc.awaited); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}
