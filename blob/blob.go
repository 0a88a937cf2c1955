// Package blob is the port for bytes that are too large for a row of the store: long inputs, outputs and step values,
// and the artifacts that handlers keep.
//
// A Bucket stores streams of bytes under keys. Only the store knows the meaning of a key, its references and its
// lifetime. Key returns the keys that Weaver uses. Each key is used for one content only, so that no reader sees a
// change.
//
// Dir keeps the bytes in files of a folder, NewMemory in memory. Both use the format of Encode, which checks the
// bytes on reading and records their Codecs, so that compressed and plain bytes can coexist. Package blobtest is the
// conformance suite for Buckets.
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
	// ErrCorrupt: the stored bytes differ from the bytes that were put.
	ErrCorrupt = errors.New("the stored bytes have changed")
	// ErrKey: the key is not valid.
	ErrKey = errors.New("not a key of a blob")
	// ErrCodec: the bytes went through a codec that the bucket was opened without.
	ErrCodec = errors.New("a codec is missing")
	// ErrNoBucket: a value or an artifact is in a bucket, and none is configured.
	ErrNoBucket = errors.New("no bucket is configured: set Config.Bucket (ClientConfig.Bucket; for a command --bucket) to the one that the other programs of this store use")
	// ErrUnavailable: the bucket cannot be reached, or refuses all requests for now.
	ErrUnavailable = errors.New("the bucket cannot be used for now")
	// ErrFull: no space is left for the bytes.
	ErrFull = errors.New("no space is left for the bucket")
)

// Bucket stores bytes under keys. All methods are safe for concurrent use, also by several processes.
type Bucket interface {
	// Put stores the content of r until io.EOF under the key, and returns when it is durable. It reads r as a stream
	// and holds a bounded part of it in memory. When it returns an error, which may be that of r or of ctx, a new key
	// does not exist. The bytes of an existing key are replaced atomically: a reader sees the old or the new bytes,
	// complete. Errors: ErrKey, ErrFull.
	Put(ctx context.Context, key string, r io.Reader) error

	// Get returns the bytes of a key as a stream, which the caller closes. The final Read returns ErrCorrupt instead
	// of io.EOF if the bytes differ from those that were put, so the content is not verified before io.EOF. If the
	// key of an open stream is deleted or put again, the stream returns its original bytes or an error. Errors:
	// ErrKey, ErrNotFound, ErrCorrupt, ErrCodec; its Reads also return those of ctx.
	Get(ctx context.Context, key string) (io.ReadCloser, error)

	// Delete removes the bytes of a key. A key without bytes is not an error.
	Delete(ctx context.Context, key string) error

	// List calls each for every key that begins with prefix, in no particular order, until each returns false. It may
	// omit keys that are put or deleted during the call.
	List(ctx context.Context, prefix string, each func(Info) bool) error
}

// Checker is implemented by a Bucket that can detect at program start that it is unusable.
type Checker interface {
	// Check returns an error if the Bucket was made incorrectly, with a hint for the fix, or ErrUnavailable if it may be
	// usable later. It changes nothing.
	Check() error
}

// Sweeper is implemented by a Bucket that needs a cleanup after a process died during a Put. List does not show the
// remains.
type Sweeper interface {
	// Sweep removes remains that were unchanged for the given time, and returns their number.
	Sweep(ctx context.Context, unchanged time.Duration) (removed int, err error)
}

// Info describes stored bytes.
type Info struct {
	Key      string
	Stored   int64     // bytes used in the bucket
	Modified time.Time // time of the Put, by the clock of the bucket
}

// maxKey is the maximum length of a key, in bytes.
const maxKey = 512

// CheckKey returns ErrKey if a text is not a valid key. A key consists of parts separated by slashes. Each part
// contains the letters a to z, digits, '-', '_' and '.', and does not begin with a '.'.
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

// Key returns the key of bytes in a namespace, from their SHA-256 in hex and the ID assigned by the store. Equal
// bytes that are stored again after their deletion have another key.
func Key(namespace, sha256Hex, id string) string {
	folder := namespace
	if strings.Contains(folder, "/") || len(folder) > 64 || CheckKey(folder) != nil {
		sum := sha256.Sum256([]byte(namespace))
		folder = "ns-" + hex.EncodeToString(sum[:16])
	}
	return folder + "/" + sha256Hex + "-" + strings.ToLower(id)
}
