package memstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Blobs implements store.Data.
func (s *Store) Blobs(ctx context.Context, ns string, f store.BlobFilter) (uses []store.BlobUse, err error) {
	one := !f.ID.IsZero()
	err = s.do(ctx, ns, func(o *op) {
		for id := range o.blobs {
			if one && id == f.ID || !one && id.Compare(f.After) > 0 {
				uses = append(uses, o.blobUse(id))
			}
		}
	})
	if one {
		return uses, err
	}
	slices.SortFunc(uses, func(a, b store.BlobUse) int { return a.ID.Compare(b.ID) })
	return uses[:min(len(uses), max(f.Limit, 0))], err
}

// blobUse counts the references to a blob.
func (o *op) blobUse(id task.ID) store.BlobUse {
	b := o.blobs[id]
	use := store.BlobUse{BlobRow: store.BlobRow{Blob: b.Blob, State: o.stateOf(id)}}
	for _, refs := range o.refs {
		kinds := map[string]bool{} // equal values of one kind count as one reference
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

// Artifact implements store.Data.
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
