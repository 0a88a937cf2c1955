//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

// holder is a worker in this process that holds a task until the test lets it finish.
type holder struct {
	process
	t      *testing.T
	db     *postgres.DB
	id     task.ID
	finish chan struct{}
	ended  atomic.Pointer[time.Time] // when the handler's context ended
	steps  atomic.Int64
}

// hold starts a holder. It begins a step every 50 ms.
func (p process) hold(t *testing.T) *holder {
	t.Helper()
	h := &holder{process: p, t: t, db: p.db(t), finish: make(chan struct{})}
	h.id = p.enqueue(t, h.db, 1)
	begun := make(chan struct{}, 100)
	p.run(t, h.db, func(ctx context.Context, _ int) (string, error) {
		begun <- struct{}{}
		defer context.AfterFunc(ctx, func() {
			now := time.Now()
			h.ended.Store(&now)
		})()
		for i := 0; ; i++ {
			step, cancel := context.WithTimeout(ctx, time.Second) // bounds a step that hangs
			_, err := weaver.Step(step, fmt.Sprint("step ", i), func(context.Context) (int, error) {
				if ctx.Err() != nil {
					t.Error("a step began after the end of the lease")
				}
				return i, nil
			})
			cancel()
			if err == nil {
				h.steps.Add(1)
			}
			if err := lasts(ctx, 50*time.Millisecond); err != nil {
				return "", err
			}
			select {
			case <-h.finish:
				return "done", nil
			default:
			}
		}
	})
	select {
	case <-begun:
	case <-time.After(30 * time.Second):
		t.Fatal("the task did not begin within 30 s")
	}
	return h
}

// watch runs a worker of another machine that would take the task, and sends the time at which it
// does.
func (p process) watch(t *testing.T) (db *postgres.DB, took chan time.Time) {
	t.Helper()
	p.Elsewhere = true
	db, took = p.db(t), make(chan time.Time, 100)
	p.run(t, db, func(context.Context, int) (string, error) {
		took <- time.Now()
		return "done", nil
	})
	pause(2500 * time.Millisecond) // it has seen the held lock
	return db, took
}

// kept finishes the task, which no other worker took.
func (h *holder) kept() {
	h.t.Helper()
	if at := h.ended.Load(); at != nil {
		h.t.Error("the handler's context ended")
	}
	close(h.finish)
	h.innocent(h.t, h.db, h.id)
}

func newProcess(t *testing.T, u string, ttl, grace time.Duration) process {
	t.Helper()
	return process{URL: u, NS: "fault", Locks: filepath.Join(t.TempDir(), "workers"), TTL: ttl, Grace: grace}
}

// An outage shorter than the grace period ends no handler.
func testShortOutage(t *testing.T) {
	ttl, outage := 30*time.Second, 8*time.Second
	p := newProcess(t, pgtest.Migrated(t, "weaver", migrateURL), ttl, 0)
	proxy := pgtest.NewProxy(t, p.URL)
	far := p
	far.URL, far.Direct = proxy.URL(), proxy.URL()
	h := far.hold(t)
	db, took := p.watch(t)
	proxy.Swallow(pgtest.Both)
	pause(outage)
	if h.ended.Load() != nil || len(took) > 0 {
		t.Errorf("an outage of %s ended a handler, or its lease was taken", outage)
	}
	proxy.Resume()
	close(h.finish)
	h.innocent(t, db, h.id)
}

// If nothing arrives for longer than the grace period, the worker ends its handler before another
// worker takes the task. A worker whose replies are lost does the same.
func testPartition(t *testing.T) {
	ways := map[string]pgtest.Direction{"both ways": pgtest.Both}
	if full {
		ways["answers"], ways["requests"] = pgtest.ToClient, pgtest.ToServer
	}
	for name, ways := range ways {
		t.Run(name, func(t *testing.T) {
			p := newProcess(t, pgtest.Migrated(t, "weaver", migrateURL), 6*time.Second, time.Second)
			proxy := pgtest.NewProxy(t, p.URL)
			far := p
			far.URL, far.Direct = proxy.URL(), proxy.URL()
			h := far.hold(t)
			db, took := p.watch(t)
			proxy.Swallow(ways)
			proxy.CutServer() // the server notices, the worker does not
			began := time.Now()
			at := <-took
			ended := h.ended.Load()
			if ended == nil {
				t.Fatal("another worker took the task while the handler relied on its lease")
			}
			if ended.Sub(began) > 3*time.Second { // the lease lasts for 6 s
				t.Errorf("the handler ended %s after the partition, want 1 s and a little", ended.Sub(began))
			}
			if at.Before(*ended) || at.Sub(began) > 5*time.Second {
				t.Errorf("it was taken %s after the partition, %s after the handler ended", at.Sub(began), at.Sub(*ended))
			}
			proxy.Resume()
			if got := h.succeeded(t, db, h.id); got.AttemptNo != 2 {
				t.Errorf("it succeeded in attempt %d", got.AttemptNo)
			}
		})
	}
}

// A worker whose connections are repeatedly cut, or ended by an administrator, loses no lease: its
// session is restored within the grace period.
func testCutConnections(t *testing.T) {
	const cuts = 20
	t.Run("cut", func(t *testing.T) {
		p := newProcess(t, pgtest.Migrated(t, "weaver", migrateURL), 12*time.Second, 4*time.Second)
		proxy := pgtest.NewProxy(t, p.URL)
		far := p
		far.URL, far.Direct = proxy.URL(), proxy.URL()
		h := far.hold(t)
		_, took := p.watch(t)
		for range cuts {
			proxy.Cut()
			pause(700 * time.Millisecond)
		}
		if len(took) > 0 {
			t.Error("the task was taken")
		}
		h.kept()
	})
	t.Run("ended", func(t *testing.T) {
		p := newProcess(t, pgtest.Migrated(t, "weaver", migrateURL), 12*time.Second, 4*time.Second)
		h := p.hold(t)
		_, took := p.watch(t)
		c := askDirectly(t, p.URL)
		for range cuts {
			if _, err := c.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
				t.Fatal(err)
			}
			pause(700 * time.Millisecond)
		}
		if len(took) > 0 {
			t.Error("the task was taken")
		}
		h.kept()
	})
}

func askDirectly(t *testing.T, u string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// A process that is stopped for longer than its grace period, but not for longer than its lease,
// keeps its lease: its session stays open.
func testStoppedProcess(t *testing.T) {
	p := newProcess(t, pgtest.Migrated(t, "weaver", migrateURL), 15*time.Second, time.Second)
	victim := p.db(t)
	id := p.enqueue(t, victim, -1) // it ends by itself
	c := p.start(t)
	c.says("begun")
	db, took := p.watch(t)
	c.signal(syscall.SIGSTOP)
	pause(3 * time.Second)
	if len(took) > 0 {
		t.Error("a process that is stopped was found dead")
	}
	c.signal(syscall.SIGCONT)
	if got := p.succeeded(t, db, id); got.CrashCount != 0 || got.QuarantineLosses != 0 {
		t.Errorf("%d crashes were counted", got.CrashCount)
	}
}

// After a restart of the server and after a failover every lease is kept.
func testServerRestarts(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{})
	u := s.Database()
	if err := migrateURL(u); err != nil {
		t.Fatal(err)
	}
	standby := s.Standby()
	both, err := url.Parse(u)
	if err != nil {
		t.Fatal(err)
	}
	second, err := url.Parse(standby.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	both.Host += "," + second.Host
	q := both.Query()
	q.Set("target_session_attrs", "read-write")
	both.RawQuery = q.Encode()
	p := newProcess(t, both.String(), 30*time.Second, 10*time.Second)
	h := p.hold(t)
	_, took := p.watch(t)
	for _, mode := range []pgtest.Mode{pgtest.Fast, pgtest.Immediate} {
		s.Stop(mode)
		pause(500 * time.Millisecond)
		s.Start()
		pause(time.Second)
	}
	wait := askDirectly(t, s.URL("postgres"))
	eventually(t, "the standby is near", func() (caught bool) {
		if err := wait.QueryRow(t.Context(), `SELECT coalesce(bool_and(replay_lsn >= pg_current_wal_lsn() - 100000), false) FROM pg_stat_replication`).Scan(&caught); err != nil {
			t.Fatal(err)
		}
		return caught
	})
	s.Kill()
	standby.Promote()
	pause(2 * time.Second)
	if len(took) > 0 {
		t.Error("the task was taken")
	}
	h.kept()
}

// The server is away for twice the TTL, three times, under load: no task fails as poison, and no
// stored step runs again.
func testLongOutages(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{})
	u := s.Database()
	if err := migrateURL(u); err != nil {
		t.Fatal(err)
	}
	const tasks, steps, outages, ttl = 60, 60, 3, time.Second
	p := newProcess(t, u, ttl, ttl)
	var stored [tasks][steps]atomic.Bool
	var ran atomic.Int64
	work := func(ctx context.Context, n int) (string, error) {
		for i := range steps {
			_, err := weaver.Step(ctx, fmt.Sprint("step ", i), func(context.Context) (int, error) {
				ran.Add(1)
				if stored[n][i].Load() {
					t.Errorf("step %d of task %d runs again", i, n)
				}
				return i, nil
			})
			if err != nil {
				return "", err
			}
			stored[n][i].Store(true)
			if err := lasts(ctx, 100*time.Millisecond); err != nil {
				return "", err
			}
		}
		return "done", nil
	}
	first := p.db(t)
	ids := make([]task.ID, tasks)
	for n := range ids {
		ids[n] = p.enqueue(t, first, n)
	}
	p.run(t, first, work)
	second := p
	second.Elsewhere = true
	p.run(t, second.db(t), work)
	for range outages {
		pause(time.Second)
		s.Stop(pgtest.Immediate)
		pause(2 * ttl)
		s.Start()
	}
	for _, id := range ids {
		if got := p.succeeded(t, first, id); got.CrashCount != 0 || got.QuarantineLosses != 0 {
			t.Errorf("%d crashes of task %v were counted", got.CrashCount, id)
		}
	}
	t.Logf("%d step functions ran for %d steps", ran.Load(), tasks*steps)
}

// Through a pooler no lock outlives a transaction.
func testPooler(t *testing.T) {
	u := pgtest.Migrated(t, "weaver", migrateURL)
	p := newProcess(t, pgtest.Bouncer(t, u, "transaction"), 6*time.Second, time.Second)
	h := p.hold(t)
	db, took := p.watch(t)
	if h.db.Direct() || db.Direct() {
		t.Fatal("the connections are direct")
	}
	c := askDirectly(t, u)
	kept := func() (n int) {
		t.Helper()
		if err := c.QueryRow(t.Context(), `
SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) JOIN pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND a.state = 'idle' AND d.datname = current_database()`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 50 {
		if n := kept(); n != 0 {
			t.Fatalf("%d locks of sessions through the pooler", n)
		}
	}
	if _, ok := h.db.Session(p.NS, "any"); ok || len(took) > 0 {
		t.Error("there is a session through the pooler, or the task was taken")
	}
	direct := p
	direct.NS, direct.Direct = "direct", u
	named := direct.hold(t)
	if n := kept(); n != 1 {
		t.Errorf("%d locks of sessions with a direct URL, want 1", n)
	}
	named.kept()
	h.kept()
}

// A process whose direct connection is lost for long continues without it.
func testLostDirectWay(t *testing.T) {
	p := newProcess(t, pgtest.Migrated(t, "weaver", migrateURL), 3*time.Second, time.Second)
	proxy := pgtest.NewProxy(t, p.URL)
	p.Direct = proxy.URL()
	h := p.hold(t)
	close(h.finish)
	h.innocent(t, h.db, h.id)
	proxy.Swallow(pgtest.Both)
	proxy.CutServer()
	began := time.Now()
	pause(1500 * time.Millisecond) // it does not answer
	p.innocent(t, h.db, p.enqueue(t, h.db, 2))
	if took := time.Since(began); took < 5*time.Second {
		t.Errorf("it worked again after %s, want 5 s and a little", took)
	}
	var grace int
	row := func() int {
		if err := askDirectly(t, p.URL).QueryRow(t.Context(), `SELECT session_grace FROM weaver.weaver_workers`).Scan(&grace); err != nil {
			t.Fatal(err)
		}
		return grace
	}
	if n := row(); n >= 0 {
		t.Errorf("its row promises an answer each %d µs", n)
	}
	proxy.Resume()
	eventually(t, "the session is promised again", func() bool { return row() > 0 })
	p.innocent(t, h.db, p.enqueue(t, h.db, 3))
}

// TestDeath checks which workers are found dead, with processes and networks that fail. Only `make
// soak-death` repeats here the cases that internal/session tests without an engine.
func TestDeath(t *testing.T) {
	t.Parallel()
	type deathTest struct {
		name string
		fn   func(t *testing.T)
	}
	tests := []deathTest{
		{"killed", testKilled},
		{"partition", testPartition},
	}
	if full {
		tests = append(tests, []deathTest{
			{"short outage", testShortOutage},
			{"cut connections", testCutConnections},
			{"stopped process", testStoppedProcess},
			{"server restarts", testServerRestarts},
			{"long outages", testLongOutages},
			{"pooler", testPooler},
			{"lost direct way", testLostDirectWay},
		}...)
	}
	inTurn(t, len(tests), func(i int) (string, func(t *testing.T)) { return tests[i].name, tests[i].fn })
}

// A direct URL must lead to the same database.
func TestDirectURLIsChecked(t *testing.T) {
	t.Parallel()
	u, other := pgtest.Migrated(t, "weaver", migrateURL), pgtest.Migrated(t, "weaver", migrateURL)
	db, err := postgres.Open(t.Context(), u, postgres.Unsafe(), postgres.DirectURL(other))
	if err == nil {
		err = errors.Join(errors.New("it was opened"), db.Close())
	}
	if want := "leads to another database"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	if _, err := postgres.Open(t.Context(), u, postgres.Unsafe(), postgres.DirectURL("http://x")); err == nil || !strings.Contains(err.Error(), "DirectURL") {
		t.Errorf("a URL that is wrong: %v", err)
	}
	db, err = postgres.Open(t.Context(), u, postgres.Unsafe(), postgres.DirectURL("postgres://nobody@127.0.0.1:1/none"))
	if err != nil {
		t.Fatalf("a direct way that cannot be gone at the moment: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
