package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/task"
)

func TestBlame(t *testing.T) {
	t.Parallel()
	need := func(n byte, kind task.EdgeKind, s task.State) rules.EndedNeed {
		return rules.EndedNeed{Need: task.ID{n}, Kind: kind, State: s}
	}
	for _, tc := range []struct {
		name  string
		ended []rules.EndedNeed
		want  byte // the need to blame; 0: none
	}{
		{"no need ended", nil, 0},
		{"a success that was asked for", []rules.EndedNeed{need(1, task.OnSuccess, task.Succeeded)}, 0},
		{"a failure that was asked for", []rules.EndedNeed{need(1, task.OnFailed, task.Failed)}, 0},
		{"any end", []rules.EndedNeed{need(1, task.OnDone, task.Cancelled), need(2, task.OnDone, task.Failed)}, 0},
		{"a failure", []rules.EndedNeed{need(2, task.OnSuccess, task.Succeeded), need(1, task.OnSuccess, task.Failed)}, 1},
		{"a cancel", []rules.EndedNeed{need(1, task.OnSuccess, task.Cancelled)}, 1},
		{"a success where a failure was asked for", []rules.EndedNeed{need(1, task.OnFailed, task.Succeeded)}, 1},
		{"the oldest of two", []rules.EndedNeed{need(3, task.OnSuccess, task.Failed), need(2, task.OnSuccess, task.Failed)}, 2},
		{"a missed success before a missed failure", []rules.EndedNeed{need(1, task.OnFailed, task.Succeeded), need(2, task.OnSuccess, task.Failed)}, 2},
	} {
		// Whatever the order of the edges.
		for range 2 {
			got := rules.Blame(tc.ended)
			if (got == nil) != (tc.want == 0) || got != nil && got.Need != (task.ID{tc.want}) {
				t.Errorf("%s: %+v", tc.name, got)
			}
			slices.Reverse(tc.ended)
		}
	}
}

func TestUnmetFailure(t *testing.T) {
	t.Parallel()
	for kind, want := range map[task.EdgeKind]*task.Error{
		task.OnSuccess: {Kind: task.KindDependencyFailed, Message: `it needs task "a" (`},
		task.OnFailed:  {Kind: task.KindNotNeeded, Message: `not needed: it runs if task "a" (`},
	} {
		got := rules.UnmetFailure(rules.EndedNeed{Kind: kind, State: task.Cancelled}, rules.TaskName("a", task.ID{}))
		if got.Kind != want.Kind || !strings.HasPrefix(got.Message, want.Message) || !strings.HasSuffix(got.Message, "which ended cancelled") {
			t.Errorf("%s: %+v", kind, got)
		}
	}
	if got := rules.TaskName("", task.ID{1}); got != (task.ID{1}).String() {
		t.Errorf("TaskName without a node: %s", got)
	}
}
