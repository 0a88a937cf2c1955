package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The verbs of operators on a task that is being undone, or whose undo was given up.

// tryUndo names the verb that tries the undo of a task again.
func tryUndo(id task.ID) string { return fmt.Sprintf("weaver task retry %v --cleanup (Cleanups)", id) }

// abandonUndo names the verb that gives the undo of a task up.
func abandonUndo(id task.ID) string {
	return fmt.Sprintf("weaver task cancel %v --abandon-undo (AbandonUndo)", id)
}

// gaveUp says that the undo of a task was given up, and by whom.
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

// CheckChildUndone refuses the retry of a task with a child of a call (zero: none) whose
// undo was given up: the retry would bring it back as if it had been undone.
func CheckChildUndone(id task.ID, s task.State, child task.ID) error {
	if child.IsZero() {
		return nil
	}
	return refuse(id, s, fmt.Sprintf("but the retry would bring back task %v, whose undo was given up: first %s", child, tryUndo(child)))
}

// CheckUndoRetry refuses to try the undo of a task again that is not in its undo phase,
// nor gave it up, or whose undo runs.
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

// StepsToSkip returns the steps, of all of a task, whose undo a retry of it skips. One that is
// not to be undone is refused, with those that are.
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
			return nil, refuse(cmd.Task, s, fmt.Sprintf("and its step %q is not to be undone, so there is nothing to skip; others that are: [%s]", name, strings.Join(open, " ")))
		}
	}
	return skip, nil
}

// SkipsTooEarly refuses to skip the undo of a call whose children have not all ended: they are
// undone, or at an end, before what their task did.
func SkipsTooEarly(cmd *store.RetryTask, s task.State, call string) error {
	return refuse(cmd.Task, s, fmt.Sprintf("and the children of its call %q have not all ended: wait for that, then skip it", call))
}

// FollowsRetry is the retry of the undo of a task that waited for that of an undo task which
// is tried again; nil: the task did not give its undo up for that.
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

// SkipNote is the audit of the retry of an undo: it names what is skipped.
func SkipNote(cmd *store.RetryTask) store.Audit {
	a := cmd.Audit
	if len(cmd.Skip) > 0 {
		a.Reason = fmt.Sprintf("skips the undo of %s: %s", strings.Join(cmd.Skip, ", "), a.Reason)
	}
	return a
}

// CheckStands refuses to delete or forget a task whose undo was given up, so that what was
// not undone stays on record until an operator accepts it.
func CheckStands(id task.ID, s task.State, p *task.UndoPhase) error {
	if !p.Stands() {
		return nil
	}
	return refuse(id, s, fmt.Sprintf("but its undo was given up: try that again with %s, or accept it with %s", tryUndo(id), abandonUndo(id)))
}

// CheckCancel refuses to cancel a task that has ended, but for an abandon of an undo that
// was given up, and to abandon what is not being undone.
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

// CancelVerb is the verb of a cancel in the audit.
func CancelVerb(cmd *store.CancelTask, e Ending) string {
	switch {
	case e == AbandonsUndo || cmd.Abandon:
		return "abandon_undo"
	case cmd.Force:
		return "force_cancel"
	}
	return "cancel"
}

// RetryVerb is the verb of a retry in the audit.
func RetryVerb(cmd *store.RetryTask) string {
	if cmd.Cleanup {
		return "retry_cleanup"
	}
	return "retry"
}

// Revoked is a lease that an operator takes away. Its attempt may run until it ends. The
// zero value: the task does not run.
type Revoked struct {
	Lease task.LeaseID
	Until time.Time
	Key   bool // the task has a concurrency key
}

// hold has no attempt of the phase begin before the lease has ended.
func (r *Revoked) hold(p *task.UndoPhase, now time.Time) {
	if r.Until.After(now) {
		p.Hold, p.NotBefore = r.Lease, r.Until
	}
}

// ForceUndo is the transition of a task in its undo phase that is cancelled by force. An
// attempt that runs is revoked, with a failure of its own; the task shows the one with
// which it ends. Of a task that does not run only the phase changes.
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

// AbandonUndo is the transition of a task whose undo an operator gives up.
func AbandonUndo(p *task.UndoPhase, r *Revoked, a store.Audit, now time.Time) Transition {
	t := Transition{Outcome: task.OutcomeCancelled, SetUndo: true, Undo: p.Clone()}
	t.giveUp(undoFailed("undo given up: abandoned"+byWhom(a), nil, p))
	t.Undo.Abandoned = true
	r.hold(t.Undo, now)
	return t
}

// AcceptGivenUp returns the phase of a task that gave it up once an operator has accepted
// that.
func AcceptGivenUp(p *task.UndoPhase) *task.UndoPhase {
	p = p.Clone()
	p.Abandoned = true
	return p
}

// byWhom says who acted, and why.
func byWhom(a store.Audit) (text string) {
	if a.By != "" {
		text = " by " + a.By
	}
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	return text
}
