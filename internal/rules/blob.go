package rules

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// TaskBlobs returns the blobs that inputs of new tasks name.
func TaskBlobs(tasks []task.New) (blobs []task.Blob) {
	for i := range tasks {
		blobs = appendBlob(blobs, tasks[i].Input)
	}
	return blobs
}

// RecordBlobs returns the blobs that a record names.
func RecordBlobs(rec *store.Record) []task.Blob {
	blobs := TaskBlobs(rec.Tasks)
	if rec.Step != nil {
		blobs = appendBlob(blobs, rec.Step.Value)
	}
	for i := range rec.Artifacts {
		if len(rec.Artifacts[i].Link) == 0 {
			blobs = append(blobs, rec.Artifacts[i].Blob)
		}
	}
	return blobs
}

// FinishBlobs returns the blobs that a finish names.
func FinishBlobs(f *store.Finish) []task.Blob {
	return appendBlob(TaskBlobs(f.Children), f.Output)
}

func appendBlob(blobs []task.Blob, value json.RawMessage) []task.Blob {
	if b, ok := task.BlobOf(value); ok {
		blobs = append(blobs, b)
	}
	return blobs
}

// Usable reports whether new rows may refer to a blob in this state. "" is the state of a blob
// that the store does not know.
func Usable(state task.BlobState) bool {
	return state == task.BlobPending || state == task.BlobLive
}

// BlobGone returns [store.ErrBlobGone] for a blob that rows must not refer to any more.
func BlobGone(b task.Blob) error { return fmt.Errorf("blob %v: %w", b.ID, store.ErrBlobGone) }

// PendingFor returns the minimum age of an announcement before its unreferenced blob is
// deleted.
func PendingFor(req *store.CollectBlobs) time.Duration {
	if req.Pending <= 0 {
		return store.DefaultPending
	}
	return req.Pending
}

// Artifact returns the row of an artifact that a record stores with its step.
func Artifact(a *store.NewArtifact, step *task.Step, now time.Time) task.Artifact {
	stored := task.Artifact{
		ID: a.ID, TaskID: step.TaskID, Step: step.Name, AttemptNo: step.AttemptNo,
		Name: a.Name, ContentType: a.ContentType, Blob: a.Blob, LinkValue: a.Link, CreatedAt: now,
	}
	if a.TTL > 0 {
		stored.ExpiresAt = Instant(now.Add(a.TTL))
	}
	return stored
}

// ExpiryLook is the pause before the collector checks an expired artifact again whose task has
// not ended.
const ExpiryLook = 10 * time.Minute
