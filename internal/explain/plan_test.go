package explain_test

import (
	"testing"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/task"
)

func TestUndoPlan(t *testing.T) {
	t.Parallel()
	effects := func(undos ...task.EffectUndo) []task.UndoEffect {
		list := []task.UndoEffect{{Kind: task.KindPoint, Undo: task.EffectKept}}
		for _, u := range undos {
			list = append(list, task.UndoEffect{Kind: task.KindStep, Undo: u})
		}
		return list
	}
	for want, p := range map[string]task.UndoPlan{
		"It has no effects on record.": {State: task.Ready},
		"If it ended without success now, nothing of its 1 effect would be undone.":                         {State: task.Running, Effects: effects(task.EffectNone)},
		"If it ended without success now, of its 2 effects 1 would be undone first, in this order.":         {State: task.Running, Effects: effects(task.EffectDeclared, task.EffectKept)},
		"It is being undone, and then ends cancelled: of its 3 effects, 2 are to be undone, in this order.": {State: task.Pending, Phase: &task.UndoPhase{EndsAs: task.Cancelled}, Effects: effects(task.EffectFailing, task.EffectDeclared, task.EffectUndone)},
		"Its undo was given up: of its 2 effects, 2 with an undo stand.":                                    {State: task.Failed, Phase: &task.UndoPhase{GaveUp: true}, Effects: effects(task.EffectGivenUp, task.EffectGivenUp)},
		"Its undo was abandoned: of its 1 effect, 1 with an undo stands.":                                   {State: task.Failed, Phase: &task.UndoPhase{GaveUp: true, Abandoned: true}, Effects: effects(task.EffectGivenUp)},
		"It succeeded: nothing of it is undone.":                                                            {State: task.Succeeded, Effects: effects(task.EffectKept)},
		"It is cancelled, and nothing is to be undone.":                                                     {State: task.Cancelled, Effects: effects(task.EffectUndone)},
	} {
		if got := clock.UndoPlan(&p); got != want {
			t.Errorf("%+v:\n\t%s\nwant\n\t%s", p, got, want)
		}
	}
}

func TestPlannedUndo(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]task.UndoEffect{
		"is undone":                               {Undo: task.EffectDeclared},
		"none declared: it stays":                 {Undo: task.EffectNone},
		"point of no return":                      {Undo: task.EffectKept, Kind: task.KindPoint},
		"beyond the point of no return: it stays": {Undo: task.EffectKept},
		"undone":                           {Undo: task.EffectUndone},
		"failed twice, is tried again":     {Undo: task.EffectFailing, Tries: 2},
		"given up: it stands":              {Undo: task.EffectGivenUp},
		"skipped by an operator: it stays": {Undo: task.EffectSkipped},
	} {
		if got := explain.PlannedUndo(task.Failed, &e); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
	if got := explain.PlannedUndo(task.Succeeded, &task.UndoEffect{Undo: task.EffectKept}); got != "the task succeeded: it stays" {
		t.Errorf("after a success: %q", got)
	}
}
