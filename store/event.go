package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// EventRow is a stored event of a task: of its log (Log), or another one. Its number
// orders it among all of the task's (event.Sequence).
type EventRow struct {
	Seq  int64
	Log  bool
	Type string
	At   time.Time
	Body json.RawMessage // event.Body
}

// MaxEvents is how many event rows one Record or Finish has at most.
const MaxEvents = 1000

// EventReader is implemented by stores that keep the events of tasks.
type EventReader interface {
	// Events returns the stored events of a task with a higher number than after,
	// in the order of their numbers, at most limit, or 1,000. The rows of an attempt
	// become visible in that order. Nothing for a task that does not exist.
	Events(ctx context.Context, ns string, id task.ID, after int64, limit int) ([]EventRow, error)
}
