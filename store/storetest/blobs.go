package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// collectBlobs runs one batch of a blob collector.
func (e *env) collectBlobs(pending time.Duration, deleted ...task.ID) store.CollectedBlobs {
	e.Helper()
	got, err := e.s.Collect(e.Context(), e.ns, store.CollectRequest{Blobs: &store.CollectBlobs{Pending: pending, Deleted: deleted}})
	e.require(err == nil, "Collect: %v", err)
	return got.Blobs
}

// collects checks which blobs a collector is to delete.
func (e *env) collects(want ...task.Blob) {
	e.Helper()
	got := e.collectBlobs(time.Hour)
	byID := func(a, b task.Blob) int { return a.ID.Compare(b.ID) }
	slices.SortFunc(want, byID)
	slices.SortFunc(got.Delete, byID)
	e.equal("what is to be deleted", got.Delete, append([]task.Blob(nil), want...))
}

func (e *env) blobState(b task.Blob) (state task.BlobState) {
	e.Helper()
	for _, row := range e.snap().Blobs {
		if row.ID == b.ID {
			e.equal("the blob", row.Blob, b)
			state = row.State
		}
	}
	return state
}

func valued(b task.Blob) opt { return func(n *task.New) { n.Input = b.Value() } }

func artifact(e *env, name string, b task.Blob, ttl time.Duration) store.NewArtifact {
	return store.NewArtifact{ID: e.newID(), Name: name, ContentType: "text/csv", Blob: b, TTL: ttl}
}

// gone claims a blob for deletion.
func (e *env) gone(text string) task.Blob {
	e.Helper()
	b := e.blob(text)
	e.silence(2 * time.Hour)
	e.collects(b)
	return b
}

var blobCases = []testCase{
	{"equal bytes have one blob, which is stored once something refers to it", func(e *env) {
		first := e.upload("bytes")
		e.check(!first.Stored, "bytes that were announced only are stored")
		again := e.upload("bytes")
		e.equal("the same bytes", again, first)
		other := e.upload("other")
		e.check(other.Blob.ID != first.Blob.ID, "other bytes have the same blob")
		e.equal("the state", e.blobState(first.Blob), task.BlobPending)
		e.one(valued(first.Blob))
		again = e.upload("bytes")
		e.equal("bytes that a task has", again, store.Uploaded{Blob: first.Blob, Stored: true})
		e.equal("the state", e.blobState(first.Blob), task.BlobLive)
	}},
	{"an input, an output and a step's value keep their blob", func(e *env) {
		in, step1, out := e.blob("in"), e.blob("step"), e.blob("out")
		id := e.one(valued(in))
		c := e.a.take(id)
		e.equal("the input", string(c.Task.Input), string(in.Value()))
		e.record(step(c, "s", string(step1.Value())))
		f := success(c)
		f.Output = out.Value()
		e.finish(f)
		e.finish(f) // the reply was lost
		for _, b := range []task.Blob{in, step1, out} {
			e.equal("the state", e.blobState(b), task.BlobLive)
		}
		e.silence(48 * time.Hour)
		e.collects()
		e.equal("the output", string(e.task(id).Output), string(out.Value()))
	}},
	{"blobs of children, of started tasks and of what a decompose ends with are kept", func(e *env) {
		child, started, joined := e.blob("child"), e.blob("started"), e.blob("joined")
		c := e.a.take(e.one())
		rec := step(c, "s", `1`)
		rec.Tasks = []task.New{e.draft(valued(started))}
		e.record(rec)
		e.remember(rec.Tasks[0].ID)
		f := store.Finish{Lease: c.Lease, Outcome: task.OutcomeDecompose, Join: task.JoinComplete, Output: joined.Value(), Children: []task.New{e.draft(valued(child))}}
		e.finish(f)
		e.remember(f.Children[0].ID)
		e.silence(48 * time.Hour)
		e.collects()
		e.succeed(f.Children[0].ID)
		e.equal("the output", string(e.task(c.Task.ID).Output), string(joined.Value()))
		for _, b := range []task.Blob{child, started, joined} {
			e.equal("the state", e.blobState(b), task.BlobLive)
		}
	}},
	{"artifacts are recorded with their step, once", func(e *env) {
		b := e.blob("a,b")
		c := e.a.take(e.one())
		rec := step(c, "s", `1`)
		rec.Artifacts = []store.NewArtifact{artifact(e, "report.csv", b, time.Hour)}
		e.record(rec)
		at := e.now()
		e.record(rec) // the reply was lost
		list := e.history(c.Task.ID).Artifacts
		e.require(len(list) == 1, "%d artifacts", len(list))
		e.near("CreatedAt", list[0].CreatedAt, at)
		e.near("ExpiresAt", list[0].ExpiresAt, at.Add(time.Hour))
		want := task.Artifact{
			ID: rec.Artifacts[0].ID, TaskID: c.Task.ID, Step: "s", AttemptNo: 1, Name: "report.csv", ContentType: "text/csv",
			Blob: b, CreatedAt: list[0].CreatedAt, ExpiresAt: list[0].ExpiresAt,
		}
		e.equal("the artifact", list[0], want)
		e.equal("the artifacts of the snapshot", e.snap().Artifacts, list)
		e.finish(success(c))
	}},
	{"a link is an artifact without a blob, which its task's rerun has too, and goes in its time", func(e *env) {
		c := e.a.take(e.one())
		rec := step(c, "s", `1`)
		link := task.Link{URL: "https://example.com/a.csv?sig=1", Size: 7}.Value()
		rec.Artifacts = []store.NewArtifact{{ID: e.newID(), Name: "a.csv", Link: link, TTL: time.Minute}, artifact(e, "b.csv", e.blob("b"), 0)}
		e.record(rec)
		e.record(rec) // the reply was lost
		list := e.history(c.Task.ID).Artifacts
		e.require(len(list) == 2, "%d artifacts", len(list))
		e.equal("the link", list[0], task.Artifact{
			ID: rec.Artifacts[0].ID, TaskID: c.Task.ID, Step: "s", AttemptNo: 1, Name: "a.csv", LinkValue: link,
			CreatedAt: list[0].CreatedAt, ExpiresAt: list[0].ExpiresAt,
		})
		e.equal("its URL", list[0].Link().URL, "https://example.com/a.csv?sig=1")
		e.equal("the artifacts of the snapshot", e.snap().Artifacts, list)
		e.finish(success(c))
		again := e.draft()
		e.command(store.RerunTask{Audit: admin, Task: c.Task.ID, New: again, StepsBelow: 1})
		e.remember(again.ID)
		e.equal("the link of the rerun", e.history(again.ID).Artifacts[0].Link().Size, int64(7))
		e.silence(2 * time.Minute)
		e.equal("artifacts whose time has passed", e.collectBlobs(time.Hour).Expired, 1)
		e.equal("artifacts that stay", len(e.history(c.Task.ID).Artifacts), 1)
		e.check(len(e.history(again.ID).Artifacts) == 2, "a task that has not ended lost its link")
	}},
	{"a link with a blob, or that is no JSON, is refused", func(e *env) {
		c := e.a.take(e.one())
		rec := step(c, "s", `1`)
		for _, a := range []store.NewArtifact{{Link: []byte(`{}`), Blob: e.blob("b")}, {Link: []byte(`{`)}} {
			a.ID, a.Name = e.newID(), "a"
			rec.Artifacts = []store.NewArtifact{a}
			e.check(e.recordAll(rec)[0].Err != nil, "%+v was recorded", a)
		}
		e.finish(success(c))
	}},
	{"a step that is not recorded records no artifacts", func(e *env) {
		b := e.blob("a,b")
		c := e.a.take(e.one())
		e.record(step(c, "s", `1`))
		rec := step(c, "s", `2`)
		rec.Artifacts = []store.NewArtifact{artifact(e, "report.csv", b, 0)}
		e.wantErr("another value", e.recordAll(rec)[0].Err, store.ErrStepConflict)
		rec.Step.State = task.StepFailed
		e.check(e.recordAll(rec)[0].Err != nil, "a failed try recorded an artifact")
		e.equal("the state", e.blobState(b), task.BlobPending)
		e.check(len(e.history(c.Task.ID).Artifacts) == 0, "there are artifacts")
		e.finish(success(c))
	}},
	{"what a collector has claimed nothing can refer to", func(e *env) {
		b := e.gone("bytes")
		id := e.one()
		c := e.a.take(id)
		rec := step(c, "s", string(b.Value()))
		withArtifact := step(c, "s", `1`)
		withArtifact.Artifacts = []store.NewArtifact{artifact(e, "a", b, 0)}
		starts := step(c, "s", `1`)
		starts.Tasks = []task.New{e.draft(valued(b))}
		f := success(c)
		f.Output = b.Value()
		e.unchanged("what names a blob that is being deleted", func() {
			_, err := e.s.Enqueue(e.Context(), e.ns, nil, store.Submission{Tasks: []task.New{e.draft(), e.draft(valued(b))}})
			e.wantErr("Enqueue", err, store.ErrBlobGone)
			for _, r := range []store.Record{rec, withArtifact, starts} {
				e.wantErr("Record", e.recordAll(r)[0].Err, store.ErrBlobGone)
			}
			e.finishRefused(f, store.ErrBlobGone)
			e.commandRefused(store.RerunTask{Audit: admin, Task: id, New: e.draft(valued(b))}, store.ErrBlobGone)
		})
		again := e.upload("bytes")
		e.check(!again.Stored && again.Blob.ID != b.ID, "bytes that are being deleted were announced again as %+v", again)
		f.Output = again.Blob.Value()
		e.finish(f)
		e.collects(b)
		e.collectBlobs(time.Hour, b.ID)
		e.collects()
		e.equal("the state", e.blobState(again.Blob), task.BlobLive)
		unknown := b
		unknown.ID = e.newID()
		_, err := e.s.Enqueue(e.Context(), e.ns, nil, store.Submission{Tasks: []task.New{e.draft(valued(unknown))}})
		e.wantErr("Enqueue with a blob that was never announced", err, store.ErrBlobGone)
	}},
	{"one of a batch that names a lost blob leaves the others", func(e *env) {
		b := e.gone("bytes")
		cs := e.a.takeAll(e.many(3)...)
		fs := finishes(cs, success)
		fs[1].Output = b.Value()
		got := e.finishAll(fs...)
		e.check(got[0].Err == nil && got[2].Err == nil, "the others: %v, %v", got[0].Err, got[2].Err)
		e.wantErr("the one", got[1].Err, store.ErrBlobGone)
		e.finish(success(cs[1]))
	}},
	{"a rerun keeps the blobs of the steps that it takes over", func(e *env) {
		value, file, other := e.blob("value"), e.blob("file"), e.blob("other")
		id := e.one()
		c := e.a.take(id)
		rec := step(c, "a", string(value.Value()))
		rec.Artifacts = []store.NewArtifact{artifact(e, "f", file, 0)}
		e.record(indexed(rec, 0))
		rec = step(c, "b", `1`)
		rec.Artifacts = []store.NewArtifact{artifact(e, "g", other, 0)}
		e.record(indexed(rec, 1))
		e.finish(dead(c))
		n := e.draft()
		e.operate(store.RerunTask{Audit: admin, Task: id, New: n, StepsBelow: 1})
		e.remember(n.ID)
		e.operate(deleteOf(id))
		e.forget(id)
		e.collects(other)
		list := e.history(n.ID).Artifacts
		e.require(len(list) == 1, "the rerun has %d artifacts", len(list))
		e.check(list[0].Name == "f" && list[0].AttemptNo == 0 && list[0].Blob == file, "it is %+v", list[0])
		e.equal("the state of the value", e.blobState(value), task.BlobLive)
		e.succeed(n.ID)
	}},
	{"an input that is taken over by coalescing takes the place of the one before", func(e *env) {
		before, after := e.blob("before"), e.blob("after")
		e.one(once("k"), valued(before))
		n := e.draft(once("k"), valued(after))
		n.Coalesce = true
		e.submit(store.Submission{Tasks: []task.New{n}})
		e.collects(before)
		e.equal("the state of the new input", e.blobState(after), task.BlobLive)
	}},
	{"other namespaces have other blobs", func(e *env) {
		b := e.blob("bytes")
		other := e.in(otherNamespace)
		got := other.upload("bytes")
		e.check(got.Blob.ID != b.ID, "a blob of another namespace was found")
		_, err := other.s.Enqueue(e.Context(), other.ns, nil, store.Submission{Tasks: []task.New{other.draft(valued(b))}})
		e.wantErr("Enqueue with a blob of another namespace", err, store.ErrBlobGone)
	}},
}

var blobCollectCases = []testCase{
	{"an announced blob is collected after its time, a new announcement begins it anew", func(e *env) {
		b := e.blob("bytes")
		e.silence(40 * time.Minute)
		e.collects()
		e.upload("bytes")
		e.silence(40 * time.Minute)
		e.collects()
		e.silence(30 * time.Minute)
		e.collects(b)
		e.equal("the state", e.blobState(b), task.BlobDeleting)
		e.collects(b) // the deletion of its bytes was not confirmed
		got := e.collectBlobs(time.Hour, b.ID)
		e.check(len(got.Delete) == 0 && !got.More, "after its bytes were deleted: %+v", got)
		e.equal("the state", e.blobState(b), task.BlobState(""))
	}},
	{"without a time a pending blob has a day", func(e *env) {
		b := e.blob("bytes")
		e.silence(23 * time.Hour)
		e.check(len(e.collectBlobs(0).Delete) == 0, "it was collected after 23 hours")
		e.silence(2 * time.Hour)
		e.equal("after 25 hours", e.collectBlobs(0).Delete, []task.Blob{b})
	}},
	{"what is said to be deleted and is not claimed stays", func(e *env) {
		b, live := e.blob("bytes"), e.blob("live")
		e.one(valued(live))
		e.collectBlobs(time.Hour, b.ID, live.ID, e.newID())
		e.equal("the state of the pending", e.blobState(b), task.BlobPending)
		e.equal("the state of the live", e.blobState(live), task.BlobLive)
	}},
	{"with the last task that names it a blob goes at once", func(e *env) {
		b := e.blob("bytes")
		one, two := e.one(valued(b)), e.one(valued(b))
		e.succeed(one, two)
		e.operate(deleteOf(one))
		e.forget(one)
		e.collects()
		e.operate(deleteOf(two))
		e.forget(two)
		e.collects(b)
	}},
	{"a blob that lost its last reference is announced anew", func(e *env) {
		b := e.blob("bytes")
		id := e.one(valued(b))
		e.succeed(id)
		e.operate(deleteOf(id))
		e.forget(id)
		again := e.upload("bytes")
		e.check(!again.Stored && again.Blob == b, "announced again it is %+v", again)
		e.collects()
		e.one(valued(b))
		e.collects()
	}},
	{"an artifact expires once its task has ended, not before", func(e *env) {
		b, keep := e.blob("expires"), e.blob("stays")
		c := e.a.take(e.one())
		rec := step(c, "s", `1`)
		rec.Artifacts = []store.NewArtifact{artifact(e, "expires", b, time.Minute), artifact(e, "stays", keep, 0)}
		e.record(rec)
		e.pass(5 * time.Second)
		e.finish(retry(c, 2*time.Hour))
		e.silence(time.Hour)
		got := e.collectBlobs(time.Hour)
		e.check(got.Expired == 0 && len(got.Delete) == 0, "of an unfinished task: %+v", got)
		e.silence(2 * time.Hour)
		e.succeed(c.Task.ID)
		got = e.collectBlobs(time.Hour)
		e.equal("expired", got.Expired, 1)
		e.equal("to be deleted", got.Delete, []task.Blob{b})
		list := e.history(c.Task.ID).Artifacts
		e.check(len(list) == 1 && list[0].Name == "stays", "the artifacts are %+v", list)
	}},
	{"an artifact expires once no task that may read it is left", func(e *env) {
		put := func(id task.ID, name string) {
			c := e.a.take(id)
			rec := step(c, "s", `1`)
			rec.Artifacts = []store.NewArtifact{artifact(e, name, e.blob(name), time.Minute)}
			e.record(rec)
			e.finish(success(c))
		}
		expired := func(when string, want int) {
			e.Helper()
			e.silence(2 * time.Hour)
			e.equal("artifacts that expire "+when, e.collectBlobs(time.Hour).Expired, want)
		}
		g := e.job("a", "b: a", "c: b")
		put(g.id("a"), "of a job")
		e.succeed(g.id("b"))
		root := e.one()
		child := e.decomposed(root, task.JoinComplete, 1)[0]
		put(e.decomposed(child, task.JoinComplete, 1)[0], "of a grandchild")
		e.is(child, task.Succeeded, task.WaitNone)
		asks, asked := e.one(), e.one()
		put(asked, "of one that is needed")
		e.asksFor(asks, asked)
		root2 := e.one()
		kids := e.decomposed(root2, task.JoinComplete, 2)
		nested := e.decomposed(kids[0], task.JoinComplete, 1)[0]
		put(nested, "of a nested one")
		expired("before their readers have ended", 1)
		later := e.graph("y")
		later.sub.Job.BasedOn = []task.ID{g.sub.Job.ID}
		later.submit()
		e.succeed(g.id("c"), asks, kids[1])
		expired("when two readers have ended", 2)
		e.succeed(later.id("y"))
		expired("when the job that is based on theirs has ended", 1)
	}},
	{"bytes that another one has are kept when an artifact expires", func(e *env) {
		b := e.blob("bytes")
		c := e.a.take(e.one(valued(b)))
		rec := step(c, "s", `1`)
		rec.Artifacts = []store.NewArtifact{artifact(e, "expires", b, time.Minute)}
		e.record(rec)
		e.finish(success(c))
		e.silence(time.Hour)
		e.equal("expired", e.collectBlobs(time.Hour).Expired, 1)
		e.equal("the state", e.blobState(b), task.BlobLive)
	}},
	{"a bite is bounded, and says that there is more", func(e *env) {
		ups := make([]store.Command, store.BlobBite+10)
		for i := range ups {
			ups[i] = store.Upload{ID: e.newID(), SHA256: e.newID().String(), Size: 1}
		}
		_, err := e.s.Operate(e.Context(), e.ns, ups...)
		e.require(err == nil, "Upload: %v", err)
		e.silence(2 * time.Hour)
		got := e.collectBlobs(time.Hour)
		e.check(len(got.Delete) == store.BlobBite && got.More, "the first bite has %d, more %v", len(got.Delete), got.More)
		next := e.collectBlobs(time.Hour, mapped(got.Delete, func(b task.Blob) task.ID { return b.ID })...)
		e.check(len(next.Delete) == 10 && !next.More, "the next has %d, more %v", len(next.Delete), next.More)
	}},
	{"an enqueue and a collector at once: the task has its blob, or is refused", func(e *env) {
		for range 20 {
			b := e.blob("bytes")
			e.silence(2 * time.Hour)
			var err error
			d := e.draft(valued(b))
			var got store.CollectedBlobs
			e.together(
				func() { _, err = e.s.Enqueue(e.Context(), e.ns, nil, store.Submission{Tasks: []task.New{d}}) },
				func() { got = e.collectBlobs(time.Hour) },
			)
			switch {
			case err == nil:
				e.remember(d.ID)
				e.check(len(got.Delete) == 0, "the blob of a task was claimed")
				e.succeed(d.ID)
				e.operate(deleteOf(d.ID))
				e.forget(d.ID)
			case errors.Is(err, store.ErrBlobGone):
				e.equal("claimed", got.Delete, []task.Blob{b})
			default:
				e.Errorf("Enqueue: %v", err)
			}
			for _, g := range e.collectBlobs(time.Hour).Delete {
				e.collectBlobs(time.Hour, g.ID)
			}
		}
	}},
}
