package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"testing"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/store/storetest"
)

// The suite is the specification. Its clock is that of the bubble that each case plays
// in: the server's would go on by itself.
func TestConformance(t *testing.T) {
	t.Parallel()
	locks := t.TempDir()
	// The databases are copies of one, whose workers have the same IDs.
	open := func(t *testing.T, url string) *postgres.DB {
		return openURL(t, url, postgres.BubbleClock(), postgres.ScanPage(7), postgres.LockFolder(filepath.Join(locks, path.Base(url))))
	}
	h := storetest.Harness{
		Name:   "postgres",
		Repeat: repeat,
		Share:  parts,
		Kill:   func(_ *testing.T, s store.Store, w store.WorkerID) { s.(*postgres.DB).Kill(w) },
		Open: func(t *testing.T) store.Store {
			return open(t, pgtest.Reused(t, "weaver", migrateURL, truncate))
		},
		Second: func(t *testing.T, first store.Store) store.Store {
			return open(t, first.(*postgres.DB).RawURL())
		},
		// A connection that listens keeps the time of a bubble from going on.
		Live: func(t *testing.T) (first, second store.Store) {
			url := pgtest.Migrated(t, "weaver", migrateURL)
			return openURL(t, url), openURL(t, url)
		},
	}
	for h.Part = range played {
		part := h
		t.Run(fmt.Sprint("part ", h.Part), func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, part)
		})
	}
}

// parts are played beside each other.
const parts = 4

// truncate empties a store.
func truncate(url string) error { return pgtest.Truncate(url, "weaver") }

// migrate makes a database that holds an empty store.
func migrateURL(url string) error {
	ctx := context.Background()
	db, err := postgres.Open(ctx, url, postgres.Unsafe())
	if err != nil {
		return err
	}
	return errors.Join(db.Migrate(ctx), db.Close())
}

// openURL opens a store that the end of the test closes.
func openURL(t *testing.T, url string, opts ...postgres.Option) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), url, append(opts, postgres.Unsafe())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
