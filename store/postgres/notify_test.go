package postgres_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/store/postgres/internal/notices"
	"github.com/goweaver/weaver/task"
)

const space = "notices"

var drawn = task.NewIDs(nil)

// heard collects notices.
type heard struct {
	t    *testing.T
	mu   sync.Mutex
	list []store.Notice
}

func (h *heard) add(n store.Notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, n)
}

// reset clears the collected notices.
func (h *heard) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = nil
}

func (h *heard) any(ok func(store.Notice) bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.list, ok)
}

// await waits for a notice.
func (h *heard) await(what string, ok func(store.Notice) bool) {
	h.t.Helper()
	eventually(h.t, what, func() bool { return h.any(ok) })
}

// eventually waits for a condition for which there is no notice.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	for !holds() {
		select {
		case <-late:
			t.Fatalf("not within a minute: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// paced waits until a process may send its next notice.
func paced() { <-time.After(60 * time.Millisecond) }

func isDue(n store.Notice) bool      { return n.Due }
func isExternal(n store.Notice) bool { return n.External }

// listening registers a listener with a store.
func listening(t *testing.T, db *postgres.DB) *heard {
	h := &heard{t: t}
	stop, complete := db.Notify(space, nil, h.add)
	if complete {
		t.Error("the notices are said to be complete")
	}
	t.Cleanup(stop)
	return h
}

func submission(n int) (sub store.Submission) {
	for range n {
		sub.Tasks = append(sub.Tasks, task.New{ID: drawn.New(), Type: "t", Queue: task.DefaultQueue, Input: []byte(`1`), SchemaVersion: 1, Priority: task.DefaultPriority, MaxAttempts: 3, Backoff: task.DefaultBackoff, BackoffMax: task.DefaultBackoffMax})
	}
	return sub
}

func enqueue(t *testing.T, db store.Store, in store.Tx) task.ID {
	t.Helper()
	sub := submission(1)
	if _, err := db.Enqueue(t.Context(), space, in, sub); err != nil {
		t.Fatal(err)
	}
	return sub.Tasks[0].ID
}

// joined makes a worker join.
func joined(t *testing.T, db *postgres.DB) store.WorkerID {
	t.Helper()
	w := store.WorkerID(drawn.New().String())
	if err := db.Join(t.Context(), space, store.WorkerInfo{ID: w, Name: "test", TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	return w
}

func claim(t *testing.T, db *postgres.DB, w store.WorkerID) []store.Claimed {
	t.Helper()
	res, err := db.Claim(t.Context(), space, store.ClaimRequest{Worker: w, LeaseID: task.NewLeaseID(), TTL: time.Minute, Limit: 10, Slots: 10, Types: map[string]int{"t": 1}})
	if err != nil {
		t.Fatal(err)
	}
	return res.Tasks
}

// idle makes a worker claim nothing, until its row says that it is idle.
func idle(t *testing.T, db *postgres.DB, w store.WorkerID) {
	t.Helper()
	if got := claim(t, db, w); len(got) > 0 {
		t.Fatalf("a claim of nothing got %d tasks", len(got))
	}
	eventually(t, "the worker's row says that it is idle", func() bool { return saysIdle(t, db, w) })
}

// drained makes a worker claim all due tasks.
func drained(t *testing.T, db *postgres.DB) store.WorkerID {
	t.Helper()
	w := joined(t, db)
	for len(claim(t, db, w)) > 0 {
	}
	return w
}

func saysIdle(t *testing.T, db *postgres.DB, w store.WorkerID) (idle bool) {
	t.Helper()
	err := db.Pool().QueryRow(t.Context(), `SELECT idle_since IS NOT NULL FROM weaver.weaver_workers WHERE worker_id = $1`, string(w)).Scan(&idle)
	if err != nil {
		t.Fatal(err)
	}
	return idle
}

// two opens a database twice, as two processes would.
func two(t *testing.T, opts ...postgres.Option) (url string, here, there *postgres.DB) {
	t.Helper()
	url = pgtest.Migrated(t, "weaver", migrateURL)
	return url, openURL(t, url, opts...), openURL(t, url, opts...)
}

// wired collects the notices that are sent over the channel.
type wired struct {
	heard
	conn   *pgx.Conn // sends markers
	marked chan struct{}
}

const mark = "mark"

// wire listens on the channel.
func wire(t *testing.T, url string) *wired {
	t.Helper()
	h := &wired{heard: heard{t: t}, conn: connect(t, url).conn, marked: make(chan struct{})}
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), "LISTEN "+notices.Channel("weaver", space)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			n, err := c.WaitForNotification(ctx)
			switch {
			case err != nil:
				return
			case n.Payload == mark:
				h.marked <- struct{}{}
			default:
				h.add(store.Notice{Due: true})
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		_ = c.Close(context.Background())
	})
	return h
}

// count returns the number of notices committed so far.
func (h *wired) count() int {
	h.t.Helper()
	if _, err := h.conn.Exec(h.t.Context(), "SELECT pg_notify($1, $2)", notices.Channel("weaver", space), mark); err != nil {
		h.t.Fatal(err)
	}
	<-h.marked // it arrives after them
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.list)
}

// end closes a process, which sends its pending notices.
func end(t *testing.T, db *postgres.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestIdleWorkerIsTold(t *testing.T) {
	t.Parallel()
	_, here, there := two(t)
	h := listening(t, here)
	h.await("a listener that begins looks at once", isExternal)
	w := joined(t, here)
	h.reset()
	idle(t, here, w)
	h.await("a worker looks again when its row says that it is idle", isDue)
	for range 3 {
		h.reset()
		enqueue(t, there, nil)
		h.await("an enqueue of another process is told", isDue)
	}
	claim(t, here, w)
	eventually(t, "a worker with work does not say that it is idle", func() bool { return !saysIdle(t, here, w) })
}

func TestNobodyIdleNobodyTold(t *testing.T) {
	t.Parallel()
	url, here, there := two(t)
	onWire := wire(t, url)
	h := listening(t, here)
	h.await("it listens", isExternal)
	w := joined(t, here)
	enqueue(t, there, nil)
	near := joined(t, there) // an idle worker of the same process needs no notice
	claim(t, there, near)
	idle(t, there, near)
	enqueue(t, there, nil)
	end(t, there)
	if n := onWire.count(); n != 0 {
		t.Errorf("%d notices while no worker of another process was idle", n)
	}
	claim(t, here, w)
	idle(t, here, w)
	enqueue(t, openURL(t, url), nil)
	eventually(t, "a notice", func() bool { return onWire.count() == 1 })
}

func TestNoMoreThanTwentyNotices(t *testing.T) {
	t.Parallel()
	url, here, there := two(t)
	onWire := wire(t, url)
	idle(t, here, joined(t, here))
	begun := time.Now()
	enqueued := 0
	for ; onWire.count() < 5; enqueued++ {
		enqueue(t, there, nil)
	}
	end(t, there)
	n, took := onWire.count(), time.Since(begun)
	if most := 1 + int(took/(50*time.Millisecond)) + 1; n > most { // the last one may be sent at the end
		t.Errorf("%d enqueues made %d notices in %v, want %d at most", enqueued, n, took, most)
	}
}

func TestInTxTellsWithItsCommit(t *testing.T) {
	t.Parallel()
	url, here, there := two(t)
	onWire := wire(t, url)
	h := listening(t, here)
	own := listening(t, there)
	h.await("it listens", isExternal)
	own.await("it listens too", isExternal)
	in := func(commit bool, n int) {
		t.Helper()
		tx, err := there.Pool().Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			enqueue(t, there, postgres.Tx(tx))
		}
		if commit {
			err = tx.Commit(t.Context())
		} else {
			err = tx.Rollback(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	h.reset()
	own.reset()
	in(false, 1)
	if onWire.count() > 0 || h.any(isDue) {
		t.Error("a transaction that was rolled back told somebody")
	}
	paced()
	in(true, 3)
	h.await("the commit is told", isDue)
	own.await("the process itself is told too", isDue)
	paced()
	sqlTx, err := there.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	h.reset()
	enqueue(t, there, postgres.SQLTx(sqlTx))
	if err := sqlTx.Commit(); err != nil {
		t.Fatal(err)
	}
	h.await("a commit of database/sql is told", isDue)
	eventually(t, "one notice for each transaction", func() bool { return onWire.count() == 2 })

	paced()
	begun, sent := time.Now(), onWire.count()
	for range 40 {
		in(true, 1)
	}
	n, took := onWire.count()-sent, time.Since(begun)
	if most := int(took/(50*time.Millisecond)) + 1; n > most || n == 0 {
		t.Errorf("40 transactions made %d notices in %v, want 1 to %d", n, took, most)
	}
	idle(t, here, drained(t, here))
	sent = onWire.count()
	h.reset()
	there.Wake(space)
	h.await("Wake tells of what was committed", isDue)
	eventually(t, "one notice for Wake", func() bool { return onWire.count() == sent+1 })
	sent = onWire.count()

	silent := openURL(t, url, postgres.NotifyInTx(false))
	tx, err := silent.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, silent, postgres.Tx(tx))
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := onWire.count(); n != sent {
		t.Errorf("NotifyInTx(false): %d notices, want none", n-sent)
	}
}

// A lost session is restored, and listeners poll then.
func TestListenerOutlivesItsSession(t *testing.T) {
	t.Parallel()
	srv := pgtest.Start(t, pgtest.Options{})
	url := srv.Database()
	if err := migrateURL(url); err != nil {
		t.Fatal(err)
	}
	here := openURL(t, url)
	h := listening(t, here)
	h.await("it listens", isExternal)
	w := joined(t, here)
	idle(t, here, w)
	told := func(after string) {
		t.Helper()
		h.await("listeners look after "+after, isExternal)
		there := openURL(t, url)
		h.reset()
		eventually(t, "the enqueue after "+after+" is told", func() bool {
			enqueue(t, there, nil)
			return h.any(isDue)
		})
	}
	h.reset()
	killer, err := pgx.Connect(t.Context(), url)
	if err == nil {
		_, err = killer.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	}
	if err == nil {
		err = killer.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	told("pg_terminate_backend")
	h.reset()
	srv.Stop(pgtest.Fast)
	srv.Start()
	told("a restart of the server")
}

func TestNoNoticesThroughAPooler(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t, "weaver", migrateURL)
	onWire := wire(t, url)
	pooled := pgtest.Bouncer(t, url, "transaction")
	here, there := openURL(t, pooled), openURL(t, pooled)
	h := listening(t, here)
	w := joined(t, here)
	if got := claim(t, here, w); len(got) > 0 {
		t.Fatal("tasks from nowhere")
	}
	id := enqueue(t, there, nil)
	end(t, there)
	if saysIdle(t, here, w) || onWire.count() > 0 || h.any(isDue) {
		t.Error("notices through a pooler")
	}
	// Polling finds the changes that callers wait for.
	claim(t, here, w)
	if _, err := openURL(t, pooled).Operate(t.Context(), space, store.CancelTask{Task: id, Audit: store.Audit{By: "test"}}); err != nil {
		t.Fatal(err)
	}
	h.await("the cancel of a running task", func(n store.Notice) bool { return slices.Contains(n.Cancels, id) })
}

// Waiting callers get a notice of finished tasks, and poll if there is no notice.
func TestAwaited(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t, "weaver", migrateURL)
	pooled := pgtest.Bouncer(t, url, "transaction")
	for _, c := range []struct{ name, url string }{{"direct", url}, {"pooled", pooled}} {
		here, there := openURL(t, c.url), openURL(t, c.url)
		id, other := enqueue(t, there, nil), enqueue(t, there, nil)
		h := &heard{t: t}
		lookedFor := func() []task.ID {
			if c.name == "direct" {
				return nil // there is a notice
			}
			return []task.ID{id}
		}
		stop, ok := here.Notify(space, lookedFor, h.add)
		if !ok {
			t.Fatal("it cannot wait")
		}
		t.Cleanup(stop)
		if c.name == "direct" {
			h.await("it listens", isExternal)
		}
		for _, ended := range []task.ID{other, id} {
			if _, err := there.Operate(t.Context(), space, store.CancelTask{Task: ended, Audit: store.Audit{By: "test"}}); err != nil {
				t.Fatal(err)
			}
		}
		h.await(c.name+": the end of the task", func(n store.Notice) bool { return slices.Contains(n.Tasks, id) })
		if c.name == "pooled" && h.any(func(n store.Notice) bool { return slices.Contains(n.Tasks, other) }) {
			t.Error("it was told of a task that nobody waits for")
		}
	}
}

// Close sends the notices of committed changes before it returns.
func TestLastWord(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t, "weaver", migrateURL)
	here := openURL(t, url)
	h := listening(t, here)
	h.await("it listens", isExternal)
	idle(t, here, joined(t, here))
	h.reset()
	there, err := postgres.Open(t.Context(), url, postgres.Unsafe())
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, there, nil)
	if err := there.Close(); err != nil {
		t.Fatal(err)
	}
	h.await("the enqueue of a process that ended at once", isDue)
}
