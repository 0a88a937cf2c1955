package weaver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/seal"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// ArtifactOption is an option of PutArtifact and LinkArtifact.
type ArtifactOption func(*store.NewArtifact) error

// TTL lets an artifact expire after d, by the store's clock, but not before its task and job have
// ended, and the tasks that need it or called it. By default an artifact stays as long as its task.
func TTL(d time.Duration) ArtifactOption {
	return func(a *store.NewArtifact) error {
		if d <= 0 {
			return fmt.Errorf("TTL(%s): the time has passed already: want more than 0", d)
		}
		a.TTL = d
		return nil
	}
}

// ContentType sets the media type of the bytes: "text/csv".
func ContentType(name string) ArtifactOption {
	return func(a *store.NewArtifact) error {
		if len(name) > 255 || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
			return fmt.Errorf("ContentType(%.40q): want a media type of at most 255 bytes", name)
		}
		a.ContentType = name
		return nil
	}
}

// maxArtifactName is the maximum length of an artifact name in bytes.
const maxArtifactName = 240

func checkArtifactName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: an artifact needs a name", ErrInvalidOption)
	case len(name) > maxArtifactName:
		return fmt.Errorf("%w: the artifact name %.40q… has %d bytes, at most %d are allowed", ErrInvalidOption, name, len(name), maxArtifactName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7F || r == '\\' }):
		return fmt.Errorf("%w: the artifact name %q must be UTF-8 without control characters and backslashes", ErrInvalidOption, name)
	case name[0] == '/' || path.Clean(name) != name || name == "." || name == ".." || strings.HasPrefix(name, "../"):
		return fmt.Errorf("%w: the artifact name %q must be a path like reports/a.csv: no / at its ends, no empty, . or .. part", ErrInvalidOption, name)
	}
	return nil
}

// PutArtifact stores the bytes of r in the bucket as a named artifact of the task, as a stream. Inside
// a step it is part of the step: the artifact exists once the step is recorded, and its reference
// belongs into the step's value. Outside a step it is a step of its own: a replay returns the recorded
// reference and does not read r. An io.ReadSeeker is read twice; any other r goes through a temporary
// file. Equal bytes are stored once. An invalid name or option fails the task. A worker without a
// Config.Bucket leaves the task to others ([NotHere]). Errors: ErrNoTask, those of r, those of Step.
func PutArtifact(ctx context.Context, name string, r io.Reader, opts ...ArtifactOption) (ArtifactRef, error) {
	a, err := engine.From(ctx)
	if err != nil {
		return ArtifactRef{}, fmt.Errorf("put artifact %q: %w", name, err)
	}
	n, err := newArtifact(name, opts)
	if err == nil && r == nil {
		err = fmt.Errorf("%w: artifact %q: the reader is nil", ErrInvalidOption, name)
	}
	if err != nil {
		return ArtifactRef{}, Permanent(err)
	}
	put := func(ctx context.Context) (ArtifactRef, error) {
		got, err := a.PutArtifact(ctx, n, r)
		return ArtifactRef{ID: got.ID, Name: got.Name, ContentType: got.ContentType, Blob: got.Blob}, err
	}
	if engine.InStep(ctx) != "" {
		return put(ctx)
	}
	return Step(ctx, "artifact "+name, put)
}

// newArtifact builds an artifact from a name and options.
func newArtifact(name string, opts []ArtifactOption) (store.NewArtifact, error) {
	n := store.NewArtifact{Name: name}
	err := checkArtifactName(name)
	for _, o := range opts {
		if o == nil {
			o = func(*store.NewArtifact) error { return errors.New("an option is nil") }
		}
		if oerr := o(&n); err == nil && oerr != nil {
			err = fmt.Errorf("%w: artifact %q: %w", ErrInvalidOption, name, oerr)
		}
	}
	return n, err
}

// LinkArtifact stores a link to bytes elsewhere as a named artifact of the task: it needs no bucket
// and fetches nothing. Otherwise it works like PutArtifact: the artifact is listed, may have a TTL, is
// part of the step around it or a step of its own, and is deleted with its task. The URL is masked
// wherever a value is shown; lists of artifacts show it without user, query and fragment. An invalid
// link fails the task. Errors: ErrNoTask, those of Step.
func LinkArtifact(ctx context.Context, name string, to task.Link, opts ...ArtifactOption) (ArtifactRef, error) {
	a, err := engine.From(ctx)
	if err != nil {
		return ArtifactRef{}, fmt.Errorf("link artifact %q: %w", name, err)
	}
	n, err := newArtifact(name, opts)
	if err == nil {
		if err = to.Check(); err != nil {
			err = fmt.Errorf("%w: artifact %q: %w", ErrInvalidOption, name, err)
		}
	}
	if err != nil {
		return ArtifactRef{}, Permanent(err)
	}
	n.Link = to.Value()
	link := func(ctx context.Context) (ArtifactRef, error) {
		got, err := a.KeepLink(ctx, n)
		return ArtifactRef{ID: got.ID, Name: got.Name, ContentType: got.ContentType, Link: to}, err
	}
	if engine.InStep(ctx) != "" {
		return link(ctx)
	}
	return Step(ctx, "artifact "+name, link)
}

// OpenArtifact returns, inside a handler, the bytes of an artifact, of this task or
// another, as a stream that the caller closes. Its last Read returns blob.ErrCorrupt
// instead of io.EOF if the bytes have changed. An artifact whose bytes are missing or
// have changed, and a worker without a bucket, block the task that returns the error.
// A link is not followed: ErrInvalidOption.
// Errors: ErrNoTask, ErrInvalidOption, blob.ErrNotFound, blob.ErrCorrupt, blob.ErrNoBucket.
func OpenArtifact(ctx context.Context, ref ArtifactRef) (io.ReadCloser, error) {
	a, err := engine.From(ctx)
	if err != nil {
		return nil, fmt.Errorf("open artifact %q: %w", ref.Name, err)
	}
	if err := checkRef(ref); err != nil {
		return nil, Permanent(err)
	}
	return a.OpenArtifact(ctx, ref.Name, ref.Blob)
}

// checkRef refuses a reference that PutArtifact did not return.
func checkRef(ref ArtifactRef) error {
	switch sum, err := hex.DecodeString(seal.Hash(ref.Blob)); {
	case ref == ArtifactRef{}:
		return fmt.Errorf("open artifact: %w: the ArtifactRef is empty: take the one that PutArtifact returned, or task.Artifact.Ref", ErrInvalidOption)
	case ref.Link != task.Link{}:
		return fmt.Errorf("open artifact %q: %w: it is a link, and its bytes are elsewhere: fetch them from its Link.URL", ref.Name, ErrInvalidOption)
	case ref.Blob.ID.IsZero() || err != nil || len(sum) != sha256.Size || ref.Blob.Size < 0:
		return fmt.Errorf("open artifact %q: %w: the ArtifactRef has no blob, or one with another form than PutArtifact gives it: %+v", ref.Name, ErrInvalidOption, ref.Blob)
	}
	return nil
}

// Artifacts lists the artifacts of a task, oldest first. Error: ErrNotFound.
func (c *Client) Artifacts(ctx context.Context, id TaskID) ([]task.Artifact, error) {
	h, err := c.History(ctx, id)
	return h.Artifacts, err
}

// OpenArtifact returns the bytes of an artifact as a stream that the caller closes; see the function
// OpenArtifact. Errors: ErrInvalidOption, ErrNoBucket, blob.ErrNotFound, blob.ErrCorrupt.
func (c *Client) OpenArtifact(ctx context.Context, ref ArtifactRef) (io.ReadCloser, error) {
	if err := checkRef(ref); err != nil {
		return nil, err
	}
	r, err := c.values.Open(ctx, ref.Blob)
	if err != nil {
		return nil, fmt.Errorf("open artifact %q: %w", ref.Name, err)
	}
	return r, nil
}

// CollectArtifacts deletes unneeded blobs from the bucket: expired artifacts of finished tasks, values
// of deleted tasks, and uploads unused for a day. It returns the number of deleted blobs. It also
// removes, without counting them, partial uploads of dead processes. A running engine with a bucket
// does the same: blobs every minute, partial uploads every hour. Error: ErrNoBucket.
//
// unusedFor is the minimum age of an unused upload; default a day. If a deleted upload was still in
// progress, its task uploads it again.
func (c *Client) CollectArtifacts(ctx context.Context, unusedFor ...time.Duration) (deleted int, err error) {
	unused := store.DefaultPending
	for _, d := range unusedFor {
		unused = max(d, 1)
	}
	if deleted, err = c.values.Collect(ctx, unused); err == nil {
		_, err = c.values.Sweep(ctx, unused)
	}
	return deleted, err
}

// AcceptBucket binds the large values and artifacts of the namespace to the Config's bucket, after
// they were moved or copied there. A store remembers the first bucket used if the bucket has an ID
// (blob.Identified: blob.Dir keeps an ID in the folder). A program with a different bucket does not
// run, and neither uploads nor collects (store.ErrOtherBucket). AcceptBucket returns the bucket's ID
// and location. Errors: ErrNoBucket; ErrInvalidOption if the bucket has no ID.
func (c *Client) AcceptBucket(ctx context.Context, opts ...OperateOption) (id, place string, err error) {
	var s operateSettings
	if err := s.apply(opts); err != nil {
		return "", "", fmt.Errorf("accept the bucket: %w", err)
	}
	b, err := c.values.AcceptBucket(ctx, s.audit)
	if err == nil && b.ID == "" {
		err = fmt.Errorf("%w: this kind of bucket has no ID that the store could remember", ErrInvalidOption)
	}
	if err != nil {
		return "", "", fmt.Errorf("accept the bucket: %w", err)
	}
	return b.ID, b.Place, nil
}

// CheckBucket returns store.ErrOtherBucket if the large values and artifacts of the namespace are in
// another bucket than the Config's. An engine checks this when it starts.
func (c *Client) CheckBucket(ctx context.Context) error { return c.values.CheckBucket(ctx) }

// loaded returns the value for a stored column, or the column itself if its blob cannot be read.
func (c *Client) loaded(ctx context.Context, value json.RawMessage) json.RawMessage {
	if whole, err := c.values.Load(ctx, value); err == nil {
		return whole
	}
	return value
}

// unloaded returns the error for a value that is still a blob reference or sealed.
func unloaded(what string, id TaskID, value json.RawMessage) error {
	if err := stillSealed(what, id, value); err != nil {
		return err
	}
	b, large := task.BlobOf(value)
	if !large {
		return nil
	}
	return fmt.Errorf("the %s of task %s (%d bytes) is kept in the bucket and was not read from there: set Bucket in the Config (ClientConfig) and use Get", what, id, b.Size)
}
