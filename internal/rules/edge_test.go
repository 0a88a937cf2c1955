package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/task"
)

// Ends of needs.
var (
	succeeded = task.End{State: task.Succeeded}
	failed    = task.End{State: task.Failed, Kind: task.KindHandler}
	allowed   = task.End{State: task.Failed, Kind: task.KindHandler, AllowFailure: true}
	cancelled = task.End{State: task.Cancelled, Kind: task.KindCancelled}
	lost      = task.End{State: task.Cancelled, Kind: task.KindDependencyFailed}
	lostToo   = task.End{State: task.Cancelled, Kind: task.KindDependencyFailed, AllowFailure: true}
	expired   = task.End{State: task.Cancelled, Kind: task.KindDeadline}
	spent     = task.End{State: task.Cancelled, Kind: task.KindBudget}
	notNeeded = task.End{State: task.Cancelled, Kind: task.KindNotNeeded}
	open      = task.End{State: task.Running}
)

// edges returns the needs of one task, with IDs from 1.
func edges(list ...rules.EndedNeed) []rules.Need {
	needs := make([]rules.Need, len(list))
	for i, e := range list {
		e.Need = task.ID{byte(i + 1)}
		needs[i] = rules.Need{EndedNeed: e, Name: e.Need.String(), Marked: e.End.State.Terminal()}
	}
	return needs
}

func needs(end task.End) rules.EndedNeed { return rules.EndedNeed{Kind: task.OnSuccess, End: end} }
func ifFailed(end task.End) rules.EndedNeed {
	return rules.EndedNeed{Kind: task.OnFailed, End: end}
}
func ifDone(end task.End) rules.EndedNeed { return rules.EndedNeed{Kind: task.OnDone, End: end} }

func TestBlame(t *testing.T) {
	t.Parallel()
	need := func(n byte, e rules.EndedNeed) rules.EndedNeed {
		e.Need = task.ID{n}
		return e
	}
	for _, tc := range []struct {
		name  string
		ended []rules.EndedNeed
		want  byte // the need to blame, or 0
	}{
		{"no need ended", nil, 0},
		{"a success that was asked for", []rules.EndedNeed{need(1, needs(succeeded))}, 0},
		{"a failure that is allowed", []rules.EndedNeed{need(1, needs(allowed))}, 0},
		{"one that could not run, though it may fail", []rules.EndedNeed{need(1, needs(lostToo))}, 1},
		{"any end", []rules.EndedNeed{need(1, ifDone(cancelled)), need(2, ifDone(failed))}, 0},
		{"a failure", []rules.EndedNeed{need(2, needs(succeeded)), need(1, needs(failed))}, 1},
		{"a cancel", []rules.EndedNeed{need(1, needs(cancelled))}, 1},
		{"a success where a failure was asked for", []rules.EndedNeed{need(1, ifFailed(succeeded))}, 0},
		{"the oldest of two", []rules.EndedNeed{need(3, needs(failed)), need(2, needs(failed))}, 2},
		{"a failure before one that was not needed", []rules.EndedNeed{need(1, needs(notNeeded)), need(2, needs(failed))}, 2},
	} {
		// The order of the edges does not matter.
		for range 2 {
			got := rules.Blame(tc.ended)
			if (got == nil) != (tc.want == 0) || got != nil && got.Need != (task.ID{tc.want}) {
				t.Errorf("%s: %+v", tc.name, got)
			}
			slices.Reverse(tc.ended)
		}
	}
}

// A task waits for all of its successes and ends, and for the first failure.
func TestWaits(t *testing.T) {
	t.Parallel()
	const none = rules.NoIfFailed
	for _, tc := range []struct {
		name      string
		of        []rules.Need
		want      rules.Waits
		notNeeded bool
	}{
		{"no needs", nil, rules.Waits{IfFailed: none}, false},
		{"one of two needs ended", edges(needs(succeeded), needs(open)), rules.Waits{Open: 1, IfFailed: none}, false},
		{"no failure yet", edges(ifFailed(open), ifFailed(succeeded)), rules.Waits{Open: 1, IfFailed: 1}, false},
		{"the first failure of two", edges(ifFailed(open), ifFailed(failed)), rules.Waits{IfFailed: none}, false},
		{"a failure that is allowed is one", edges(ifFailed(allowed), ifFailed(succeeded)), rules.Waits{IfFailed: none}, false},
		{"one that could not run", edges(ifFailed(lost)), rules.Waits{IfFailed: none}, false},
		{"one that missed its deadline", edges(ifFailed(expired)), rules.Waits{IfFailed: none}, false},
		{"one without budget", edges(ifFailed(spent)), rules.Waits{IfFailed: none}, false},
		{"none failed", edges(ifFailed(succeeded), ifFailed(cancelled), ifFailed(notNeeded)), rules.Waits{}, true},
		{"a failure, and another need is open", edges(ifFailed(failed), ifFailed(open), needs(open), ifDone(open)), rules.Waits{Open: 2, IfFailed: none}, false},
		{"none failed, and another need is open", edges(ifFailed(succeeded), needs(open)), rules.Waits{Open: 1}, true},
		{"all kinds, all open", edges(ifFailed(open), ifFailed(open), needs(open), ifDone(open)), rules.Waits{Open: 4, IfFailed: 2}, false},
	} {
		if got := rules.WaitsFor(tc.of, rules.Unmarked); got != tc.want || got.NotNeeded() != tc.notNeeded {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
		// Counting edge by edge, in either order, has the same result.
		for range 2 {
			var list []task.Edge
			for i := range tc.of {
				list = append(list, task.Edge{Needs: tc.of[i].Need, Kind: tc.of[i].Kind})
			}
			got := rules.FirstWaits(list)
			for i := range tc.of {
				if tc.of[i].Marked {
					got = got.After(rules.SumMarked([]rules.EndedNeed{tc.of[i].EndedNeed}))
				}
			}
			if got != tc.want {
				t.Errorf("%s, edge by edge: %+v, want %+v", tc.name, got, tc.want)
			}
			slices.Reverse(tc.of)
		}
	}
}

func TestUnmetFailure(t *testing.T) {
	t.Parallel()
	a := rules.TaskName("a", task.ID{})
	for _, tc := range []struct {
		got  *task.Error
		kind task.ErrorKind
		text []string
	}{
		{rules.UnmetFailure(&rules.EndedNeed{Kind: task.OnSuccess, End: cancelled}, a), task.KindDependencyFailed, []string{`it needs task "a" (`, "which ended cancelled"}},
		{rules.UnmetFailure(&rules.EndedNeed{Kind: task.OnSuccess, End: notNeeded}, a), task.KindNotNeeded, []string{`not needed: it needs task "a" (`, "which was not needed"}},
		{rules.NotNeededFailure(&rules.EndedNeed{Kind: task.OnFailed, End: cancelled}, false, a), task.KindNotNeeded, []string{`not needed: it runs if task "a" (`, "which ended cancelled"}},
		{rules.NotNeededFailure(&rules.EndedNeed{Kind: task.OnFailed, End: succeeded}, true, a), task.KindNotNeeded, []string{`not needed: it runs if task "a" (`, "or another of its needs fails, and none of them did"}},
	} {
		if tc.got.Kind != tc.kind || !strings.HasPrefix(tc.got.Message, tc.text[0]) || !strings.HasSuffix(tc.got.Message, tc.text[1]) {
			t.Errorf("%+v, want %s: %q", tc.got, tc.kind, tc.text)
		}
	}
	if got := rules.TaskName("", task.ID{1}); got != (task.ID{1}).String() {
		t.Errorf("TaskName without a node: %s", got)
	}
}
