package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"time"

	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/internal/seal"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Values keeps bytes in the bucket that are too long for a row of the store. The order is always the same: the bytes
// are announced to the store (Upload), then put, and then referenced by the transaction that uses them. A crash in
// between leaves an unreferenced blob, which a collector deletes (Collect).
type Values struct {
	Store     store.Store
	Namespace string
	Bucket    blob.Bucket // nil: no bucket
	IDs       *task.IDs
	Limit     int          // the longest value that stays in its row, in bytes
	Sealer    *seal.Sealer // seals the bytes; nil: without a codec
}

// Most returns the maximum length of a value, in bytes.
func (v *Values) Most() int {
	if v.Bucket == nil {
		return v.Limit
	}
	return math.MaxInt
}

// Keep returns the stored form of a task's value: the value itself, or a reference to the blob with it.
func (v *Values) Keep(ctx context.Context, of task.ID, value json.RawMessage) (json.RawMessage, error) {
	if len(value) <= v.Limit || v.Bucket == nil {
		return value, nil
	}
	sum := sha256.Sum256(value)
	b, err := v.put(ctx, of, hex.EncodeToString(sum[:]), int64(len(value)), func() (io.Reader, error) { return bytes.NewReader(value), nil })
	if err != nil {
		return nil, err
	}
	return b.Value(), nil
}

// put announces bytes of a task and puts them, unless the bucket has them.
func (v *Values) put(ctx context.Context, of task.ID, sum string, size int64, open func() (io.Reader, error)) (task.Blob, error) {
	if v.Bucket == nil {
		return task.Blob{}, blob.ErrNoBucket
	}
	name := sum
	if v.Sealer != nil {
		var err error
		if name, err = v.Sealer.BlobName(sum); err != nil {
			return task.Blob{}, err
		}
	}
	in, err := v.identity(ctx, true)
	if err != nil {
		return task.Blob{}, err
	}
	got, err := v.upload(ctx, store.Upload{ID: v.IDs.New(), SHA256: name, Size: size, Bucket: in, Task: of})
	if err != nil {
		return task.Blob{}, fmt.Errorf("announce a blob: %w", err)
	}
	// Crash here: the blob is unreferenced; a collector forgets it.
	b := got.Blob
	if got.Stored && v.whole(ctx, b) {
		return b, nil
	}
	r, err := open()
	if err != nil {
		return task.Blob{}, err
	}
	// Crash after it: the same, and the collector deletes the bytes. Bytes that differ from the announced ones are
	// not put.
	plain := &checked{ReadCloser: io.NopCloser(r), of: task.Blob{ID: b.ID, SHA256: sum, Size: size}, sum: sha256.New(), differs: errChanged}
	if v.Sealer != nil {
		return b, v.Sealer.PutBlob(ctx, v.Bucket, v.key(b), b, plain)
	}
	return b, v.Bucket.Put(ctx, v.key(b), plain)
}

// identity returns the identity of the bucket, or the zero Bucket if it has no identity.
func (v *Values) identity(ctx context.Context, create bool) (b store.Bucket, err error) {
	i, ok := v.Bucket.(blob.Identified)
	if !ok {
		return b, nil
	}
	b.ID, b.Place, err = i.Identity(ctx, create)
	return b, err
}

// CheckBucket returns an error if the blobs of the namespace are in another bucket.
func (v *Values) CheckBucket(ctx context.Context) error {
	for try := 1; ; try++ {
		b, err := v.identity(ctx, false)
		if err != nil || b == (store.Bucket{}) {
			return err
		}
		got, err := v.Store.Operate(ctx, v.Namespace, store.AcceptBucket{Bucket: b, Check: true})
		if err != nil {
			return fmt.Errorf("check the bucket: %w", err)
		}
		// Another process may have made the bucket's ID and stored it between the two calls.
		if err = got[0].Err; b.ID != "" || try == 2 || !errors.Is(err, store.ErrOtherBucket) {
			return err
		}
	}
}

// AcceptBucket makes this bucket the bucket of the namespace's blobs.
func (v *Values) AcceptBucket(ctx context.Context, by store.Audit) (store.Bucket, error) {
	if v.Bucket == nil {
		return store.Bucket{}, blob.ErrNoBucket
	}
	b, err := v.identity(ctx, true)
	if err != nil || b == (store.Bucket{}) {
		return b, err
	}
	got, err := v.Store.Operate(ctx, v.Namespace, store.AcceptBucket{Audit: by, Bucket: b})
	if err == nil {
		err = got[0].Err
	}
	return b, err
}

var errChanged = errors.New("the source changed between the two reads: use a source that does not change")

// whole reports whether the bytes of a blob are in the bucket and undamaged; otherwise a caller with the bytes puts
// them again.
func (v *Values) whole(ctx context.Context, b task.Blob) bool {
	r, err := v.Open(ctx, b)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close()) == nil
}

// upload announces bytes. It retries while the store is unavailable for a moment: an outage must not lose a step's
// value.
func (v *Values) upload(ctx context.Context, up store.Upload) (store.Uploaded, error) {
	for try := 1; ; try++ {
		got, err := v.Store.Operate(ctx, v.Namespace, up)
		if err == nil {
			return got[0].Uploaded, got[0].Err
		}
		if try == keepTries || store.Refused(err) || ctx.Err() != nil {
			return store.Uploaded{}, err
		}
		wait(ctx, time.Duration(try)*100*time.Millisecond, nil)
	}
}

func (v *Values) key(b task.Blob) string { return blob.Key(v.Namespace, b.SHA256, b.ID.String()) }

// KeepInputs is Keep for the inputs of new tasks. It does not modify its argument.
func (v *Values) KeepInputs(ctx context.Context, tasks []task.New) ([]task.New, error) {
	if v.Bucket == nil {
		return tasks, nil
	}
	kept := tasks
	for i := range tasks {
		if len(tasks[i].Input) <= v.Limit {
			continue
		}
		input, err := v.Keep(ctx, tasks[i].ID, tasks[i].Input)
		if err != nil {
			return nil, fmt.Errorf("keep the input of %s in the bucket: %w", tasks[i].Type, err)
		}
		if &kept[0] == &tasks[0] {
			kept = append([]task.New(nil), tasks...)
		}
		kept[i].Input = input
	}
	return kept, nil
}

// keepTries is the maximum number of puts for one use: a collector may delete the bytes in between.
const keepTries = 3

// Enqueue stores a submission whose inputs may be long.
func (v *Values) Enqueue(ctx context.Context, sub store.Submission) (got []store.Enqueued, err error) {
	tasks := sub.Tasks
	for try := 1; ; try++ {
		if sub.Tasks, err = v.KeepInputs(ctx, tasks); err != nil {
			return nil, err
		}
		got, err = v.Store.Enqueue(ctx, v.Namespace, nil, sub)
		if v.Bucket == nil || try == keepTries || !errors.Is(err, store.ErrBlobGone) {
			return got, err
		}
	}
}

// Load returns the value for its stored form. A value that is still sealed could not be opened: the error says why.
func (v *Values) Load(ctx context.Context, value json.RawMessage) (json.RawMessage, error) {
	if err := seal.Failure(value); err != nil {
		return nil, err
	}
	b, large := task.BlobOf(value)
	if !large {
		return value, nil
	}
	r, err := v.Open(ctx, b)
	if err != nil {
		return nil, err
	}
	whole, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	return whole, nil
}

// Open returns the bytes of a blob as a stream. The final Read returns blob.ErrCorrupt if the bytes do not match the
// blob.
func (v *Values) Open(ctx context.Context, b task.Blob) (io.ReadCloser, error) {
	if v.Bucket == nil {
		return nil, fmt.Errorf("blob %v of %d bytes: %w", b.ID, b.Size, blob.ErrNoBucket)
	}
	r, err := v.Bucket.Get(ctx, v.key(b))
	if err == nil && seal.IsBlob(b) {
		r, err = v.Sealer.OpenBlob(ctx, v.Bucket, b, r)
	}
	if errors.Is(err, blob.ErrNotFound) {
		// An unmounted folder has no blobs, so the bucket's identity differs.
		if other := v.CheckBucket(ctx); errors.Is(other, store.ErrOtherBucket) {
			return nil, fmt.Errorf("blob %v of %d bytes: %w", b.ID, b.Size, other)
		}
	}
	if err != nil {
		return nil, err
	}
	return &checked{ReadCloser: r, of: b, sum: sha256.New(), differs: blob.ErrCorrupt}, nil
}

// checked compares the bytes of a blob with its hash and size. For a sealed blob, whose bytes were authenticated, it
// compares only the size.
type checked struct {
	io.ReadCloser
	of      task.Blob
	sum     hash.Hash
	size    int64
	differs error // set if they do not match
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.sum.Write(p[:n])
	c.size += int64(n)
	if errors.Is(err, io.EOF) && (c.size != c.of.Size || !seal.IsBlob(c.of) && hex.EncodeToString(c.sum.Sum(nil)) != c.of.SHA256) {
		return n, fmt.Errorf("blob %v: %w", c.of.ID, c.differs)
	}
	return n, err
}

// Stream puts the content of r for a task. It reads r twice: to hash it, and to put it. A reader that cannot be
// rewound is copied to a temporary file.
func (v *Values) Stream(ctx context.Context, of task.ID, r io.Reader) (b task.Blob, err error) {
	if v.Bucket == nil {
		return task.Blob{}, blob.ErrNoBucket
	}
	again, ok := r.(io.ReadSeeker)
	var start int64
	if ok {
		start, err = again.Seek(0, io.SeekCurrent)
		ok = err == nil
	}
	sum := sha256.New()
	into := io.Writer(sum)
	if !ok {
		f, err := os.CreateTemp("", "weaver-artifact-*")
		if err != nil {
			return task.Blob{}, err
		}
		gone := os.Remove(f.Name()) // if the system can delete an open file; otherwise at the end
		defer func() {
			if err = errors.Join(err, f.Close()); gone != nil {
				err = errors.Join(err, os.Remove(f.Name()))
			}
		}()
		again, start, into = f, 0, io.MultiWriter(sum, f)
	}
	size, err := io.Copy(into, r)
	if err != nil {
		return task.Blob{}, &sourceError{err}
	}
	return v.put(ctx, of, hex.EncodeToString(sum.Sum(nil)), size, func() (io.Reader, error) {
		_, err := again.Seek(start, io.SeekStart)
		return again, err
	})
}

// sourceError is an error of the source of an artifact or of the temporary folder: an error of the handler.
type sourceError struct{ error }

func (e *sourceError) Unwrap() error { return e.error }

// Collect deletes the bytes of unneeded blobs and forgets expired artifacts, until there is nothing more to do. An
// upload is unneeded if it was not used within the given time. It returns the number of deleted blobs.
func (v *Values) Collect(ctx context.Context, unused time.Duration) (deleted int, err error) {
	if v.Bucket == nil {
		return 0, blob.ErrNoBucket
	}
	from, err := v.identity(ctx, false)
	if err != nil {
		return 0, fmt.Errorf("collect blobs: %w", err)
	}
	req := store.CollectBlobs{Pending: unused, Bucket: from}
	for {
		res, err := v.Store.Collect(ctx, v.Namespace, store.CollectRequest{Blobs: &req})
		if err != nil {
			return deleted, fmt.Errorf("collect blobs: %w", err)
		}
		got := res.Blobs
		deleted += len(req.Deleted)
		if len(got.Delete) == 0 && !got.More {
			return deleted, nil
		}
		req.Deleted = nil
		for _, b := range got.Delete {
			// Crash here: the next call returns the same blobs again.
			if err := v.Bucket.Delete(ctx, v.key(b)); err != nil {
				return deleted, fmt.Errorf("collect blobs: %w", err)
			}
			req.Deleted = append(req.Deleted, b.ID)
		}
	}
}

// Sweep removes incomplete uploads of dead processes from the bucket, if the bucket can hold any.
func (v *Values) Sweep(ctx context.Context, unchanged time.Duration) (removed int, err error) {
	s, ok := v.Bucket.(blob.Sweeper)
	if !ok {
		return 0, nil
	}
	return s.Sweep(ctx, unchanged)
}

// Unreadable classifies an error of reading a value. Damaged and missing values block the task until a person has
// looked. Another worker may have a resource that this worker lacks, such as a key (NotHere). Other errors are engine
// errors, which are retried.
func Unreadable(what, step string, err error) error {
	lasting := errors.Is(err, codec.ErrChanged)
	for _, of := range []error{blob.ErrNotFound, blob.ErrCorrupt, blob.ErrKey} {
		lasting = lasting || errors.Is(err, of)
	}
	own := IsOwnTrouble(err)
	err = fmt.Errorf("the %s cannot be read: %w", what, err)
	switch {
	case own:
		return &Verdict{Kind: NotHere, Err: &KindError{Kind: task.KindWorker, Step: step, Err: err}}
	case lasting:
		return &Verdict{Kind: Blocked, Err: &KindError{Kind: task.KindDecode, Step: step, Err: err}}
	}
	return &KindError{Kind: task.KindInternal, Step: step, Err: err}
}
