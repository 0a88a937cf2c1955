package propagate_test

import (
	"testing"

	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/task"
)

// A parent that ends with its children ends with the last of them, and its own dependents
// follow in the next round.
func TestParentsEndWithTheirChildren(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		wrong []propagate.Edge
		want  []string
		count task.JobCounters
	}{
		{nil, []string{
			"mark 1, 2", "lower 5 by 2, 6 by 1", "ready 6 ready/", "wrong children 0", "nodes 0", "complete 5 true", "dispatch 6 in 0s",
			"mark 5", "lower 7 by 1", "ready 7 ready/", "dispatch 7 in 0s", "count 1",
		}, task.JobCounters{Unfinished: -1, Movable: 2, Succeeded: 1}},
		{[]propagate.Edge{{Dependent: id(5), EndedNeed: rules.EndedNeed{Need: id(3), End: failed}}}, []string{
			"mark 1, 2", "lower 5 by 2, 6 by 1", "ready 6 ready/", "wrong children 1", "nodes 1", "complete 5 false", "dispatch 6 in 0s",
			"mark 5", "lower 7 by 1", "nodes 1", "cancel 7 dependency_failed", "mark 7", "count 1",
		}, task.JobCounters{Unfinished: -2, Movable: 1, Failed: 2}},
	} {
		g := newGraph([2]byte{5, 7})
		for _, kid := range []byte{1, 2} {
			g.add(kid, 5, task.OnDone)
		}
		g.add(1, 6, task.OnDone)
		g.joins = map[task.ID]task.Join{id(5): task.JoinComplete, id(6): task.JoinRerun}
		g.wrong = tc.wrong
		var b propagate.Batch
		b.End(id(2), succeeded, true)
		b.End(id(1), succeeded, true)
		g.run(t, &b, tc.want...)
		if g.jobs[job] != tc.count {
			t.Errorf("the counters change by %+v, want %+v", g.jobs[job], tc.count)
		}
	}
}
