package explain

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// overdueAfter is the delay after which a handler that continues past the end of its context counts as overdue. The
// engine logs it after the same delay.
const overdueAfter = time.Minute

// contextEnd returns the time at which the context of a running task's handler ended, and the words for the cause: ",
// but it timed out". The time is zero if the context has not ended or the store cannot tell.
func (c Clock) contextEnd(h *store.History) (at time.Time, because string) {
	t := &h.Task
	if t.State != task.Running || c.Passed(t.LeaseExpiresAt) || c.gone(t) != "" {
		return time.Time{}, "" // without a lease the handler may have ended
	}
	end := func(when time.Time, said string) {
		if c.Passed(when) && (at.IsZero() || when.Before(at)) {
			at, because = when, said
		}
	}
	if t.Timeout > 0 {
		end(t.StartedAt.Add(t.Timeout), "but it timed out")
	}
	if !t.DeadlineAt.IsZero() && t.DeadlineAt.Before(t.StartedAt) {
		end(t.StartedAt, "and was asked to end") // started to clean up
	} else {
		end(t.DeadlineAt, "but its deadline passed")
	}
	for _, entry := range h.Audit {
		if entry.Verb == "cancel" && t.CancelRequested && !entry.At.Before(t.StartedAt) {
			end(entry.At, "and was asked to end")
		}
	}
	return at, because
}

// overdue reports whether a handler ignores the end of its context.
func (c Clock) overdue(h *store.History) bool {
	at, _ := c.contextEnd(h)
	return !at.IsZero() && c.Now.Sub(at) >= overdueAfter
}

// asked returns the suffix for "is running", with punctuation, if the handler should have ended.
func (c Clock) asked(h *store.History) string {
	at, because := c.contextEnd(h)
	switch {
	case c.overdue(h):
		return fmt.Sprintf(", %s %s, and its handler has not returned", because, c.When(at))
	case h.Task.Undo.Runs():
		return ", and undoes another task of its job"
	case h.Task.Undo != nil:
		return fmt.Sprintf(", to be undone before it ends %s", h.Task.Undo.EndsAs)
	case h.Task.CancelRequested:
		return ", and was asked to end"
	}
	return ""
}

// timeoutNote says when the attempt times out or timed out.
func (c Clock) timeoutNote(t *task.Task) string {
	if t.Timeout <= 0 {
		return ""
	}
	at := t.StartedAt.Add(t.Timeout)
	if !c.Passed(at) {
		return fmt.Sprintf(" The attempt times out %s.", c.When(at))
	}
	return fmt.Sprintf(" The attempt timed out %s: its handler's context has ended, and its handler has yet to return.", c.When(at))
}

// overdueNote counts the running tasks whose handlers ignore the end of their contexts: they occupy slots that other
// tasks wait for.
func (c Clock) overdueNote(running Running) string {
	n := 0
	for i := range running.Tasks {
		if c.overdue(&store.History{Task: running.Tasks[i]}) {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return " The handler of one of them ignores the end of its context and keeps its slot."
	}
	return fmt.Sprintf(" The handlers of %s ignore the end of their contexts and keep their slots.", text.Plural(n, "task"))
}
