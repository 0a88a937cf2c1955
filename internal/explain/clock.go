package explain

import (
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// Clock words instants as seen from one instant in one time zone. It also carries facts about that instant that the
// store does not record.
type Clock struct {
	Now  time.Time
	Zone *time.Location // required

	// OfJob is the job of the described tasks, if known: its budget explains why they were cancelled.
	OfJob *task.Job

	// Slept is the time for which this process was suspended during the attempt before the described one; 0 if it was
	// not, or if that is unknown.
	Slept time.Duration

	// Gone maps running tasks whose worker process is known to be dead to the commands that take them over.
	Gone map[task.ID][]string
}

// gone says that the process of a running task is dead and names the commands that take over the task. It returns ""
// if the process is not known to be dead.
func (c Clock) gone(t *task.Task) string {
	if t.State != task.Running || len(c.Gone[t.ID]) == 0 {
		return ""
	}
	return "its process is gone; `" + strings.Join(c.Gone[t.ID], "` or `") + "` goes on"
}

// Abs formats an instant in the clock's zone.
func (c Clock) Abs(t time.Time) string { return t.In(c.Zone).Format(time.RFC3339) }

// Rel formats the distance to an instant: "3m ago", "in 4s".
func (c Clock) Rel(t time.Time) string {
	d := t.Sub(c.Now)
	switch {
	case d <= -time.Second:
		return text.Span(c.Now.Sub(t)) + " ago" // negating the smallest duration overflows
	case d < 0:
		return "just now"
	case d < time.Second:
		return "in a moment"
	}
	return "in " + text.Span(d)
}

// When combines both: "3m ago (2026-11-20T12:00:03Z)". It returns "" for the zero instant.
func (c Clock) When(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return c.Rel(t) + " (" + c.Abs(t) + ")"
}

// Passed reports whether an instant is set and not in the future.
func (c Clock) Passed(t time.Time) bool { return !t.IsZero() && !t.After(c.Now) }
