package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Blob identifies bytes in a bucket: a value too long for a row of the store, or an artifact.
type Blob struct {
	ID     ID     `json:"id"`     // names these bytes in the bucket; never reused
	SHA256 string `json:"sha256"` // of the bytes, in hex
	Size   int64  `json:"size"`   // bytes
}

// blobMark begins a value that refers to a Blob. The mark is JSON, so any tool that shows rows can show it. It
// repeats a key, and inputs with a repeated key are refused, so no program can submit such a value.
const blobMark = `{"$weaver":"blob","$weaver":`

// Value returns the JSON that a row stores in place of the bytes.
func (b Blob) Value() json.RawMessage {
	return fmt.Appendf(nil, `%s{"id":%q,"sha256":%q,"size":%d}}`, blobMark, b.ID, b.SHA256, b.Size)
}

// BlobOf returns the blob that a value refers to, or false if the value is stored inline.
func BlobOf(value json.RawMessage) (Blob, bool) {
	rest, found := bytes.CutPrefix(value, []byte(blobMark))
	if !found {
		return Blob{}, false
	}
	var b Blob
	err := json.Unmarshal(bytes.TrimSuffix(rest, []byte("}")), &b)
	return b, err == nil
}

// Artifact is a named blob or link that a handler recorded.
type Artifact struct {
	ID          ID        `json:"artifact_id"`
	TaskID      ID        `json:"task_id"`
	Step        string    `json:"step"` // the step that recorded it
	AttemptNo   int       `json:"attempt_no"`
	Name        string    `json:"name"`
	ContentType string    `json:"content_type,omitempty"`
	Blob        Blob      `json:"blob,omitzero"` // zero for a link
	CreatedAt   time.Time `json:"created_at"`
	ExpiresAt   time.Time `json:"expires_at,omitzero"` // deletion time once its task has ended; zero: kept as long as its task

	LinkValue json.RawMessage `json:"link,omitempty"` // set for a link ([Artifact.Link]): the stored value, which may be sealed
}

// BlobState is the state of the bytes of a blob.
type BlobState string

// A blob is pending, then live, and finally deleting.
const (
	BlobPending  BlobState = "pending"  // unreferenced; its bytes may be incomplete
	BlobLive     BlobState = "live"     // referenced
	BlobDeleting BlobState = "deleting" // can no longer be referenced; its bytes may be gone
)

// ArtifactRef names an artifact. It may be part of an input, an output or a step's
// value, by which other tasks find it.
type ArtifactRef struct {
	ID          ID     `json:"artifact_id"`
	Name        string `json:"name"`
	ContentType string `json:"content_type,omitempty"`
	Blob        Blob   `json:"blob,omitzero"`
	Link        Link   `json:"link,omitzero"` // of LinkArtifact, in place of Blob
}

// Ref returns the reference by which a program opens the artifact.
func (a *Artifact) Ref() ArtifactRef {
	return ArtifactRef{ID: a.ID, Name: a.Name, ContentType: a.ContentType, Blob: a.Blob, Link: a.Link()}
}
