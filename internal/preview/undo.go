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

// effect is an effect of the plan, with the data for its order.
type effect struct {
	task.UndoEffect
	index, undoNo int
}

// Undo returns the effects of a task that are undone, or were undone, if it ends
// without success. It shares no memory with h.
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
	for i := range h.Steps { // the first try of a step without a successful try
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

// UndoOf is Undo for a task that undoes another one: it returns the effects of
// that task.
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

// hasEffect reports whether a row is a step with a lasting effect, or a point of no
// return. Waits, sleeps and the like have no effects; cleanups and undos only reverse
// effects.
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

// open returns the state of an effect to be undone, after the given number of
// tries.
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

// tries returns the number of failed tries of an undo.
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

// inOrder sorts the effects: first those to be undone, latest begun first; then
// those that stay, latest reached first; then those already undone.
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

// UndoneFirst reports whether a task that has not ended is undone before a cancel
// ends it, or is being undone, as far as its row shows. A running task whose
// handler has no steps to undo cleans up by itself.
func UndoneFirst(t *task.Task) bool {
	cleansUp := t.CleanupWhenCancelled && t.State != task.Running && rules.Began(t.State, t.Waiting, t.Join, t.AttemptNo)
	return !t.State.Terminal() && !t.Undo.Runs() && (t.UndoOpen > 0 || t.Undo != nil || cleansUp)
}
