package explain

import (
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// Clock words instants as seen from one instant, in one time zone, and what is
// known beside the recorded values at that instant.
type Clock struct {
	Now  time.Time
	Zone *time.Location // must be set

	// OfJob is the job of the tasks that are worded, if it is known: its budget
	// explains why they were cancelled.
	OfJob *task.Job

	// Slept is how long this process did not run while it ran the attempt before
	// the one that is worded; 0: it did, or that is not known.
	Slept time.Duration

	// Gone are running tasks whose worker's process is known to be dead, each
	// with the commands that take it over.
	Gone map[task.ID][]string
}

// gone says that the process of a running task is dead, and what takes the task
// over; "" when that is not known.
func (c Clock) gone(t *task.Task) string {
	if t.State != task.Running || len(c.Gone[t.ID]) == 0 {
		return ""
	}
	return "its process is gone; `" + strings.Join(c.Gone[t.ID], "` or `") + "` goes on"
}

// Abs is the instant itself, in the clock's zone.
func (c Clock) Abs(t time.Time) string { return t.In(c.Zone).Format(time.RFC3339) }

// Rel is the distance: "3m ago", "in 4s".
func (c Clock) Rel(t time.Time) string {
	d := t.Sub(c.Now)
	switch {
	case d <= -time.Second:
		return text.Span(c.Now.Sub(t)) + " ago" // -d of the smallest d is no span
	case d < 0:
		return "just now"
	case d < time.Second:
		return "in a moment"
	}
	return "in " + text.Span(d)
}

// When is both: "3m ago (2026-11-20T12:00:03Z)"; "" for the zero instant.
func (c Clock) When(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return c.Rel(t) + " (" + c.Abs(t) + ")"
}

// Passed reports whether an instant is known and over.
func (c Clock) Passed(t time.Time) bool { return !t.IsZero() && !t.After(c.Now) }
