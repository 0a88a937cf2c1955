package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"testing"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

func memory(t *testing.T) *sqlite.DB {
	t.Helper()
	db, err := sqlite.OpenMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, db) })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

// both runs a test on a file and in memory.
func both(t *testing.T, test func(t *testing.T, db *sqlite.DB)) {
	t.Parallel()
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		test(t, openFile(t, filepath.Join(t.TempDir(), "w.db")))
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, memory(t))
	})
}

func begin(t *testing.T, db *sqlite.DB) *sql.Tx {
	t.Helper()
	tx, err := db.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func count(t *testing.T, db *sqlite.DB, query string) (n int) {
	t.Helper()
	if err := db.DB().QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func claimable(t *testing.T, db *sqlite.DB) int {
	t.Helper()
	got, err := db.Claim(t.Context(), benchNS, claimRequest(100))
	if err != nil {
		t.Fatal(err)
	}
	return len(got.Tasks)
}

func TestInTxCommitsTogether(t *testing.T) {
	both(t, func(t *testing.T, db *sqlite.DB) {
		if err := db.Exec(t.Context(), "CREATE TABLE users (name TEXT)"); err != nil {
			t.Fatal(err)
		}
		if n := claimable(t, db); n != 0 { // the lanes are known to be empty
			t.Fatalf("claimed %d tasks", n)
		}
		var notices []store.Notice
		stop, _ := db.Notify(benchNS, nil, func(n store.Notice) {
			if n.Due {
				notices = append(notices, n)
			}
		})
		defer stop()
		sub := newTasks(task.NewIDs(nil), 3)

		tx := begin(t, db)
		got, err := db.Enqueue(t.Context(), benchNS, sqlite.Tx(tx), sub)
		if err != nil || len(got) != 3 {
			t.Fatalf("Enqueue = %v, %v", got, err)
		}
		if _, err := tx.ExecContext(t.Context(), "INSERT INTO users VALUES ('ann')"); err != nil {
			t.Fatal(err)
		}
		if list, err := db.Tasks(t.Context(), benchNS, sub.Tasks[0].ID); err != nil || len(list) != 0 {
			t.Errorf("the tasks show before the commit: %v, %v", list, err)
		}
		if len(notices) != 0 {
			t.Error("announced before the commit")
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if len(notices) != 1 {
			t.Errorf("%d notices when Commit returned, want 1", len(notices))
		}
		if n := claimable(t, db); n != 3 {
			t.Errorf("claimed %d tasks after the commit, want 3", n)
		}

		tx = begin(t, db)
		if _, err := db.Enqueue(t.Context(), benchNS, sqlite.Tx(tx), newTasks(task.NewIDs(nil), 3)); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), "INSERT INTO users VALUES ('bob')"); err != nil {
			t.Fatal(err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if n := claimable(t, db); n != 0 {
			t.Errorf("claimed %d tasks after the rollback, want 0", n)
		}
		if n := count(t, db, "SELECT count(*) FROM users"); n != 1 {
			t.Errorf("%d users, want 1", n)
		}
	})
}

func TestInTxIdempotency(t *testing.T) {
	both(t, func(t *testing.T, db *sqlite.DB) {
		keyed := func() store.Submission {
			sub := newTasks(task.NewIDs(nil), 2)
			for i := range sub.Tasks {
				sub.Tasks[i].IdempotencyKey = "evt-1"
			}
			return sub
		}
		tx := begin(t, db)
		first, err := db.Enqueue(t.Context(), benchNS, sqlite.Tx(tx), keyed())
		if err != nil || first[0].Disposition != store.DispositionCreated || first[1] != (store.Enqueued{ID: first[0].ID, Disposition: store.DispositionExisting}) {
			t.Fatalf("Enqueue = %v, %v", first, err)
		}
		again, err := db.Enqueue(t.Context(), benchNS, sqlite.Tx(tx), keyed())
		if err != nil || again[0] != first[1] {
			t.Errorf("Enqueue again in the transaction = %v, %v", again, err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		tx = begin(t, db)
		again, err = db.Enqueue(t.Context(), benchNS, sqlite.Tx(tx), keyed())
		if err != nil || again[0] != first[1] {
			t.Errorf("Enqueue in a later transaction = %v, %v", again, err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	})
}

// A failed enqueue leaves the caller's transaction unchanged.
func TestInTxFailureIsUndone(t *testing.T) {
	both(t, func(t *testing.T, db *sqlite.DB) {
		tx := begin(t, db)
		bad := newTasks(task.NewIDs(nil), 2)
		bad.Tasks[0].Labels = map[string]string{"a": "b"}
		if _, err := tx.ExecContext(t.Context(), "CREATE TEMP TRIGGER no BEFORE INSERT ON weaver_outbox_events WHEN NEW.priority = 9 BEGIN SELECT RAISE(FAIL, 'no'); END"); err != nil {
			t.Fatal(err)
		}
		bad.Tasks[1].Priority = 9
		if _, err := db.Enqueue(t.Context(), benchNS, sqlite.Tx(tx), bad); err == nil {
			t.Fatal("the enqueue did not fail")
		}
		if _, err := db.Enqueue(t.Context(), benchNS, sqlite.Tx(tx), newTasks(task.NewIDs(nil), 1)); err != nil {
			t.Fatalf("the transaction cannot go on: %v", err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if n := count(t, db, "SELECT count(*) FROM weaver_tasks") + count(t, db, "SELECT count(*) FROM weaver_task_labels"); n != 1 {
			t.Errorf("%d rows, want 1: all or nothing", n)
		}
	})
}

func TestInTxForeign(t *testing.T) {
	both(t, func(t *testing.T, db *sqlite.DB) {
		sub := newTasks(task.NewIDs(nil), 1)
		enqueue := func(tx store.Tx) error {
			_, err := db.Enqueue(t.Context(), benchNS, tx, sub)
			return err
		}
		failure(t, enqueue(postgresTx{}), store.ErrForeignTx, "postgres", "sqlite")
		failure(t, enqueue(sqlite.Tx(nil)), store.ErrForeignTx)

		other := begin(t, memory(t))
		failure(t, enqueue(sqlite.Tx(other)), store.ErrForeignTx, "another database", db.Path())
		if err := other.Rollback(); err != nil {
			t.Fatal(err)
		}

		plain, err := sql.Open("sqlite3", filepath.Join(t.TempDir(), "other.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		theirs, err := plain.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		failure(t, enqueue(sqlite.Tx(theirs)), store.ErrForeignTx, "DB()")
		if err := theirs.Rollback(); err != nil {
			t.Fatal(err)
		}

		fake := sql.OpenDB(fakeConnector{})
		defer fake.Close()
		faked, err := fake.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		failure(t, enqueue(sqlite.Tx(faked)), store.ErrForeignTx)
		if err := faked.Rollback(); err != nil {
			t.Fatal(err)
		}

		ended := begin(t, db)
		if err := ended.Rollback(); err != nil {
			t.Fatal(err)
		}
		failure(t, enqueue(sqlite.Tx(ended)), sql.ErrTxDone)
		if n := count(t, db, "SELECT count(*) FROM weaver_tasks"); n != 0 {
			t.Errorf("%d tasks were stored", n)
		}
	})
}

// A transaction that read before another connection wrote cannot write any more.
func TestInTxRestart(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "w.db"))
	tx := begin(t, db)
	for _, sql := range []string{"COMMIT", "BEGIN DEFERRED"} {
		if _, err := tx.ExecContext(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM weaver_tasks").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Enqueue(t.Context(), benchNS, nil, newTasks(task.NewIDs(nil), 1)); err != nil {
		t.Fatal(err)
	}
	_, err := db.Enqueue(t.Context(), benchNS, sqlite.Tx(tx), newTasks(task.NewIDs(nil), 1))
	failure(t, err, store.ErrRestartTx, "immediate", db.Path())
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}

// An enqueue must not restart a transaction that SQLite rolled back by itself, because it
// would be stored without the caller's writes.
func TestInTxOfARolledBackTransaction(t *testing.T) {
	both(t, func(t *testing.T, db *sqlite.DB) {
		tx := begin(t, db)
		if _, err := tx.ExecContext(t.Context(), "ROLLBACK"); err != nil { // as a full disk would
			t.Fatal(err)
		}
		_, err := db.Enqueue(t.Context(), benchNS, sqlite.Tx(tx), newTasks(task.NewIDs(nil), 1))
		failure(t, err, store.ErrRestartTx)
		if err := tx.Commit(); err == nil {
			t.Error("the commit succeeded")
		}
		if n := count(t, db, "SELECT count(*) FROM weaver_tasks"); n != 0 {
			t.Errorf("%d tasks were stored", n)
		}
	})
}

func TestCallIsNotForUsers(t *testing.T) {
	t.Parallel()
	db := memory(t)
	var x any
	if err := db.DB().QueryRowContext(t.Context(), "SELECT weaver_call(1)").Scan(&x); err == nil {
		t.Error("users can call weaver_call")
	}
}

type postgresTx struct{}

func (postgresTx) Driver() string { return "postgres" }
func (postgresTx) Handle() any    { return nil }

// fakeConnector is a driver that only begins transactions.
type fakeConnector struct{}

func (fakeConnector) Connect(context.Context) (driver.Conn, error) { return fakeConn{}, nil }
func (fakeConnector) Driver() driver.Driver                        { return nil }

type fakeConn struct{}

func (fakeConn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("no such function") }
func (fakeConn) Close() error                        { return nil }
func (fakeConn) Begin() (driver.Tx, error)           { return fakeConn{}, nil }
func (fakeConn) Commit() error                       { return nil }
func (fakeConn) Rollback() error                     { return nil }

// sqlTx returns the handle of a step's function.
func sqlTx(tx store.Tx) *sql.Tx { return tx.Handle().(*sql.Tx) }
