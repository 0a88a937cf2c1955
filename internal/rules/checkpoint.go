package rules

import (
	"bytes"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// AcceptCheckpoint returns the checkpoint of a record as it is stored. same reports that it
// equals the checkpoint stored under its name (stood, nil if absent): then nothing is written,
// and the record does not count as progress.
func AcceptCheckpoint(stood *task.Checkpoint, rec *store.Record, attemptNo int, now time.Time) (cp task.Checkpoint, same bool) {
	if stood != nil && bytes.Equal(stood.Value, rec.Checkpoint.Value) {
		return *stood, true
	}
	cp = *rec.Checkpoint
	cp.TaskID, cp.AttemptNo, cp.SavedAt = rec.Lease.Task, attemptNo, now
	return cp, false
}
