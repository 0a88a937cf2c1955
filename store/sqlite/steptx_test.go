package sqlite_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
)

// A record without a step is the caller's mistake: it is refused before the function runs.
func TestStepTxOfNoStep(t *testing.T) {
	t.Parallel()
	db := memory(t)
	c := claimOne(t, db)
	_, err := db.StepTx(t.Context(), benchNS, store.Record{Lease: c.Lease}, time.Minute, func(context.Context, store.Tx) (json.RawMessage, error) {
		t.Error("the function runs")
		return nil, nil
	})
	if err == nil {
		t.Error("StepTx accepts a record of no step")
	}
	if _, err := db.StepTx(t.Context(), benchNS, stepOf(c, "next"), time.Minute, valueless); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// A function's panic reaches its caller, but only after its transaction is rolled back.
// Without a limit nothing else would end the transaction, and no other write could begin.
func TestStepTxPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openShortBusy(t)
		c := claimOne(t, db)
		func() {
			defer func() {
				if p := recover(); p != "boom" {
					t.Errorf("the panic %v came through, want boom", p)
				}
			}()
			_, err := db.StepTx(t.Context(), benchNS, stepOf(c, "panics"), 0, func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
				if _, err := sqlTx(tx).ExecContext(ctx, "CREATE TABLE orders (n INTEGER)"); err != nil {
					t.Error(err)
				}
				panic("boom")
			})
			t.Errorf("StepTx of a function that panics returns %v", err)
		}()
		if err := db.Write(t.Context(), func(execSQL) error { return nil }); err != nil {
			t.Errorf("the write after it: %v", err)
		}
		if n := count(t, db, "SELECT count(*) FROM sqlite_schema WHERE name = 'orders'"); n != 0 {
			t.Error("what the function wrote is there")
		}
	})
}
