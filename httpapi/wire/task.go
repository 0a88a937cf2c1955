package wire

import (
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Found is a page of tasks, newest first. A query that needs more than an index reads a
// bounded number of tasks: a page may have few items or be empty, and still have a next.
type Found struct {
	Items      []Task  `json:"items"`
	Scanned    int     `json:"scanned"`              // tasks read
	OldestSeen task.ID `json:"oldest_seen,omitzero"` // the oldest task read: every newer match is included
	Unread     int     `json:"unread,omitempty"`     // tasks whose values could not be read: they do not match
	Next       string  `json:"next,omitempty"`       // as ?after= of the next page; left out at the end
}

// History holds all records of a task except its events, logs and values.
type History struct {
	Task      Task            `json:"task"`
	Attempts  []task.Attempt  `json:"attempts"`
	Decisions []task.Decision `json:"decisions"`
	Steps     []task.Step     `json:"steps"`
	Signals   []task.Signal   `json:"signals"`

	Checkpoints []task.Checkpoint  `json:"checkpoints"`
	Artifacts   []task.Artifact    `json:"artifacts"`
	Needs       []store.Need       `json:"needs"`
	Dependents  []store.Need       `json:"dependents"`
	Audit       []store.AuditEntry `json:"audit"`
	Holders     []task.ID          `json:"key_holders,omitempty"`
	Ahead       task.ID            `json:"key_ahead,omitzero"`
	TaskPause   *store.AuditEntry  `json:"task_pause,omitempty"`
	TypePause   *store.AuditEntry  `json:"type_pause,omitempty"`
	QueuePause  *store.AuditEntry  `json:"queue_pause,omitempty"`
}
