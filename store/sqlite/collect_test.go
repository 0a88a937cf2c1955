package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// collectAll makes one pass of a collector with the rule, and returns its result and the
// number of bites.
func (f *fixture) collectAll(retain ...store.Retention) (all store.CollectResult, bites int) {
	f.Helper()
	req := store.CollectRequest{Retain: retain}
	for {
		got, err := f.db.Collect(f.Context(), fixNS, req)
		if err != nil {
			f.Fatal(err)
		}
		all.Add(got)
		if bites++; got.Done() {
			return all, bites
		}
		req.After = got.Next
	}
}

// A file returns the space of removed rows to the file system.
func TestTheFileShrinks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	f := fixtureOn(t, openFile(t, path))
	for range 20 {
		ids := f.enqueue(200)
		f.finish(f.claim("w", len(ids))...)
	}
	size := func() int64 {
		if err := f.db.Exec(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if err := f.db.Exec(t.Context(), "CREATE TABLE user (data); INSERT INTO user SELECT zeroblob(8 << 20); DROP TABLE user"); err != nil { // creates free pages
		t.Fatal(err)
	}
	before := size()
	got, _ := f.collectAll(store.Retention{})
	if after := size(); got.Tasks != 4000 || after > before-(6<<20) || got.Freed < 6<<20 {
		t.Errorf("the file has %d bytes after %d tasks were removed of %d, and %d bytes were given back", after, got.Tasks, before, got.Freed)
	}
	if again, bites := f.collectAll(store.Retention{}); again.Tasks+len(again.Gone) != 0 || again.Freed != 0 || bites != 3 {
		t.Errorf("a second pass did %+v in %d bites", again, bites)
	}
}

// A file of an earlier version keeps its free pages, and continues to use them.
func TestAnOldFileDoesNotShrink(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "w.db"), sqlite.OldFile())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, db) })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := fixtureOn(t, db)
	ids := f.enqueue(200)
	f.finish(f.claim("w", len(ids))...)
	if err := f.db.Exec(t.Context(), "CREATE TABLE user (data); INSERT INTO user SELECT zeroblob(8 << 20); DROP TABLE user"); err != nil {
		t.Fatal(err)
	}
	if got, bites := f.collectAll(store.Retention{}); got.Tasks != 200 || got.Freed != 0 || bites > 5+1000/rules.MaxMoves {
		t.Errorf("it did %+v in %d bites", got, bites)
	}
}

// The begin of a removal moves at most twice the limit. Chores do the rest of a large task, of
// its children and of a large job. A crash between two bites leaves nothing half done.
func TestCollectIsBounded(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, openFile(t, filepath.Join(t.TempDir(), "w.db")))
	n := 3 * rules.MaxMoves
	job, need := f.fan(n, task.OnSuccess)
	f.operate(store.CancelTask{Task: need})
	f.reapChores()
	got, err := f.db.Collect(t.Context(), fixNS, store.CollectRequest{Retain: []store.Retention{{}}})
	if err != nil || got.Jobs != 1 {
		t.Fatalf("Collect = %+v, %v, want one job", got, err)
	}
	chores := f.chores()
	if len(chores) != 1 || chores[0] != (store.ChoreRow{Kind: store.ChoreDeleteJob, Subject: job.String()}) {
		t.Fatalf("the chores are %+v, want the rest of the job", chores)
	}
	snap, err := f.db.Snapshot(t.Context(), fixNS)
	if err != nil || len(snap.Tasks) < n-2*rules.MaxMoves {
		t.Fatalf("one bite left %d of %d tasks, %v", len(snap.Tasks), n, err)
	}
	left := snap.Tasks[len(snap.Tasks)-1].ID
	for _, cmd := range []store.Command{
		store.RetryTask{Task: left}, store.DeleteJob{Job: job}, store.RaiseBudget{Job: job, AddAttempts: 1}, store.RerunTask{Task: left, New: f.drafts(1).Tasks[0]},
	} {
		if res := f.operate(cmd); res.Err == nil {
			t.Errorf("%T of what is being removed: %+v, want ErrNotFound", cmd, res)
		}
	}
	f.dieAfter(1)
	_, _ = f.db.Reap(t.Context(), fixNS, store.ReapRequest{Worker: "reaper", TTL: time.Second})
	f.db.OnCommit(nil)
	f.chores()
	other := f.elsewhere()
	other.reapChores()
	if left := other.chores(); len(left) > 0 {
		t.Errorf("chores are left: %+v", left)
	}
	if snap, err := other.db.Snapshot(t.Context(), fixNS); err != nil || len(snap.Tasks)+len(snap.Jobs)+len(snap.Edges) > 0 {
		t.Errorf("%d tasks, %d jobs and %d edges are left, %v", len(snap.Tasks), len(snap.Jobs), len(snap.Edges), err)
	}
}
