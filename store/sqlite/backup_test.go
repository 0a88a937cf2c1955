package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// A backup made during writes is the store at one instant.
func TestBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := fixtureOn(t, openFile(t, filepath.Join(dir, "it's.db")))
	ids := f.enqueue(500)
	if err := os.Chmod(f.db.Path(), 0o640); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				f.finish(f.claim("w", 5)...)
			}
		}
	})
	path := filepath.Join(dir, "copy 'of' it.db")
	size, err := f.db.Backup(t.Context(), path)
	close(stop)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() != size || info.Mode().Perm() != 0o640 {
		t.Errorf("the copy has %v, %v, want %d bytes and the mode of the original", info, err, size)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.partial-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	c := fixtureOn(t, openFile(t, path))
	if err := c.db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	snap, err := c.db.Snapshot(t.Context(), fixNS)
	if err != nil || len(snap.Tasks) != len(ids) {
		t.Errorf("the copy has %d tasks of %d, %v", len(snap.Tasks), len(ids), err)
	}
	for _, v := range store.Check(snap) {
		t.Errorf("store.Check of the copy: %v", v)
	}
}

func TestBackupIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := fixtureOn(t, openFile(t, filepath.Join(dir, "w.db")))
	f.enqueue(1)
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{other, f.db.Path()} {
		if _, err := f.db.Backup(t.Context(), path); !errors.Is(err, sqlite.ErrExists) {
			t.Errorf("a backup over %s: %v, want ErrExists", path, err)
		}
	}
	if b, err := os.ReadFile(other); err != nil || string(b) != "precious" {
		t.Errorf("the file has %q, %v", b, err)
	}
	if _, err := f.db.Backup(t.Context(), filepath.Join(dir, "none", "x.db")); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a backup into a folder that is not there: %v, want ErrUnavailable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.db.Backup(ctx, filepath.Join(dir, "x.db")); !errors.Is(err, context.Canceled) {
		t.Errorf("a backup that is cut short: %v, want Canceled", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "x.db*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// The copy of a file from an earlier version returns its free space.
func TestTheBackupOfAnOldFileShrinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "w.db"), sqlite.OldFile())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, db) })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "copy.db")
	if _, err := db.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	f := fixtureOn(t, openFile(t, path))
	if err := f.db.Exec(t.Context(), "CREATE TABLE user (data); INSERT INTO user SELECT zeroblob(8 << 20); DROP TABLE user"); err != nil {
		t.Fatal(err)
	}
	if got, _ := f.collectAll(store.Retention{}); got.Freed < 4<<20 {
		t.Errorf("%d bytes were given back", got.Freed)
	}
}
