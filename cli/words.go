package cli

import (
	"fmt"
	"strings"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// maxMessage is how much of a recorded message a sentence quotes, and
// maxNote how much a table does.
const (
	maxMessage = 300
	maxNote    = 60
)

// label names a task in a sentence: by its name in the job when it has one.
func label(t *task.Task) string {
	if t.Node != "" {
		return fmt.Sprintf("%q (%s)", oneLine(t.Node, maxNote), t.ID)
	}
	return fmt.Sprintf("%s (%s)", t.ID, t.Type)
}

// short is label without the id, for a task that was named before.
func short(t *task.Task) string {
	if t.Node != "" {
		return fmt.Sprintf("%q", oneLine(t.Node, maxNote))
	}
	return t.ID.String()
}

// failure is an error in words: "handler_error in step "charge": card refused".
func failure(e *task.Error, limit int) string {
	if e == nil {
		return "no error is recorded"
	}
	text := errorHead(e)
	if e.Message != "" {
		text += ": " + oneLine(e.Message, limit)
	}
	return text
}

// errorHead is what comes before an error's message, which often names the
// step itself.
func errorHead(e *task.Error) string {
	if e.Step == "" || strings.Contains(e.Message, fmt.Sprintf("%q", e.Step)) {
		return string(e.Kind)
	}
	return fmt.Sprintf("%s in step %q", e.Kind, oneLine(e.Step, maxNote))
}

// by is who did it and why: " by ops: too late".
func by(who, reason string) string {
	text := ""
	if who != "" {
		text = " by " + oneLine(who, maxNote)
	}
	if reason != "" {
		text += ": " + oneLine(reason, maxMessage)
	}
	return text
}

// note is a task's state in a few words, for tables.
func (c clock) note(t *task.Task) string {
	text := ""
	switch t.State {
	case task.Pending:
		text = c.pendingNote(t)
	case task.Ready:
		text = "waits for a worker"
	case task.Running:
		text = "on " + t.LeasedBy
		switch {
		case t.CancelRequested:
			text += ", asked to end"
		case c.passed(t.LeaseExpiresAt):
			text += ", lease ended " + c.rel(t.LeaseExpiresAt)
		case t.Progress != nil:
			text += ", " + progress(t.Progress)
		}
	case task.Blocked:
		text = blockedBy(t.Error, maxNote)
	case task.Failed:
		text = failure(t.Error, maxNote)
	case task.Cancelled:
		text = c.cancelNote(t)
	}
	return oneLine(text, maxNote)
}

func (c clock) pendingNote(t *task.Task) string {
	due := ""
	if !t.ReadyAt.IsZero() {
		due = " " + c.rel(t.ReadyAt)
	}
	switch t.Waiting {
	case task.WaitNone, task.WaitDelay:
		return "due" + due
	case task.WaitDeps:
		return "needs " + text.Plural(t.RemainingDeps, "more task")
	case task.WaitRetry:
		return "retries" + due + ": " + failure(t.Error, maxNote)
	case task.WaitSleep:
		return "sleeps, wakes" + due
	case task.WaitConcurrency:
		return fmt.Sprintf("waits for key %q", t.ConcurrencyKey)
	case task.WaitPaused:
		return "queue is paused"
	}
	return "waits: " + string(t.Waiting)
}

func (c clock) cancelNote(t *task.Task) string {
	if t.Error == nil || t.Error.Kind == task.KindCancelled {
		return strings.TrimSpace(by(t.CancelBy, t.CancelReason))
	}
	return failure(t.Error, maxNote)
}

func progress(p *task.Progress) string {
	text := fmt.Sprintf("%g", p.Current)
	if p.Total > 0 {
		text += fmt.Sprintf(" of %g", p.Total)
	}
	if p.Message != "" {
		text += ": " + oneLine(p.Message, maxNote)
	}
	return text
}

// standing is a task's state as the end of a sentence that begins with the
// task: "is blocked: …", "waits for its retry, …".
func (c clock) standing(h *store.History) string {
	t := &h.Task
	switch t.State {
	case task.Succeeded:
		if t.AttemptNo > 1 {
			return fmt.Sprintf("succeeded %s, in its attempt %d", c.when(t.FinishedAt), t.AttemptNo)
		}
		return "succeeded " + c.when(t.FinishedAt)
	case task.Failed:
		return "failed " + c.when(t.FinishedAt) + ": " + failure(t.Error, maxMessage)
	case task.Cancelled:
		return "was cancelled " + c.when(t.FinishedAt) + c.cancelled(t)
	case task.Blocked:
		return "is blocked" + c.blocked(t)
	case task.Running:
		text := fmt.Sprintf("is running on %s, in its attempt %d, which began %s", oneLine(t.LeasedBy, maxNote), t.AttemptNo, c.when(t.StartedAt))
		if t.CancelRequested {
			text += ", and was asked to end"
		}
		if c.passed(t.LeaseExpiresAt) {
			text += ", but its lease ended " + c.rel(t.LeaseExpiresAt) + " and was not renewed"
		}
		return text
	case task.Ready:
		return "is ready since " + c.when(t.ReadyAt) + " and waits for a worker"
	}
	return c.waits(h)
}

func (c clock) cancelled(t *task.Task) string {
	kind := task.KindCancelled
	if t.Error != nil {
		kind = t.Error.Kind
	}
	switch kind {
	case task.KindDeadline:
		text := ": its deadline had passed"
		if !t.DeadlineAt.IsZero() {
			text = ": its deadline, " + c.abs(t.DeadlineAt) + ", had passed"
		}
		if t.AttemptNo == 0 {
			return text + " before it was started"
		}
		return text
	case task.KindDependencyFailed:
		return ", because what it needs did not succeed"
	case task.KindNotNeeded:
		return ", because it was not needed"
	}
	if who := by(t.CancelBy, t.CancelReason); who != "" {
		return who
	}
	if t.Error != nil {
		return ": " + failure(t.Error, maxMessage)
	}
	return ""
}

func (c clock) blocked(t *task.Task) string {
	text := ""
	switch t.Waiting {
	case task.WaitBudget:
		text = ", its budget is used up"
	case task.WaitRepair:
		text = ", its input has to be repaired"
	case task.WaitDeadline:
		text = ", its deadline has passed"
	default:
		text = " and waits for a person"
	}
	if why := blockedBy(t.Error, maxMessage); why != "" {
		text += ": " + why
	}
	return text
}

// blockedBy is what a handler said when it asked for a person, or the error
// that a person has to look at.
func blockedBy(e *task.Error, limit int) string {
	switch {
	case e == nil:
		return ""
	case e.Kind == task.KindHandler && e.Step == "":
		return oneLine(e.Message, limit)
	}
	return failure(e, limit)
}

// waits is why a pending task does not run.
func (c clock) waits(h *store.History) string {
	t := &h.Task
	due := ""
	if !t.ReadyAt.IsZero() {
		due = c.when(t.ReadyAt)
	}
	orElse := func(text string) string {
		if due != "" {
			text += ", and goes on " + due + " at the latest"
		}
		return text
	}
	switch t.Waiting {
	case task.WaitNone, task.WaitDelay:
		return "was enqueued for later and is due " + due
	case task.WaitDeps:
		return needsOpen(h.Needs)
	case task.WaitRetry:
		return "waits for its retry, due " + due
	case task.WaitSleep:
		return fmt.Sprintf("sleeps%s and wakes %s", sleepStep(h), due)
	case task.WaitConcurrency:
		return fmt.Sprintf("is due and waits for its concurrency key %q, which lets %d run at once", oneLine(t.ConcurrencyKey, maxNote), max(t.ConcurrencyLimit, 1))
	case task.WaitPaused:
		text := fmt.Sprintf("waits because its queue %q is paused", oneLine(t.Queue, maxNote))
		if t.ReadyAt.After(c.now) {
			text += ", and is due " + due
		}
		return text
	case task.WaitSignal:
		return orElse("waits for a signal")
	case task.WaitChildren:
		return orElse("waits for the tasks that it called")
	case task.WaitRate:
		return orElse("waits because of a rate limit")
	case task.WaitRepair:
		return orElse("waits while its input is being repaired")
	case task.WaitBudget:
		return orElse("waits because its budget is used up")
	case task.WaitManual:
		return orElse("waits for a person")
	case task.WaitDeadline:
		return orElse("waits to be ended: its deadline has passed")
	}
	return orElse("waits: " + string(t.Waiting))
}

// needsOpen counts what a task still waits for.
func needsOpen(needs []store.Need) string {
	open := 0
	for _, need := range needs {
		if !need.Done {
			open++
		}
	}
	if open == len(needs) {
		return "waits for " + text.Plural(open, "other task")
	}
	return fmt.Sprintf("waits for %d of the %d tasks that it needs", open, len(needs))
}

// sleepStep names the sleep that a task is in.
func sleepStep(h *store.History) string {
	name := ""
	for _, st := range h.Steps {
		if st.Kind == task.KindSleep && (name == "" || st.WakeAt.Equal(h.Task.ReadyAt)) {
			name = st.Name
		}
	}
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" in %q", oneLine(name, maxNote))
}
