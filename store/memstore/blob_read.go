package memstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Blobs implements store.BlobReader.
func (s *Store) Blobs(ctx context.Context, ns string, after task.ID, limit int) (uses []store.BlobUse, err error) {
	err = s.do(ctx, ns, func(o *op) {
		for id := range o.blobs {
			if id.Compare(after) > 0 {
				uses = append(uses, o.blobUse(id))
			}
		}
	})
	slices.SortFunc(uses, func(a, b store.BlobUse) int { return a.ID.Compare(b.ID) })
	return uses[:min(len(uses), max(limit, 0))], err
}

// Blob implements store.BlobReader.
func (s *Store) Blob(ctx context.Context, ns string, id task.ID) (use store.BlobUse, err error) {
	found := false
	err = s.do(ctx, ns, func(o *op) {
		if found = o.blobs[id] != nil; found {
			use = o.blobUse(id)
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("blob %s: %w", id, store.ErrNotFound)
	}
	return use, err
}

// blobUse counts what refers to a blob.
func (o *op) blobUse(id task.ID) store.BlobUse {
	b := o.blobs[id]
	use := store.BlobUse{BlobRow: store.BlobRow{Blob: b.Blob, State: o.stateOf(id)}}
	for _, refs := range o.refs {
		kinds := map[string]bool{} // equal values of one kind are one reference
		for _, r := range refs {
			if r.blob == id && !kinds[r.kind] {
				kinds[r.kind] = true
				use.Refs++
			}
		}
	}
	for owner, list := range o.artifacts {
		r := o.tasks[owner]
		for _, a := range list {
			if a.Blob.ID != id {
				continue
			}
			use.Refs++
			if r != nil && r.State.Terminal() && !o.needed(r) && !a.ExpiresAt.IsZero() && !a.ExpiresAt.After(o.now) {
				use.Expired++
			}
		}
	}
	switch {
	case use.State != task.BlobPending:
	case b.used:
		use.Unused = store.UsedBefore
	default:
		use.Unused = o.now.Sub(b.at)
	}
	return use
}

// Artifact implements store.BlobReader.
func (s *Store) Artifact(ctx context.Context, ns string, id task.ID) (got task.Artifact, err error) {
	found := false
	err = s.do(ctx, ns, func(o *op) {
		for _, list := range o.artifacts {
			for _, a := range list {
				if a.ID == id && (!found || a.TaskID.Compare(got.TaskID) < 0) {
					got, found = a, true
				}
			}
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("artifact %s: %w", id, store.ErrNotFound)
	}
	return got, err
}
