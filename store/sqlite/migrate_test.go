package sqlite_test

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store/sqlite"
)

// A schema is created completely or not at all. A failure leaves nothing behind: when its
// cause is removed, Migrate creates the whole schema.
func TestMigrateAllOrNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // in a bubble a busy timeout takes no time
		f := unmigrated(t, filepath.Join(t.TempDir(), "w.db"), sqlite.BusyTimeout(shortly))
		f.exec("CREATE TABLE weaver_audit (what TEXT)") // created near the end of the schema
		if err := f.db.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "weaver_audit") {
			t.Errorf("Migrate beside a table of that name: %v", err)
		}
		if n := f.count("SELECT count(*) FROM sqlite_schema WHERE type = 'table'"); n != 1 {
			t.Errorf("after a migration that failed there are %d tables, want the one that was there", n)
		}
		f.exec("DROP TABLE weaver_audit")
		if err := f.db.Migrate(t.Context()); err != nil {
			t.Errorf("Migrate when nothing is in its way: %v", err)
		}
		f.sound(f.enqueue(1)...)
	})
}

// A migration waits for running writes: there is one writing connection.
func TestMigrateBesideAWriter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := raw(t, filepath.Join(t.TempDir(), "w.db"))
		release := committing(t, db)
		migrated := make(chan error, 1)
		go func() { migrated <- db.Migrate(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-migrated:
			t.Errorf("Migrate did not wait for the group: %v", err)
			migrated <- nil
		default:
		}
		release()
		if err := <-migrated; err != nil {
			t.Error(err)
		}
	})
}

// Migrate waits for another process that writes, and works with its changes. A transaction
// that had read before would have to begin again.
func TestMigrateBesideAnotherProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // in a bubble the busy handler's sleep takes no time
		path := filepath.Join(t.TempDir(), "w.db")
		db, other := raw(t, path, sqlite.BusyTimeout(time.Minute)), raw(t, path)
		theirs := begin(t, other)
		if _, err := theirs.ExecContext(t.Context(), "CREATE TABLE orders (n INTEGER)"); err != nil {
			t.Fatal(err)
		}
		migrated := make(chan error, 1)
		go func() { migrated <- db.Migrate(t.Context()) }()
		time.Sleep(time.Second)
		if err := theirs.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-migrated; err != nil {
			t.Error(err)
		}
	})
}
