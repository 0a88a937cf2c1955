//go:build unix && !illumos && !solaris && !aix

package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A check of a worker's lock leaves its file in place, even a read-only file.
func TestOrphansTouchesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	f, other := fixtureOn(t, openFile(t, path)), fixtureOn(t, openFile(t, path))
	f.join("w")
	ids := f.enqueue(1)
	f.claim("w", 1)
	lock := f.db.LockPath(fixNS, "w")
	before, err := os.Stat(lock)
	if err != nil {
		t.Fatal(err)
	}
	wantOrphans(t, other, ids, 0)
	if _, err := f.db.Share(fixNS, "w"); err == nil {
		t.Error("the lock of a worker that lives can be shared")
	}
	f.db.Kill(fixNS, "w")
	if err := os.Chmod(lock, 0o400); err != nil {
		t.Fatal(err)
	}
	wantOrphans(t, other, ids, 1)
	wantOrphans(t, other, ids, 1)
	after, err := os.Stat(lock)
	if err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the lock file was changed: %v", err)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	wantOrphans(t, other, ids, 0) // no file, no proof
	if _, err := os.Stat(lock); !os.IsNotExist(err) {
		t.Errorf("a look created the lock file: %v", err)
	}
}

// A worker that ends its task and its process between the reading of its lease and the check
// of its lock leaves no orphan. Neither does a worker whose lock file lost its name.
func TestOrphansOfAWorkerThatLeaves(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	f, other := fixtureOn(t, openFile(t, path)), fixtureOn(t, openFile(t, path))
	f.join("w")
	ids := f.enqueue(2)
	leased := f.claim("w", 1)
	other.db.BeforeLock(func() {
		f.finish(leased...)
		f.db.Kill(fixNS, "w")
		other.db.BeforeLock(nil)
	})
	wantOrphans(t, other, ids, 0)

	f.join("w")
	f.claim("w", 1)
	other.db.BeforeLock(func() {
		if err := f.db.Leave(t.Context(), fixNS, "w"); err != nil {
			t.Error(err)
		}
		f.join("w")
		other.db.BeforeLock(nil)
	})
	wantOrphans(t, other, ids, 0)
}

// While a reader checks a lock, a reaper and a worker that joins again wait for the short
// check.
func TestOrphansDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "w.db")
		f, other := fixtureOn(t, openFile(t, path)), fixtureOn(t, openFile(t, path))
		look := func() {
			t.Helper()
			giveBack, err := other.db.Share(fixNS, "w")
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				time.Sleep(5 * time.Millisecond)
				giveBack()
			}()
		}
		f.join("w")
		f.enqueue(1)
		f.claim("w", 1)
		f.db.Kill(fixNS, "w")
		look()
		if err := f.db.Join(t.Context(), fixNS, store.WorkerInfo{ID: "w", TTL: fixTTL}); err != nil {
			t.Errorf("a worker that joins while its lock is looked at: %v", err)
		}
		f.db.Kill(fixNS, "w")
		look()
		got, err := other.db.Reap(t.Context(), fixNS, store.ReapRequest{Worker: "other", TTL: fixTTL, CrashBudget: 3})
		if err != nil || len(got.Reaped) != 1 {
			t.Errorf("a reap while the lock is looked at took %d leases, want that of the dead worker: %v", len(got.Reaped), err)
		}
	})
}

func wantOrphans(t *testing.T, f *fixture, ids []task.ID, want int) {
	t.Helper()
	got, err := f.db.Orphans(t.Context(), fixNS, ids...)
	if err != nil || len(got) != want {
		t.Errorf("orphans: %v, %v; want %d", got, err, want)
	}
}
