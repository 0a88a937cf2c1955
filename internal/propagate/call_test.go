package propagate_test

import (
	"testing"

	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/task"
)

// The ends of children are counted for their calls, together for one batch, and not as needs
// of their parents.
func TestCallsEndWithTheirChildren(t *testing.T) {
	t.Parallel()
	g := newGraph()
	g.add(1, 7, task.OnDone)
	for _, e := range []struct {
		need, parent byte
		step         string
	}{{1, 5, "x"}, {2, 5, "x"}, {3, 6, "x"}, {3, 5, "y"}} {
		g.edges = append(g.edges, propagate.Edge{Dependent: id(e.parent), Step: e.step, EndedNeed: rules.EndedNeed{Need: id(e.need), Kind: task.OnDone}})
	}
	g.left = map[byte]int{5: 4, 6: 1}
	var b propagate.Batch
	for _, kid := range []byte{3, 1, 2} {
		b.End(id(kid), succeeded, true)
	}
	g.run(t, &b, "mark 1, 2, 3", "calls 5 x by 2, 5 y by 1, 6 x by 1", "lower 7 by 1", "ready 7 ready/", "dispatch 6 in 0s, 7 in 0s", "count 1")
	if want := (task.JobCounters{Movable: 2}); g.jobs[job] != want {
		t.Errorf("the counters change by %+v, want %+v", g.jobs[job], want)
	}
}

// A dependent that ends with children of calls is in the result, so that they end too.
func TestDependentsThatEndLeaveTheirCalls(t *testing.T) {
	t.Parallel()
	g := newGraph([2]byte{1, 5})
	g.calls = true
	var b propagate.Batch
	b.End(id(1), failed, true)
	got := g.run(t, &b, "mark 1", "lower 5 by 1", "nodes 1", "cancel 5 dependency_failed", "mark 5", "count 1")
	if len(got.Callers) != 1 || got.Callers[0] != (propagate.Caller{ID: id(5), Job: job}) {
		t.Errorf("the callers are %v", got.Callers)
	}
}
