package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/internal/seal"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// errNotRewrappable: the store cannot replace values, or there is no codec.
var errNotRewrappable = fmt.Errorf("%w: values can be sealed again by a client with a Codec, of a store that can replace values (store.CanRewriteValues)", errors.ErrUnsupported)

// Rewrap seals a page of stored values with the newest key. below is the store with the sealed values.
func (v *Values) Rewrap(ctx context.Context, below store.Store, after string, limit int) (seal.Rewrapped, error) {
	if v.Sealer == nil || !below.Capabilities().Has(store.CanRewriteValues) {
		return seal.Rewrapped{}, errNotRewrappable
	}
	return v.Sealer.Rewrap(ctx, below, after, limit, func(ctx context.Context, b task.Blob) (bool, error) {
		changed, err := v.rewrapBlob(ctx, below, b)
		for _, of := range []error{blob.ErrNotFound, blob.ErrCorrupt, blob.ErrCodec, blob.ErrNoBucket} {
			if errors.Is(err, of) {
				return false, seal.Damaged(err)
			}
		}
		return changed, err
	})
}

// rewrapBlob seals the bytes of a blob with the newest key and puts them under the same name: readers see the old or
// the new bytes.
func (v *Values) rewrapBlob(ctx context.Context, below store.Store, b task.Blob) (changed bool, err error) {
	if v.Bucket == nil {
		return false, blob.ErrNoBucket
	}
	stored, err := v.Bucket.Get(ctx, v.key(b))
	if err != nil {
		return false, err
	}
	key, err := seal.KeyOf(stored)
	if err = errors.Join(err, stored.Close()); err != nil || key == v.Sealer.Codec.Newest() {
		return false, err
	}
	plain, err := v.Open(ctx, b)
	if err != nil {
		return false, err
	}
	if err := errors.Join(v.Sealer.PutBlob(ctx, v.Bucket, v.key(b), b, plain), plain.Close()); err != nil {
		return false, err
	}
	// A collector may have claimed the blob and deleted the bytes during the put. The store then no longer knows them
	// under this ID, and they are deleted again. Crash at that moment: unreferenced bytes remain.
	known, err := v.knows(ctx, below, b)
	if err != nil || known {
		return true, err
	}
	return false, v.Bucket.Delete(ctx, v.key(b))
}

// knows reports whether the store has a blob that no collector has claimed. For a store that does not list blobs it
// announces an upload, which keeps an unneeded blob for a day.
func (v *Values) knows(ctx context.Context, below store.Store, b task.Blob) (bool, error) {
	if !below.Capabilities().Has(store.CanListBlobs) {
		got, err := v.upload(ctx, store.Upload{ID: v.IDs.New(), SHA256: b.SHA256, Size: b.Size})
		return got.Blob.ID == b.ID, err
	}
	row, err := store.BlobOf(ctx, below, v.Namespace, b.ID)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return row.State != task.BlobDeleting, err
}
