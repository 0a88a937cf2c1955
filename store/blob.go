package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/goweaver/weaver/task"
)

// Upload is the command that announces bytes before they are put into the bucket, which
// is before anything refers to them. Bytes that the store knows keep their blob, and so
// are stored once; the announcement is new all the same. Whatever then names the blob
// (an input, an output, a step's value, an artifact) makes it live in its own
// transaction, and keeps it so; it is refused with ErrBlobGone when a collector
// was faster. Then the caller uploads again, under another ID.
// The first Upload with a Bucket says which one has the blobs of the namespace; another
// is refused with ErrOtherBucket, until AcceptBucket.
type Upload struct {
	ID     task.ID // new: of the blob, unless the store knows these bytes
	SHA256 string  // of the bytes, in hex
	Size   int64
	Bucket Bucket // into which they are put

	// Task is the one whose value or artifact they are; zero: no task's. To forget it
	// (ForgetTask) deletes what was last announced for it and nothing refers to: what a
	// step put that failed, or that was killed.
	Task task.ID
}

// Bucket names a bucket. The zero Bucket is one that cannot be told from others.
type Bucket struct {
	ID    string `json:"id"`    // "": it has none yet
	Place string `json:"place"` // for people: where it is
}

// Uploaded answers an Upload.
type Uploaded struct {
	Blob   task.Blob // with the ID of the one that has these bytes
	Stored bool      // something refers to it, so its bytes are there: they need not be put again
}

// NewArtifact is an artifact about to be recorded with its step.
type NewArtifact struct {
	ID          task.ID
	Name        string
	ContentType string
	Blob        task.Blob
	TTL         time.Duration // by the store's clock, from now on; 0: none

	// Link is a task.Link in place of Blob: the bytes are elsewhere.
	Link json.RawMessage
}

// CollectBlobs asks Collect which blobs are to be deleted. It forgets artifacts whose
// time has passed and whose task has ended, then claims the blobs to which nothing
// refers: those that were referred to, at once, the others after Pending. What it has
// claimed nothing can refer to any more. The answer names what was claimed and not
// reported as deleted, by any caller: after a crash the bytes are deleted once more. It
// is right with any number of collectors at once, and moves BlobBite rows of each kind
// at most.
type CollectBlobs struct {
	Pending time.Duration // how long ago a blob was announced that nothing referred to since; DefaultPending
	Deleted []task.ID     // what an earlier answer named, and whose bytes are deleted now; at most BlobBite
	Bucket  Bucket        // from which they are deleted; one that is not that of the namespace: ErrOtherBucket
}

// DefaultPending is how long an upload may take.
const DefaultPending = 24 * time.Hour

// BlobBite is how many blobs, and how many artifacts, one call moves at most.
const BlobBite = 300

// CollectedBlobs answers CollectBlobs.
type CollectedBlobs struct {
	Delete  []task.Blob // the caller deletes the bytes, and says so with its next call
	Expired int         // artifacts that were forgotten
	More    bool        // there may be more: ask again
}

// BlobRow is a blob as the store knows it.
type BlobRow struct {
	task.Blob
	State task.BlobState
}

// BlobUse is a blob with what refers to it.
type BlobUse struct {
	BlobRow
	Refs    int           // references; equal values of one kind in one task are one
	Expired int           // of these: artifacts whose time has passed and whose task has ended
	Unused  time.Duration // of a pending one: how long ago it was announced last; UsedBefore: it was referred to since
}

// UsedBefore is the Unused of a blob that was referred to: nothing is about to use it.
const UsedBefore = time.Duration(math.MaxInt64)

// Collectable reports whether a collector would delete it that takes uploads which were
// not used for a time for those of processes that died.
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
	ID    task.ID // only this one, whatever the rest says; see BlobOf
	After task.ID // those whose IDs come after this one
	Limit int     // at most so many; 0: none
}

// BlobOf reads one blob; ErrNotFound.
func BlobOf(ctx context.Context, d Data, ns string, id task.ID) (BlobUse, error) {
	if !id.IsZero() {
		if list, err := d.Blobs(ctx, ns, BlobFilter{ID: id}); err != nil || len(list) > 0 {
			return append(list, BlobUse{})[0], err
		}
	}
	return BlobUse{}, fmt.Errorf("blob %s: %w", id, ErrNotFound)
}
