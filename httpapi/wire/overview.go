package wire

import (
	"time"

	"github.com/goweaver/weaver/store"
)

// Counts says how many tasks there are.
type Counts struct {
	At time.Time `json:"at"` // by the store's clock
	store.Counts
}

// TaskType is a task type that workers announced.
type TaskType struct {
	store.AnnouncedType
	Workers int               `json:"workers"`         // that handle it, and were seen of late
	Paused  bool              `json:"paused"`          // by an operator
	Pause   *store.AuditEntry `json:"pause,omitempty"` // who paused it, when and why
}
