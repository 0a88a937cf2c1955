// Package blob is the port for bytes that are too large for a row of the store:
// long inputs, outputs and step values, and the artifacts that handlers keep.
//
// A Bucket keeps streams of bytes under keys. What a key means, whether anything
// still needs it, and when it goes, is known to the store alone: a Bucket has no
// times to live and no references. Key makes the keys that Weaver uses; each is used
// for one content and never again for another, so that no reader sees a change.
//
// Dir keeps the bytes in files of a folder, NewMemory in memory. Both write them in
// the format of NewWriter, which checks them when they are read and names the
// Codecs that they went through, so that compressed and plain bytes live side by
// side. Package blobtest has what every Bucket must do.
package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

var (
	// ErrNotFound: nothing is stored under the key.
	ErrNotFound = errors.New("blob not found")
	// ErrCorrupt: the stored bytes are not those that were put.
	ErrCorrupt = errors.New("the stored bytes have changed")
	// ErrKey: no blob can have this key.
	ErrKey = errors.New("not a key of a blob")
	// ErrCodec: the bytes went through a codec that the bucket was opened without.
	ErrCodec = errors.New("a codec is missing")
	// ErrFull: no space is left for the bytes.
	ErrFull = errors.New("no space is left for the bucket")
)

// Bucket keeps bytes under keys. All methods are safe for concurrent use, also by
// several processes.
type Bucket interface {
	// Put stores what r gives until io.EOF under the key, and returns when it is
	// durable. It reads r as a stream and holds a bounded part of it in memory. When
	// it returns an error, which may be that of r or of ctx, nothing is to be seen
	// under a key that was free. A key that has bytes gets the new ones, at once: a
	// reader sees the old or the new ones, whole. Errors: ErrKey, ErrFull.
	Put(ctx context.Context, key string, r io.Reader) error

	// Get returns the bytes of a key as a stream, which the caller closes. The Read
	// that comes to their end returns ErrCorrupt instead of io.EOF if they are not
	// those that were put; so nothing may be relied on before io.EOF. A stream that is
	// open when its key is deleted or put again gives the bytes that it began with, or
	// an error. Errors: ErrKey, ErrNotFound, ErrCorrupt, ErrCodec; its Reads also those of ctx.
	Get(ctx context.Context, key string) (io.ReadCloser, error)

	// Delete removes the bytes of a key. A key without bytes is no error.
	Delete(ctx context.Context, key string) error

	// List calls each with what is stored under keys that begin with prefix, in no
	// particular order, until it returns false. What is put or deleted meanwhile may
	// be left out.
	List(ctx context.Context, prefix string, each func(Info) bool) error
}

// Checker is implemented by a Bucket that can tell, when a program starts, that it
// cannot be used.
type Checker interface {
	// Check returns what is wrong with how the Bucket was made, and what to do. It
	// changes nothing.
	Check() error
}

// Sweeper is implemented by a Bucket in which a Put whose process died leaves
// something that List does not show.
type Sweeper interface {
	// Sweep removes what was not changed for the time, and returns how many that were.
	Sweep(ctx context.Context, unchanged time.Duration) (removed int, err error)
}

// Info describes stored bytes.
type Info struct {
	Key      string
	Stored   int64     // bytes that are taken in the bucket
	Modified time.Time // when they were put, by the clock of the bucket
}

// maxKey is how long a key may be, in bytes.
const maxKey = 512

// CheckKey reports what keeps a text from being a key: ErrKey. A key has parts,
// separated by slashes, of the letters a to z, digits, '-', '_' and '.', none of which
// begins with a '.'.
func CheckKey(key string) error {
	if key == "" || len(key) > maxKey {
		return fmt.Errorf("%w: %.40q has %d bytes, want 1 to %d", ErrKey, key, len(key), maxKey)
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || part[0] == '.' {
			return fmt.Errorf("%w: %q: a part between slashes is empty or begins with a dot", ErrKey, key)
		}
		for i := range len(part) {
			if c := part[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.') {
				return fmt.Errorf("%w: %q: only a to z, 0 to 9, '-', '_' and '.' may stand between slashes", ErrKey, key)
			}
		}
	}
	return nil
}

// Key returns the key of bytes in a namespace, by their SHA-256 in hex and the ID that
// the store gave them: equal bytes that come again after they were deleted have
// another key.
func Key(namespace, sha256Hex, id string) string {
	folder := namespace
	if strings.Contains(folder, "/") || len(folder) > 64 || CheckKey(folder) != nil {
		sum := sha256.Sum256([]byte(namespace))
		folder = "ns-" + hex.EncodeToString(sum[:16])
	}
	return folder + "/" + sha256Hex + "-" + strings.ToLower(id)
}
