package rules

import "github.com/goweaver/weaver/task"

// EndedNeed is an edge whose need has ended.
type EndedNeed struct {
	Need task.ID
	Kind task.EdgeKind
	End  task.End
}

// unmet reports whether the edge has to hold and cannot any more. Of the edges
// of the kind failed any one has to: [Waits] counts them.
func (e *EndedNeed) unmet() bool {
	holds, ended := e.Kind.Holds(e.End)
	return e.Kind != task.OnFailed && ended && !holds
}

// Blame returns the edge for which a dependent cannot run any more, nil if those
// that have to hold do. Of several it is one for which the dependent counts
// against its job, then the oldest need. The order of the edges does not matter.
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

// UnmetKind is the error kind of a dependent that cannot run for an edge. One
// that needs a task which was not needed is not needed either.
func (e *EndedNeed) UnmetKind() task.ErrorKind {
	if e.Kind == task.OnUndo || e.Kind == task.OnUndone {
		return task.KindUndoFailed
	}
	if e.End.Kind == task.KindNotNeeded {
		return task.KindNotNeeded
	}
	return task.KindDependencyFailed
}

// compare puts the edge that is to be blamed first.
func (e *EndedNeed) compare(other *EndedNeed) int {
	if kind := e.UnmetKind(); kind != other.UnmetKind() {
		if kind == task.KindDependencyFailed {
			return -1
		}
		return 1
	}
	return e.Need.Compare(other.Need)
}

// Waits is how far a dependent is from its start. It waits for all of its edges
// of the kinds success and done, and for those of the kind failed until the first
// of their needs went wrong.
type Waits struct {
	Open     int // needs that it waits for
	IfFailed int // those of edges of the kind failed among them; NoIfFailed: it has none, or one of them went wrong
}

// NoIfFailed is [Waits.IfFailed] of a dependent that waits for no failure.
const NoIfFailed = -1

// NotNeeded reports whether all needs whose failure would start the dependent
// have ended, and none of them went wrong.
func (w Waits) NotNeeded() bool { return w.IfFailed == 0 }

// FirstWaits is what a new task with these edges waits for.
func FirstWaits(needs []task.Edge) Waits {
	w := Waits{Open: len(needs), IfFailed: NoIfFailed}
	for i := range needs {
		if needs[i].Kind == task.OnFailed {
			w.IfFailed = max(w.IfFailed, 0) + 1
		}
	}
	return w
}

// Marked sums up edges of one dependent whose needs have ended.
type Marked struct {
	All      int  // edges of the kinds success and done
	IfFailed int  // edges of the kind failed
	Wrong    bool // one of those held
}

// SumMarked sums up the edges of one dependent.
func SumMarked(ended []EndedNeed) (m Marked) {
	for i := range ended {
		e := &ended[i]
		if e.Kind != task.OnFailed {
			m.All++
			continue
		}
		m.IfFailed++
		if e.End.WentWrong() {
			m.Wrong = true
		}
	}
	return m
}

// After is what the dependent waits for when more of its needs have ended.
func (w Waits) After(m Marked) Waits {
	w.Open -= m.All
	switch {
	case w.IfFailed == NoIfFailed:
	case m.Wrong:
		w.Open -= w.IfFailed
		w.IfFailed = NoIfFailed
	default:
		w.Open -= m.IfFailed
		w.IfFailed -= m.IfFailed
	}
	return w
}

// WaitsFor is what a task waits for that does not wait for its children, by all of
// its other edges; open says which of them count as open.
func WaitsFor(needs []Need, open func(*Need) bool) Waits {
	edges := make([]task.Edge, 0, len(needs))
	var ended []EndedNeed
	for i := range needs {
		n := &needs[i]
		if n.Awaited > 0 {
			continue
		}
		edges = append(edges, task.Edge{Needs: n.Need, Kind: n.Kind})
		if !open(n) {
			ended = append(ended, n.EndedNeed)
		}
	}
	return FirstWaits(edges).After(SumMarked(ended))
}

// Need is an edge of a task, with its need as it is, which may not have ended.
type Need struct {
	EndedNeed
	Name   string // as [TaskName] has it
	Marked bool   // the end of the need was counted

	Awaited    int            // the attempt that waits, or waited, for the need: a child, or one that it asked for; 0: none
	Step       string         // the call whose child it is
	Recorded   task.State     // of an awaited one: how it had ended when that was counted
	Opened     int64          // the lease epoch of the dependent when the edge of a call was last opened; 0: not known
	CancelKind task.ErrorKind // for which the need was asked to cancel, or was cancelled
}

// Ended reports whether the need has ended.
func (n *Need) Ended() bool { return n.End.State.Terminal() }

// Unmarked reports whether the end of the need is still to be counted.
func Unmarked(n *Need) bool { return !n.Marked }

// unfinished reports whether the need has not ended.
func unfinished(n *Need) bool { return !n.Ended() }
