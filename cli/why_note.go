package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// notes are facts beside the state that decide what comes next.
func (e *explainer) notes(h *store.History) []string {
	var notes []string
	add := func(text string) {
		if text != "" {
			notes = append(notes, text)
		}
	}
	add(e.leaseNote(&h.Task))
	add(cancelNote(&h.Task))
	add(crashNote(h))
	add(e.deadlineNote(&h.Task))
	add(attemptsNote(&h.Task))
	add(e.pauseNote(h))
	add(stepsNote(h))
	add(unreachedNote(h))
	add(dependentsNote(h))
	return notes
}

// leaseNote: what a silent worker means.
func (e *explainer) leaseNote(t *task.Task) string {
	if t.State != task.Running {
		return ""
	}
	if e.clock.passed(t.LeaseExpiresAt) {
		return fmt.Sprintf("Its lease ended %s and was not renewed: the worker died or is cut off. Any worker of this namespace that is up takes the task back; if none is, start one.", e.clock.when(t.LeaseExpiresAt))
	}
	note := fmt.Sprintf("Its lease lasts until %s unless the worker renews it, which it does as long as it lives.", e.clock.abs(t.LeaseExpiresAt))
	if t.Timeout > 0 {
		note += fmt.Sprintf(" The attempt times out %s.", e.clock.when(t.StartedAt.Add(t.Timeout)))
	}
	if t.Progress != nil {
		note += text.Stop(" Its last report: " + progress(t.Progress))
	}
	return note
}

// cancelNote: a request that the handler has not obeyed, or did not have to.
func cancelNote(t *task.Task) string {
	if !t.CancelRequested || t.State == task.Cancelled {
		return ""
	}
	what := "It was asked to cancel" + by(t.CancelBy, t.CancelReason)
	if t.CancelKind == task.KindDeadline {
		what = "It was asked to end because its deadline passed"
	}
	if t.State == task.Succeeded {
		return what + ", but its handler returned success all the same."
	}
	return text.Stop(what) + " Its worker hears of it with the next heartbeat and ends the handler's context; then it is up to the handler to return."
}

// crashNote: leases lost in a row, which end as poison.
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
	text := fmt.Sprintf("Its process stopped under it %s in a row", times(t.CrashCount))
	if len(workers) > 0 {
		text += ", on " + oneLine(strings.Join(workers, ", "), maxMessage)
	}
	switch {
	case t.Error != nil && t.Error.Kind == task.KindPoison:
		return text + ": it would go on stopping workers, so it was not started again. Look at what the handler does to its process: memory, os.Exit, fatal signals."
	case t.CrashCount >= 2:
		return text + ": it is a suspect, of which a worker runs few at once. At the crash budget (3 unless configured) it fails as poison."
	}
	return text + ". At the crash budget (3 unless configured) it fails as poison."
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

func (e *explainer) deadlineNote(t *task.Task) string {
	switch {
	case t.DeadlineAt.IsZero() || t.State.Terminal():
		return ""
	case e.clock.passed(t.DeadlineAt):
		return fmt.Sprintf("Its deadline passed %s: a worker that is up ends it.", e.clock.when(t.DeadlineAt))
	case t.State == task.Pending && t.ReadyAt.After(t.DeadlineAt):
		return fmt.Sprintf("Its deadline, %s, comes before it is due: it will be cancelled then.", e.clock.when(t.DeadlineAt))
	}
	return fmt.Sprintf("If it has not ended %s, its deadline, it is cancelled.", e.clock.when(t.DeadlineAt))
}

func attemptsNote(t *task.Task) string {
	if t.AttemptCount+t.InternalCount == 0 || t.State == task.Succeeded || t.State == task.Cancelled {
		return ""
	}
	text := ""
	switch used := t.AttemptCount; {
	case used >= t.MaxAttempts && t.MaxAttempts == 1:
		text = "Its only attempt is used"
	case used >= t.MaxAttempts:
		text = fmt.Sprintf("All its %d attempts are used", t.MaxAttempts)
	case used == 1:
		text = fmt.Sprintf("1 of its %d attempts is used", t.MaxAttempts)
	default:
		text = fmt.Sprintf("%d of its %d attempts are used", used, t.MaxAttempts)
	}
	if t.InternalCount > 0 {
		text += fmt.Sprintf("; the engine itself failed %s in a row, which does not count", times(t.InternalCount))
	}
	if t.State == task.Blocked && t.AttemptCount >= t.MaxAttempts {
		text += "; unblocking gives it one more"
	}
	return text + "."
}

// pauseNote: a paused queue that is not what it waits for first.
func (e *explainer) pauseNote(h *store.History) string {
	t, p := &h.Task, h.QueuePause
	if p == nil || t.Waiting == task.WaitPaused || t.State == task.Running || t.State.Terminal() {
		return ""
	}
	return text.Stop(fmt.Sprintf("Its queue %q is paused as well, since %s%s", oneLine(t.Queue, maxNote), e.clock.when(p.At), by(p.Actor, p.Reason)))
}

// stepsNote: what another attempt does not do again.
func stepsNote(h *store.History) string {
	if h.Task.State == task.Succeeded {
		return ""
	}
	var done []string
	for _, st := range h.Steps {
		if st.State == task.StepCompleted && st.Kind != task.KindSleep {
			done = append(done, st.Name)
		}
	}
	if len(done) == 0 {
		return ""
	}
	return "Recorded and not run again: " + names("step", done) + "."
}

// unreachedNote: a finished task whose last attempt ignored recorded steps.
func unreachedNote(h *store.History) string {
	if !h.Task.State.Terminal() || len(h.Attempts) == 0 {
		return ""
	}
	last := h.Attempts[len(h.Attempts)-1]
	if len(last.StepsUnreached) == 0 {
		return ""
	}
	return fmt.Sprintf("Its last attempt never reached the recorded %s: the code was changed since, or these names change from attempt to attempt. What they recorded had no part in the result.",
		names("step", last.StepsUnreached))
}

// dependentsNote: who shares its fate.
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
		return "For it waits " + names("task", waiting) + "."
	case len(waiting) > 1:
		return "For it wait " + names("task", waiting) + "."
	case len(gone) > 0:
		return "Cancelled because of it: " + names("task", gone) + "."
	}
	return ""
}
