package sqlite_test

import (
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// upload announces bytes whose hash contains text.
func (f *fixture) upload(text string) task.Blob {
	f.Helper()
	got, err := f.db.Operate(f.Context(), fixNS, store.Upload{ID: f.ids.New(), SHA256: strings.Repeat(text, 64), Size: 1})
	if err != nil {
		f.Fatal(err)
	}
	return got[0].Uploaded.Blob
}

// The inputs of unstored children are in use.
func TestDraftsKeepTheirBlobs(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	b := f.upload("a")
	c := f.parentOf()
	f.dieAfter(1)
	fin := f.decomposing(c, task.JoinComplete, rules.MaxMoves+1)
	fin.Children[rules.MaxMoves].Input = b.Value()
	if got, err := f.db.Finish(f.Context(), fixNS, fin); err != nil || got[0].Err != nil {
		f.Fatalf("Finish: %+v, %v", got, err)
	}
	f.db.OnCommit(nil)
	if got, err := f.db.Collect(f.Context(), fixNS, store.CollectRequest{Blobs: &store.CollectBlobs{Pending: 1}}); err != nil || len(got.Blobs.Delete) > 0 {
		t.Errorf("a collector is to delete %v, %v", got.Blobs.Delete, err)
	}
	f.elsewhere().reapChores()
	if got := f.one("SELECT group_concat(state) FROM weaver_blobs"); got != "live" {
		t.Errorf("the blob of a stored child is %s", got)
	}
	if n := f.count("SELECT count(*) FROM weaver_artifacts WHERE kind = 'draft'"); n > 0 {
		t.Errorf("the parent still holds %d blobs", n)
	}
	f.chores()
}

// Equal values of two steps share one reference. A rerun that takes over one of the steps has
// its own reference.
func TestRerunKeepsTheBlobOfEqualSteps(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	b := f.upload("a")
	if err := f.submit(f.Context(), f.drafts(1)); err != nil {
		f.Fatal(err)
	}
	c := f.claim("w", 1)[0]
	for i, name := range []string{"b", "a"} { // the step with the later index is recorded first
		s := task.Step{TaskID: c.Task.ID, Name: name, Index: 1 - i, Kind: task.KindStep, State: task.StepCompleted, AttemptNo: 1, Try: 1, Value: b.Value()}
		if got, err := f.db.Record(f.Context(), fixNS, store.Record{Lease: c.Lease, Step: &s}); err != nil || got[0].Err != nil {
			f.Fatal(err, got)
		}
	}
	f.finish(c)
	if got := f.operate(store.RerunTask{Task: c.Task.ID, New: f.draft(), StepsBelow: 1}); got.Err != nil {
		f.Fatal(got.Err)
	}
	if got := f.operate(store.DeleteTask{Task: c.Task.ID}); got.Err != nil {
		f.Fatal(got.Err)
	}
	if got := f.one("SELECT group_concat(state) FROM weaver_blobs"); got != "live" {
		t.Errorf("the blob of the rerun's step is %s", got)
	}
	f.chores()
}
