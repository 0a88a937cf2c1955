package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// pair returns two handles on one file, as in two processes.
func pair(t *testing.T) (a, b *sqlite.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "w.db")
	return openFile(t, path), openFile(t, path)
}

func TestOtherHandleSeesNewLanes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // in a bubble reading the lanes takes no time
		a, b := pair(t)
		if n := claimable(t, b); n != 0 { // b knows that there are no lanes
			t.Fatalf("claimed %d", n)
		}
		sub := newTasks(task.NewIDs(nil), 2)
		sub.Tasks[1].Queue, sub.Tasks[1].Priority = "new", 1
		if _, err := a.Enqueue(t.Context(), benchNS, nil, sub); err != nil {
			t.Fatal(err)
		}
		if n := claimable(t, b); n != 2 {
			t.Errorf("the other handle claimed %d tasks, want 2", n)
		}
		if n := claimable(t, a); n != 0 {
			t.Errorf("claimed %d tasks a second time", n)
		}
	})
}

// Within about 20 ms a handle notices another handle's write, even if it is idle. When stop
// returns, its goroutine has ended.
func TestOtherHandleIsNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		noticed := make(chan time.Time, 100)
		stop, complete := b.Notify(benchNS, nil, func(n store.Notice) {
			if n.External {
				noticed <- time.Now()
			}
		})
		if complete {
			t.Error("a file's notices claim to be complete")
		}
		for range 3 {
			time.Sleep(time.Second)
			if len(noticed) != 0 {
				t.Fatal("announced a write that did not happen")
			}
			start := time.Now()
			if _, err := a.Enqueue(t.Context(), benchNS, nil, newTasks(task.NewIDs(nil), 1)); err != nil {
				t.Fatal(err)
			}
			if d := (<-noticed).Sub(start); d > 50*time.Millisecond {
				t.Errorf("noticed it after %v", d)
			}
		}
		tx := begin(t, a)
		if _, err := a.Enqueue(t.Context(), benchNS, sqlite.Tx(tx), newTasks(task.NewIDs(nil), 1)); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		<-noticed
		stop()
		stop()
		if _, err := a.Enqueue(t.Context(), benchNS, nil, newTasks(task.NewIDs(nil), 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if len(noticed) != 0 {
			t.Error("announced after stop")
		}
	}) // the bubble would not end with a goroutine left
}

func TestMemoryDoesNotPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := memory(t)
		_, complete := db.Notify(benchNS, nil, func(store.Notice) {})
		if !complete {
			t.Error("in memory nothing escapes the notices")
		}
	}) // without stop: nothing may be left running
}

func join(t *testing.T, db *sqlite.DB, id store.WorkerID) {
	t.Helper()
	if err := db.Join(t.Context(), benchNS, store.WorkerInfo{ID: id, Name: string(id), TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
}

// The leases of an ended process are taken at once: its lock is free.
func TestDeadProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	a := openFile(t, path)
	b, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	join(t, a, "a")
	join(t, b, "w")
	if _, err := a.Enqueue(t.Context(), benchNS, nil, newTasks(task.NewIDs(nil), 2)); err != nil {
		t.Fatal(err)
	}
	if n := claimable(t, b); n != 2 { // under worker w
		t.Fatalf("claimed %d", n)
	}
	reap := func() store.ReapResult {
		t.Helper()
		got, err := a.Reap(t.Context(), benchNS, store.ReapRequest{Worker: "a", TTL: time.Minute, CrashBudget: 3})
		if err != nil || got.WarmingUp {
			t.Fatalf("Reap = %+v, %v", got, err)
		}
		return got
	}
	if got := reap(); len(got.Reaped) != 0 {
		t.Fatalf("reaped %v of a living process", got.Reaped)
	}
	locks, err := filepath.Glob(path + ".workers/[0-9a-f]*")
	if err != nil || len(locks) != 2 {
		t.Fatalf("lock files %v, %v, want 2", locks, err)
	}
	if err := b.Close(); err != nil { // without Leave: as in a crash
		t.Fatal(err)
	}
	got := reap()
	if len(got.Reaped) != 2 || !got.Reaped[0].Crash {
		t.Errorf("reaped %+v, want both tasks of the dead process as crashes", got.Reaped)
	}
	if n := claimable(t, a); n != 2 {
		t.Errorf("claimed %d tasks, want 2", n)
	}
	if locks, _ = filepath.Glob(path + ".workers/[0-9a-f]*"); len(locks) != 1 {
		t.Errorf("lock files %v, want one: the reaper removes that of the dead", locks)
	}
	if err := a.Leave(t.Context(), benchNS, "a"); err != nil {
		t.Fatal(err)
	}
	if locks, _ = filepath.Glob(path + ".workers/[0-9a-f]*"); len(locks) != 0 {
		t.Errorf("lock files %v are left after Leave", locks)
	}
}

// A missing lock file does not prove a worker dead.
func TestMissingLockFile(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	join(t, a, "a")
	join(t, b, "w")
	if _, err := a.Enqueue(t.Context(), benchNS, nil, newTasks(task.NewIDs(nil), 1)); err != nil {
		t.Fatal(err)
	}
	if n := claimable(t, b); n != 1 {
		t.Fatalf("claimed %d", n)
	}
	if err := os.RemoveAll(a.Path() + ".workers"); err != nil {
		t.Fatal(err)
	}
	got, err := a.Reap(t.Context(), benchNS, store.ReapRequest{Worker: "a", TTL: time.Minute, CrashBudget: 3})
	if err != nil || len(got.Reaped) != 0 {
		t.Errorf("Reap = %+v, %v", got, err)
	}
}

func stepOf(c store.Claimed, name string) store.Record {
	return store.Record{Lease: c.Lease, Step: &task.Step{Name: name, Kind: task.KindStep, State: task.StepCompleted, Try: 1}}
}

func claimOne(t *testing.T, db *sqlite.DB) store.Claimed {
	t.Helper()
	if _, err := db.Enqueue(t.Context(), benchNS, nil, newTasks(task.NewIDs(nil), 1)); err != nil {
		t.Fatal(err)
	}
	got, err := db.Claim(t.Context(), benchNS, claimRequest(1))
	if err != nil || len(got.Tasks) != 1 {
		t.Fatalf("Claim = %v, %v", got.Tasks, err)
	}
	return got.Tasks[0]
}

// The user's writes and the step's value commit together, once.
func TestStepTx(t *testing.T) {
	both(t, func(t *testing.T, db *sqlite.DB) {
		if err := db.Exec(t.Context(), "CREATE TABLE orders (n INTEGER)"); err != nil {
			t.Fatal(err)
		}
		c := claimOne(t, db)
		insert := func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
			_, err := sqlTx(tx).ExecContext(ctx, "INSERT INTO orders VALUES (1)")
			return json.RawMessage(`7`), err
		}
		orders := func(want int) {
			t.Helper()
			if n := count(t, db, "SELECT count(*) FROM orders"); n != want {
				t.Errorf("%d orders, want %d", n, want)
			}
		}
		got, err := db.StepTx(t.Context(), benchNS, stepOf(c, "save"), time.Second, insert)
		if err != nil || string(got.Step.Value) != "7" {
			t.Fatalf("StepTx = %+v, %v", got, err)
		}
		orders(1)
		// The answer was lost and the step is tried again: its writes must not be stored
		// twice.
		again, err := db.StepTx(t.Context(), benchNS, stepOf(c, "save"), time.Second, insert)
		if err != nil || string(again.Step.Value) != "7" {
			t.Errorf("StepTx again = %+v, %v", again, err)
		}
		orders(1)
		_, err = db.StepTx(t.Context(), benchNS, stepOf(c, "fails"), time.Second, func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
			_, err := insert(ctx, tx)
			return nil, errors.Join(err, errOwn)
		})
		if !errors.Is(err, errOwn) {
			t.Errorf("StepTx of a function that fails: %v", err)
		}
		orders(1)
		stolen := c
		stolen.Lease.Epoch++
		_, err = db.StepTx(t.Context(), benchNS, stepOf(stolen, "late"), time.Second, insert)
		failure(t, err, store.ErrLeaseLost)
		orders(1)
	})
}

// While a step's transaction is open the others wait. If it takes too long it is rolled back,
// and they continue even if its function does not.
func TestStepTxTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := memory(t)
		if err := db.Exec(t.Context(), "CREATE TABLE orders (n INTEGER)"); err != nil {
			t.Fatal(err)
		}
		c := claimOne(t, db)
		goOn := make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			_, err := db.StepTx(t.Context(), benchNS, stepOf(c, "slow"), time.Second, func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
				if _, err := sqlTx(tx).ExecContext(ctx, "INSERT INTO orders VALUES (1)"); err != nil {
					t.Error(err)
				}
				<-goOn // it ignores its context
				_, err := sqlTx(tx).ExecContext(context.Background(), "INSERT INTO orders VALUES (2)")
				if err == nil {
					t.Error("the transaction can be written after its end")
				}
				return json.RawMessage(`1`), nil
			})
			ended <- err
		}()
		time.Sleep(time.Millisecond)
		start := time.Now()
		if _, err := db.Heartbeat(t.Context(), benchNS, store.HeartbeatRequest{Worker: "w", TTL: time.Minute, Leases: []task.Lease{c.Lease}}); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d < 900*time.Millisecond || d > 1100*time.Millisecond {
			t.Errorf("the heartbeat beside it took %v, want what is left of the limit", d)
		}
		close(goOn)
		failure(t, <-ended, store.ErrStepTxTooLong)
		if n := count(t, db, "SELECT count(*) FROM orders"); n != 0 {
			t.Errorf("%d orders are left of a transaction that was rolled back", n)
		}
		if _, err := db.StepTx(t.Context(), benchNS, stepOf(c, "next"), time.Second, func(context.Context, store.Tx) (json.RawMessage, error) { return nil, nil }); err != nil {
			t.Errorf("the next one: %v", err)
		}
	})
}

func TestErrorsNameTheFile(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "w.db"))
	if err := db.Exec(t.Context(), "DROP TABLE weaver_outbox_events"); err != nil {
		t.Fatal(err)
	}
	_, err := db.Enqueue(t.Context(), benchNS, nil, newTasks(task.NewIDs(nil), 1))
	if err == nil || !strings.Contains(err.Error(), db.Path()) {
		t.Errorf("the error %v does not name the file", err)
	}
}
