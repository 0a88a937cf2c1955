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

// bucketFolder returns the folder that --bucket names, "" for none. Without the flag it
// is the one beside the store, which is where workers keep bytes by default.
func (s *session) bucketFolder() (string, error) {
	given := s.flags.Bucket
	scheme, rest, found := strings.Cut(given, ":")
	switch {
	case given == "":
		p, err := placeOf(s.flags.Store)
		if err != nil {
			return "", nil // who opens the store says so
		}
		return p.blobs(), nil
	case given == "none":
		return "", nil
	case !found && harmless(given):
		return "", badInput("Did you mean --bucket dir:"+given+"?", "--bucket %q is no bucket: it does not say of which kind", given)
	case !found || scheme != "dir":
		return "", badInput(bucketForms, "--bucket %q: unknown kind of bucket", redact(given))
	case rest == "":
		return "", badInput(bucketForms, "--bucket %q names no folder", given)
	case strings.HasPrefix(rest, "//"):
		return "", badInput(bucketForms, "--bucket %q: the path follows the colon, without //", redact(given))
	}
	return rest, nil
}

// bucket returns what keeps large values and artifacts; nil: nothing does. The folder
// beside the store is used where tasks are stored or run, and elsewhere if it is there:
// another program may keep its bytes in another bucket.
func (s *session) bucket(work bool) (weaver.Bucket, error) {
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

// newClient returns a client of an open store, with the bucket and the keys. work: it
// stores tasks, or runs them.
func (s *session) newClient(st store.Store, work bool) (*weaver.Client, error) {
	bucket, err := s.bucket(work)
	if err != nil {
		return nil, err
	}
	codec, err := s.codec()
	if err != nil {
		return nil, err
	}
	cfg := weaver.ClientConfig{Namespace: s.flags.Namespace, Bucket: bucket, Codec: codec}
	if !work { // what enqueues checks inputs itself, and a server goes by what workers announced
		cfg.Handlers = slices.Collect(maps.Values(s.types()))
	}
	c, err := weaver.NewClient(st, cfg)
	if err != nil {
		return nil, badInput("", "--namespace: %w", err)
	}
	return c, nil
}
