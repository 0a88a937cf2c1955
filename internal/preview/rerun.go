package preview

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Rerun returns the steps that a rerun of a task takes over if it runs the steps
// from an index on again, in the order in which they were first reached. refused
// is the reason against the rerun, as far as the history shows it.
func Rerun(h *store.History, below int, keepSteps bool) (taken []task.Step, refused error) {
	t := &h.Task
	call, open := "", ""
	for i := range h.Steps {
		s := &h.Steps[i]
		if !rules.TakesOver(s, below) {
			continue
		}
		if s.Kind == task.KindCall && call == "" {
			call = s.Name
		}
		if s.Undo == task.UndoOpen && open == "" {
			open = s.Name
		}
		taken = append(taken, *s)
	}
	if err := rules.CheckValues(t); err != nil {
		return taken, err
	}
	needs := slices.ContainsFunc(h.Needs, func(n store.Need) bool { return n.Awaited == 0 })
	if err := rules.CheckRerun(t.ID, t.State, needs, call, open, len(taken)); err != nil {
		return taken, err
	}
	if keepSteps || len(taken) == 0 {
		return taken, nil
	}
	return taken, rules.CheckRerunCleanedUp(t.ID, t.State, rules.FirstCleanup(h.Steps))
}

// FirstOf returns the index from which a rerun from the named step runs again. The
// cases of a race, "name[0]" and so on, are steps recorded before the race; the
// name of a case means the race.
func FirstOf(steps []task.Step, name string) (below int, found bool) {
	if race, _, ok := strings.Cut(name, "["); ok && slices.ContainsFunc(steps, func(s task.Step) bool { return s.Name == race && s.Kind == task.KindRace }) {
		name = race
	}
	named := slices.ContainsFunc(steps, func(s task.Step) bool { return s.Name == name && s.Kind != task.KindRace })
	for i := range steps {
		s := &steps[i]
		if s.Name != name && (named || !isCase(s, name)) {
			continue
		}
		if !found || s.Index < below {
			below, found = s.Index, true
		}
	}
	return below, found
}

// isCase reports whether a step is a case of the named race.
func isCase(s *task.Step, race string) bool {
	no, begins := strings.CutPrefix(s.Name, race+"[")
	no, ends := strings.CutSuffix(no, "]")
	if !begins || !ends {
		return false
	}
	_, err := strconv.Atoi(no)
	return err == nil && (s.Kind == task.KindSignal || s.Kind == task.KindSleep || s.Kind == task.KindCall)
}
