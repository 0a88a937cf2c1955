package storetest

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var (
	oneBucket   = store.Bucket{ID: "one-1234567890123456", Place: "/srv/one"}
	otherBucket = store.Bucket{ID: "two-1234567890123456", Place: "/srv/two"}
	noID        = store.Bucket{Place: "/srv/new"}
)

// uploadTo announces bytes in a bucket.
func (e *env) uploadTo(b store.Bucket, sum string) error {
	e.Helper()
	got, err := e.s.Operate(e.Context(), e.ns, store.Upload{ID: e.newID(), SHA256: sum, Size: 1, Bucket: b})
	e.require(err == nil && len(got) == 1, "Upload: %v", err)
	return got[0].Err
}

func (e *env) collectFrom(b store.Bucket) error {
	_, err := e.s.Collect(e.Context(), e.ns, store.CollectRequest{Blobs: &store.CollectBlobs{Pending: time.Hour, Bucket: b}})
	return err
}

var bucketCases = []testCase{
	{"the bucket that is used first has the blobs, and another one is refused", func(e *env) {
		for _, b := range []store.Bucket{{}, noID, oneBucket} { // the store knows no bucket yet
			e.wantErr("a collect", e.collectFrom(b), nil)
			e.operate(store.AcceptBucket{Bucket: b, Check: true})
		}
		e.wantErr("an upload to no bucket in particular", e.uploadTo(store.Bucket{}, "a"), nil)
		e.wantErr("the first upload", e.uploadTo(oneBucket, "b"), nil)
		e.wantErr("the next one", e.uploadTo(oneBucket, "c"), nil)
		e.unchanged("what names another bucket", func() {
			for _, b := range []store.Bucket{otherBucket, noID} {
				e.wantErr("an upload", e.uploadTo(b, "d"), store.ErrOtherBucket)
				e.wantErr("a collect", e.collectFrom(b), store.ErrOtherBucket)
				e.commandRefused(store.AcceptBucket{Bucket: b, Check: true}, store.ErrOtherBucket)
			}
		})
		e.operate(store.AcceptBucket{Bucket: oneBucket, Check: true})
		elsewhere := oneBucket
		elsewhere.Place = "/mnt/one"
		e.wantErr("the same one at another place", e.uploadTo(elsewhere, "e"), nil)
		e.wantErr("a collect", e.collectFrom(elsewhere), nil)
		other := e.in(otherNamespace)
		e.wantErr("an upload of another namespace", other.uploadTo(otherBucket, "f"), nil)
	}},
	{"another bucket is accepted, on record", func(e *env) {
		e.wantErr("the first upload", e.uploadTo(oneBucket, "a"), nil)
		e.operate(store.AcceptBucket{Audit: admin, Bucket: otherBucket})
		e.wantErr("an upload", e.uploadTo(otherBucket, "b"), nil)
		e.wantErr("an upload to the old one", e.uploadTo(oneBucket, "c"), store.ErrOtherBucket)
		audit := e.snap().Audit
		e.equal("the audit", [2]string{audit[len(audit)-1].Verb, audit[len(audit)-1].Actor}, [2]string{"accept_bucket", admin.By})
		e.equal("the blob", e.snap().Blobs[0].State, task.BlobPending)
	}},
}

// upload announces the bytes of a text.
func (e *env) upload(text string) store.Uploaded {
	e.Helper()
	return e.uploadFor(task.ID{}, text)
}

// uploadFor is upload for a task.
func (e *env) uploadFor(id task.ID, text string) store.Uploaded {
	e.Helper()
	sum := sha256.Sum256([]byte(text))
	got, err := e.s.Operate(e.Context(), e.ns, store.Upload{ID: e.newID(), SHA256: hex.EncodeToString(sum[:]), Size: int64(len(text)), Task: id})
	e.require(err == nil && len(got) == 1, "Upload: %v, %d results", err, len(got))
	return got[0].Uploaded
}

// blob is upload for cases that need only the blob.
func (e *env) blob(text string) task.Blob {
	e.Helper()
	return e.upload(text).Blob
}
