package rules

import "github.com/goweaver/weaver/task"

// EndedNeed is an edge whose need has ended.
type EndedNeed struct {
	Need  task.ID
	Kind  task.EdgeKind
	State task.State // in which the need ended
}

// unmet reports whether the need ended otherwise than the edge asks for.
func (e *EndedNeed) unmet() bool {
	holds, _ := e.Kind.Holds(e.State) // it ended
	return !holds
}

// Blame returns the edge for which a dependent cannot run any more, nil if all
// of them hold. Of several it is one whose need should have succeeded before one
// whose need should have failed, because the dependent's error decides whether
// its job fails; then the oldest need. The order of the edges does not matter.
func Blame(ended []EndedNeed) *EndedNeed {
	var worst *EndedNeed
	for i := range ended {
		e := &ended[i]
		if e.unmet() && (worst == nil || e.compare(worst) < 0) {
			worst = e
		}
	}
	return worst
}

// UnmetKind is the error kind of a dependent that cannot run for an edge.
func UnmetKind(kind task.EdgeKind) task.ErrorKind {
	if kind == task.OnFailed {
		return task.KindNotNeeded
	}
	return task.KindDependencyFailed
}

// compare puts the edge that is to be blamed first.
func (e *EndedNeed) compare(other *EndedNeed) int {
	if e.Kind != other.Kind {
		if e.Kind == task.OnSuccess {
			return -1
		}
		return 1
	}
	return e.Need.Compare(other.Need)
}
