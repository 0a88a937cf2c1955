package conn

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
)

// Two transactions lock crosswise. The server aborts one of them, which runs again as a whole,
// and both complete.
func TestDeadlockIsRedone(t *testing.T) {
	t.Parallel()
	p := open(t, database(t), Settings{})
	var met sync.WaitGroup
	met.Add(2)
	var tries atomic.Int64
	cross := func(first, second int64) error {
		var once sync.Once
		return p.Tx(t.Context(), false, func(c *Conn) error {
			tries.Add(1)
			exec(t, c, "UPDATE counters SET n = n + 1 WHERE id = ?1", first)
			if err := c.Flush(); err != nil {
				return err
			}
			once.Do(func() { met.Done(); met.Wait() })
			exec(t, c, "UPDATE counters SET n = n + 1 WHERE id = ?1", second)
			return nil
		})
	}
	errs := make(chan error, 1)
	go func() { errs <- cross(1, 2) }()
	check(t, cross(2, 1))
	check(t, <-errs)
	if n := tries.Load(); n < 3 {
		t.Errorf("%d tries", n)
	}
	check(t, p.Tx(t.Context(), true, func(c *Conn) error {
		if n := one(t, c, "SELECT CAST(sum(n) AS bigint) FROM counters"); n != 4 {
			t.Errorf("%d additions", n)
		}
		return nil
	}))
}

// A repeated error ends after a bounded number of tries. Any other error ends at once.
func TestRedoIsBounded(t *testing.T) {
	t.Parallel()
	p := open(t, database(t), Settings{})
	raise := func(code string) (tries int, err error) {
		err = p.Tx(t.Context(), false, func(c *Conn) error {
			tries++
			return c.exec("DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '" + code + "'; END $$")
		})
		return tries, err
	}
	tries, err := raise("40001")
	if _, kind := Classify(err); tries != maxRedo+1 || !errors.Is(kind, store.ErrBusy) {
		t.Errorf("%d tries: %v", tries, err)
	}
	if tries, err := raise("22012"); tries != 1 || err == nil {
		t.Errorf("%d tries: %v", tries, err)
	}
	if tries, err := raise("0A000"); tries != 1 || err == nil {
		t.Errorf("%d tries: %v", tries, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = p.Tx(ctx, false, func(c *Conn) error {
		cancel()
		return &pgconn.PgError{Code: "40P01"}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

// cutter is a connection whose answers a test suppresses.
type cutter struct {
	net.Conn
	when  []byte // sent before the cut
	where string // "write": it is not sent; "read": its answer is lost; "hang": its answer does not come
	cut   atomic.Bool
}

func (c *cutter) Write(b []byte) (int, error) {
	if bytes.Contains(b, c.when) {
		if c.where == "write" {
			return 0, net.ErrClosed
		}
		defer c.cut.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *cutter) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil || !c.cut.Load() {
		return n, err
	}
	if c.where == "hang" {
		return c.Conn.Read(b)
	}
	return 0, net.ErrClosed
}

// If the answer to COMMIT is lost, the outcome is unknown, and the transaction does not run
// again. A COMMIT that was never sent had no effect.
func TestLostCommit(t *testing.T) {
	t.Parallel()
	url := database(t)
	id := int64(1000)
	for where, unknown := range map[string]bool{"write": false, "read": true, "hang": true} {
		id++
		s := Settings{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &cutter{Conn: c, when: []byte("COMMIT\x00"), where: where}, err
		}}
		c := connect(t, url, s)
		begin(t, c)
		exec(t, c, "INSERT INTO counters VALUES (?1, 0)", id)
		check(t, c.Flush())
		c.RoundTimeout = soon
		err := c.Commit()
		_, kind := Classify(err)
		if errors.Is(err, store.ErrUnknown) != unknown || Redo(err) || isLost(err) == unknown {
			t.Errorf("%s: %v", where, err)
		}
		if !unknown && !errors.Is(kind, store.ErrUnavailable) {
			t.Errorf("%s: %v is %v", where, err, kind)
		}
		want(t, c.Begin(t.Context(), false), "lost")

		c = connect(t, url, s)
		check(t, c.Begin(t.Context(), true))
		if where == "read" {
			err := c.Commit()
			if err == nil || errors.Is(err, store.ErrUnknown) {
				t.Errorf("a transaction that only read: %v", err)
			}
		}
		c.Rollback()
		if where == "read" {
			ask := connect(t, url, Settings{})
			begin(t, ask)
			exec(t, ask, "DELETE FROM counters WHERE id = ?1", id)
			if n, err := statement(t, ask, "DELETE FROM counters WHERE id = ?1").Changes(); n != 1 || err != nil {
				t.Errorf("%d rows were committed: %v", n, err)
			}
			ask.Rollback()
		}
	}
}

// If an administrator ends a session, the next transaction runs in another one.
func TestSessionIsTerminated(t *testing.T) {
	t.Parallel()
	url := database(t)
	p := open(t, url, Settings{})
	admin := connect(t, url, Settings{})
	pid := 0
	tries := 0
	check(t, p.Tx(t.Context(), false, func(c *Conn) error {
		tries++
		exec(t, c, "UPDATE counters SET n = n + 1 WHERE id = ?1", 1)
		if tries == 1 {
			check(t, c.Flush())
			pid = int(c.PgConn().PID())
			begin(t, admin)
			s := statement(t, admin, "SELECT pg_terminate_backend(?1, 5000)")
			check(t, s.BindInt(1, int64(pid)))
			if !s.Step() || s.Int(0) != 1 {
				t.Errorf("not terminated: %v", s.Err())
			}
			admin.Rollback()
		}
		return nil
	}))
	if tries != 2 {
		t.Errorf("%d tries", tries)
	}
}

// beginPgx begins a transaction of a caller, which ends with the test.
func beginPgx(t *testing.T, pool *pgxpool.Pool, options pgx.TxOptions) pgx.Tx {
	t.Helper()
	tx, err := pool.BeginTx(t.Context(), options)
	check(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // most have ended
	return tx
}

// A caller's transaction on the caller's pool, which pgx uses before and after, gets its
// settings and its statements back.
func TestJoin(t *testing.T) {
	t.Parallel()
	url := database(t)
	for _, mode := range []Mode{ModeAuto, ModePooled} {
		ctx := t.Context()
		pool, err := pgxpool.New(ctx, url)
		check(t, err)
		t.Cleanup(pool.Close)
		p := Share(pool, Settings{Mode: mode})
		for round := range 3 {
			tx := beginPgx(t, pool, pgx.TxOptions{})
			_, err = tx.Exec(ctx, "SET LOCAL search_path = public, weaver; SET LOCAL statement_timeout = 12345; CREATE TEMP TABLE counters (id bigint, n bigint) ON COMMIT DROP")
			check(t, err)
			if round == 1 { // the session has the statements, but we do not know it
				delete(tx.Conn().PgConn().CustomData(), p.key)
			}

			c := p.Of(tx.Conn().PgConn())
			check(t, c.Join(ctx))
			if _, err := c.Now(); err != nil {
				t.Error(err)
			}
			if plans := ask(t, c, "SHOW plan_cache_mode"); string(plans) != "force_generic_plan" {
				t.Errorf("plans are made by %s", plans)
			}
			if n := one(t, c, "SELECT count(*) FROM counters"); n != int64(10+round) {
				t.Errorf("%d rows: the caller's table is read", n)
			}
			exec(t, c, "INSERT INTO counters VALUES (?1, 0)", int64(200+round))
			want(t, c.Commit(), "no transaction of our own")
			c.Rollback() // not ours
			check(t, c.Leave())
			if c2 := p.Of(tx.Conn().PgConn()); c2 != c {
				t.Error("the statements of a connection are lost")
			}

			var path, timeout, plans string
			var n int
			check(t, tx.QueryRow(ctx, "SELECT current_setting('search_path'), current_setting('statement_timeout'), current_setting('plan_cache_mode'), (SELECT count(*) FROM weaver.counters)").Scan(&path, &timeout, &plans, &n))
			if path != "public, weaver" || timeout != "12345ms" || plans != "auto" || n != 11+round {
				t.Errorf("%s, %s, %s, %d", path, timeout, plans, n)
			}
			check(t, tx.Commit(ctx))
			want(t, c.Join(ctx), "has ended")
		}
		_, err = pool.Exec(ctx, "DELETE FROM weaver.counters WHERE id >= 200")
		check(t, err)

		tx := beginPgx(t, pool, pgx.TxOptions{})
		c := p.Of(tx.Conn().PgConn())
		rows, err := tx.Query(ctx, "SELECT generate_series(1, 3)")
		check(t, err)
		want(t, c.Join(ctx), "rows of the last query")
		rows.Close()
		check(t, c.Join(ctx))
		exec(t, c, "INSERT INTO counters VALUES (?1, 0)", 1)
		want(t, c.Leave(), "23505")
		err = c.Join(ctx)
		if !errors.Is(err, store.ErrRestartTx) {
			t.Errorf("a failed transaction is joined: %v", err)
		}
		check(t, tx.Rollback(ctx))
	}
}

// A session whose statements were removed gets them again.
func TestStatementsAreGone(t *testing.T) {
	t.Parallel()
	cfg, err := pgxpool.ParseConfig(database(t))
	check(t, err)
	cfg.MaxConns = 1
	p, err := Open(t.Context(), cfg, Settings{})
	check(t, err)
	defer p.Close()
	tries := 0
	for range 2 {
		check(t, p.Tx(t.Context(), false, func(c *Conn) error {
			tries++
			exec(t, c, "UPDATE counters SET n = n + ?1", 1)
			return nil
		}))
		if tries == 1 {
			_, err := p.Raw().Exec(t.Context(), "DEALLOCATE ALL", pgx.QueryExecModeSimpleProtocol)
			check(t, err)
		}
	}
	if tries < 3 {
		t.Errorf("%d tries", tries)
	}
	check(t, p.Tx(t.Context(), true, func(c *Conn) error {
		if n := one(t, c, "SELECT n FROM counters WHERE id = 1"); n != 2 {
			t.Errorf("%d additions", n)
		}
		return nil
	}))
}

// Only a caller's transaction can have a serialization failure.
func TestSerializationFailure(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pool, err := pgxpool.New(ctx, database(t))
	check(t, err)
	t.Cleanup(pool.Close)
	p := Share(pool, Settings{})
	tx := beginPgx(t, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	c := p.Of(tx.Conn().PgConn())
	check(t, c.Join(ctx))
	one(t, c, "SELECT n FROM counters WHERE id = 1")
	check(t, p.Tx(ctx, false, func(c *Conn) error {
		exec(t, c, "UPDATE counters SET n = n + 1 WHERE id = ?1", 1)
		return nil
	}))
	exec(t, c, "UPDATE counters SET n = n + 1 WHERE id = ?1", 1)
	err = c.Leave()
	want(t, err, "40001")
	if !Redo(err) {
		t.Errorf("%v is not to be redone", err)
	}
	check(t, tx.Rollback(ctx))
}

// The state of an unfinished transaction does not come out of the pool again.
func TestPoolRollsBack(t *testing.T) {
	t.Parallel()
	url := database(t)
	cfg, err := pgxpool.ParseConfig(url)
	check(t, err)
	cfg.MaxConns = 1
	p, err := Open(t.Context(), cfg, Settings{})
	check(t, err)
	for i := range 4 {
		c, err := p.Acquire(t.Context())
		check(t, err)
		begin(t, c)
		exec(t, c, "INSERT INTO counters VALUES (?1, 0)", 300)
		switch i {
		case 0: // sent
			check(t, c.Flush())
		case 1: // not sent
		case 2: // failed
			exec(t, c, "INSERT INTO counters VALUES (?1, 0)", 1)
			want(t, c.Flush(), "23505")
		case 3: // failed, without a read of the error
			exec(t, c, "INSERT INTO counters VALUES (?1, 0)", 1)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err = p.Acquire(ctx)
		want(t, err, "all in use")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		cancel()
		p.Release(c)
		p.Release(c) // has no effect
	}
	func() {
		defer func() { _ = recover() }()
		_ = p.Tx(t.Context(), false, func(c *Conn) error {
			exec(t, c, "INSERT INTO counters VALUES (?1, 0)", 300)
			panic("in a transaction")
		})
	}()
	check(t, p.Tx(t.Context(), true, func(c *Conn) error {
		if n := one(t, c, "SELECT count(*) FROM counters WHERE id = 300"); n != 0 {
			t.Errorf("%d rows", n)
		}
		return nil
	}))
	if n := p.Raw().Stat().NewConnsCount(); n != 1 {
		t.Errorf("%d connections were opened", n)
	}
	p.Close()
	p.Close()
	if _, err := p.Acquire(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("the error is %v", err)
	}
}

// The wait for a connection has a limit.
func TestPoolIsInUse(t *testing.T) {
	t.Parallel()
	cfg, err := pgxpool.ParseConfig(database(t))
	check(t, err)
	cfg.MaxConns = 1
	p, err := Open(t.Context(), cfg, Settings{})
	check(t, err)
	defer p.Close()
	c, err := p.Acquire(t.Context())
	check(t, err)
	defer p.Release(c)
	p.RoundTimeout = soon
	_, err = p.Acquire(t.Context())
	want(t, err, "none of the pool's 1 connections", "100ms")
	if advice, kind := Classify(err); !errors.Is(kind, store.ErrBusy) || advice == "" {
		t.Errorf("%v is %v: %s", err, kind, advice)
	}
}

// A server that became silent while a connection was idle is noticed.
func TestSilentWhileIdle(t *testing.T) {
	t.Parallel()
	proxy := pgtest.NewProxy(t, database(t))
	p := open(t, proxy.URL(), Settings{})
	usual := p.RoundTimeout
	read := func() error {
		return p.Tx(t.Context(), true, func(c *Conn) error { _, err := c.Now(); return err })
	}
	check(t, read())
	timer := time.NewTimer(1100 * time.Millisecond) // the pool pings a connection that was idle for a second
	<-timer.C
	proxy.Swallow(pgtest.Both)
	p.RoundTimeout = soon
	if _, kind := Classify(read()); !errors.Is(kind, store.ErrUnavailable) {
		t.Errorf("the kind is %v", kind)
	}
	proxy.Resume()
	p.RoundTimeout = usual
	check(t, read())
}

// Requests work in a bubble of testing/synctest, whose time continues between them.
func TestBubble(t *testing.T) {
	t.Parallel()
	url := database(t)
	synctest.Test(t, func(t *testing.T) {
		cfg, err := pgxpool.ParseConfig(url)
		check(t, err)
		p, err := Open(t.Context(), cfg, Settings{Clock: time.Now})
		check(t, err)
		defer p.Close()
		start := time.Now()
		for range 5 {
			check(t, p.Tx(t.Context(), false, func(c *Conn) error {
				exec(t, c, "UPDATE counters SET n = n + 1 WHERE id = ?1", 1)
				return nil
			}))
			time.Sleep(time.Hour)
		}
		check(t, p.Tx(t.Context(), true, func(c *Conn) error {
			now, err := c.Now()
			if n := one(t, c, "SELECT n FROM counters WHERE id = 1"); n != 5 || now.Sub(start) != 5*time.Hour {
				t.Errorf("%d, %v", n, now.Sub(start))
			}
			return err
		}))
	})
}

// A program that takes a connection out of the pool gets a session without our settings,
// however often the pool used it. The pool gets the connection back with the settings.
func TestUsersOfThePool(t *testing.T) {
	t.Parallel()
	p := open(t, database(t), Settings{Mode: ModeDirect})
	asked := "SELECT current_setting('search_path') || ' ' || current_setting('statement_timeout') || ' ' || current_setting('plan_cache_mode')"
	for range 2 {
		var path string
		check(t, p.Tx(t.Context(), false, func(c *Conn) error {
			st := c.Stmt(asked)
			for st.Next() {
				path = st.ColText(0)
			}
			return st.Done()
		}))
		if want := p.path + " 30s force_generic_plan"; path != want {
			t.Errorf("our session has %s, want %s", path, want)
		}
		if err := p.Raw().QueryRow(t.Context(), asked).Scan(&path); err != nil || path != `"$user", public 0 auto` {
			t.Errorf("a user's session has %s: %v", path, err)
		}
	}
}
