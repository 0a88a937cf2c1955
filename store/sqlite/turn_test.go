package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// A caller's transaction waits for its turn, not for the database's lock: the durations of the
// other transactions do not add up to the busy timeout.
func TestCallersTransactionsWaitTheirTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openShortBusy(t)
		release := committing(t, db)
		begun := make(chan error, 4)
		for range 3 {
			go func() {
				tx, err := db.DB().BeginTx(t.Context(), nil)
				if err == nil {
					time.Sleep(shortly / 2)
					err = tx.Commit()
				}
				begun <- err
			}()
		}
		go func() {
			_, err := db.DB().ExecContext(t.Context(), "CREATE TABLE orders (n INTEGER)")
			begun <- err
		}()
		time.Sleep(time.Second)
		release()
		for range cap(begun) {
			if err := <-begun; err != nil {
				t.Errorf("a transaction or a statement behind a group of a second: %v", err)
			}
		}
	})
}

// A transaction releases its turn, whichever way it ends. A transaction that only reads needs
// no turn.
func TestCallersTransactionsGiveTheirTurnBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openShortBusy(t)
		begin := func(ctx context.Context, opts *sql.TxOptions) *sql.Tx {
			t.Helper()
			tx, err := db.DB().BeginTx(ctx, opts)
			if err != nil {
				t.Fatal(err)
			}
			return tx
		}
		for name, end := range map[string]func() error{
			"a commit":   func() error { return begin(t.Context(), nil).Commit() },
			"a rollback": func() error { return begin(t.Context(), nil).Rollback() },
			"its own ROLLBACK": func() error {
				tx := begin(t.Context(), nil)
				if _, err := tx.ExecContext(t.Context(), "ROLLBACK"); err != nil {
					return err
				}
				_ = tx.Commit() // there is nothing to commit
				return nil
			},
			"the end of its context": func() error {
				ctx, cancel := context.WithCancel(t.Context())
				begin(ctx, nil)
				cancel()
				synctest.Wait()
				return nil
			},
			"a statement": func() error {
				_, err := db.DB().ExecContext(t.Context(), "CREATE TABLE orders (n INTEGER)")
				return err
			},
			"a statement COMMIT": func() error {
				c, err := db.DB().Conn(t.Context())
				if err != nil {
					return err
				}
				defer func() { _ = c.Close() }()
				_, err = c.ExecContext(t.Context(), "BEGIN IMMEDIATE")
				_, err2 := c.ExecContext(t.Context(), "COMMIT")
				return errors.Join(err, err2)
			},
			"a statement BEGIN, which does not write": func() error {
				c, err := db.DB().Conn(t.Context())
				if err != nil {
					return err
				}
				defer func() { _ = c.Close() }()
				if _, err = c.ExecContext(t.Context(), "BEGIN"); err != nil {
					return err
				}
				err = db.Write(t.Context(), func(execSQL) error { return nil })
				_, err2 := c.ExecContext(t.Context(), "COMMIT")
				return errors.Join(err, err2)
			},
			"a read": func() error {
				tx := begin(t.Context(), &sql.TxOptions{ReadOnly: true})
				defer func() { _ = tx.Rollback() }()
				return db.Write(t.Context(), func(execSQL) error { return nil })
			},
		} {
			if err := end(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := db.Write(t.Context(), func(execSQL) error { return nil }); err != nil {
				t.Errorf("a write after %s: %v", name, err)
			}
		}
	})
}

// The error of every writer names a transaction that was left open.
func TestTransactionLeftOpen(t *testing.T) {
	t.Parallel()
	f := fileFixture(t, sqlite.BusyTimeout(shortly))
	tx := f.begin()
	says(t, f.submit(t.Context(), f.drafts(1)), store.ErrBusy, f.db.Path(), "an open transaction of the caller", "a transaction of DB(), open for ", "_test.go:", "InTx")
	_, err := f.db.DB().BeginTx(t.Context(), nil)
	says(t, err, store.ErrBusy, "open for ", "_test.go:")
	_, err = f.db.DB().ExecContext(t.Context(), "CREATE TABLE orders (n INTEGER)")
	says(t, err, store.ErrBusy, "a transaction of DB(), open for ", "_test.go:")
	if _, err := f.db.DB().ExecContext(t.Context(), "vacuum INTO ?", filepath.Join(t.TempDir(), "backup.db")); err != nil {
		t.Errorf("a backup: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	c, err := f.db.DB().Conn(t.Context())
	if err == nil {
		_, err = c.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	says(t, f.submit(t.Context(), f.drafts(1)), store.ErrBusy, "a statement of DB(), open for ", "_test.go:")
}

// Between any two step transactions a heartbeat has its turn: it waits for the running
// transaction, not for waiting ones.
func TestHeartbeatsBetweenStepTransactions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openShortBusy(t)
		ended := make(chan error, 3)
		held := make([]store.Claimed, cap(ended))
		for i := range held {
			held[i] = claimOne(t, db)
		}
		start := time.Now()
		for i := range held {
			go func() {
				_, err := db.StepTx(t.Context(), benchNS, stepOf(held[i], "slow"), time.Minute, func(context.Context, store.Tx) (json.RawMessage, error) {
					time.Sleep(time.Second)
					return nil, nil
				})
				ended <- err
			}()
		}
		synctest.Wait()
		for i := range cap(ended) - 1 {
			beats, err := db.Heartbeat(t.Context(), benchNS, store.HeartbeatRequest{Worker: "w", TTL: time.Minute, Leases: []task.Lease{held[0].Lease}})
			if err != nil || beats[0].Lost {
				t.Errorf("the heartbeat: %+v, %v", beats, err)
			}
			if got := time.Since(start).Truncate(time.Second); got != time.Duration(i+1)*time.Second {
				t.Errorf("heartbeat %d ended %v after the start, want %v: after %d of the step transactions", i+1, got, time.Duration(i+1)*time.Second, i+1)
			}
			time.Sleep(time.Millisecond) // into the next function
		}
		for range held {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// A step transaction whose lease was lost while it waited for its turn does not run its
// function, because another attempt may do the same work now.
func TestStepTransactionLooksAtItsLeaseAfterWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openShortBusy(t)
		c := claimOne(t, db)
		tx, err := db.DB().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		cancelled, stepped := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := db.StepTx(t.Context(), benchNS, stepOf(c, "late"), time.Minute, func(context.Context, store.Tx) (json.RawMessage, error) {
				t.Error("the function ran, though its lease was lost before")
				return nil, nil
			})
			stepped <- err
		}()
		synctest.Wait()
		go func() {
			_, err := db.Operate(t.Context(), benchNS, store.CancelTask{Task: c.Task.ID, Force: true})
			cancelled <- err
		}()
		synctest.Wait()
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := <-cancelled; err != nil {
			t.Fatal(err)
		}
		if err := <-stepped; !errors.Is(err, store.ErrLeaseLost) {
			t.Errorf("the step transaction: %v, want the lease to be lost", err)
		}
	})
}
