package store

import (
	"fmt"
	"strconv"
	"time"
)

// AuditEntry records one operator verb.
type AuditEntry struct {
	ID     int64     `json:"id,omitempty"` // in the order in which they were written; 0: of a pause, not of the audit
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`
	Verb   string    `json:"verb"` // as "retry"; of a queue "pause" and "resume", of a type "pause_type", of a task "pause_task", …
	Target string    `json:"target"`
	Reason string    `json:"reason,omitempty"`
}

// AuditFilter selects entries of the audit; empty fields select all.
type AuditFilter struct {
	Target string // this one: the id of a task or job, or the name of a queue or type
	Actor  string // by this one
	Verb   string // this one
	Limit  int    // 0: 50; at most 1,000
	After  string // cursor of the page before
}

// Selects reports whether the filter asks for an entry. Its page is not looked at.
func (f *AuditFilter) Selects(e *AuditEntry) bool {
	return (f.Target == "" || f.Target == e.Target) && (f.Actor == "" || f.Actor == e.Actor) && (f.Verb == "" || f.Verb == e.Verb)
}

// Before returns the id behind which the page begins: all that it shows are lower.
func (f *AuditFilter) Before() (int64, error) {
	if f.After == "" {
		return 1<<63 - 1, nil
	}
	id, err := strconv.ParseInt(f.After, 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != f.After {
		return 0, fmt.Errorf("%w: %q did not come from the audit", ErrBadCursor, f.After)
	}
	return id, nil
}

// Cursor is the cursor of the page behind an entry.
func (e *AuditEntry) Cursor() string { return strconv.FormatInt(e.ID, 10) }
