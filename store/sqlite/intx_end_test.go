package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// noted returns a caller's transaction that wrote its own note.
func noted(t *testing.T, s *noteStore) *sql.Tx {
	t.Helper()
	tx := begin(t, s.db)
	if _, err := tx.ExecContext(t.Context(), note("caller")); err != nil {
		t.Fatal(err)
	}
	return tx
}

// commits commits a caller's transaction and checks the written notes.
func commits(t *testing.T, s *noteStore, tx *sql.Tx, want string) {
	t.Helper()
	if err := tx.Commit(); err != nil {
		t.Errorf("Commit: %v", err)
	}
	if got := s.notes(); got != want {
		t.Errorf("notes %q, want %q", got, want)
	}
}

// With an ended context nothing is enqueued.
func TestInTxUnderAnEndedContext(t *testing.T) {
	t.Parallel()
	s := newNoteStore(t)
	tx := noted(t, s)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errOwn)
	_, err := s.db.Enqueue(ctx, benchNS, sqlite.Tx(tx), newTasks(task.NewIDs(nil), 1))
	failure(t, err, errOwn, "own error")
	commits(t, s, tx, "caller")
	if n := count(t, s.db, "SELECT count(*) FROM weaver_tasks"); n != 0 {
		t.Errorf("%d tasks were stored", n)
	}
}

// The end of a context does not reach an operation that runs in a caller's transaction. The
// operation completes, or is rolled back completely if it failed, and the transaction
// continues.
func TestInTxContextEndsInside(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]error{"succeeds": nil, "fails": errOwn} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newNoteStore(t)
			tx := noted(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := s.db.InTx(ctx, sqlite.Tx(tx), func(x execSQL) error {
				err := x(note("before"))
				cancel()
				return errors.Join(err, x(note("behind")), fails)
			})
			want := "before behind caller"
			if fails != nil {
				want = "caller"
			}
			if !errors.Is(err, fails) {
				t.Errorf("the operation says %v, want %v", err, fails)
			}
			commits(t, s, tx, want)
		})
	}
}

// A panic is the error of its operation. The caller's transaction continues.
func TestInTxPanics(t *testing.T) {
	t.Parallel()
	s := newNoteStore(t)
	tx := noted(t, s)
	err := s.db.InTx(t.Context(), sqlite.Tx(tx), func(x execSQL) error {
		_ = x(note("never"))
		panic("boom")
	})
	if err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("an operation that panics says %v", err)
	}
	commits(t, s, tx, "caller")
}

// The notices of a failed enqueue are dropped: the commit of its transaction does not send
// them.
func TestInTxFailureIsNotNotified(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, memory(t))
	notices := f.notices()
	tx := f.begin()
	if _, err := tx.ExecContext(t.Context(), "CREATE TEMP TRIGGER no BEFORE INSERT ON weaver_outbox_events WHEN NEW.priority = 9 BEGIN SELECT RAISE(FAIL, 'no'); END"); err != nil {
		t.Fatal(err)
	}
	bad := f.drafts(2)
	bad.Tasks[1].Priority = 9
	if _, err := f.db.Enqueue(t.Context(), fixNS, sqlite.Tx(tx), bad); err == nil {
		t.Fatal("the enqueue did not fail")
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if len(notices) != 0 {
		t.Errorf("notified %+v of an enqueue that failed", <-notices)
	}
}

// A failed commit is reported to its caller and notified to no listener.
func TestInTxCommitFails(t *testing.T) {
	both(t, func(t *testing.T, db *sqlite.DB) {
		var notices []store.Notice
		stop, _ := db.Notify(benchNS, nil, func(n store.Notice) {
			if !n.External { // another connection creates the tables
				notices = append(notices, n)
			}
		})
		defer stop()
		conn, err := db.DB().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range []string{
			"PRAGMA foreign_keys=ON",
			"CREATE TABLE people (id INTEGER PRIMARY KEY)",
			"CREATE TABLE orders (buyer INTEGER REFERENCES people DEFERRABLE INITIALLY DEFERRED)",
		} {
			if _, err := conn.ExecContext(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		tx, err := conn.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Enqueue(t.Context(), benchNS, sqlite.Tx(tx), newTasks(task.NewIDs(nil), 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), "INSERT INTO orders VALUES (1)"); err != nil { // no such person: found at the commit
			t.Fatal(err)
		}
		if err := tx.Commit(); err == nil {
			t.Error("the commit succeeded")
		}
		if len(notices) != 0 {
			t.Errorf("notified %+v of a transaction that was not committed", notices)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		if n := count(t, db, "SELECT count(*) FROM weaver_tasks"); n != 0 {
			t.Errorf("%d tasks were stored", n)
		}
	})
}
