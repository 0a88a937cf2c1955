package rules

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// CheckSeen returns [store.ErrChanged] if the version of a task that an operator saw differs
// from the stored version (R16).
func CheckSeen(id task.ID, seen store.Seen, epoch int64, updatedAt time.Time) error {
	switch {
	case seen.Epoch != 0 && seen.Epoch != epoch:
		return fmt.Errorf("task %v has epoch %d, not %d: %w", id, epoch, seen.Epoch, store.ErrChanged)
	case !seen.UpdatedAt.IsZero() && !seen.UpdatedAt.Equal(updatedAt):
		return fmt.Errorf("task %v changed at %s, after it was seen: %w", id, updatedAt.UTC().Format(time.RFC3339Nano), store.ErrChanged)
	}
	return nil
}

// NotFound returns [store.ErrNotFound] for a task.
func NotFound(id task.ID) error { return fmt.Errorf("task %v: %w", id, store.ErrNotFound) }

// JobNotFound returns [store.ErrNotFound] for a job.
func JobNotFound(id task.ID) error { return fmt.Errorf("job %v: %w", id, store.ErrNotFound) }

// UnknownCommand returns the error for a command type that stores do not know.
func UnknownCommand(cmd store.Command) error {
	return fmt.Errorf("%T: unknown command of this store", cmd)
}

// refusal is a [store.ErrState] with its own text: the current state and the state that the
// command needs.
type refusal struct{ text string }

// Error implements error.
func (r *refusal) Error() string { return r.text }

// Unwrap returns the sentinel error.
func (r *refusal) Unwrap() error { return store.ErrState }

// refuse returns [store.ErrState] for a command that the task's state does not allow.
func refuse(id task.ID, s task.State, why string) error {
	return &refusal{fmt.Sprintf("task %v is %s, %s", id, s, why)}
}

// JobBeingCancelled refuses ([store.ErrState]) to retry a task of a job whose other tasks are
// still being cancelled.
func JobBeingCancelled(id, job task.ID) error {
	return fmt.Errorf("task %v cannot be retried while the tasks of its job %v are being cancelled, try again in a moment: %w", id, job, store.ErrState)
}

// inUndo is the reason why a blocked task takes no input in its undo phase.
const inUndo = "in its undo, which takes no input: unblock it without one to try the undo again; a cancel with --abandon-undo (AbandonUndo) gives it up"

// CheckUnblock refuses to unblock a task that is not blocked, and to give input to a task in
// its undo phase. It returns [store.ErrChanged] if the task waits with a different question.
// failure is the task's last error.
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

// UnblockFor returns the name of the question that the input of an unblock answers. It returns
// "" for an unnamed question or without input. failure is the task's last error.
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

// UnblockedAttempts returns attempt_count after an unblock, which leaves at least one attempt.
func UnblockedAttempts(count, limit int) int { return max(0, min(count, limit-1)) }

// UnblockedRepairs returns repair_count after an unblock, which leaves at least one repair if
// the task may have any.
func UnblockedRepairs(count, limit int) int { return max(0, min(count, limit-1)) }

// CheckPause refuses to pause a finished task.
func CheckPause(id task.ID, s task.State) error {
	if s.Terminal() {
		return refuse(id, s, "a task that ended cannot be paused")
	}
	return nil
}

// Awaiter is a task that has not succeeded and waits, or waited, for another task: a child or
// a requested task.
type Awaiter struct {
	ID    task.ID
	State task.State
}

// CheckDelete refuses to delete a task that has not ended or belongs to a job. It also refuses
// while another task depends on the task: a dependent that waits for its end (dependent), or
// an awaiter that will read its result again (by). It refuses a task with an unfinished child
// (child). Zero IDs mean that there is no such task.
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

// refusal returns the reason why a task cannot be retried because of a need.
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

// unmetNeed returns the first need that keeps a task from running, or nil.
func unmetNeed(needs []Need) *Need {
	for i := range needs {
		if needs[i].unmet() {
			return &needs[i]
		}
	}
	return nil
}

// CheckRetry refuses to retry a task that neither failed nor was cancelled, and a task whose
// needs or children would keep it from running. end is the kind of the task's error. needs are
// sorted by ID.
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

// RevivesDependent reports whether the retry of a need revives a dependent that ended in state
// s with an error of this kind. The dependent must have ended because of its needs or its
// job's budget, and its needs must let it run again or wait.
//
// A dependent that was not needed is revived too if it waits for the retried need. When the
// need ends, it ends as not needed again, but must not count against its job meanwhile. A task
// that failed because of its children waits for them again once every failed child is revived.
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

// ReopensEdge reports whether the retry of a need opens a dependent's edge again, which the
// need's last end decided. The dependent waits for other needs or has not started, and then
// waits for the need's next end ([task.WaitDeps]). A started dependent stays as it is, whether
// it runs, waits to run again or has ended. A dependent that waits for its children (join)
// waits for them alone, and again for a retried child (awaited).
func ReopensEdge(s task.State, why task.Waiting, attempts int, join task.Join, awaited bool) bool {
	if awaited || s == task.Pending && join != task.JoinNone {
		return awaited && s == task.Pending && (why == task.WaitChildren || why == task.WaitRepair)
	}
	return s == task.Pending && why == task.WaitDeps || (s == task.Pending || s == task.Ready) && attempts == 0
}

// Revival is the result of a retry for a task. All counts except attempt_no restart, the epoch
// rises, and the error and the cancel request are removed. The history and the completed steps
// stay. Edges whose needs have ended are marked.
type Revival struct {
	State    task.State
	Waiting  task.Waiting
	Waits    Waits
	Join     task.Join // if it waits for its children
	Deadline time.Time // zero: no deadline
}

// ExtendedDeadline returns the deadline of a job whose task is retried. A deadline that has
// passed restarts from now.
func ExtendedDeadline(b task.Budget, deadline, now time.Time) time.Time {
	if Past(deadline, now) {
		return JobDeadline(b, now)
	}
	return deadline
}

// Revived holds the fields of a task to revive.
type Revived struct {
	Needs    []Need
	End      task.ErrorKind // kind of its error
	Join     task.Join
	Unstored int // children of its last decomposition that a chore has not stored yet
	Deadline time.Time
	Job      time.Time // deadline of its job
}

// Revive resolves a retry that [CheckRetry] or [RevivesDependent] allowed. A passed deadline
// is replaced by the deadline of the job ([ExtendedDeadline]; zero: none). A task that waited
// for its children waits for children that have not ended or are revived with it
// ([Need.RevivesChild]).
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

// Changes reports whether a command changed anything that [store.Notice].Changed covers.
// Refused and repeated commands change nothing.
func Changes(cmd store.Command, res *store.CommandResult) bool {
	switch cmd := cmd.(type) {
	case store.Upload, store.KeepFeed, store.WriteSchedule:
		return false
	case store.AcceptBucket:
		return res.Err == nil && !cmd.Check
	}
	return res.Err == nil && !res.Existing
}
