package cli

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/blob/zstd"
	"github.com/goweaver/weaver/store"
)

const bucketForms = "Write --bucket dir:PATH, for example --bucket dir:blobs, or --bucket none, or set WEAVER_BUCKET."

// bucketFolder returns the folder named by --bucket, or "" for no bucket. The default is the folder next to the store,
// where workers keep blobs by default.
func (s *session) bucketFolder() (string, error) {
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
	case !found || scheme != "dir":
		return "", badInput(bucketForms, "--bucket %q: unknown kind of bucket", redact(given))
	case rest == "":
		return "", badInput(bucketForms, "--bucket %q names no folder", given)
	case strings.HasPrefix(rest, "//"):
		return "", badInput(bucketForms, "--bucket %q: the path follows the colon, without //", redact(given))
	}
	return rest, nil
}

// bucket returns the bucket for large values and artifacts, or nil. Verbs that store or run tasks (work) create the
// default folder next to the store. Other verbs use it only if it exists: another program may keep its blobs in
// another bucket.
func (s *session) bucket(work bool) (blob.Bucket, error) {
	folder, err := s.bucketFolder()
	if err != nil || folder == "" {
		return nil, err
	}
	if s.flags.Bucket == "" && !work {
		if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	b := blob.Dir(folder, zstd.Codec())
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

// newClient returns a client of an open store, with the bucket and the keys. work is true if the caller stores or
// runs tasks.
func (s *session) newClient(st store.Store, work bool) (*weaver.Client, error) {
	bucket, err := s.bucket(work)
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
