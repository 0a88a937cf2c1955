package sqlite_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// A caller's transaction waits as long for others as the store does: it begins when they end
// in time, and otherwise gives up.
func TestCallersTransactionsWaitForOthers(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]time.Duration{"for a while": 2 * time.Second, "for long": 30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const timeout = 5 * time.Second
				path := filepath.Join(t.TempDir(), "w.db")
				others := begin(t, openFile(t, path))
				db := raw(t, path, sqlite.BusyTimeout(timeout))
				began := time.Now()
				go func() {
					time.Sleep(held)
					if err := others.Rollback(); err != nil {
						t.Error(err)
					}
				}()
				tx, err := db.DB().BeginTx(t.Context(), nil)
				if held > timeout {
					if waited := time.Since(began); err == nil || waited < timeout || waited > 2*timeout {
						t.Errorf("BeginTx beside a writer that does not end: %v after %v, want an error after %v", err, waited, timeout)
					}
				} else if err != nil {
					t.Errorf("BeginTx beside a writer that ends in time: %v", err)
				}
				if err == nil {
					if err := tx.Rollback(); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(held) // until the other transaction has ended
			})
		})
	}
}

// Rows that a caller's transaction read cannot change before it writes.
func TestCallersTransactionsBeginImmediate(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	other := fixtureOn(t, openFile(t, f.db.Path(), sqlite.BusyTimeout(shortly)))
	tx := f.begin()
	var n int
	if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM weaver_tasks").Scan(&n); err != nil {
		t.Fatal(err)
	}
	says(t, other.submit(t.Context(), other.drafts(1)), store.ErrBusy)
	sub := f.drafts(1)
	if _, err := f.db.Enqueue(t.Context(), fixNS, sqlite.Tx(tx), sub); err != nil {
		t.Errorf("the enqueue after a read: %v", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	f.sound(idsOf(sub)...)
}

// The user's own tables may have common names, and are in the same file as ours, regardless of
// which were created first.
func TestUsersOwnTables(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"made before Migrate": true, "made after Migrate": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "shop.db")
			f := unmigrated(t, path)
			migrate := func() {
				if err := f.db.Migrate(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if !before {
				migrate()
			}
			own := []string{"tasks", "jobs", "workers", "audit", "claims", "steps", "schema_versions"}
			for _, table := range own {
				f.exec("CREATE TABLE " + table + " (id INTEGER PRIMARY KEY, title TEXT NOT NULL)")
				f.exec("CREATE INDEX " + table + "_by_title ON " + table + " (title)")
			}
			if before {
				migrate()
			}
			if err := f.db.Ready(t.Context()); err != nil {
				t.Error(err)
			}
			var ids []task.ID
			for _, table := range own {
				tx := f.begin()
				if _, err := tx.ExecContext(t.Context(), "INSERT INTO "+table+" (title) VALUES ('mine')"); err != nil {
					t.Fatal(err)
				}
				sub := f.drafts(1)
				if _, err := f.db.Enqueue(t.Context(), fixNS, sqlite.Tx(tx), sub); err != nil {
					t.Fatal(err)
				}
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
				ids = append(ids, idsOf(sub)...)
			}
			f.join("w")
			f.finish(f.claim("w", len(own))...)
			f.sound(ids...)

			again := openFile(t, path) // Open and Migrate on a file that holds both
			if err := again.Ready(t.Context()); err != nil {
				t.Error(err)
			}
			for _, table := range own {
				if n := f.count("SELECT count(*) FROM " + table + " WHERE title = 'mine'"); n != 1 {
					t.Errorf("%s holds %d rows of the user, want 1", table, n)
				}
			}
		})
	}
}
