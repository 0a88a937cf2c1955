package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
)

// forms are the ways in which user code returns an error.
var forms = map[string]func(error) error{
	"raw":     func(err error) error { return err },
	"wrapped": func(err error) error { return fmt.Errorf("save the user: %w", err) },
	"joined":  func(err error) error { return errors.Join(errors.New("twice"), fmt.Errorf("save: %w", err)) },
}

// User code gets the driver's transient errors too, on its own connections and on those of DB.
func TestTransientErrorsOfTheDriver(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	transient := []error{
		sqlite3.BUSY, sqlite3.BUSY_SNAPSHOT, sqlite3.LOCKED, sqlite3.LOCKED_SHAREDCACHE, sqlite3.INTERRUPT, sqlite3.IOERR,
		sqlite3.IOERR_FSYNC, sqlite3.FULL, sqlite3.NOMEM, sqlite3.PROTOCOL, sqlite3.CANTOPEN, sqlite3.READONLY,
		driver.ErrBadConn, sql.ErrConnDone, sql.ErrTxDone, store.ErrBusy,
	}
	final := []error{
		sqlite3.CONSTRAINT, sqlite3.CONSTRAINT_UNIQUE, sqlite3.ERROR, sqlite3.MISMATCH, sqlite3.TOOBIG, sqlite3.CORRUPT,
		sql.ErrNoRows, errors.New("database is locked"), nil,
	}
	for form, wrap := range forms {
		for _, err := range transient {
			if !store.Transient(f.db, wrap(err)) {
				t.Errorf("%v, %s, is not transient", err, form)
			}
			if !store.Transient(storehook.New(f.db, &storehook.Hooks{}), wrap(err)) {
				t.Errorf("%v, %s, is not transient behind a hook", err, form)
			}
		}
		for _, err := range final {
			if err != nil && store.Transient(f.db, wrap(err)) {
				t.Errorf("%v, %s, is transient", err, form)
			}
		}
	}
	if store.Transient(f.db, nil) {
		t.Error("no error is transient")
	}
}

// A step that meets a locked database has no result: RecordError does not record the error,
// and the next attempt runs the step's function again.
func TestRecordErrorBesideALock(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	own, err := sql.Open("sqlite3", "file:"+filepath.Join(t.TempDir(), "users.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if _, err := own.Exec("CREATE TABLE users (name TEXT PRIMARY KEY); PRAGMA busy_timeout=1"); err != nil {
		t.Fatal(err)
	}
	typ := weaver.Define[string, string]("acme.test.locked.v1", weaver.Backoff(time.Millisecond))
	for form, wrap := range forms {
		holder, err := own.Begin()
		if err == nil {
			_, err = holder.Exec("INSERT INTO users (name) VALUES ('holder " + form + "')")
		}
		if err != nil {
			t.Fatal(err)
		}
		eng, err := weaver.New(f.db, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, name string) (string, error) {
			_, err := weaver.Step(ctx, "save", func(ctx context.Context) (string, error) {
				_, err := own.ExecContext(ctx, "PRAGMA busy_timeout=1; INSERT INTO users (name) VALUES ('"+name+"')")
				if err != nil {
					err = wrap(err)
				}
				return name, err
			}, weaver.RecordError())
			if weaver.Current(ctx).AttemptNo == 1 {
				if !errors.Is(err, sqlite3.BUSY) {
					t.Errorf("%s: the step returned %v, want one that is BUSY", form, err)
				}
				if err := holder.Rollback(); err != nil {
					t.Error(err)
				}
			}
			return name, err
		})}})
		if err != nil {
			t.Fatal(err)
		}
		h, err := typ.Enqueue(t.Context(), eng, form)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- eng.Run(ctx) }()
		if _, err := h.Wait(t.Context()); err != nil {
			t.Errorf("%s: %v; want success by the second run of the step", form, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
