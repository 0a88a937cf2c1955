package store

import (
	"fmt"
	"strconv"
	"time"
)

// AuditEntry records one operator verb.
type AuditEntry struct {
	ID     int64     `json:"id,omitempty"` // unique and ascending in the audit; 0 for a pause that is not from the audit
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`
	Verb   string    `json:"verb"` // for example "retry"; for a queue "pause" and "resume", for a type "pause_type", for a task "pause_task", …
	Target string    `json:"target"`
	Reason string    `json:"reason,omitempty"`
}

// AuditFilter selects entries of the audit. An empty field matches every entry.
type AuditFilter struct {
	Target string // ID of a task or job, or name of a queue or type
	Actor  string
	Verb   string
	Limit  int    // 0 means 50; at most 1,000
	After  string // cursor of the previous page
}

// Selects reports whether an entry matches the filter. It ignores After and Limit.
func (f *AuditFilter) Selects(e *AuditEntry) bool {
	return (f.Target == "" || f.Target == e.Target) && (f.Actor == "" || f.Actor == e.Actor) && (f.Verb == "" || f.Verb == e.Verb)
}

// Before returns the exclusive upper bound for the IDs of the page.
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

// Cursor returns the cursor of the page that follows the entry.
func (e *AuditEntry) Cursor() string { return strconv.FormatInt(e.ID, 10) }
