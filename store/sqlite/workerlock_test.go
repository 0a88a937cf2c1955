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
// others: the file of one that is dead, and has a row, is the proof of it.
func TestJoinSweepsLockFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	f, elsewhere := fixtureOn(t, openFile(t, path)), fixtureOn(t, openFile(t, path))
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

	dead := old(added(elsewhere, "acme-prod", "dead"))
	joining := old(added(elsewhere, fixNS, "joining")) // has its lock, but no row yet
	f.exec("DELETE FROM weaver_workers WHERE worker_id = 'joining'")
	elsewhere.db.Kill("acme-prod", "dead")
	young, left := file("young"), old(file("left"))
	mine := added(f, fixNS, "mine")
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what nobody needs is still there: %v", err)
	}
	for what, name := range map[string]string{
		"the lock of one who is dead, in another namespace": dead,
		"the lock of one who is about to have a row":        joining,
		"a file that is young":                              young,
		"our own":                                           mine,
	} {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("%s is gone: %v", what, err)
		}
	}
}
