package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/blob/s3"
	"github.com/goweaver/weaver/blob/zstd"
	"github.com/goweaver/weaver/internal/capsule"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
)

const bucketForms = "Write --bucket dir:PATH, for example --bucket dir:blobs, or --bucket s3://BUCKET/PREFIX?endpoint=https://HOST, " +
	"or --bucket none, or set WEAVER_BUCKET."

// bucketName returns the folder named by --bucket, the name of an S3 bucket as s3://BUCKET/PREFIX, or "" for no bucket.
// The default is the folder next to the store, where workers keep blobs by default.
func (s *session) bucketName() (string, error) {
	given := s.flags.Bucket
	scheme, rest, found := strings.Cut(given, ":")
	switch {
	case given == "":
		p, err := placeOf(s.flags.Store)
		if err != nil {
			return "", nil // opening the store reports the error
		}
		return p.blobs(), nil
	case given == "none":
		return "", nil
	case !found && harmless(given):
		return "", badInput("Did you mean --bucket dir:"+given+"?", "--bucket %q: not a bucket URL", given)
	case found && scheme == "s3":
		b, err := s.remoteBucket()
		if err != nil {
			return "", err
		}
		return b.String(), nil
	case !found || scheme != "dir":
		return "", badInput(bucketForms, "--bucket %q: unknown kind of bucket", redact(given))
	case rest == "":
		return "", badInput(bucketForms, "--bucket %q names no folder", given)
	case strings.HasPrefix(rest, "//"):
		return "", badInput(bucketForms, "--bucket %q: the path follows the colon, without //", redact(given))
	}
	return rest, nil
}

// hasBucket returns the name of the bucket, or an error if there is none.
func (s *session) hasBucket() (string, error) {
	name, err := s.bucketName()
	if err == nil && (name == "" || s.remote == nil && !isFolder(name)) {
		err = s.noBucket()
	}
	return name, err
}

// remote is the S3 bucket of --bucket.
type remote struct {
	*s3.Bucket
	checked bool
	away    error // of the check: the bucket cannot be used for now

	mu    sync.Mutex // of the readiness check
	asked time.Time
	ok    bool
}

// Check implements blob.Checker. session.bucket has checked the bucket already, if the verb needs it.
func (*remote) Check() error { return nil }

// remoteBucket returns the S3 bucket. It sends no request.
func (s *session) remoteBucket() (*remote, error) {
	if s.remote == nil {
		b, err := s3.Open(s.flags.Bucket, zstd.Codec())
		if err != nil {
			return nil, badInput(bucketForms, "--bucket (WEAVER_BUCKET): %w", err)
		}
		s.remote = &remote{Bucket: b}
	}
	return s.remote, nil
}

// bucket returns the bucket for large values and artifacts, or nil. Verbs that store or run tasks (work) create the
// default folder next to the store, and refuse a bucket that cannot work; one that is away for now they use later. Other
// verbs use the folder only if it exists: another program may keep its blobs in another bucket.
func (s *session) bucket(work bool) (blob.Bucket, error) {
	name, err := s.bucketName()
	if err != nil || name == "" {
		return nil, err
	}
	if r := s.remote; r != nil {
		if work && !r.checked {
			r.checked = true
			if err := r.Bucket.Check(); errors.Is(err, blob.ErrUnavailable) {
				r.away = err
			} else if err != nil {
				return nil, badInput("", "--bucket (WEAVER_BUCKET): %w", err)
			}
		}
		return r, nil
	}
	if s.flags.Bucket == "" && !work {
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	b := blob.Dir(name, zstd.Codec())
	if s.flags.Bucket == "" {
		if p, err := placeOf(s.flags.Store); err == nil {
			b = b.OwnedAs(p.file())
		}
	}
	if err := b.Check(); err != nil {
		return nil, badInput(bucketForms, "--bucket (WEAVER_BUCKET): %w", err)
	}
	return b, nil
}

// bucketAway reports whether the S3 bucket could not be used when the verb began, and warns then.
func (s *session) bucketAway() bool {
	if s.remote == nil || s.remote.away == nil {
		return false
	}
	fmt.Fprintf(s.errs, "%s: warning: large values and artifacts cannot be stored or read for now: %s\n", s.app.Name, text.Printable(s.remote.away.Error()))
	return true
}

// Limits of readiness checks of the bucket: everybody may ask for one.
const (
	bucketLimit = 2 * time.Second
	bucketEvery = 10 * time.Second
)

// ready is the readiness check of the bucket. Everybody sees its error, so it has no name.
func (r *remote) ready(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.asked) >= bucketEvery {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bucketLimit)
		defer cancel()
		r.ok = r.Ping(ctx) == nil
		r.asked = time.Now()
	}
	if !r.ok {
		return errors.New("the bucket cannot be used, so tasks with large values and artifacts wait; doctor says why")
	}
	return nil
}

// newClient returns a client of an open store, with the bucket and the keys. work is true if the caller stores or
// runs tasks.
func (s *session) newClient(st store.Store, work bool) (*weaver.Client, error) {
	bucket, err := s.bucketOf(st, work)
	if err != nil {
		return nil, err
	}
	codec, err := s.codec()
	if err != nil {
		return nil, err
	}
	transport, err := s.delivery()
	if err != nil {
		return nil, err
	}
	cfg := weaver.ClientConfig{Namespace: s.flags.Namespace, Bucket: bucket, Codec: codec, Delivery: transport}
	if !work { // enqueuing verbs check inputs themselves; a server uses the types that workers announced
		cfg.Handlers = slices.Collect(maps.Values(s.types()))
	}
	c, err := weaver.NewClient(st, cfg)
	if err != nil {
		return nil, badInput("", "--namespace: %w", err)
	}
	return c, nil
}

// bucketOf is bucket for an open store. A capsule has the bytes of its artifacts itself.
func (s *session) bucketOf(st store.Store, work bool) (blob.Bucket, error) {
	if c := capsuleOf(st); c != nil {
		return capsule.Bucket(c), nil
	}
	return s.bucket(work)
}
