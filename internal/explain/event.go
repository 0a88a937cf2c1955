package explain

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// Event returns the end of a line that begins with the task's name: "started, attempt 2 of 5". It returns "" for
// events other than the start or end of an attempt.
//
// h holds the task after the event: Task, and Needs with names and states. It is nil for a view that only has the
// event. Such a view does not show the task's output either, so it gets the whole message of an error.
func (c Clock) Event(ev event.Event, h *store.History) string {
	switch ev := ev.(type) {
	case event.TaskStarted:
		return c.started(ev.AttemptNo, h)
	case event.TaskSucceeded:
		return "succeeded in " + text.Took(ev.Duration) + status(ev)
	case event.TaskFailed:
		allowed := ""
		if ev.Allowed {
			allowed = whichAllowed
			if ev.JobID.IsZero() { // a repair; the task continues without a job
				allowed = ", which its task allows"
			}
		}
		return fmt.Sprintf("failed%s after %s%s: %s", InAttempt(countedNo(ev.AttemptNo, h)), text.Took(ev.Duration), allowed, eventError(&ev.Error, h))
	case event.TaskRetrying:
		return fmt.Sprintf("attempt %d failed: %s; retry in %s", max(1, countedNo(ev.AttemptNo, h)), eventError(&ev.Error, h), text.Until(ev.Delay))
	case event.TaskSuspended:
		switch {
		case ev.Waiting == task.WaitRepair && ev.Error != nil:
			return "its input is repaired: " + eventError(ev.Error, h)
		case ev.Waiting == task.WaitUndo && ev.Error != nil:
			return fmt.Sprintf("undo failed in attempt %d: %s; it is tried again", ev.AttemptNo, eventError(ev.Error, h))
		case ev.Waiting == task.WaitUndo:
			return "goes on with its undo later"
		case ev.Error != nil:
			return fmt.Sprintf("attempt %d failed: %s; waits for other tasks, as was decided", max(1, countedNo(ev.AttemptNo, h)), eventError(ev.Error, h))
		case ev.Waiting == task.WaitSignal && ev.WakeAt.IsZero():
			return "waits for a signal"
		case ev.Waiting == task.WaitSignal:
			return "waits for a signal until " + ev.WakeAt.In(c.Zone).Format(time.DateTime)
		case ev.Waiting == task.WaitChildren && ev.WakeAt.IsZero():
			return "waits for its children"
		}
		if ev.WakeAt.IsZero() {
			return "waits"
		}
		return "asleep until " + ev.WakeAt.In(c.Zone).Format(time.DateTime)
	case event.TaskUndoing:
		verdict := "its end"
		if ev.EndsAs != "" {
			verdict = "it ends " + string(ev.EndsAs)
		}
		return fmt.Sprintf("is being undone before %s: %s", verdict, eventError(&ev.Error, h))
	case event.TaskLeaseLost:
		return "was interrupted" + whichCrashed(ev.Crash)
	case event.TaskBlocked:
		if asked := Question(ev.TaskType, &ev.Error); asked != "" {
			return WaitsForPerson(asked)
		}
		return "blocked: " + eventError(&ev.Error, h)
	case event.TaskCancelled:
		if h == nil {
			h = &store.History{Task: task.Task{Error: &ev.Error}}
		}
		if why := c.Cancelled(&h.Task, h.Needs); why != "" {
			return "cancelled: " + why
		}
		return "cancelled"
	}
	return ""
}

func whichCrashed(crash bool) string {
	if crash {
		return ": the process of its worker died"
	}
	return ""
}

// requestType is the task type that calls a URL: builtin.Request.
const requestType = "weaver.http.request.v1"

// status returns the HTTP status of a request as the end of a line.
func status(ev event.TaskSucceeded) string {
	if ev.TaskType != requestType {
		return ""
	}
	var out struct{ Status int }
	if json.Unmarshal(ev.Output, &out) != nil || out.Status == 0 {
		return ""
	}
	return fmt.Sprintf(": %d", out.Status)
}

// countedNo returns the number of an ended attempt among the attempts that count, if known; otherwise it returns no.
func countedNo(no int, h *store.History) int {
	if h == nil {
		return no
	}
	return h.Task.AttemptCount
}

func eventError(e *task.Error, h *store.History) string {
	if h != nil || e.Message == "" {
		return Headline(e)
	}
	line := text.OneLine(e.Message, MaxMessage)
	if impliesKind(e, line) {
		return line
	}
	return FailureHead(e) + ": " + line
}

func (c Clock) started(no int, h *store.History) string {
	if c.Slept > 0 && no > 1 {
		return fmt.Sprintf("started again: its lease ended while this process slept (%s)", text.Span(c.Slept))
	}
	try, limit := no, 0
	if h != nil {
		try, limit = h.Task.AttemptCount+1, h.Task.MaxAttempts
	}
	switch {
	case try > 1 && limit > 0:
		return fmt.Sprintf("started, attempt %d of %d", try, limit)
	case try > 1:
		return fmt.Sprintf("started, attempt %d", try)
	case no > 1:
		return "started again" // after a sleep or a lost worker
	}
	return "started"
}

// InAttempt returns " in attempt 2" for the second attempt that counts, and so on; "" for the first.
func InAttempt(counted int) string {
	if counted < 2 {
		return ""
	}
	return fmt.Sprintf(" in attempt %d", counted)
}

// Turn describes a change without an event as the end of a sentence that begins with the task: a change back to
// pending or ready. It returns "" for other changes.
func Turn(from, to task.State) string {
	if to != task.Pending && to != task.Ready {
		return ""
	}
	switch from {
	case task.Running:
		return "was stopped, and begins again with the next worker"
	case task.Blocked:
		return "is unblocked"
	case task.Failed, task.Cancelled:
		return "is tried again"
	}
	return ""
}

// JobBlocked names the tasks of a blocked job that wait for a person.
func JobBlocked(ev event.JobBlocked) string {
	if len(ev.Blocked) == 0 {
		return "its tasks wait for each other"
	}
	names := make([]string, len(ev.Blocked))
	for i, name := range ev.Blocked {
		names[i] = text.OneLine(name, 2*MaxNote)
	}
	verb := "waits"
	if len(names) > 1 {
		verb = "wait"
	}
	return fmt.Sprintf("%s %s for a person", strings.Join(names, ", "), verb)
}
