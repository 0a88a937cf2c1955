package rules

import (
	"fmt"

	"github.com/goweaver/weaver/task"
)

// CheckRerun refuses to repeat a task that needs others: the new one could not read
// their outputs. So it does when a step that it would take over called others
// (call, its name): they are children of the task. So it does while a step that it would
// take over (open, its name) may still be undone, and with more steps than a rerun takes
// over.
func CheckRerun(id task.ID, s task.State, needs bool, call, open string, steps int) error {
	switch {
	case needs:
		return refuse(id, s, "but needs other tasks, whose outputs a new task could not read: retry it, or submit its job again")
	case call != "":
		return refuse(id, s, fmt.Sprintf("but its step %q called tasks, which stay with it: rerun it from that step, or from an earlier one", call))
	case open != "" && s != task.Succeeded:
		return refuse(id, s, fmt.Sprintf("and its step %q may still be undone: rerun it from that step, or from an earlier one, or wait until it has ended", open))
	case steps > task.MaxRerunSteps:
		return refuse(id, s, fmt.Sprintf("but a rerun takes over %d steps at most, not %d: rerun it from an earlier step, or from the beginning", task.MaxRerunSteps, steps))
	}
	return nil
}

// TakesOver reports whether a rerun takes a step over: a completed one with an
// index below the first that runs again. Neither what undoes others nor what was undone is
// taken over.
func TakesOver(step *task.Step, below int) bool {
	return step.State == task.StepCompleted && step.Index < below && step.Kind != task.KindCleanup && step.Kind != task.KindUndo && !step.Past()
}

// RerunReason is the reason of a rerun in the audit of the task that is repeated:
// it names the new one.
func RerunReason(as task.ID, reason string) string {
	if reason == "" {
		return "as " + as.String()
	}
	return "as " + as.String() + ": " + reason
}
