package rules

import (
	"fmt"
	"slices"

	"github.com/goweaver/weaver/task"
)

// CleanedUp is a completed cleanup of a task. Steps that it undid must not count as completed
// when that task runs again.
type CleanedUp struct {
	Task task.ID
	Step string
	Undo string // the name of another task of the job whose undo has begun; then Step is empty
}

// undo describes an undo of the job.
func (c *CleanedUp) undo() string {
	return fmt.Sprintf("task %q (%v), an undo of its job,", c.Undo, c.Task)
}

// FirstCleanup returns the first completed cleanup among a task's steps, or nil. The steps are
// sorted by index.
func FirstCleanup(steps []task.Step) *CleanedUp {
	i := slices.IndexFunc(steps, func(s task.Step) bool { return s.RanCleanup() })
	if i < 0 {
		return nil
	}
	return &CleanedUp{Task: steps[i].TaskID, Step: steps[i].Name}
}

// CheckCleanedUp refuses the retry of a task if ran, a cleanup of it or of a task revived with
// it, completed. needs are the task's needs.
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

// CheckRerunCleanedUp refuses a rerun that takes steps over from a task if ran, a cleanup of
// the task, completed.
func CheckRerunCleanedUp(id task.ID, s task.State, ran *CleanedUp) error {
	if ran == nil {
		return nil
	}
	return refuse(id, s, fmt.Sprintf("but its cleanup %q ran, so the steps that it undid would count as done: rerun it from the beginning, or with --keep-steps (KeepSteps) if they still stand", ran.Step))
}

// KeepNote adds to an audit reason that the verb kept the steps of task id, although ran
// completed. ran is a cleanup of the task or of a task revived with it.
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

// EndedByNeeds reports whether a dependent ended because of its needs, its children or its
// job's budget. Then the retry of a need may revive it ([RevivesDependent]).
func EndedByNeeds(s task.State, kind task.ErrorKind, join task.Join) bool {
	switch kind {
	case task.KindDependencyFailed:
		return s == task.Cancelled || s == task.Failed && join == task.JoinComplete
	case task.KindNotNeeded, task.KindBudget:
		return s == task.Cancelled
	}
	return false
}
