package preview

import (
	"cmp"
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// round is a step in one of its rounds.
type round struct {
	name string
	no   int
}

// effect is one of a plan, with what its place there needs.
type effect struct {
	task.UndoEffect
	index, undoNo int
}

// Undo returns which effects of a task are undone if it ends without success, or were.
// It shares nothing with h.
func Undo(h *store.History) task.UndoPlan {
	p := task.UndoPlan{TaskID: h.Task.ID, State: h.Task.State, Phase: h.Task.Undo.Clone()}
	var all []effect
	known := make(map[round]bool)
	for i := range h.Steps {
		if s := &h.Steps[i]; s.State != task.StepFailed && hasEffect(s) {
			known[round{s.Name, s.Round}] = true
			all = append(all, effectOf(h, s))
		}
	}
	for i := range h.Steps { // the first try of a step whose tries all failed
		s := &h.Steps[i]
		if at := (round{s.Name, s.Round}); s.State == task.StepFailed && hasEffect(s) && !known[at] {
			known[at] = true
			all = append(all, effectOf(h, s))
		}
	}
	slices.SortStableFunc(all, inOrder)
	p.Effects = make([]task.UndoEffect, len(all))
	for i := range all {
		p.Effects[i] = all[i].UndoEffect
	}
	return p
}

// UndoOf is Undo for a task that undoes another one: of the effects of that.
func UndoOf(h, of *store.History) task.UndoPlan {
	both := store.History{Task: of.Task, Steps: slices.Clone(of.Steps)}
	both.Task.State, both.Task.Undo = h.Task.State, h.Task.Undo
	for i := range h.Steps {
		if s := &h.Steps[i]; s.Kind == task.KindUndo {
			both.Steps = append(both.Steps, *s)
		}
	}
	p := Undo(&both)
	p.TaskID = h.Task.ID
	return p
}

// hasEffect reports whether a row is of a step that does something that stays, or of a point
// of no return. Waits, sleeps and the like do nothing, and cleanups and undos undo.
func hasEffect(s *task.Step) bool {
	switch s.Kind {
	case task.KindStep, task.KindStart, task.KindCall, task.KindPoint:
		return true
	}
	return false
}

func effectOf(h *store.History, s *task.Step) effect {
	e := effect{index: s.Index, undoNo: s.UndoNo, UndoEffect: task.UndoEffect{
		Step: s.Name, Round: s.Round, Kind: s.Kind, Effect: task.EffectUnknown, Undo: task.EffectNone,
		Key: task.StepKey(h.Task.ID, s.Name, s.Round), At: s.StartedAt,
	}}
	if s.State == task.StepCompleted && s.Error == nil {
		e.Effect = task.EffectConfirmed
	}
	if s.Kind == task.KindPoint {
		e.Key, e.Undo = "", task.EffectKept
	}
	if s.State == task.StepCompleted && s.AttemptNo == 0 { // a rerun took it over
		e.Key = ""
	}
	if s.Undo == task.UndoNone || s.State == task.StepFailed {
		return e
	}
	e.tries(h.Steps)
	switch s.Undo {
	case task.UndoKept:
		e.Undo = task.EffectKept
	case task.UndoUndone:
		e.Undo, e.Error = task.EffectUndone, nil
	case task.UndoSkipped:
		e.Undo = task.EffectSkipped
	default:
		e.Undo = open(&h.Task, e.Tries)
	}
	return e
}

// open is what becomes of an effect that is to be undone, after so many tries of that.
func open(t *task.Task, tries int) task.EffectUndo {
	switch {
	case t.State == task.Succeeded:
		return task.EffectKept
	case t.Undo != nil && t.Undo.GaveUp:
		return task.EffectGivenUp
	case tries > 0:
		return task.EffectFailing
	}
	return task.EffectDeclared
}

// tries counts the tries of an undo that failed.
func (e *effect) tries(steps []task.Step) {
	var last *task.Step
	for i := range steps {
		s := &steps[i]
		if s.Kind != task.KindUndo || s.State != task.StepFailed || s.Name != e.Step || s.Round != e.Round {
			continue
		}
		if e.Tries++; last == nil || s.AttemptNo >= last.AttemptNo {
			last = s
		}
	}
	if last != nil && last.Error != nil {
		failure := *last.Error
		e.Error = &failure
	}
}

// inOrder puts what is to be undone first, as it would be: the last begun first. Then comes
// what stays, the last reached first, and then what was undone.
func inOrder(a, b effect) int {
	if c := cmp.Compare(group(a.Undo), group(b.Undo)); c != 0 {
		return c
	}
	if group(a.Undo) != stays {
		return cmp.Compare(b.undoNo, a.undoNo)
	}
	return cmp.Or(cmp.Compare(b.index, a.index), cmp.Compare(b.Round, a.Round))
}

// The groups of effects, in the order of a plan.
const (
	toUndo = iota
	stays
	undone
)

func group(u task.EffectUndo) int {
	switch u {
	case task.EffectDeclared, task.EffectFailing, task.EffectGivenUp:
		return toUndo
	case task.EffectUndone:
		return undone
	}
	return stays
}

// UndoneFirst reports whether a task that has not ended would be undone before a cancel ends
// it, or is being undone, as far as its row tells. A running one whose handler has no steps to
// undo cleans up by itself.
func UndoneFirst(t *task.Task) bool {
	cleansUp := t.CleanupWhenCancelled && t.State != task.Running && rules.Began(t.State, t.Waiting, t.Join, t.AttemptNo)
	return !t.State.Terminal() && !t.Undo.Runs() && (t.UndoOpen > 0 || t.Undo != nil || cleansUp)
}
