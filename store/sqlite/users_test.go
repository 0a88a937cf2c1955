package sqlite_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// A caller's transaction waits for others as long as the store does: it begins
// when they end in time, and gives up when they do not.
func TestCallersTransactionsWaitForOthers(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]time.Duration{"for a while": 2 * time.Second, "for long": 30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const patient = 5 * time.Second
				path := filepath.Join(t.TempDir(), "w.db")
				others := begin(t, openFile(t, path))
				db := raw(t, path, sqlite.BusyTimeout(patient))
				began := time.Now()
				go func() {
					time.Sleep(held)
					if err := others.Rollback(); err != nil {
						t.Error(err)
					}
				}()
				tx, err := db.DB().BeginTx(t.Context(), nil)
				if held > patient {
					if waited := time.Since(began); err == nil || waited < patient || waited > 2*patient {
						t.Errorf("BeginTx beside a writer that does not end: %v after %v, want an error after %v", err, waited, patient)
					}
				} else if err != nil {
					t.Errorf("BeginTx beside a writer that ends in time: %v", err)
				}
				if err == nil {
					if err := tx.Rollback(); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(held) // until the other one has gone
			})
		})
	}
}

// What a caller's transaction read, nobody changes before it writes.
func TestCallersTransactionsBeginImmediate(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	other := fixtureOn(t, openFile(t, f.db.Path(), sqlite.BusyTimeout(shortly)))
	tx := f.begin()
	var n int
	if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM tasks").Scan(&n); err != nil {
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
