package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/store/storetest"
)

// Transactions move a tenth of the rows that they do for users, so that cases that need
// several of them are smaller; TestConformanceFile of the other store plays those in full.
// make soak-conformance plays them here too.
func init() {
	if !inFull {
		rules.MaxMoves = 100
		storetest.Large(250)
	}
}

// inFull has the suite played in its full size.
var inFull = os.Getenv("WEAVER_CONFORMANCE") == "full"

// The suite is the specification. Its clock is that of the bubble that each case plays
// in: the server's would go on by itself.
func TestConformance(t *testing.T) {
	t.Parallel()
	locks := t.TempDir()
	template, prepare := "weaver, known", migrateKnown
	if testing.Short() {
		template, prepare = "weaver", migrateURL // its cases are small
	}
	// The databases are copies of one, whose workers have the same IDs.
	open := func(t *testing.T, url string) *postgres.DB {
		return openURL(t, url, postgres.BubbleClock(), postgres.ScanPage(7), postgres.LockFolder(filepath.Join(locks, path.Base(url))))
	}
	h := storetest.Harness{
		Name:   "postgres",
		Repeat: repeat,
		Share:  parts,
		SQLTx:  true,
		Kill:   func(_ *testing.T, s store.Store, w store.WorkerID) { s.(*postgres.DB).Kill(w) },
		Open: func(t *testing.T) store.Store {
			return open(t, pgtest.Reused(pgtest.InShort(t), template, prepare, truncate))
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
	if testing.Short() {
		h.Sample, h.Repeat = 100, 2
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
	return errors.Join(db.Migrate(ctx), db.Close(), pgtest.CheckTasks(url, "weaver"))
}

// migrateKnown is like migrateURL, and the server knows what the tables of a store that
// is used hold. In a store that it knows nothing of, a plan that is made while a table is
// empty may read a whole index for each row of a call, which doubles what the large cases take.
func migrateKnown(url string) error {
	if err := migrateURL(url); err != nil {
		return err
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	for _, sql := range slices.Concat([]string{"SET search_path = weaver"}, fillRows(200, "acme-test", fillAll), []string{"ANALYZE"}) {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", sql, err), conn.Close(ctx))
		}
	}
	return errors.Join(conn.Close(ctx), truncate(url)) // what it knows stays
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
