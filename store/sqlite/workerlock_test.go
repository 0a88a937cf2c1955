package sqlite_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
)

// A joining worker removes lock files that prove nothing any more, and no others: the file of
// a dead worker with a row proves its death.
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
	lock := func(first string) string { return strings.Repeat(first, 24) } // like those that a store creates
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
	young, left := file(lock("a")), old(file(lock("b")))
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

// A joining worker removes only lock files that a store created from the folder.
func TestJoinLeavesForeignFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	folder := path + ".workers"
	f := fixtureOn(t, openFile(t, path))
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	hex := strings.Repeat("0123456789ab", 2)
	files := map[string]string{
		"thesis.txt":             "three years",
		"empty":                  "",
		hex[:23]:                 "",
		hex + ".txt":             "",
		strings.Repeat("AB", 12): "",
		hex:                      "a program that names its files like ours",
	}
	long := time.Now().Add(-time.Hour)
	for name, text := range files {
		name = filepath.Join(folder, name)
		if err := errors.Join(os.WriteFile(name, []byte(text), 0o600), os.Chtimes(name, long, long)); err != nil {
			t.Fatal(err)
		}
	}
	link := strings.Repeat("c", 24)
	if err := os.Symlink(filepath.Join(folder, "empty"), filepath.Join(folder, link)); err != nil {
		t.Fatal(err)
	}
	files[link] = ""
	f.join("w")
	for name, text := range files {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || string(got) != text {
			t.Errorf("%s holds %q, %v; want %q", name, got, err, text)
		}
	}
}

// A lock counts only while its file has its name: between the opening and the locking of a
// file another process may have removed it.
func TestLockOfAFileThatLostItsName(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	mine, other := fixtureOn(t, openFile(t, path)), fixtureOn(t, openFile(t, path))

	once := sync.OnceFunc(func() { // like a joining worker that sweeps the folder
		files, err := filepath.Glob(path + ".workers/*")
		if err != nil || len(files) != 1 {
			t.Errorf("lock files: %v, %v", files, err)
			return
		}
		if err := os.Remove(files[0]); err != nil {
			t.Error(err)
		}
	})
	mine.db.BeforeLock(once)
	mine.join("w")
	mine.db.BeforeLock(nil)
	says(t, other.db.Join(t.Context(), fixNS, store.WorkerInfo{ID: "w", TTL: fixTTL}), store.ErrConflict)

	// The same for a reaper that checks whether the worker is dead. The worker leaves and
	// joins again in between, so that the file opened by the reaper is free.
	mine.enqueue(1)
	mine.claim("w", 1)
	other.db.BeforeLock(sync.OnceFunc(func() {
		if err := mine.db.Leave(t.Context(), fixNS, "w"); err != nil {
			t.Error(err)
		}
		mine.join("w")
	}))
	got, err := other.db.Reap(t.Context(), fixNS, store.ReapRequest{Worker: "r", TTL: fixTTL})
	if err != nil || len(got.Reaped) != 0 {
		t.Errorf("Reap took %v of a worker that lives, %v", got.Reaped, err)
	}
	if _, err := os.Stat(mine.db.LockPath(fixNS, "w")); errors.Is(err, fs.ErrNotExist) {
		t.Error("the lock file of a worker that lives is gone")
	}
}
