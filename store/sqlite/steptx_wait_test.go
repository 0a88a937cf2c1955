package sqlite_test

import (
	"context"
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

// Groups and step transactions of one process take the turn to write one after the other,
// however long each takes. If they waited for SQLite's lock instead, they would fail after the
// busy timeout.

// openShortBusy opens a file with a short busy timeout. In a bubble the busy handler's sleep
// takes no time.
func openShortBusy(t *testing.T) *sqlite.DB {
	t.Helper()
	return openFile(t, filepath.Join(t.TempDir(), "w.db"), sqlite.BusyTimeout(shortly))
}

func valueless(context.Context, store.Tx) (json.RawMessage, error) { return nil, nil }

func TestAHeartbeatWaitsForAStepTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openShortBusy(t)
		c := claimOne(t, db)
		ended := make(chan error, 1)
		go func() {
			_, err := db.StepTx(t.Context(), benchNS, stepOf(c, "slow"), time.Minute, func(context.Context, store.Tx) (json.RawMessage, error) {
				time.Sleep(time.Second)
				return nil, nil
			})
			ended <- err
		}()
		synctest.Wait()
		beats, err := db.Heartbeat(t.Context(), benchNS, store.HeartbeatRequest{Worker: "w", TTL: time.Minute, Leases: []task.Lease{c.Lease}})
		if err != nil || beats[0].Lost {
			t.Errorf("the heartbeat beside it: %+v, %v", beats, err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// committing holds the commit of a write until release is called. release waits for the end of
// the write.
func committing(t *testing.T, db *sqlite.DB) (release func()) {
	t.Helper()
	goOn, ended := make(chan struct{}), make(chan error, 1)
	db.OnCommit(func(commit func() error) error { <-goOn; return commit() })
	go func() { ended <- db.Write(t.Context(), func(execSQL) error { return nil }) }()
	synctest.Wait()
	return func() {
		t.Helper()
		close(goOn)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		db.OnCommit(nil)
	}
}

func TestAStepTransactionWaitsForAGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openShortBusy(t)
		c := claimOne(t, db)
		release := committing(t, db)
		stepped := make(chan error, 1)
		go func() {
			_, err := db.StepTx(t.Context(), benchNS, stepOf(c, "waits"), time.Minute, valueless)
			stepped <- err
		}()
		time.Sleep(time.Second)
		release()
		if err := <-stepped; err != nil {
			t.Errorf("the step transaction beside it: %v", err)
		}
	})
}

func TestAStepTransactionWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openShortBusy(t)
		c := claimOne(t, db)
		release := committing(t, db)
		ctx, cancel := context.WithCancelCause(t.Context())
		stepped := make(chan error, 1)
		go func() {
			_, err := db.StepTx(ctx, benchNS, stepOf(c, "cancelled"), time.Minute, valueless)
			stepped <- err
		}()
		synctest.Wait()
		cancel(errOwn)
		synctest.Wait()
		select {
		case err := <-stepped:
			if !errors.Is(err, errOwn) {
				t.Errorf("a step transaction whose context ended while it waited: %v", err)
			}
		default:
			t.Error("a step transaction whose context ended waits for the group")
		}
		release()
		// It took no turn, so it has no turn to release.
		if _, err := db.StepTx(t.Context(), benchNS, stepOf(c, "next"), time.Minute, valueless); err != nil {
			t.Errorf("the next one: %v", err)
		}
	})
}

// The wait for a transaction of another process does not count against the limit of the
// function. Otherwise a step would fail because of other writers.
func TestAStepTransactionWaitsForAnotherProcess(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second
	for name, c := range map[string]struct {
		held time.Duration
		runs bool
	}{
		"for less than the limit": {limit * 3 / 4, true},
		"for longer":              {2 * limit, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db := openFile(t, filepath.Join(t.TempDir(), "w.db"))
				claimed := claimOne(t, db)
				tx, err := openFile(t, db.Path()).DB().BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(c.held, func() { _ = tx.Rollback() })
				ran := false
				_, err = db.StepTx(t.Context(), benchNS, stepOf(claimed, "waits"), limit, func(context.Context, store.Tx) (json.RawMessage, error) {
					ran = true
					time.Sleep(limit * 3 / 4)
					return nil, nil
				})
				if ran != c.runs || (err == nil) != c.runs {
					t.Errorf("the function ran: %v, and the step's transaction ended with %v", ran, err)
				}
				if err != nil && (!errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrStepTxTooLong)) {
					t.Errorf("it ended with %v, want ErrBusy: it is not the step's fault", err)
				}
				time.Sleep(c.held) // for the other process
			})
		})
	}
}
