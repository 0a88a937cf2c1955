package rules

import (
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/task"
)

// The undo of a task of a job is a task of that job, with an edge of the kind undo to the
// undone task. It is in an undo phase from the start ([task.UndoPhase.Runs]): no cancel,
// deadline or budget ends it, and it has every guarantee of an undo. When its needs have
// ended, [DecideUndo] decides whether it runs (ADR 0049).

// FirstPhase returns the undo phase of a new task with these edges, or nil.
func FirstPhase(needs []task.Edge, now time.Time) *task.UndoPhase {
	if !slices.ContainsFunc(needs, func(e task.Edge) bool { return e.Kind == task.OnUndo }) {
		return nil
	}
	return &task.UndoPhase{EndsAs: task.Succeeded, Began: now}
}

// RevivedPhase is [FirstPhase] of a revived task.
func RevivedPhase(needs []Need, now time.Time) *task.UndoPhase {
	if !undoes(needs) {
		return nil
	}
	return FirstPhase([]task.Edge{{Kind: task.OnUndo}}, now)
}

// HeldUp reports whether a task ended because an undo that it waited for was given up.
func HeldUp(s task.State, kind task.ErrorKind) bool {
	return s == task.Cancelled && kind == task.KindUndoFailed
}

// undoes reports whether a task is the undo of another task.
func undoes(needs []Need) bool {
	return slices.ContainsFunc(needs, func(n Need) bool { return n.Kind == task.OnUndo })
}

// UndoNeed is a need of an undo task.
type UndoNeed struct {
	Kind  task.EdgeKind
	End   task.End
	Began bool   // an attempt of it began
	Name  string // of the undone task, in the form of [TaskName]
}

// DecideUndo returns the transition of an undo task whose needs have ended. It begins if the
// undone task has begun, and the job was cancelled or a need ended against it. Otherwise the
// undo is not needed.
func DecideUndo(needs []UndoNeed, cancelled bool, now time.Time) Transition {
	wrong, began, name := cancelled, false, ""
	for i := range needs {
		n := &needs[i]
		wrong = wrong || n.End.Against()
		if n.Kind == task.OnUndo {
			began, name = n.Began, n.Name
		}
	}
	switch {
	case !wrong:
		return undoNotNeeded(fmt.Sprintf("not needed: nothing went wrong that task %s would be undone for", name))
	case !began:
		return undoNotNeeded(fmt.Sprintf("not needed: task %s, which it would undo, did not begin", name))
	}
	return Transition{
		State: task.Pending, Waiting: task.WaitUndo, ReadyAt: now, Begins: true,
		SetUndo: true, Undo: &task.UndoPhase{EndsAs: task.Succeeded, Began: now},
	}
}

func undoNotNeeded(why string) Transition {
	return Transition{State: task.Cancelled, SetUndo: true, Failure: &task.Error{Kind: task.KindNotNeeded, Message: why}}
}
