package rules

import (
	"fmt"
	"slices"

	"github.com/goweaver/weaver/task"
)

// CleanedUp is a completed cleanup of a task: steps that it undid must not count as
// done when that task runs again.
type CleanedUp struct {
	Task task.ID
	Step string
	Undo string // the undo of another task of the job, which has begun, by its name; there is no Step then
}

// undo names an undo of the job.
func (c *CleanedUp) undo() string {
	return fmt.Sprintf("task %q (%v), an undo of its job,", c.Undo, c.Task)
}

// FirstCleanup returns the first completed cleanup among the steps of a task, which are
// sorted by index; nil: none.
func FirstCleanup(steps []task.Step) *CleanedUp {
	i := slices.IndexFunc(steps, func(s task.Step) bool { return s.RanCleanup() })
	if i < 0 {
		return nil
	}
	return &CleanedUp{Task: steps[i].TaskID, Step: steps[i].Name}
}

// CheckCleanedUp refuses the retry of a task if ran, a cleanup of it or of a task that
// may come back with it, completed. needs are those of the task.
func CheckCleanedUp(id task.ID, s task.State, needs []Need, ran *CleanedUp) error {
	if ran == nil {
		return nil
	}
	instead := "rerun it"
	if slices.ContainsFunc(needs, func(n Need) bool { return n.Awaited == 0 }) {
		instead = "submit its job again"
	}
	if ran.Undo != "" {
		return refuse(id, s, fmt.Sprintf("but %s ran, so what it undid would count as done: submit the job again, or retry with --keep-steps (KeepSteps) if that still stands", ran.undo()))
	}
	what := fmt.Sprintf("but its cleanup %q ran", ran.Step)
	if ran.Task != id {
		what = fmt.Sprintf("but the retry may bring back task %v, whose cleanup %q ran", ran.Task, ran.Step)
	}
	return refuse(id, s, what+", so the steps that it undid would count as done: "+instead+", or retry with --keep-steps (KeepSteps) if they still stand")
}

// CheckRerunCleanedUp refuses a rerun that takes steps over from a task if ran, a cleanup
// of it, completed.
func CheckRerunCleanedUp(id task.ID, s task.State, ran *CleanedUp) error {
	if ran == nil {
		return nil
	}
	return refuse(id, s, fmt.Sprintf("but its cleanup %q ran, so the steps that it undid would count as done: rerun it from the beginning, or with --keep-steps (KeepSteps) if they still stand", ran.Step))
}

// KeepNote adds to the reason of a verb in the audit that it kept the steps of task id,
// though ran, a cleanup of it or of a task that came back with it, completed.
func KeepNote(id task.ID, ran *CleanedUp, reason string) string {
	if ran == nil {
		return reason
	}
	text := fmt.Sprintf("steps kept though the cleanup %q ran", ran.Step)
	if ran.Undo != "" {
		text = fmt.Sprintf("kept though %s ran", ran.undo())
	} else if ran.Task != id {
		text = fmt.Sprintf("steps kept though the cleanup %q of task %v ran", ran.Step, ran.Task)
	}
	if reason != "" {
		text += ": " + reason
	}
	return text
}

// EndedByNeeds reports whether a dependent ended because of its needs, its children or
// its job's budget: then the retry of a need may bring it back ([RevivesDependent]).
func EndedByNeeds(s task.State, kind task.ErrorKind, join task.Join) bool {
	switch kind {
	case task.KindDependencyFailed:
		return s == task.Cancelled || s == task.Failed && join == task.JoinComplete
	case task.KindNotNeeded, task.KindBudget:
		return s == task.Cancelled
	}
	return false
}
