package memstore

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// blob is the record of bytes in the bucket.
type blob struct {
	task.Blob
	deleting bool
	used     bool      // referred to since it was announced
	at       time.Time // the last announcement
	of       task.ID   // the task of the last announcement; may be zero
}

// The kinds of references of a task. References from values have the blob's ID.
const (
	refInput  = "input"
	refOutput = "output"
	refStep   = "step"
)

// ref is a reference of a task to a blob.
type ref struct {
	kind, step string
	blob       task.ID
}

// upload announces bytes.
func (o *op) upload(u store.Upload) store.Uploaded {
	b := o.blobWith(u)
	if b == nil {
		b = &blob{Blob: task.Blob{ID: u.ID, SHA256: u.SHA256, Size: u.Size}}
		o.blobs[b.ID] = b
	}
	got := store.Uploaded{Blob: b.Blob, Stored: o.referred(b.ID)}
	b.at, b.used, b.of = o.now, got.Stored, u.Task
	return got
}

// blobWith returns the blob that has the bytes of an upload.
func (sp *space) blobWith(u store.Upload) *blob {
	for _, b := range sp.blobs {
		if !b.deleting && b.SHA256 == u.SHA256 && b.Size == u.Size {
			return b
		}
	}
	return nil
}

// usable returns an error for the first blob that cannot be referred to.
func (sp *space) usable(blobs []task.Blob) error {
	for _, b := range blobs {
		if !rules.Usable(sp.stateOf(b.ID)) {
			return rules.BlobGone(b)
		}
	}
	return nil
}

func (sp *space) stateOf(id task.ID) task.BlobState {
	b := sp.blobs[id]
	switch {
	case b == nil:
		return ""
	case b.deleting:
		return task.BlobDeleting
	case sp.referred(id):
		return task.BlobLive
	}
	return task.BlobPending
}

// referred reports whether a reference to a blob exists.
func (sp *space) referred(id task.ID) bool {
	for _, refs := range sp.refs {
		if slices.ContainsFunc(refs, func(r ref) bool { return r.blob == id }) {
			return true
		}
	}
	for _, list := range sp.artifacts {
		if slices.ContainsFunc(list, func(a task.Artifact) bool { return a.Blob.ID == id }) {
			return true
		}
	}
	return false
}

// refer records the reference if a value of a task names a blob.
func (o *op) refer(id task.ID, kind, step string, value json.RawMessage) {
	if b, ok := task.BlobOf(value); ok {
		o.refs[id] = append(o.refs[id], ref{kind, step, b.ID})
		o.blobs[b.ID].used = true
	}
}

// takesRefs copies the references of another task's step values and artifacts to a task.
func (o *op) takesRefs(to, from task.ID, steps []task.Step) {
	for _, s := range steps {
		o.refer(to, refStep, s.Name, s.Value)
		for _, a := range o.artifacts[from] {
			if a.Step == s.Name {
				a.TaskID, a.AttemptNo = to, 0
				o.artifacts[to] = append(o.artifacts[to], a)
			}
		}
	}
	slices.SortFunc(o.artifacts[to], byArtifact)
}

func byArtifact(a, b task.Artifact) int { return a.ID.Compare(b.ID) }

// addArtifacts records artifacts together with their step.
func (o *op) addArtifacts(list []store.NewArtifact, step *task.Step) {
	for i := range list {
		o.artifacts[step.TaskID] = append(o.artifacts[step.TaskID], rules.Artifact(&list[i], step, o.now))
		if len(list[i].Link) == 0 {
			o.blobs[list[i].Blob.ID].used = true
		}
	}
	slices.SortFunc(o.artifacts[step.TaskID], byArtifact)
}

func (o *op) collectBlobs(req *store.CollectBlobs) (got store.CollectedBlobs) {
	for _, id := range req.Deleted {
		if b := o.blobs[id]; b != nil && b.deleting {
			delete(o.blobs, id)
		}
	}
	for id, list := range o.artifacts {
		if r := o.tasks[id]; r == nil || !r.State.Terminal() || o.mayRead(r) {
			continue
		}
		o.artifacts[id] = slices.DeleteFunc(list, func(a task.Artifact) bool {
			gone := !a.ExpiresAt.IsZero() && !a.ExpiresAt.After(o.now) && got.Expired < store.BlobBite
			if gone {
				got.Expired++
			}
			return gone
		})
	}
	var found []*blob
	for _, b := range o.blobs {
		if b.deleting || !o.referred(b.ID) && (b.used || !b.at.Add(rules.PendingFor(req)).After(o.now)) {
			found = append(found, b)
		}
	}
	slices.SortFunc(found, func(a, b *blob) int { return a.ID.Compare(b.ID) })
	for _, b := range found[:min(len(found), store.BlobBite)] {
		b.deleting = true
		got.Delete = append(got.Delete, b.Blob)
	}
	got.More = got.Expired == store.BlobBite || len(found) >= store.BlobBite
	return got
}

// snapBlobs puts blobs and artifacts into a snapshot.
func (o *op) snapBlobs(snap *store.Snapshot) {
	for _, r := range o.sorted(func(*row) bool { return true }) {
		snap.Artifacts = append(snap.Artifacts, o.artifacts[r.ID]...)
	}
	for id, b := range o.blobs {
		snap.Blobs = append(snap.Blobs, store.BlobRow{Blob: b.Blob, State: o.stateOf(id)})
	}
	slices.SortFunc(snap.Blobs, func(a, b store.BlobRow) int { return a.ID.Compare(b.ID) })
}
