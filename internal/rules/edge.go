package rules

import "github.com/goweaver/weaver/task"

// EndedNeed is an edge whose need has ended.
type EndedNeed struct {
	Need task.ID
	Kind task.EdgeKind
	End  task.End
}

// unmet reports whether the edge must hold and cannot any more. Edges of the kind failed are
// alternatives, which [Waits] counts.
func (e *EndedNeed) unmet() bool {
	holds, ended := e.Kind.Holds(e.End)
	return e.Kind != task.OnFailed && ended && !holds
}

// Blame returns the edge that keeps a dependent from running, or nil if every required edge
// holds. It prefers an edge whose failure counts against the job, then the oldest need. The
// order of the edges does not matter.
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

// UnmetKind returns the error kind of a dependent that cannot run because of the edge. A
// dependent of a task that was not needed is not needed either.
func (e *EndedNeed) UnmetKind() task.ErrorKind {
	if e.Kind == task.OnUndo || e.Kind == task.OnUndone {
		return task.KindUndoFailed
	}
	if e.End.Kind == task.KindNotNeeded {
		return task.KindNotNeeded
	}
	return task.KindDependencyFailed
}

// compare orders the edge to blame first.
func (e *EndedNeed) compare(other *EndedNeed) int {
	if kind := e.UnmetKind(); kind != other.UnmetKind() {
		if kind == task.KindDependencyFailed {
			return -1
		}
		return 1
	}
	return e.Need.Compare(other.Need)
}

// Waits counts the open edges between a dependent and its start. The dependent waits for all
// of its edges of the kinds success and done. It waits for edges of the kind failed until the
// first of their needs went wrong.
type Waits struct {
	Open     int // all edges that it waits for
	IfFailed int // the edges of the kind failed among them; NoIfFailed: it has no such edge, or one held
}

// NoIfFailed is [Waits.IfFailed] of a dependent without an open edge of the kind failed.
const NoIfFailed = -1

// NotNeeded reports whether every need whose failure would start the dependent has ended
// without going wrong.
func (w Waits) NotNeeded() bool { return w.IfFailed == 0 }

// FirstWaits returns the initial counts of a new task with these edges.
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

// After returns the counts once further needs of the dependent have ended.
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

// WaitsFor returns the counts of a task, without the edges to its children. open decides which
// edges count as open.
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

// Need is an edge of a task with the state of its need, which may not have ended.
type Need struct {
	EndedNeed
	Name   string // in the form of [TaskName]
	Marked bool   // the end of the need was counted

	Awaited    int            // the attempt that waits, or waited, for the need (a child or a requested task), else 0
	Step       string         // the call whose child it is
	Recorded   task.State     // of an awaited need: the end state that was counted
	Opened     int64          // the lease epoch of the dependent when the edge of a call was last opened; 0: unknown
	CancelKind task.ErrorKind // the kind of the need's cancel or cancel request
}

// Ended reports whether the need has ended.
func (n *Need) Ended() bool { return n.End.State.Terminal() }

// Unmarked reports whether the end of the need is not counted yet.
func Unmarked(n *Need) bool { return !n.Marked }

// unfinished reports whether the need has not ended.
func unfinished(n *Need) bool { return !n.Ended() }
