package store

import (
	"encoding/json"
	"time"
)

// EventRow is a stored event of a task, or a line of its log (Log). Seq orders it among all events of
// the task (event.Sequence).
type EventRow struct {
	Seq  int64
	Log  bool
	Type string
	At   time.Time
	Body json.RawMessage // event.Body
}

// MaxEvents is the maximum number of event rows in one Record or Finish.
const MaxEvents = 1000
