package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/goweaver/weaver/task"
)

// Upload is the command that announces a blob before its bytes are put into the bucket, and so before
// any row refers to it. Bytes that the store already knows keep their blob and are stored once, but
// the announcement counts as new. A row that refers to the blob (an input, an output, a step's value,
// an artifact) keeps it alive in the transaction that writes the row. That write fails with
// ErrBlobGone if a collector claimed the blob first; the caller then uploads again under a new ID.
//
// The first Upload with a Bucket binds the namespace to that bucket. Another bucket fails with
// ErrOtherBucket until AcceptBucket.
type Upload struct {
	ID     task.ID // a new ID; the store keeps the old one for known bytes
	SHA256 string  // hex digest of the bytes
	Size   int64
	Bucket Bucket // target of the upload

	// Task is the owner of the value or artifact; zero if there is no owner. ForgetTask deletes the
	// last announced blobs of the task that no row refers to: uploads of a step that failed or was
	// killed.
	Task task.ID
}

// Bucket names a bucket. The zero Bucket has no identity.
type Bucket struct {
	ID    string `json:"id"`    // "" before an ID is assigned
	Place string `json:"place"` // location, for people
}

// Uploaded answers an Upload.
type Uploaded struct {
	Blob   task.Blob // with the ID under which these bytes are stored
	Stored bool      // a row refers to the blob: its bytes are present and need no upload
}

// NewArtifact is an artifact to record with its step.
type NewArtifact struct {
	ID          task.ID
	Name        string
	ContentType string
	Blob        task.Blob
	TTL         time.Duration // counted from the store's current time; 0 means no expiry

	// Link is a task.Link and replaces Blob: the bytes are stored elsewhere.
	Link json.RawMessage
}

// CollectBlobs asks Collect for the blobs to delete. Collect forgets expired artifacts of finished
// tasks, then claims unreferenced blobs: at once if they were referred to before, otherwise after
// Pending. No row can refer to a claimed blob again. The answer names claimed blobs that no caller has
// reported as deleted, so the bytes are deleted again after a crash. Concurrent collectors are safe.
// One call moves at most BlobBite rows of each kind.
type CollectBlobs struct {
	Pending time.Duration // minimum age of the announcement of a blob that was never referred to; DefaultPending
	Deleted []task.ID     // blobs of an earlier answer whose bytes are deleted now; at most BlobBite
	Bucket  Bucket        // bucket to delete from; ErrOtherBucket if it is not the namespace's bucket
}

// DefaultPending is the default time limit of an upload.
const DefaultPending = 24 * time.Hour

// BlobBite is the maximum number of blobs, and of artifacts, that one call moves.
const BlobBite = 300

// CollectedBlobs answers CollectBlobs.
type CollectedBlobs struct {
	Delete  []task.Blob // the caller deletes the bytes and reports it in its next call
	Expired int         // number of artifacts forgotten
	More    bool        // there may be more: call again
}

// BlobRow is the stored row of a blob.
type BlobRow struct {
	task.Blob
	State task.BlobState
}

// BlobUse is a blob with its reference counts.
type BlobUse struct {
	BlobRow
	Refs    int           // equal values of one kind in one task count once
	Expired int           // references by expired artifacts of finished tasks
	Unused  time.Duration // time since the last announcement of a pending blob; UsedBefore if it was referred to since
}

// UsedBefore is the Unused of a blob that was referred to: no upload of it is in progress.
const UsedBefore = time.Duration(math.MaxInt64)

// Collectable reports whether a collector deletes the blob when it treats uploads unused for that time
// as uploads of dead processes.
func (u *BlobUse) Collectable(unused time.Duration) bool {
	switch u.State {
	case task.BlobDeleting:
		return true
	case task.BlobPending:
		return u.Refs == 0 && u.Unused >= unused
	}
	return u.Refs > 0 && u.Refs == u.Expired
}

// BlobFilter selects blobs.
type BlobFilter struct {
	ID    task.ID // only this blob, whatever the other fields hold; see BlobOf
	After task.ID // exclusive lower bound of the IDs
	Limit int     // maximum number of blobs; 0 returns no blobs
}

// BlobOf reads one blob. Error: ErrNotFound.
func BlobOf(ctx context.Context, d Data, ns string, id task.ID) (BlobUse, error) {
	if !id.IsZero() {
		if list, err := d.Blobs(ctx, ns, BlobFilter{ID: id}); err != nil || len(list) > 0 {
			return append(list, BlobUse{})[0], err
		}
	}
	return BlobUse{}, fmt.Errorf("blob %s: %w", id, ErrNotFound)
}
