package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// notes returns the facts, in addition to the state, that affect the future of a task; each has one or more
// sentences.
func (c Clock) notes(h *store.History) []string {
	t := &h.Task
	return slices.DeleteFunc(slices.Concat([]string{
		rerunNote(t),
		undoOfNote(t),
		c.leaseNote(t),
		cancelNote(t),
		undoNote(t),
		notRunNote(h),
		crashNote(h),
		c.deadlineNote(t),
		c.answerNote(t),
		attemptsNote(t),
		costNote(t),
		unknownNote(h),
	}, c.pauseNotes(h), []string{
		stepsNote(h),
		cleanupNote(h),
		unreachedNote(h),
		dependentsNote(h),
	}), func(note string) bool { return note == "" })
}

// unknownNote describes the last ended attempt if it ran with an input that lacks a field.
func unknownNote(h *store.History) string {
	if len(h.Attempts) == 0 {
		return ""
	}
	field := h.Attempts[len(h.Attempts)-1].Notes["weaver.unknown_field"]
	if field == "" {
		return ""
	}
	return fmt.Sprintf("Its input was decoded without a field that it has: %s.", text.OneLine(field, MaxNote))
}

// rerunNote names the task that this task repeats.
func rerunNote(t *task.Task) string {
	if t.RerunOf.IsZero() {
		return ""
	}
	return fmt.Sprintf("It repeats task %s.", t.RerunOf)
}

// undoOfNote names the task that this task undoes.
func undoOfNote(t *task.Task) string {
	if t.UndoOf.IsZero() {
		return ""
	}
	return fmt.Sprintf("It undoes task %s, for task %s, which called that.", t.UndoOf, t.ParentID)
}

// leaseNote says whether the worker of a running task renews its lease.
func (c Clock) leaseNote(t *task.Task) string {
	if t.State != task.Running || c.gone(t) != "" {
		return ""
	}
	if c.Passed(t.LeaseExpiresAt) {
		return fmt.Sprintf("Its lease ended %s and was not renewed: the worker died or is cut off. Any worker of this namespace that is up takes the task back; if none is, start one.", c.When(t.LeaseExpiresAt))
	}
	note := fmt.Sprintf("Its lease lasts until %s unless the worker renews it, which it does as long as it lives.", c.Abs(t.LeaseExpiresAt))
	note += c.timeoutNote(t)
	if t.Progress != nil {
		note += text.Stop(" Its last report: " + Progress(t.Progress, MaxNote))
	}
	return note
}

// cancelNote describes a cancel request that the handler has not followed yet or did not have to follow.
func cancelNote(t *task.Task) string {
	if !t.CancelRequested || t.State == task.Cancelled {
		return ""
	}
	what := "It was asked to cancel" + By(t.CancelBy, t.CancelReason)
	if t.CancelKind == task.KindDeadline {
		what = "It was asked to end because its deadline passed"
	}
	if t.CancelKind == task.KindBudget || t.CancelKind == task.KindJobBudget {
		what = "It was asked to end because a budget is used up: " + t.CancelReason
	}
	if t.State == task.Succeeded {
		return what + ", but its handler returned success all the same."
	}
	if t.State.Terminal() {
		return text.Stop(what + ", and it " + string(t.State))
	}
	if t.Undo != nil || t.State != task.Running {
		return text.Stop(what)
	}
	return text.Stop(what) + " Its worker is notified with the next heartbeat and ends the handler's context; then it is up to the handler to return."
}

// notRun returns the last attempt of a task if the worker could not run it.
func notRun(h *store.History) *task.Attempt {
	if n := len(h.Attempts); n > 0 && h.Attempts[n-1].Outcome == task.OutcomeReleased && h.Attempts[n-1].Error != nil {
		return &h.Attempts[n-1]
	}
	return nil
}

// notRunNote names the workers that released the task because they could not run it.
func notRunNote(h *store.History) string {
	last := notRun(h)
	if last == nil || h.Task.State.Terminal() {
		return ""
	}
	var workers []string
	n := 0
	for i := range h.Attempts {
		if a := &h.Attempts[i]; a.Outcome == task.OutcomeReleased && a.Error != nil {
			if n++; !slices.Contains(workers, a.Worker) {
				workers = append(workers, a.Worker)
			}
		}
	}
	return fmt.Sprintf("It was released %s, at no cost, by a worker that could not run it (%s): %s Repair that worker, or start another one; `weaver worker ls` shows which can run no tasks.",
		times(n), text.OneLine(strings.Join(workers, ", "), MaxMessage), text.Stop(text.OneLine(last.Error.Message, MaxMessage)))
}

// crashNote describes consecutive lost leases, which end as poison.
func crashNote(h *store.History) string {
	t := &h.Task
	if t.CrashCount == 0 && t.QuarantineLosses == 0 || t.State == task.Succeeded {
		return ""
	}
	var workers []string
	for i := len(h.Attempts) - 1; i >= 0 && (h.Attempts[i].Outcome == task.OutcomeLeaseLost || h.Attempts[i].Outcome == task.OutcomeNone); i-- {
		if a := h.Attempts[i]; a.Outcome == task.OutcomeLeaseLost && !slices.Contains(workers, a.Worker) {
			workers = append(workers, a.Worker)
		}
	}
	said := fmt.Sprintf("Its process stopped under it %s in a row", times(t.CrashCount))
	if len(workers) > 0 {
		said += ", on " + text.OneLine(strings.Join(workers, ", "), MaxMessage)
	}
	switch {
	case kindOf(t) == task.KindPoison:
		return said + ": it would go on stopping workers, so it was not started again. Check the handler for memory use, os.Exit and fatal signals."
	case t.CrashCount >= 2:
		return said + ". It is quarantined: a worker runs few of such tasks at once, and in the end only this one. At the crash budget (3 unless configured) it fails as poison."
	}
	return said + ". At the crash budget (3 unless configured) it fails as poison."
}

func (c Clock) deadlineNote(t *task.Task) string {
	switch {
	case t.DeadlineAt.IsZero() || t.State.Terminal():
		return ""
	case t.CancelRequested && t.State != task.Running:
		return "" // the task cleans up, and its deadline no longer applies
	case c.Passed(t.DeadlineAt):
		return fmt.Sprintf("Its deadline passed %s: a worker that is up ends it.", c.When(t.DeadlineAt))
	case t.State == task.Pending && t.ReadyAt.After(t.DeadlineAt):
		return fmt.Sprintf("Its deadline, %s, comes before it is due: it will be cancelled then.", c.When(t.DeadlineAt))
	}
	return fmt.Sprintf("If it has not ended %s, its deadline, it is cancelled.", c.When(t.DeadlineAt))
}

// answerNote names the time limit for the answer to a question.
func (c Clock) answerNote(t *task.Task) string {
	if t.State != task.Blocked || t.Error == nil || t.Error.AskUntil.IsZero() {
		return ""
	}
	if c.Passed(t.Error.AskUntil) {
		return fmt.Sprintf("The time for an answer ended %s: a worker of its type that is up lets it go on without one.", c.When(t.Error.AskUntil))
	}
	return fmt.Sprintf("If nobody answers, it goes on without an answer %s.", c.When(t.Error.AskUntil))
}

func attemptsNote(t *task.Task) string {
	if t.AttemptCount+t.InternalCount == 0 || t.State == task.Succeeded || t.State == task.Cancelled {
		return ""
	}
	said := ""
	switch used := t.AttemptCount; {
	case used >= t.MaxAttempts && t.MaxAttempts == 1:
		said = "Its only attempt is used"
	case used >= t.MaxAttempts:
		said = fmt.Sprintf("All its %d attempts are used", t.MaxAttempts)
	case used == 1:
		said = fmt.Sprintf("1 of its %d attempts is used", t.MaxAttempts)
	default:
		said = fmt.Sprintf("%d of its %d attempts are used", used, t.MaxAttempts)
	}
	if t.InternalCount > 0 {
		said += fmt.Sprintf("; the engine itself failed %s in a row, which does not count", times(t.InternalCount))
	}
	if t.State == task.Blocked && t.AttemptCount >= t.MaxAttempts {
		said += "; unblocking gives it one more"
	}
	return said + "."
}

// costNote describes the cost that the steps have spent.
func costNote(t *task.Task) string {
	if cost := Cost(t); cost != "" {
		return "Its steps have spent " + cost + "."
	}
	return ""
}

// pauseNotes describes pauses of the task, its type or its queue, except the pause that the wait already names.
func (c Clock) pauseNotes(h *store.History) (notes []string) {
	t := &h.Task
	if t.State.Terminal() {
		return nil
	}
	shown := task.PauseNone // the pause that the wait already names
	if t.Waiting == task.WaitPaused {
		shown = cmp.Or(t.Pause, task.PauseQueue)
	}
	say := func(kind task.PauseKind, p *store.AuditEntry, what string) {
		if p != nil && kind != shown {
			notes = append(notes, text.Stop(fmt.Sprintf("%s as well, since %s%s", what, c.When(p.At), By(p.Actor, p.Reason))))
		}
	}
	if t.State == task.Running {
		if p := h.TaskPause; p != nil {
			notes = append(notes, text.Stop("It does not start again when this attempt has ended: it is paused, since "+c.When(p.At)+By(p.Actor, p.Reason)))
		}
		return notes
	}
	say(task.PauseTask, h.TaskPause, "It is paused")
	say(task.PauseType, h.TypePause, "Its type is paused")
	say(task.PauseQueue, h.QueuePause, fmt.Sprintf("Its queue %q is paused", text.OneLine(t.Queue, MaxNote)))
	return notes
}

// stepsNote names the steps that another attempt does not run again.
func stepsNote(h *store.History) string {
	if h.Task.State == task.Succeeded {
		return ""
	}
	var done []string
	for _, st := range h.Steps {
		if st.State == task.StepCompleted && !st.Past() && st.Kind != task.KindSleep && !(st.Kind == task.KindSignal && len(st.Value) == 0) {
			done = append(done, st.Name)
		}
	}
	if len(done) == 0 {
		return ""
	}
	return "Recorded and not run again: " + named("step", done) + "."
}

// ranCleanup returns the first completed cleanup of a task, or "".
func ranCleanup(h *store.History) string {
	for i := range h.Steps {
		if s := &h.Steps[i]; s.RanCleanup() {
			return s.Name
		}
	}
	return ""
}

// cleanupNote describes a cleanup that prevents a retry of its task, or one that runs again.
func cleanupNote(h *store.History) string {
	var past []string
	for i := range h.Steps {
		if s := &h.Steps[i]; s.Past() && !slices.Contains(past, s.Name) {
			past = append(past, s.Name)
		}
	}
	ended := h.Task.State == task.Failed || h.Task.State == task.Cancelled
	switch name := ranCleanup(h); {
	case name != "" && ended && h.Task.Undo == nil:
		return fmt.Sprintf("Its cleanup %q ran: a retry without --keep-steps is refused, as the steps that it undid would count as done.", text.OneLine(name, MaxNote))
	case len(past) > 0 && !h.Task.State.Terminal():
		return "A retry kept its steps though " + named("cleanup", past) + " ran, which runs again when its turn comes."
	}
	return ""
}

// unreachedNote describes recorded steps that the last attempt of a finished task ignored.
func unreachedNote(h *store.History) string {
	if !h.Task.State.Terminal() || len(h.Attempts) == 0 {
		return ""
	}
	last := h.Attempts[len(h.Attempts)-1]
	if len(last.StepsUnreached) == 0 {
		return ""
	}
	why := "it took another path, or these names change from attempt to attempt"
	if from := otherVersion(h, &last); from > 0 {
		why = fmt.Sprintf("the code was changed since, from version %d to %d, or these names change from attempt to attempt", from, last.CodeVersion)
	}
	return fmt.Sprintf("Its last attempt never reached the recorded %s: %s. What they recorded had no part in the result.", named("step", last.StepsUnreached), why)
}

// otherVersion returns the code version that recorded a step which an attempt never reached. It returns 0 if no
// version differs from that of the attempt.
func otherVersion(h *store.History, last *task.Attempt) int {
	versions := make(map[int]int, len(h.Attempts))
	for i := range h.Attempts {
		versions[h.Attempts[i].No] = h.Attempts[i].CodeVersion
	}
	for i := range h.Steps {
		s := &h.Steps[i]
		v := versions[s.AttemptNo]
		if v > 0 && last.CodeVersion > 0 && v != last.CodeVersion && s.State != task.StepFailed && slices.Contains(last.StepsUnreached, s.Name) {
			return v
		}
	}
	return 0
}

// dependentsNote names the tasks that wait for this task or were cancelled because of it.
func dependentsNote(h *store.History) string {
	var waiting, gone []string
	for _, d := range h.Dependents {
		name := d.Node
		if name == "" {
			name = d.ID.String()
		}
		switch {
		case !d.Done && !d.State.Terminal():
			waiting = append(waiting, name)
		case d.State == task.Cancelled && h.Task.State.Terminal() && h.Task.State != task.Succeeded:
			gone = append(gone, name)
		}
	}
	switch {
	case len(waiting) == 1:
		return "For it waits " + named("task", waiting) + "."
	case len(waiting) > 1:
		return "For it wait " + named("task", waiting) + "."
	case len(gone) > 0:
		return "Cancelled because of it: " + named("task", gone) + "."
	}
	return ""
}
