package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
)

// A worker that joins removes lock files that prove nothing any more, and no
// others: the file of a dead worker that has a row proves its death.
func TestJoinSweepsLockFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	f, other := fixtureOn(t, openFile(t, path)), fixtureOn(t, openFile(t, path))
	locks := func() map[string]bool {
		t.Helper()
		files, err := filepath.Glob(path + ".workers/*")
		if err != nil {
			t.Fatal(err)
		}
		there := make(map[string]bool, len(files))
		for _, f := range files {
			there[f] = true
		}
		return there
	}
	long := time.Now().Add(-time.Hour)
	file := func(name string) string {
		t.Helper()
		name = filepath.Join(path+".workers", name)
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	old := func(name string) string {
		t.Helper()
		if err := os.Chtimes(name, long, long); err != nil {
			t.Fatal(err)
		}
		return name
	}
	added := func(f *fixture, ns string, id store.WorkerID) string {
		t.Helper()
		before := locks()
		if err := f.db.Join(t.Context(), ns, store.WorkerInfo{ID: id, Name: "host:1", TTL: fixTTL}); err != nil {
			t.Fatal(err)
		}
		for name := range locks() {
			if !before[name] {
				return name
			}
		}
		t.Fatalf("Join of %s made no lock file", id)
		return ""
	}

	dead := old(added(other, "acme-prod", "dead"))
	joining := old(added(other, fixNS, "joining")) // has its lock, but no row yet
	f.exec("DELETE FROM weaver_workers WHERE worker_id = 'joining'")
	other.db.Kill("acme-prod", "dead")
	young, left := file("young"), old(file("left"))
	mine := added(f, fixNS, "mine")
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a lock file without a worker is still there: %v", err)
	}
	for what, name := range map[string]string{
		"the lock of a dead worker, in another namespace": dead,
		"the lock of a worker that has no row yet":        joining,
		"a file that is young":                            young,
		"our own":                                         mine,
	} {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("%s is gone: %v", what, err)
		}
	}
}

// A worker's lock belongs to one ID in one namespace, and to one process.
func TestWorkerLocks(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/w.db"
	one, two := openFile(t, path), openFile(t, path)
	w := store.WorkerInfo{ID: "w", TTL: time.Second}
	if err := one.Join(t.Context(), "here", w); err != nil {
		t.Fatal(err)
	}
	if err := two.Join(t.Context(), "here", w); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a second process under the same id: %v, want ErrConflict", err)
	}
	if err := two.Join(t.Context(), "there", w); err != nil {
		t.Errorf("the same id in another namespace: %v", err)
	}
	if err := one.Leave(t.Context(), "here", w.ID); err != nil {
		t.Fatal(err)
	}
	if err := two.Join(t.Context(), "here", w); err != nil {
		t.Errorf("the same id after the other left: %v", err)
	}
}
