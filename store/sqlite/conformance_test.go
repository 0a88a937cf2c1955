package sqlite_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/store/storetest"
)

// The suite is the specification. Both SQL stores run the same code of internal/sqlstore: in make
// test this one runs one half of the cases and PostgreSQL the other. With WEAVER_CONFORMANCE=full, or
// topics named by -run, each runs all. Concurrent cases are repeated less often than by default,
// because each has its own file, and SQLite has one writer anyway.
func TestConformanceFile(t *testing.T) {
	t.Parallel()
	h := harness("sqlite file", func(t *testing.T) *sqlite.DB {
		return openFile(t, filepath.Join(t.TempDir(), "weaver.db"), sqlite.ScanPage(7))
	})
	h.Second = func(t *testing.T, first store.Store) store.Store {
		return openFile(t, first.(*sqlite.DB).Path())
	}
	h.Alone = runtime.GOOS == "js"
	h.Kill = func(_ *testing.T, s store.Store, w store.WorkerID) {
		s.(*sqlite.DB).Kill("acme-test", w)
	}
	switch {
	case os.Getenv("WEAVER_CONFORMANCE") == "full", storetest.Named():
	case testing.Short() || sampled:
		h.Sample = 10 // memstore plays them all
	default:
		h.Share, h.Part = 2, 1
	}
	storetest.Run(t, h)
}

func TestConformanceMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	h := harness("sqlite memory", func(t *testing.T) *sqlite.DB {
		db, err := sqlite.OpenMemory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { shut(t, db) })
		if err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		return db
	})
	h.Share = 20
	if sampled {
		h.Share = 50
	}
	storetest.Run(t, h)
}

func harness(name string, open func(t *testing.T) *sqlite.DB) storetest.Harness {
	return storetest.Harness{
		Name:   name,
		Repeat: repeat,
		Open:   func(t *testing.T) store.Store { return open(t) },

		ShiftClock: func(_ *testing.T, s store.Store, d time.Duration) { s.(*sqlite.DB).ShiftClock(d) },
	}
}

// migrated is a migrated, empty file. Migrating takes longer than most cases run.
var migrated = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "weaver-sqlite-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	path := filepath.Join(dir, "weaver.db")
	db, err := sqlite.Open(context.Background(), path)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(db.Migrate(context.Background()), db.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// openFile opens a file without waiting for the disk. A new file is migrated.
func openFile(t testing.TB, path string, opts ...sqlite.Option) *sqlite.DB {
	t.Helper()
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		raw, err := migrated()
		if err == nil {
			err = os.WriteFile(path, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := sqlite.Open(t.Context(), path, append([]sqlite.Option{sqlite.Synchronous(sqlite.SyncOff)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, db) })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

// openOnce opens and migrates a file that the caller closes.
func openOnce(t *testing.T, path string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

func shut(t testing.TB, db *sqlite.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
