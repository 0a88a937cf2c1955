package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// failure expects an error of a kind with a helpful text, which names the file and an
// instruction.
func failure(t *testing.T, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("got %v, want %q", err, kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the message %q does not contain %q", err, w)
		}
	}
}

// raw opens a file without migrating it.
func raw(t *testing.T, path string, opts ...sqlite.Option) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, db) })
	return db
}

func TestErrorsOfOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sqlite.Open(t.Context(), text)
	failure(t, err, store.ErrNotDatabase, text, "another")

	_, err = sqlite.Open(t.Context(), dir)
	failure(t, err, store.ErrNotDatabase, dir)
	_, err = sqlite.Open(t.Context(), os.DevNull)
	failure(t, err, store.ErrNotDatabase, "a device, a pipe or a socket")

	_, err = sqlite.Open(t.Context(), filepath.Join(dir, "no", "such.db"))
	failure(t, err, store.ErrUnavailable, filepath.Join(dir, "no"), "create it")

	if _, err = sqlite.Open(t.Context(), ""); err == nil {
		t.Error("an empty name was accepted")
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("own reason"))
	if _, err = sqlite.Open(ctx, filepath.Join(dir, "x.db")); err == nil || !strings.Contains(err.Error(), "own reason") {
		t.Errorf("Open under an ended context: %v", err)
	}
}

func TestErrorsOfForeignTables(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "theirs.db")
	theirs, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.ExecContext(t.Context(), "CREATE TABLE weaver_tasks (id INTEGER)"); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = sqlite.Open(t.Context(), path)
	failure(t, err, store.ErrForeignDatabase, path, "tasks")
}

func TestErrorsBeforeMigrate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	db := raw(t, path)
	failure(t, db.Ready(t.Context()), store.ErrNotMigrated, path, "weaver migrate up")
	_, err := db.Enqueue(t.Context(), "ns", nil, newTasks(task.NewIDs(nil), 1))
	failure(t, err, store.ErrNotMigrated, path, "weaver migrate up")
	_, _, err = db.List(t.Context(), "ns", store.Filter{})
	failure(t, err, store.ErrNotMigrated, path)
	status, err := db.MigrationStatus(t.Context())
	if err != nil || len(status) == 0 || !status[0].AppliedAt.IsZero() {
		t.Errorf("MigrationStatus = %+v, %v", status, err)
	}
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := db.Enqueue(t.Context(), "ns", nil, newTasks(task.NewIDs(nil), 1)); err != nil {
		t.Error(err)
	}
}

func TestErrorsOfNewerSchema(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	db := openFile(t, path)
	if err := db.Exec(t.Context(), "INSERT INTO weaver_schema_versions VALUES (99, 'later', 'x', 1)"); err != nil {
		t.Fatal(err)
	}
	failure(t, db.Ready(t.Context()), store.ErrNewerSchema, path+" has schema 0099; this weaver knows 00", ": use the newer weaver")
	failure(t, db.Migrate(t.Context()), store.ErrNewerSchema, path)
	if err := db.Exec(t.Context(), "DELETE FROM weaver_schema_versions WHERE version = 99; UPDATE weaver_schema_versions SET checksum = 'edited'"); err != nil {
		t.Fatal(err)
	}
	if err := db.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "differs") {
		t.Errorf("Ready of a schema whose migration was edited: %v", err)
	}
}

// Any number of handles may open a new file and migrate it at once.
func TestMigrateByMany(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	errs := make(chan error)
	const n = 4
	for range n {
		go func() {
			db, err := sqlite.Open(t.Context(), path)
			if err == nil {
				err = errors.Join(db.Migrate(t.Context()), db.Migrate(t.Context()), db.Ready(t.Context()), db.Close())
			}
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	db := raw(t, path)
	status, err := db.MigrationStatus(t.Context())
	if err != nil || len(status) == 0 || status[0].Version != 1 || status[0].Name != "init" || status[0].AppliedAt.IsZero() {
		t.Errorf("MigrationStatus = %+v, %v", status, err)
	}
	if s := db.MigrationSQL(); !strings.Contains(s, "CREATE TABLE weaver_tasks") || !strings.Contains(s, "CREATE TABLE IF NOT EXISTS weaver_schema_versions") {
		t.Errorf("MigrationSQL is incomplete: %.200s", s)
	}
}

func TestErrorsOfAFullDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	db := openFile(t, path)
	ids := task.NewIDs(nil)
	first := newTasks(ids, 1)
	if _, err := db.Enqueue(t.Context(), "ns", nil, first); err != nil {
		t.Fatal(err)
	}
	if err := db.Exec(t.Context(), "PRAGMA max_page_count=1"); err != nil { // no more than the existing pages
		t.Fatal(err)
	}
	_, err := db.Enqueue(t.Context(), "ns", nil, newTasks(ids, 5000))
	failure(t, err, store.ErrFull, path, "space")
	if err := db.Exec(t.Context(), "PRAGMA max_page_count=1000000"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Enqueue(t.Context(), "ns", nil, newTasks(ids, 10)); err != nil {
		t.Errorf("after space was freed: %v", err)
	}
	got, err := db.Tasks(t.Context(), "ns", first.Tasks[0].ID)
	if err != nil || len(got) != 1 {
		t.Errorf("what was acknowledged before: %d tasks, %v", len(got), err)
	}
}

func TestErrorsOfAReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	db := openFile(t, path)
	if err := db.Exec(t.Context(), "PRAGMA query_only=ON"); err != nil {
		t.Fatal(err)
	}
	_, err := db.Enqueue(t.Context(), "ns", nil, newTasks(task.NewIDs(nil), 1))
	failure(t, err, store.ErrReadOnly, path, "permissions")
}

func TestErrorsOfALockedDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	other := openFile(t, path)
	db := openFile(t, path, sqlite.BusyTimeout(20*time.Millisecond))
	tx := begin(t, other)
	_, err := db.Enqueue(t.Context(), "ns", nil, newTasks(task.NewIDs(nil), 1))
	failure(t, err, store.ErrBusy, path)
	if _, _, err := db.List(t.Context(), "ns", store.Filter{}); err != nil {
		t.Errorf("a reader beside a foreign writer: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Enqueue(t.Context(), "ns", nil, newTasks(task.NewIDs(nil), 1)); err != nil {
		t.Errorf("after the lock was given up: %v", err)
	}
}

func TestErrorsAfterClose(t *testing.T) {
	t.Parallel()
	memory, err := sqlite.OpenMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, db := range []*sqlite.DB{memory, openOnce(t, filepath.Join(t.TempDir(), "weaver.db"))} {
		shut(t, db)
		shut(t, db)
		_, err = db.Enqueue(t.Context(), "ns", nil, newTasks(task.NewIDs(nil), 1))
		failure(t, err, store.ErrClosed)
		_, err = db.Tasks(t.Context(), "ns", task.NewIDs(nil).New())
		failure(t, err, store.ErrClosed)
		failure(t, db.Migrate(t.Context()), store.ErrClosed)
		if err := db.DB().PingContext(t.Context()); err == nil {
			t.Error("DB works after Close")
		}
	}
}

func TestStrangePath(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b%20?c#d&é.db")
	db := openFile(t, path)
	if _, err := db.Enqueue(t.Context(), "ns", nil, newTasks(task.NewIDs(nil), 1)); err != nil {
		t.Fatal(err)
	}
	if n := count(t, db, "SELECT count(*) FROM weaver_tasks"); n != 1 {
		t.Errorf("DB() sees %d tasks: it opened another file", n)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
