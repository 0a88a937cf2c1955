package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Operator verbs for a task that is being undone, or whose undo was given up.

// tryUndo names the command that retries the undo of a task.
func tryUndo(id task.ID) string { return fmt.Sprintf("weaver task retry %v --cleanup (Cleanups)", id) }

// abandonUndo names the command that gives up the undo of a task.
func abandonUndo(id task.ID) string {
	return fmt.Sprintf("weaver task cancel %v --abandon-undo (AbandonUndo)", id)
}

// gaveUp says whether the undo of a task was abandoned by an operator or given up.
func gaveUp(p *task.UndoPhase) string {
	if p.Abandoned {
		return "its undo was abandoned"
	}
	return "its undo was given up"
}

// CheckUndone refuses the retry of a task that is being undone, or whose undo was given up.
func CheckUndone(id task.ID, s task.State, p *task.UndoPhase) error {
	switch {
	case p == nil:
		return nil
	case p.GaveUp:
		return refuse(id, s, gaveUp(p)+": try that again with "+tryUndo(id))
	}
	return refuse(id, s, fmt.Sprintf("and is being undone before it ends %s: wait for that; %s tries it at once", p.EndsAs, tryUndo(id)))
}

// CheckChildUndone refuses the retry of a task with a child of a call (zero: none) whose undo
// was given up. The retry would revive the child as if it had been undone.
func CheckChildUndone(id task.ID, s task.State, child task.ID) error {
	if child.IsZero() {
		return nil
	}
	return refuse(id, s, fmt.Sprintf("but the retry would bring back task %v, whose undo was given up: first %s", child, tryUndo(child)))
}

// CheckUndoRetry refuses to retry the undo of a task that is not in its undo phase and did not
// give it up, or whose undo runs.
func CheckUndoRetry(cmd *store.RetryTask, s task.State, why task.Waiting, p *task.UndoPhase) error {
	switch {
	case cmd.KeepSteps || cmd.AddAttempts != 0 || cmd.AddCost != 0:
		return refuse(cmd.Task, s, "and a retry of its undo alone keeps no steps and raises no limits")
	case len(cmd.Skip) > 0 && cmd.Reason == "":
		return refuse(cmd.Task, s, "and its undo cannot be skipped without a reason")
	case p == nil:
		return refuse(cmd.Task, s, "and nothing is to be undone")
	case s == task.Pending && why == task.WaitDeps:
		return refuse(cmd.Task, s, "and waits for the other tasks of its job: it runs by itself when the job goes wrong")
	case s == task.Running:
		return refuse(cmd.Task, s, "and its undo is being tried now: wait for that")
	}
	return nil
}

// StepsToSkip returns the steps whose undo a retry of the task skips. steps are all steps of
// the task. It refuses a name without an open undo and lists the steps that have one.
func StepsToSkip(cmd *store.RetryTask, s task.State, steps []task.Step) ([]*task.Step, error) {
	var skip []*task.Step
	var open []string
	for i := range steps {
		switch st := &steps[i]; {
		case st.Undo != task.UndoOpen:
		case slices.Contains(cmd.Skip, st.Name):
			skip = append(skip, st)
		default:
			open = append(open, fmt.Sprintf("%q", st.Name))
		}
	}
	for _, name := range cmd.Skip {
		if !slices.ContainsFunc(skip, func(st *task.Step) bool { return st.Name == name }) {
			return nil, refuse(cmd.Task, s, fmt.Sprintf("and its step %q is not to be undone, so there is nothing to skip; other steps to undo: [%s]", name, strings.Join(open, " ")))
		}
	}
	return skip, nil
}

// SkipsTooEarly refuses to skip the undo of a call whose children have not all ended. They are
// undone before the earlier steps of their task.
func SkipsTooEarly(cmd *store.RetryTask, s task.State, call string) error {
	return refuse(cmd.Task, s, fmt.Sprintf("and the children of its call %q have not all ended: wait for that, then skip it", call))
}

// FollowsRetry returns the retry of the undo of a task that waited for a retried undo task. It
// returns nil unless the task gave its undo up.
func FollowsRetry(parent task.ID, p *task.UndoPhase, cmd *store.RetryTask) *store.RetryTask {
	if !p.Stands() {
		return nil
	}
	audit := cmd.Audit
	audit.Reason = fmt.Sprintf("with that of its undo task %v", cmd.Task)
	if cmd.Reason != "" {
		audit.Reason += ": " + cmd.Reason
	}
	return &store.RetryTask{Audit: audit, Task: parent, Cleanup: true}
}

// SkipNote returns the audit of an undo's retry. It names the skipped steps.
func SkipNote(cmd *store.RetryTask) store.Audit {
	a := cmd.Audit
	if len(cmd.Skip) > 0 {
		a.Reason = fmt.Sprintf("skips the undo of %s: %s", strings.Join(cmd.Skip, ", "), a.Reason)
	}
	return a
}

// CheckStands refuses to delete or forget a task whose undo was given up. The steps that were
// not undone stay on record until an operator accepts it.
func CheckStands(id task.ID, s task.State, p *task.UndoPhase) error {
	if !p.Stands() {
		return nil
	}
	return refuse(id, s, fmt.Sprintf("but its undo was given up: try that again with %s, or accept it with %s", tryUndo(id), abandonUndo(id)))
}

// CheckCancel refuses to cancel a finished task, except to abandon an undo that was given up.
// It refuses to abandon an undo of a task that is not being undone.
func CheckCancel(cmd *store.CancelTask, s task.State, p *task.UndoPhase) error {
	switch id := cmd.Task; {
	case cmd.Abandon && p == nil:
		return refuse(id, s, "and is not being undone: it has no undo to abandon")
	case cmd.Abandon && p.Abandoned:
		return refuse(id, s, "its undo was abandoned already")
	case cmd.Abandon:
		return nil
	case p != nil && p.GaveUp:
		return refuse(id, s, gaveUp(p)+": a task that ended cannot be cancelled")
	case s.Terminal():
		return refuse(id, s, "a task that ended cannot be cancelled")
	case p != nil && cmd.Force && cmd.Spare:
		return refuse(id, s, "and is being undone: give that up with "+abandonUndo(id))
	}
	return nil
}

// CancelVerb returns the audit verb of a cancel.
func CancelVerb(cmd *store.CancelTask, e Ending) string {
	switch {
	case e == AbandonsUndo || cmd.Abandon:
		return "abandon_undo"
	case cmd.Force:
		return "force_cancel"
	}
	return "cancel"
}

// RetryVerb returns the audit verb of a retry.
func RetryVerb(cmd *store.RetryTask) string {
	if cmd.Cleanup {
		return "retry_cleanup"
	}
	return "retry"
}

// Revoked is a lease that an operator revokes. Its attempt may run until it ends. The zero
// value means that the task does not run.
type Revoked struct {
	Lease task.LeaseID
	Until time.Time
	Key   bool // the task has a concurrency key
}

// hold delays the attempts of the phase until the lease has ended.
func (r *Revoked) hold(p *task.UndoPhase, now time.Time) {
	if r.Until.After(now) {
		p.Hold, p.NotBefore = r.Lease, r.Until
	}
}

// ForceUndo returns the transition of a task in its undo phase after a forced cancel. A
// running attempt is revoked with its own failure, and the task shows its final error. Of a
// task that does not run only the phase changes.
func ForceUndo(p *task.UndoPhase, r *Revoked, failure *task.Error, now time.Time) Transition {
	t := Transition{
		State: task.Pending, Waiting: task.WaitUndo, Outcome: task.OutcomeCancelled, Failure: failure, KeepError: true,
		SetUndo: true, Undo: p.Clone(),
	}
	t.Undo.Forced = true
	if !r.Lease.IsZero() {
		t.Undo.HoldsKey = r.Key
		r.hold(t.Undo, now)
	}
	t.ReadyAt = later(now, t.Undo.NotBefore)
	return t
}

// AbandonUndo returns the transition of a task whose undo an operator gives up.
func AbandonUndo(p *task.UndoPhase, r *Revoked, a store.Audit, now time.Time) Transition {
	t := Transition{Outcome: task.OutcomeCancelled, SetUndo: true, Undo: p.Clone()}
	t.giveUp(undoFailed("undo given up: abandoned"+byWhom(a), nil, p))
	t.Undo.Abandoned = true
	r.hold(t.Undo, now)
	return t
}

// AcceptGivenUp returns the phase of a task that gave its undo up, once an operator has
// accepted that.
func AcceptGivenUp(p *task.UndoPhase) *task.UndoPhase {
	p = p.Clone()
	p.Abandoned = true
	return p
}

// byWhom returns the actor and the reason, as the end of a sentence.
func byWhom(a store.Audit) (text string) {
	if a.By != "" {
		text = " by " + a.By
	}
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	return text
}
