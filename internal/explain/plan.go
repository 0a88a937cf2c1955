package explain

import (
	"fmt"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// UndoPlan describes in a sentence the future of a task's effects.
func (c Clock) UndoPlan(p *task.UndoPlan) string {
	n := 0 // effects; a point of no return does not count
	for i := range p.Effects {
		if p.Effects[i].Kind != task.KindPoint {
			n++
		}
	}
	of, open := text.Plural(n, "effect"), p.Open()
	phase := p.Phase
	switch {
	case phase != nil && phase.GaveUp:
		how := "given up"
		if phase.Abandoned {
			how = "abandoned"
		}
		return fmt.Sprintf("Its undo was %s: of its %s, %d with an undo %s.", how, of, open, stand(open))
	case phase != nil:
		return fmt.Sprintf("It is being undone, and then ends %s: of its %s, %d %s to be undone, in this order.", phase.EndsAs, of, open, are(open))
	case p.State == task.Succeeded:
		return "It succeeded: nothing of it is undone."
	case p.State.Terminal():
		return fmt.Sprintf("It is %s, and nothing is to be undone.", p.State)
	case n == 0:
		return "It has no effects on record."
	case open == 0:
		return fmt.Sprintf("If it ended without success now, nothing of its %s would be undone.", of)
	}
	return fmt.Sprintf("If it ended without success now, of its %s %d would be undone first, in this order.", of, open)
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func stand(n int) string {
	if n == 1 {
		return "stands"
	}
	return "stand"
}

// PlannedUndo describes in a few words the undo of one effect of a task in state s.
func PlannedUndo(s task.State, e *task.UndoEffect) string {
	switch e.Undo {
	case task.EffectDeclared:
		return "is undone"
	case task.EffectNone:
		return "none declared: it stays"
	case task.EffectKept:
		switch {
		case e.Kind == task.KindPoint:
			return "point of no return"
		case s == task.Succeeded:
			return "the task succeeded: it stays"
		}
		return "beyond the point of no return: it stays"
	case task.EffectUndone:
		return "undone"
	case task.EffectFailing:
		return fmt.Sprintf("failed %s, is tried again", times(e.Tries))
	case task.EffectGivenUp:
		return "given up: it stands"
	case task.EffectSkipped:
		return "skipped by an operator: it stays"
	}
	return string(e.Undo)
}
