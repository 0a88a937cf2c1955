package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// Upload announces bytes that are about to be put into the bucket.
type Upload struct {
	ID     task.ID // new: of the blob, unless the store knows these bytes
	SHA256 string  // of the bytes, in hex
	Size   int64
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
}

// CollectBlobs asks which blobs are to be deleted.
type CollectBlobs struct {
	Pending time.Duration // how long ago a blob was announced that nothing referred to since; DefaultPending
	Deleted []task.ID     // what an earlier answer named, and whose bytes are deleted now; at most BlobBite
}

// DefaultPending is how long an upload may take.
const DefaultPending = 24 * time.Hour

// BlobBite is how many blobs, and how many artifacts, one CollectBlobs moves at most.
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
