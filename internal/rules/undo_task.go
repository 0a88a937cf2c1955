package rules

import (
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/task"
)

// The undo of a task of a job is a task of that job, with an edge of the kind undo to the
// task that it undoes. It is in an undo phase from the start ([task.UndoPhase.Runs]): no
// cancel, deadline or budget ends it, and the phase has all that an undo is promised. When
// its needs have ended it is decided whether it runs (ADR 0049).

// FirstPhase is the undo phase with which a task with these edges is stored; nil: none.
func FirstPhase(needs []task.Edge, now time.Time) *task.UndoPhase {
	if !slices.ContainsFunc(needs, func(e task.Edge) bool { return e.Kind == task.OnUndo }) {
		return nil
	}
	return &task.UndoPhase{EndsAs: task.Succeeded, Began: now}
}

// RevivedPhase is [FirstPhase] of a task that is brought back.
func RevivedPhase(needs []Need, now time.Time) *task.UndoPhase {
	if !undoes(needs) {
		return nil
	}
	return FirstPhase([]task.Edge{{Kind: task.OnUndo}}, now)
}

// HeldUp reports whether a task ended because an undo that it had to wait for was given up.
func HeldUp(s task.State, kind task.ErrorKind) bool {
	return s == task.Cancelled && kind == task.KindUndoFailed
}

// undoes reports whether a task is the undo of another one.
func undoes(needs []Need) bool {
	return slices.ContainsFunc(needs, func(n Need) bool { return n.Kind == task.OnUndo })
}

// UndoNeed is a need of an undo task.
type UndoNeed struct {
	Kind  task.EdgeKind
	End   task.End
	Began bool   // an attempt of it began
	Name  string // as [TaskName] has it; of the task that is undone
}

// DecideUndo is what becomes of an undo task whose needs have ended. It begins if the job
// was cancelled, or one of the needs ended against it, and the task that it undoes has
// begun; else it is not needed.
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
