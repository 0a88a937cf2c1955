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

// Transactions move a tenth of the usual number of rows, so that cases that need several
// transactions are smaller. TestConformanceFile of the SQLite store runs those in full; make
// soak-conformance runs them here too.
func init() {
	if !inFull {
		rules.MaxMoves = 100
		storetest.Large(250)
	}
}

// inFull makes the suite run in its full size.
var inFull = os.Getenv("WEAVER_CONFORMANCE") == "full"

// The suite is the specification. TestConformanceFile of the SQLite store says which part of it runs here. Its clock is that of the synctest bubble of each case: the
// server's clock would go on by itself.
func TestConformance(t *testing.T) {
	t.Parallel()
	locks := t.TempDir()
	template, prepare := "weaver, known", migrateKnown
	if testing.Short() {
		template, prepare = "weaver", migrateURL // its cases are small
	}
	// The databases are copies of a template, so their workers have the same IDs.
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
		// A connection that listens keeps the time of a bubble from advancing.
		Live: func(t *testing.T) (first, second store.Store) {
			url := pgtest.Migrated(t, "weaver", migrateURL)
			return openURL(t, url), openURL(t, url)
		},
	}
	if testing.Short() {
		h.Sample, h.Repeat = 100, 2
	}
	for _, h.Part = range played() {
		part := h
		t.Run(fmt.Sprint("part ", h.Part), func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, part)
		})
	}
}

// parts is the number of parts of the suite.
const parts = 4

// played returns the parts that run in parallel: the half that TestConformanceFile of the SQLite store leaves out, or all.
func played() []int {
	switch {
	case inFull, storetest.Named():
		return []int{0, 1, 2, 3}
	case sampled:
		return []int{0}
	default:
		return []int{0, 2}
	}
}

// truncate empties a store.
func truncate(url string) error { return pgtest.Truncate(url, "weaver") }

// migrateURL creates a database with an empty store.
func migrateURL(url string) error {
	ctx := context.Background()
	db, err := postgres.Open(ctx, url, postgres.Unsafe())
	if err != nil {
		return err
	}
	return errors.Join(db.Migrate(ctx), db.Close(), pgtest.CheckTasks(url, "weaver"))
}

// migrateKnown is migrateURL with statistics of a store in use. Without statistics a plan that was
// made for an empty table may read a whole index for each row, which doubles the duration of the
// large cases.
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
	return errors.Join(conn.Close(ctx), truncate(url)) // the statistics stay
}

// openURL opens a store and closes it at the end of the test.
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
