package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// shortly is a busy timeout that a test lets expire.
const shortly = 20 * time.Millisecond

// Every kind of write reports the taken lock, reads continue, and no error remains once the
// lock is free again.
func TestBusyWriters(t *testing.T) {
	t.Parallel()
	f := fileFixture(t, sqlite.BusyTimeout(shortly))
	ids := f.enqueue(2)
	held := f.claim("w", 1)
	tx := fixtureOn(t, openFile(t, f.db.Path())).begin()

	says(t, f.submit(t.Context(), f.drafts(1)), store.ErrBusy, f.db.Path(), "another process")
	_, err := f.db.Claim(t.Context(), fixNS, fixClaim("w", 1))
	says(t, err, store.ErrBusy)
	_, err = f.db.Heartbeat(t.Context(), fixNS, store.HeartbeatRequest{Worker: "w", TTL: fixTTL, Leases: []task.Lease{held[0].Lease}})
	says(t, err, store.ErrBusy)
	f.sound(ids...) // reads do not wait

	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	f.finish(append(held, f.claim("w", 1)...)...)
	f.sound(ids...)
}

// A program starts while another one has a long transaction open. A running worker survives
// such a transaction too: no migration is missing, and it joins when it can.
func TestStartBesideALongTransaction(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T, path string) (*sqlite.DB, *sql.Tx){
		"of another program": func(t *testing.T, path string) (*sqlite.DB, *sql.Tx) {
			tx := fixtureOn(t, openFile(t, path)).begin()
			return openFile(t, path), tx // Open and Migrate
		},
		"of its own": func(t *testing.T, path string) (*sqlite.DB, *sql.Tx) {
			f := fixtureOn(t, openFile(t, path))
			tx := f.begin()
			if err := f.db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			return f.db, tx
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // in a bubble a busy timeout takes no time
				path := filepath.Join(t.TempDir(), "w.db")
				shut(t, openOnce(t, path))
				db, tx := open(t, path)
				f := fixtureOn(t, db)
				typ := weaver.Define[int, int](fixType)
				log, stop := f.works(weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, n int) (int, error) { return n, nil })}})
				time.Sleep(time.Minute)
				if text := log(); !strings.Contains(text, `level=WARN msg="join as a worker"`) || !strings.Contains(text, "open transaction") {
					t.Errorf("while it cannot join it logs\n%s", text)
				}
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
				ids := f.enqueue(1, func(n *task.New) { n.Input = json.RawMessage("1") })
				time.Sleep(10 * time.Second)
				got, err := f.db.Tasks(t.Context(), fixNS, ids...)
				if err != nil || got[0].State != task.Succeeded {
					t.Errorf("the task is %v, %v", got, err)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A write outside the caller's own open transaction cannot succeed. It must not wait forever.
func TestBusyByOneself(t *testing.T) {
	t.Parallel()
	f := fileFixture(t, sqlite.BusyTimeout(shortly))
	tx := f.begin()
	says(t, f.submit(t.Context(), f.drafts(1)), store.ErrBusy, f.db.Path(), "an open transaction of the caller")
	sub := f.drafts(1)
	if _, err := f.db.Enqueue(t.Context(), fixNS, sqlite.Tx(tx), sub); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	f.sound(idsOf(sub)...)
}

// Writers wait for a lock that is released in time.
func TestBusyForAWhile(t *testing.T) {
	t.Parallel()
	f := fileFixture(t, sqlite.BusyTimeout(waitLimit))
	tx := fixtureOn(t, openFile(t, f.db.Path())).begin()
	sub := f.drafts(1)
	started, done := make(chan struct{}), make(chan error, 1)
	go func() {
		close(started)
		done <- f.submit(context.Background(), sub)
	}()
	<-started
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("Enqueue that waited for the lock: %v", err)
	}
	f.sound(idsOf(sub)...)
}

// A transaction that read before another connection wrote cannot write any more. The error of
// its enqueue names the remedy.
func TestBusyDeferredTransaction(t *testing.T) {
	t.Parallel()
	f := fileFixture(t, sqlite.BusyTimeout(waitLimit)) // it is refused at once nevertheless
	tx := f.begin()
	for _, sql := range []string{"ROLLBACK", "BEGIN DEFERRED", "SELECT count(*) FROM weaver_tasks"} {
		if _, err := tx.ExecContext(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	kept := f.enqueue(1)
	_, err := f.db.Enqueue(t.Context(), fixNS, sqlite.Tx(tx), f.drafts(1))
	says(t, err, store.ErrRestartTx, f.db.Path(), "begin it immediate")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	f.sound(kept...)
}
