package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// use reads a blob, alone and in the list of all.
func (e *env) use(b task.Blob) store.BlobUse {
	e.Helper()
	got, err := store.BlobOf(e.Context(), e.s, e.ns, b.ID)
	e.require(err == nil, "Blob: %v", err)
	e.equal("the blob", got.Blob, b)
	for after := (task.ID{}); ; {
		page, err := e.s.Blobs(e.Context(), e.ns, store.BlobFilter{After: after, Limit: 2})
		e.require(err == nil, "Blobs: %v", err)
		for _, u := range page {
			e.check(u.ID.Compare(after) > 0, "the blobs do not come by their IDs")
			if after = u.ID; u.ID == b.ID {
				if u.Unused != store.UsedBefore && u.Unused > 0 {
					u.Unused = got.Unused // read a little later
				}
				e.equal("the blob of a page", u, got)
				return got
			}
		}
		e.require(len(page) == 2, "the blob is on no page")
	}
}

// used checks the references of a blob.
func (e *env) used(b task.Blob, state task.BlobState, refs, expired int) store.BlobUse {
	e.Helper()
	u := e.use(b)
	e.check(u.State == state && u.Refs == refs && u.Expired == expired, "it is %+v, want %s with %d references, %d of them expired", u, state, refs, expired)
	return u
}

var readBlobCases = []testCase{
	{"blobs are read with what refers to them, and what a collector would take", func(e *env) {
		const day = 24 * time.Hour
		other, waits, in := e.blob("other"), e.blob("upload"), e.blob("in")
		e.silence(time.Hour)
		u := e.used(waits, task.BlobPending, 0, 0)
		e.check(u.Unused >= time.Hour && u.Unused < 2*time.Hour, "it is unused for %v", u.Unused)
		e.check(!u.Collectable(day) && u.Collectable(time.Hour), "an hour after the upload it can be collected: %v, %v", u.Collectable(day), u.Collectable(time.Hour))
		id, second := e.one(valued(in)), e.one(valued(in))
		u = e.used(in, task.BlobLive, 2, 0)
		e.check(!u.Collectable(1), "one that is in use can be collected")

		c := e.a.take(id)
		rec := step(c, "s", string(in.Value()))
		rec.Artifacts = []store.NewArtifact{artifact(e, "a.csv", other, time.Minute)}
		e.record(rec)
		e.used(in, task.BlobLive, 3, 0)
		e.used(other, task.BlobLive, 1, 0)
		e.pass(2 * time.Minute)
		e.used(other, task.BlobLive, 1, 0)
		e.finish(success(c))
		u = e.used(other, task.BlobLive, 1, 1)
		e.check(u.Collectable(day), "an artifact whose time has passed cannot be collected")

		a, err := e.s.Artifact(e.Context(), e.ns, rec.Artifacts[0].ID)
		e.require(err == nil, "Artifact: %v", err)
		e.equal("the artifact", a, e.history(id).Artifacts[0])

		e.operate(deleteOf(id))
		e.forget(id)
		u = e.used(other, task.BlobPending, 0, 0)
		e.check(u.Unused == store.UsedBefore && u.Collectable(365*day), "one that was used has Unused %v", u.Unused)
		e.used(in, task.BlobLive, 1, 0)
		_, err = e.s.Artifact(e.Context(), e.ns, a.ID)
		e.wantErr("Artifact of a task that is gone", err, store.ErrNotFound)
		e.collects(other, waits)
		u = e.used(other, task.BlobDeleting, 0, 0)
		e.check(u.Collectable(day), "one that is being deleted cannot be collected")
		e.collectBlobs(time.Hour, other.ID, waits.ID)
		_, err = store.BlobOf(e.Context(), e.s, e.ns, other.ID)
		e.wantErr("Blob of one that is deleted", err, store.ErrNotFound)
		e.succeed(second)
	}},
}
