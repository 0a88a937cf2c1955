package store

import (
	"encoding/json"
	"time"
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
