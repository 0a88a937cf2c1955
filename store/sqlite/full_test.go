package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// allow lets the file grow by this number of pages from now on, as on a full disk.
func (f *fixture) allow(pages int) {
	f.Helper()
	now, err := f.db.WriterPragma(f.Context(), "page_count")
	if err != nil {
		f.Fatal(err)
	}
	n, err := strconv.Atoi(now)
	if err != nil {
		f.Fatal(err)
	}
	if err := f.db.Exec(f.Context(), fmt.Sprintf("PRAGMA max_page_count=%d", n+pages)); err != nil {
		f.Fatal(err)
	}
}

const plenty = 1_000_000

// Many callers share commits while the disk fills up. A submission that succeeded is stored
// completely, a failed one not at all.
func TestFullWhileManyWrite(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	kept := f.enqueue(3, bulky)
	running := f.claim("w", 2)
	f.allow(60)
	var mu sync.Mutex
	var wg sync.WaitGroup
	full := 0
	for range 40 {
		sub := f.drafts(2, bulky) // about 12 pages
		wg.Go(func() {
			err := f.submit(t.Context(), sub)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				kept = append(kept, idsOf(sub)...)
			case errors.Is(err, store.ErrFull):
				full++
			default:
				t.Errorf("Enqueue on a full disk: %v", err)
			}
		})
	}
	wg.Wait()
	if full == 0 || len(kept) == 3 {
		t.Fatalf("%d callers found the disk full and %d tasks were stored: want some of both", full, len(kept)-3)
	}
	f.sound(kept...)
	says(t, f.submit(t.Context(), f.drafts(20, bulky)), store.ErrFull, f.db.Path(), "free some space")

	f.allow(plenty)
	f.finish(running...)
	kept = append(kept, f.enqueue(2, bulky)...)
	f.finish(f.claim("w", 1000)...)
	f.sound(kept...)
}

// A caller's transaction on a full disk returns an error, and its rollback leaves nothing.
func TestFullInACallersTransaction(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	kept := f.enqueue(1)
	f.exec("CREATE TABLE orders (n INTEGER)")
	f.db.DB().SetMaxOpenConns(1) // the limit belongs to the connection
	f.exec(fmt.Sprintf("PRAGMA max_page_count=%d", f.count("PRAGMA page_count")+2))
	tx := f.begin()
	if _, err := tx.ExecContext(t.Context(), "INSERT INTO orders VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	_, err := f.db.Enqueue(t.Context(), fixNS, sqlite.Tx(tx), f.drafts(5, bulky))
	says(t, err, store.ErrFull, f.db.Path(), "free some space")
	_ = tx.Rollback() // the database may have done it already
	if n := f.count("SELECT count(*) FROM orders"); n != 0 {
		t.Errorf("%d orders are left of a transaction that was rolled back", n)
	}
	f.exec(fmt.Sprintf("PRAGMA max_page_count=%d", plenty))
	sub := f.drafts(5, bulky)
	tx = f.begin()
	if _, err := f.db.Enqueue(context.Background(), fixNS, sqlite.Tx(tx), sub); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	f.sound(append(kept, idsOf(sub)...)...)
}
