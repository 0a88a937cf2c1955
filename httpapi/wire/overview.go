package wire

import (
	"time"

	"github.com/goweaver/weaver/store"
)

// Counts holds numbers of tasks.
type Counts struct {
	At time.Time `json:"at"` // by the store's clock
	store.Counts
}

// TaskType is a task type that workers announced.
type TaskType struct {
	store.AnnouncedType
	Workers int               `json:"workers"`         // recently seen workers that handle it
	Paused  bool              `json:"paused"`          // by an operator
	Pause   *store.AuditEntry `json:"pause,omitempty"` // the audit entry of the pause
}
