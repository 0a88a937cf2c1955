package preview_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/preview"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestRerun(t *testing.T) {
	t.Parallel()
	charge := row("charge", 1, task.KindStep, task.StepCompleted, undo(task.UndoOpen, 1, 0))
	fan, pack := row("fan", 2, task.KindCall, task.StepCompleted), row("pack", 2, task.KindStep, task.StepCompleted)
	refund := row("refund", 9, task.KindCleanup, task.StepCompleted)
	undone := row("book", 1, task.KindStep, task.StepCompleted, undo(task.UndoUndone, 1, 0))
	for name, tc := range map[string]struct {
		task    task.Task
		needs   []store.Need
		steps   []task.Step
		keep    bool
		taken   []string
		refused string
	}{
		"a success":                   {task: task.Task{State: task.Succeeded}, steps: []task.Step{charge, pack}, taken: []string{"charge", "pack"}},
		"what was undone stays":       {task: task.Task{State: task.Failed}, steps: []task.Step{undone, pack}, taken: []string{"pack"}},
		"a step may still be undone":  {task: task.Task{State: task.Blocked}, steps: []task.Step{charge}, taken: []string{"charge"}, refused: `its step "charge" may still be undone`},
		"a call":                      {task: task.Task{State: task.Failed}, steps: []task.Step{fan}, taken: []string{"fan"}, refused: `its step "fan" called tasks`},
		"needs":                       {task: task.Task{State: task.Failed}, needs: []store.Need{{}}, refused: "needs other tasks"},
		"children are no needs":       {task: task.Task{State: task.Failed}, needs: []store.Need{{Awaited: 1}}},
		"a cleanup ran":               {task: task.Task{State: task.Failed}, steps: []task.Step{pack, refund}, taken: []string{"pack"}, refused: `its cleanup "refund" ran`},
		"a cleanup ran, steps kept":   {task: task.Task{State: task.Failed}, steps: []task.Step{pack, refund}, keep: true, taken: []string{"pack"}},
		"a cleanup ran, nothing kept": {task: task.Task{State: task.Failed}, steps: []task.Step{refund}},
		"values are gone":             {task: task.Task{State: task.Failed, ValuesDropped: true}, steps: []task.Step{pack}, taken: []string{"pack"}, refused: "were dropped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.task.ID = id
			taken, refused := preview.Rerun(&store.History{Task: tc.task, Needs: tc.needs, Steps: tc.steps}, 5, tc.keep)
			var names []string
			for _, s := range taken {
				names = append(names, s.Name)
			}
			if !slices.Equal(names, tc.taken) {
				t.Errorf("takes over %q, want %q", names, tc.taken)
			}
			if (refused != nil) != (tc.refused != "") || refused != nil && (!errors.Is(refused, store.ErrState) || !strings.Contains(refused.Error(), tc.refused)) {
				t.Errorf("is refused with %v, want %q", refused, tc.refused)
			}
		})
	}
}

func TestFirstOf(t *testing.T) {
	t.Parallel()
	steps := []task.Step{
		{Name: "first[0]", Index: 1, Kind: task.KindSleep},
		{Name: "first[1]", Index: 2, Kind: task.KindSignal},
		{Name: "first", Index: 3, Kind: task.KindRace},
		{Name: "a", Index: 4, Kind: task.KindStep},
		{Name: "a", Index: 4, Kind: task.KindUndo},
		{Name: "first[x]", Index: 0, Kind: task.KindSleep},
	}
	for name, want := range map[string]int{"first": 1, "first[1]": 1, "a": 4, "b": -1} {
		got, found := preview.FirstOf(steps, name)
		if !found {
			got = -1
		}
		if got != want {
			t.Errorf("FirstOf(%q) = %d, want %d", name, got, want)
		}
	}
}
