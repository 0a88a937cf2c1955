package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// forever is a statement that takes hours.
const forever = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000000) SELECT count(*) FROM n"

// A statement without the step's context ends with its transaction nevertheless, because it
// holds the write lock of the file.
func TestSlowStatementsEndWithTheirTransaction(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "w.db"))
	if _, err := db.DB().Exec("CREATE TABLE orders (n INTEGER)"); err != nil {
		t.Fatal(err)
	}
	for name, slow := range map[string]func(tx *sql.Tx) error{
		"exec":       func(tx *sql.Tx) error { _, err := tx.Exec("INSERT INTO orders " + forever); return err },
		"with a row": func(tx *sql.Tx) error { var n int; return tx.QueryRow(forever).Scan(&n) },
		"arguments":  func(tx *sql.Tx) error { _, err := tx.Exec("INSERT INTO orders "+forever+" WHERE i > ?", 1); return err },
		"prepared": func(tx *sql.Tx) error {
			st, err := tx.Prepare(forever)
			if err != nil {
				return err
			}
			defer func() { _ = st.Close() }() // its row returned the error
			var n int
			return st.QueryRow().Scan(&n)
		},
	} {
		if _, err := db.Enqueue(t.Context(), benchNS, nil, newTasks(task.NewIDs(nil), 1)); err != nil {
			t.Fatal(err)
		}
		c := claimOne(t, db)
		_, err := db.StepTx(t.Context(), benchNS, stepOf(c, "slow"), 20*time.Millisecond, func(_ context.Context, tx store.Tx) (json.RawMessage, error) {
			return nil, slow(sqlTx(tx))
		})
		failure(t, err, store.ErrStepTxTooLong)
		if n := count(t, db, "SELECT count(*) FROM orders"); n != 0 {
			t.Errorf("%s: %d orders are left of a transaction that was rolled back", name, n)
		}
		// The connection is usable for the next transaction.
		if _, err := db.StepTx(t.Context(), benchNS, stepOf(c, "next"), time.Minute, func(context.Context, store.Tx) (json.RawMessage, error) { return nil, nil }); err != nil {
			t.Errorf("%s: the next one: %v", name, err)
		}
	}
}

// A statement of a caller's own transaction ends with it too.
func TestSlowStatementsEndWithACallersTransaction(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "w.db"), sqlite.Synchronous(sqlite.Normal))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tx, err := db.DB().BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	time.AfterFunc(20*time.Millisecond, cancel)
	var n int
	if err := tx.QueryRow(forever).Scan(&n); err == nil {
		t.Errorf("the statement counted to %d", n)
	}
}
