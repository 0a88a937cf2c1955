package rules

import (
	"fmt"

	"github.com/goweaver/weaver/task"
)

// CheckRerun refuses to rerun a task that needs others, because the new task could not read
// their outputs. It refuses to take over a step that called tasks (call, its name), because
// they are children of the old task. It refuses to take over a step that may still be undone
// (open, its name), and more steps than a rerun may take over.
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

// TakesOver reports whether a rerun takes a step over: a completed step with an index below
// the first step that runs again. Cleanups, undos and undone steps are not taken over.
func TakesOver(step *task.Step, below int) bool {
	return step.State == task.StepCompleted && step.Index < below && step.Kind != task.KindCleanup && step.Kind != task.KindUndo && !step.Past()
}

// RerunReason returns the audit reason of a rerun for the repeated task. It names the new
// task.
func RerunReason(as task.ID, reason string) string {
	if reason == "" {
		return "as " + as.String()
	}
	return "as " + as.String() + ": " + reason
}
