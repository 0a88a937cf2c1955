package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Blob names bytes in a bucket: a value that is too long for a row of the store, or
// an artifact.
type Blob struct {
	ID     ID     `json:"id"`     // of these bytes in the bucket, for ever
	SHA256 string `json:"sha256"` // of the bytes, in hex
	Size   int64  `json:"size"`   // bytes
}

// blobMark begins a value that stands for a Blob. It is JSON, so that whatever shows
// rows can show it, and none that a program can hand in: a key that stands twice is
// refused.
const blobMark = `{"$weaver":"blob","$weaver":`

// Value returns what a row has in place of the bytes.
func (b Blob) Value() json.RawMessage {
	return fmt.Appendf(nil, `%s{"id":%q,"sha256":%q,"size":%d}}`, blobMark, b.ID, b.SHA256, b.Size)
}

// BlobOf returns the blob that a value stands for; false: it is the value itself.
func BlobOf(value json.RawMessage) (Blob, bool) {
	rest, found := bytes.CutPrefix(value, []byte(blobMark))
	if !found {
		return Blob{}, false
	}
	var b Blob
	err := json.Unmarshal(bytes.TrimSuffix(rest, []byte("}")), &b)
	return b, err == nil
}

// Artifact is a blob that a handler kept under a name, or a link.
type Artifact struct {
	ID          ID        `json:"artifact_id"`
	TaskID      ID        `json:"task_id"`
	Step        string    `json:"step"` // with which it was recorded
	AttemptNo   int       `json:"attempt_no"`
	Name        string    `json:"name"`
	ContentType string    `json:"content_type,omitempty"`
	Blob        Blob      `json:"blob,omitzero"` // none of a link
	CreatedAt   time.Time `json:"created_at"`
	ExpiresAt   time.Time `json:"expires_at,omitzero"` // once its task has ended it goes then; zero: it stays as long as its task

	LinkValue json.RawMessage `json:"link,omitempty"` // of a link (Link): as a row has it, which may be sealed
}

// BlobState says what is known of the bytes of a blob.
type BlobState string

// A blob is announced, then referred to, and at last deleted.
const (
	BlobPending  BlobState = "pending"  // nothing refers to it (any more); its bytes may be incomplete
	BlobLive     BlobState = "live"     // something refers to it
	BlobDeleting BlobState = "deleting" // nothing can refer to it again; its bytes may be gone
)
