package store

import (
	"slices"

	"github.com/goweaver/weaver/task"
)

// undo checks that steps are undone within their rounds, that undo_open counts them, and that the undo
// phase is set while it lasts (I15).
func (c *checker) undo(t *task.Task) {
	c.phase(t)
	c.undoTask(t)
	open, begun, point := 0, 0, -1
	for _, s := range c.stepsOf[t.ID] {
		switch {
		case s.Kind == task.KindPoint && s.State == task.StepCompleted:
			point = max(point, s.UndoNo)
		case s.Undo == task.UndoOpen:
			open++
		}
		begun = max(begun, s.UndoNo)
	}
	if open != t.UndoOpen {
		c.task("I15", t, "has %d steps to undo with undo_open %d", open, t.UndoOpen)
	}
	if begun > t.UndoNo {
		c.task("I15", t, "has a step with undo_no %d, above its own, %d", begun, t.UndoNo)
	}
	for _, s := range c.stepsOf[t.ID] {
		if s.Undo == task.UndoOpen && s.UndoNo <= point {
			c.task("I15", t, "its step %q began before a point of no return and is to be undone", s.Name)
		}
	}
	c.rounds(t)
}

// undoTask checks that an undo task ends with the last undo of the task that it undoes. That task must
// have succeeded, and has one unfinished undo task at most.
func (c *checker) undoTask(t *task.Task) {
	if of := t.Undo.Undoes(); t.Undo != nil && of != t.UndoOf {
		c.task("I15", t, "undoes task %s in its phase, and is to undo %s", of, t.UndoOf)
	}
	if t.UndoOf.IsZero() {
		return
	}
	child, ok := c.byID[t.UndoOf]
	ok = ok && !c.partial
	switch {
	case t.State != task.Succeeded && t.Undo == nil:
		c.task("I15", t, "is to undo task %s, and is in no undo phase", t.UndoOf)
	case t.Undo != nil && t.Undo.EndsAs != task.Succeeded:
		c.task("I15", t, "undoes task %s and is to end %q", t.UndoOf, t.Undo.EndsAs)
	case t.UndoOpen != 0 || t.StepCount != 0:
		c.task("I15", t, "undoes task %s and has %d steps of its own, %d of them to undo", t.UndoOf, t.StepCount, t.UndoOpen)
	case ok && child.State != task.Succeeded:
		c.task("I15", t, "undoes task %s, which is %s", t.UndoOf, child.State)
	case ok && t.State == task.Succeeded && child.UndoOpen > 0:
		c.task("I15", t, "succeeded, and %d steps of task %s are to be undone", child.UndoOpen, t.UndoOf)
	}
}

// phase checks that a task has an undo phase exactly while it is undone or has given up.
func (c *checker) phase(t *task.Task) {
	gaveUp := t.State == task.Failed && t.End().Kind == task.KindUndoFailed
	waits := t.Waiting == task.WaitUndo
	switch {
	case t.Undo == nil && !t.State.Terminal() && c.undoes(t):
		c.task("I15", t, "undoes another task of its job, and has no undo phase")
	case t.Undo == nil && (waits || gaveUp):
		c.task("I15", t, "waits for %q with an error of the kind %q, and has no undo phase", t.Waiting, t.End().Kind)
	case t.Undo == nil && t.UndoOpen > 0 && (t.State == task.Failed || t.State == task.Cancelled):
		c.task("I15", t, "has %d steps to undo", t.UndoOpen)
	case t.Undo == nil:
	case t.Undo.GaveUp != gaveUp:
		c.task("I15", t, "gave its undo up: %v, with an error of the kind %q", t.Undo.GaveUp, t.End().Kind)
	case t.Undo.Runs() && t.State == task.Pending && t.Waiting == task.WaitDeps:
	case !gaveUp && t.State != task.Running && (t.State != task.Pending && t.State != task.Blocked || !waits):
		c.task("I15", t, "waits for %q in its undo phase", t.Waiting)
	case t.Undo.EndsAs != task.Failed && t.Undo.EndsAs != task.Cancelled && t.Undo.Of.IsZero() && !c.undoes(t):
		c.task("I15", t, "is to end %q after its undo", t.Undo.EndsAs)
	}
}

// undoes reports whether a task undoes another task of its job.
func (c *checker) undoes(t *task.Task) bool {
	return slices.ContainsFunc(c.edgesOf[t.ID], func(e EdgeRow) bool { return e.Kind == task.OnUndo })
}

// rounds checks that the rounds of each step are consecutive, that only the last one may count as run,
// and that each step has one undo at most. A cleanup has no rounds.
func (c *checker) rounds(t *task.Task) {
	type round struct {
		name string
		no   int
	}
	past, undone, now := map[round]bool{}, map[round]int{}, map[string]int{}
	if !t.UndoOf.IsZero() { // its undos belong to steps of another task, which may be deleted
		_, there := c.byID[t.UndoOf]
		there = there && !c.partial
		of := map[round]bool{}
		for _, s := range c.stepsOf[t.UndoOf] {
			of[round{s.Name, s.Round}] = s.Undo == task.UndoUndone
		}
		for _, s := range c.stepsOf[t.ID] {
			if s.Kind == task.KindUndo && s.State == task.StepCompleted && there && !of[round{s.Name, s.Round}] {
				c.task("I15", t, "undid the step %q of task %s in round %d, which is not undone", s.Name, t.UndoOf, s.Round)
			}
		}
		return
	}
	for _, s := range c.stepsOf[t.ID] {
		at := round{s.Name, s.Round}
		switch {
		case s.State == task.StepFailed, s.Kind == task.KindCleanup:
		case s.Kind == task.KindUndo:
			undone[at]++
		case s.Past() && past[at]:
			c.task("I15", t, "its step %q is undone more than once in round %d", s.Name, s.Round)
		case s.Past():
			past[at] = true
		default:
			now[s.Name] = s.Round
		}
	}
	before := map[string]int{}
	for at := range past {
		before[at.name] = max(before[at.name], at.no+1)
	}
	for name, n := range before {
		for no := range n {
			if !past[round{name, no}] {
				c.task("I15", t, "its step %q has no round %d of %d", name, no, n)
			}
		}
	}
	for name, no := range now {
		if no != before[name] {
			c.task("I15", t, "its step %q is in round %d after %d", name, no, before[name])
		}
	}
	for at, n := range undone {
		if n > 1 || !past[at] {
			c.task("I15", t, "has %d undos of the step %q in round %d, which is undone: %v", n, at.name, at.no, past[at])
		}
	}
}
