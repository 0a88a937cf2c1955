package rules

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// CheckSeen compares the version of a task that an operator saw with the one
// that is stored (R16): [store.ErrChanged].
func CheckSeen(id task.ID, seen store.Seen, epoch int64, updatedAt time.Time) error {
	switch {
	case seen.Epoch != 0 && seen.Epoch != epoch:
		return fmt.Errorf("task %v has epoch %d, not %d: %w", id, epoch, seen.Epoch, store.ErrChanged)
	case !seen.UpdatedAt.IsZero() && !seen.UpdatedAt.Equal(updatedAt):
		return fmt.Errorf("task %v changed at %s, after it was seen: %w", id, updatedAt.UTC().Format(time.RFC3339Nano), store.ErrChanged)
	}
	return nil
}

// NotFound is the error for a task that does not exist: [store.ErrNotFound].
func NotFound(id task.ID) error { return fmt.Errorf("task %v: %w", id, store.ErrNotFound) }

// JobNotFound is the error for a job that does not exist: [store.ErrNotFound].
func JobNotFound(id task.ID) error { return fmt.Errorf("job %v: %w", id, store.ErrNotFound) }

// UnknownCommand is the error for a command that stores do not know.
func UnknownCommand(cmd store.Command) error {
	return fmt.Errorf("%T is no command of this store", cmd)
}

// refusal is [store.ErrState] in words of its own: which state it is, and what
// the command needs.
type refusal struct{ text string }

// Error implements error.
func (r *refusal) Error() string { return r.text }

// Unwrap gives the sentinel.
func (r *refusal) Unwrap() error { return store.ErrState }

// refuse says that a task's state does not allow a command: [store.ErrState].
func refuse(id task.ID, s task.State, why string) error {
	return &refusal{fmt.Sprintf("task %v is %s, %s", id, s, why)}
}

// JobBeingCancelled refuses to retry a task of a job whose other tasks are still
// being cancelled: [store.ErrState].
func JobBeingCancelled(id, job task.ID) error {
	return fmt.Errorf("task %v cannot be retried while the tasks of its job %v are being cancelled, try again in a moment: %w", id, job, store.ErrState)
}

// inUndo is why a blocked task takes no input in its undo phase.
const inUndo = "in its undo, which takes no input: unblock it without one to try the undo again; a cancel with --abandon-undo (AbandonUndo) gives it up"

// CheckUnblock refuses to unblock a task that is not blocked, or in its undo phase, and one that waits
// with another question than the command is for ([store.ErrChanged]). failure is
// the task's last error.
func CheckUnblock(cmd *store.UnblockTask, s task.State, why task.Waiting, failure *task.Error) error {
	if s != task.Blocked {
		return refuse(cmd.Task, s, "only blocked tasks can be unblocked")
	}
	if why == task.WaitUndo && len(cmd.Input) > 0 {
		return refuse(cmd.Task, s, inUndo)
	}
	if asked := askOf(failure); cmd.Ask != "" && cmd.Ask != asked {
		with := fmt.Sprintf("with the question %q", asked)
		if asked == "" {
			with = "without a named question"
		}
		return fmt.Errorf("task %v waits %s, not with %q: %w", cmd.Task, with, cmd.Ask, store.ErrChanged)
	}
	return nil
}

// UnblockFor is the question that the input of an unblock answers; "": none that
// has a name, or there is no input. failure is the task's last error.
func UnblockFor(cmd *store.UnblockTask, failure *task.Error) string {
	if len(cmd.Input) == 0 {
		return ""
	}
	return askOf(failure)
}

func askOf(failure *task.Error) string {
	if failure == nil {
		return ""
	}
	return failure.Ask
}

// UnblockedAttempts is attempt_count after an unblock: one attempt is left at
// least.
func UnblockedAttempts(count, limit int) int { return max(0, min(count, limit-1)) }

// UnblockedRepairs is repair_count after an unblock: one repair is left at least, if
// the task may have any.
func UnblockedRepairs(count, limit int) int { return max(0, min(count, limit-1)) }

// CheckPause refuses to pause a task that has ended.
func CheckPause(id task.ID, s task.State) error {
	if s.Terminal() {
		return refuse(id, s, "a task that ended cannot be paused")
	}
	return nil
}

// Awaiter is a task that has not succeeded and waits, or waited, for another one: a
// child, or one that it asked for.
type Awaiter struct {
	ID    task.ID
	State task.State
}

// CheckDelete refuses to delete a task that has not ended or belongs to a job,
// one whose end a dependent still waits for (dependent; zero: none), one whose
// result the first of its awaiters has or will have to read again (by; zero: there
// is none), and one with a child that has not ended (child).
func CheckDelete(id task.ID, s task.State, job, dependent task.ID, by Awaiter, child task.ID) error {
	if dependent.IsZero() && !by.State.Terminal() {
		dependent = by.ID
	}
	switch {
	case !s.Terminal():
		return refuse(id, s, "only tasks that ended can be deleted")
	case !job.IsZero():
		return refuse(id, s, fmt.Sprintf("but belongs to job %v, whose tasks stay with it", job))
	case !dependent.IsZero():
		return refuse(id, s, fmt.Sprintf("but task %v still waits for it", dependent))
	case !by.ID.IsZero():
		return refuse(id, s, fmt.Sprintf("but task %v, which is %s and may be retried, waited for it: delete that one first, or its job", by.ID, by.State))
	case !child.IsZero():
		return refuse(id, s, fmt.Sprintf("but its child %v has not ended", child))
	}
	return nil
}

// refusal says why a task cannot be retried for a need.
func (n *Need) refusal(others bool) string {
	text := fmt.Sprintf("and needs task %s, which is %s", n.Name, n.End.State)
	if n.Kind == task.OnFailed {
		text = fmt.Sprintf("and runs only if task %s fails, which is %s", n.Name, n.End.State)
		if others {
			return fmt.Sprintf("and runs only if task %s or another of its needs fails, and none of them did", n.Name)
		}
	}
	switch {
	case n.End.Kind == task.KindUndoFailed && n.End.State == task.Failed:
		text += ": try its undo again first, with " + tryUndo(n.Need)
	case n.End.State != task.Succeeded:
		text += ": retry that one first"
	}
	return text
}

// unmetNeed returns the first need for which a task could not run.
func unmetNeed(needs []Need) *Need {
	for i := range needs {
		if needs[i].unmet() {
			return &needs[i]
		}
	}
	return nil
}

// CheckRetry refuses to retry a task that neither failed nor was cancelled, and
// one with needs for which it could not run, or with children for which it could
// not go on. end is its error's kind, needs are sorted by ID.
func CheckRetry(id task.ID, s task.State, end task.ErrorKind, join task.Join, needs []Need) error {
	if s != task.Failed && s != task.Cancelled {
		const only = "only failed or cancelled tasks can be retried"
		if s == task.Succeeded {
			return &refusal{fmt.Sprintf("task %v succeeded already; %s", id, only)}
		}
		return refuse(id, s, only)
	}
	if n := unmetNeed(needs); n != nil {
		return refuse(id, s, n.refusal(false))
	}
	if undoes(needs) && WaitsFor(needs, unfinished).Open == 0 {
		return refuse(id, s, "and undoes another task of its job: it runs by itself when the job goes wrong")
	}
	if why := refuseRetry(join, end, needs); why != "" {
		return refuse(id, s, why)
	}
	if WaitsFor(needs, unfinished).NotNeeded() {
		var first *Need
		count := 0
		for i := range needs {
			if n := &needs[i]; n.Kind == task.OnFailed {
				if count++; first == nil {
					first = n
				}
			}
		}
		return refuse(id, s, first.refusal(count > 1))
	}
	return nil
}

// RevivesDependent reports whether the retry of a need brings a dependent back
// that ended in a state with an error of a kind: it ended because of its needs,
// or those of its job's budget, and they let it run again, or wait. One that waits for the retried need, and
// is not needed because none of those went wrong whose failure it runs for, ends
// as that when the need has ended: it must not go on to count against its job.
// A task that failed because of its children goes on to wait for them when none
// is left that did not succeed.
func RevivesDependent(s task.State, kind task.ErrorKind, join task.Join, needs []Need) bool {
	if s == task.Failed && kind == task.KindDependencyFailed && join == task.JoinComplete {
		return WrongChild(needs) == nil
	}
	if HeldUp(s, kind) {
		return unmetNeed(needs) == nil && WaitsFor(needs, unfinished).Open > 0
	}
	if s != task.Cancelled || kind != task.KindDependencyFailed && kind != task.KindNotNeeded && kind != task.KindBudget {
		return false
	}
	w := WaitsFor(needs, unfinished)
	return unmetNeed(needs) == nil && (w.Open > 0 || !w.NotNeeded())
}

// ReopensEdge reports whether the retry of a need opens the edge of a dependent
// again, which the need's last end decided: the dependent, which has begun so many
// attempts, waits for other needs, or has not started yet. It waits for the need's
// next end then ([task.WaitDeps]). One that has started stays as it is, whether it
// runs, waits to run again or has ended; one that waits for its children (join)
// waits for them alone, and again for one that is retried (awaited).
func ReopensEdge(s task.State, why task.Waiting, attempts int, join task.Join, awaited bool) bool {
	if awaited || s == task.Pending && join != task.JoinNone {
		return awaited && s == task.Pending && (why == task.WaitChildren || why == task.WaitRepair)
	}
	return s == task.Pending && why == task.WaitDeps || (s == task.Pending || s == task.Ready) && attempts == 0
}

// Revival is what a retry makes of a task. All its counts but attempt_no begin
// anew, its epoch rises, its error and its cancel request go; its history and
// its completed steps stay. Its edges are marked whose needs have ended.
type Revival struct {
	State    task.State
	Waiting  task.Waiting
	Waits    Waits
	Join     task.Join // if it waits for its children
	Deadline time.Time // zero: none any more
}

// ExtendedDeadline returns the deadline of a job whose task is retried: one that
// has passed counts anew, from now.
func ExtendedDeadline(b task.Budget, deadline, now time.Time) time.Time {
	if Past(deadline, now) {
		return JobDeadline(b, now)
	}
	return deadline
}

// Revived is a task that is brought back.
type Revived struct {
	Needs    []Need
	End      task.ErrorKind // of its error
	Join     task.Join
	Unstored int // children of its last decomposition that a chore is to store
	Deadline time.Time
	Job      time.Time // the deadline of its job
}

// Revive resolves a retry that [CheckRetry] or [RevivesDependent] allowed. A
// deadline that has passed does not hold again, but for that of its job
// ([ExtendedDeadline]; zero: none). A task that waited for its children waits for
// those that have not ended or are brought back with it ([Need.RevivesChild]).
func Revive(t *Revived, now time.Time) Revival {
	r := Revival{State: task.Ready, Deadline: t.Deadline}
	if Past(t.Deadline, now) {
		r.Deadline = t.Job
	}
	children := TaskWaits(t.Join, t.Needs, func(n *Need) bool { return unfinished(n) || n.RevivesChild(t.Join, t.End) })
	children.Open += t.Unstored
	if t.Join != task.JoinNone && children.Open > 0 {
		r.State, r.Waiting, r.Join, r.Waits = task.Pending, t.Join.Waiting(), t.Join, children
		return r
	}
	if r.Waits = WaitsFor(t.Needs, unfinished); r.Waits.Open > 0 {
		r.State, r.Waiting = task.Pending, task.WaitDeps
	}
	return r
}

// Changes reports whether a command changed what [store.Notice].Changed tells of.
// Commands that are refused, or were applied before, change nothing.
func Changes(cmd store.Command, res *store.CommandResult) bool {
	switch cmd := cmd.(type) {
	case store.Upload:
		return false
	case store.AcceptBucket:
		return res.Err == nil && !cmd.Check
	}
	return res.Err == nil && !res.Existing
}
