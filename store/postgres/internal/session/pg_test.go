package session_test

import (
	"errors"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/internal/workerlock"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/session"
)

func TestOnlyDirectConnectionsAreSessions(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	pooled := pgtest.Bouncer(t, d.url, "transaction")
	proxied := pgtest.NewProxy(t, d.url)
	for what, c := range map[string]struct {
		url   string
		named bool
		want  error
	}{
		"direct":                            {d.url, false, nil},
		"through a pooler":                  {pooled, false, session.ErrNotDirect},
		"through a proxy":                   {proxied.URL(), false, session.ErrNotDirect},
		"through a proxy that a user named": {proxied.URL(), true, nil},
	} {
		s := server(t, c.url)
		s.Named = c.named
		k := d.keeper(s)
		if err := k.Join(t.Context(), ns, store.WorkerID(what), time.Second); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		_, ok := k.Session(ns, store.WorkerID(what))
		if ok != (c.want == nil) || (d.locks() == 1) != ok {
			t.Errorf("%s: has a session: %t; %d locks are held", what, ok, d.locks())
		}
		if o, err := s.Observe(t.Context()); err == nil {
			o.Close()
		} else if !errors.Is(err, c.want) {
			t.Errorf("%s, to observe: %v, want %v", what, err, c.want)
		}
		k.Leave(t.Context(), ns, store.WorkerID(what))
		d.until("the lock is given back", func() bool { return d.locks() == 0 })
	}
}

func TestOtherServers(t *testing.T) {
	t.Parallel()
	srv := pgtest.Start(t, pgtest.Options{})
	if _, err := server(t, srv.SocketURL("postgres")).Dial(t.Context()); !errors.Is(err, session.ErrNotDirect) {
		t.Errorf("by a Unix socket: %v, want ErrNotDirect", err)
	}
	standby := srv.Standby()
	if _, err := server(t, standby.URL("postgres")).Dial(t.Context()); !errors.Is(err, session.ErrStandby) {
		t.Errorf("to a standby: %v, want ErrStandby", err)
	}
}

// Settings of the server or the role that end idle sessions do not end this one.
func TestTheSessionsSettings(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.exec(`DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || quote_ident(current_database()) || ' SET idle_session_timeout = ''1s'''; END $$`)
	c, err := server(t, d.url).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	time.Sleep(1500 * time.Millisecond)
	r := c.Raw().ExecParams(t.Context(), `SELECT current_setting('search_path'), current_setting('tcp_keepalives_idle')`, nil, nil, nil, nil).Read()
	if r.Err != nil || string(r.Rows[0][0]) != `"weaver", pg_temp` || string(r.Rows[0][1]) != "10" {
		t.Errorf("settings %q, %v", r.Rows, r.Err)
	}
}

func TestLocks(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := server(t, d.url)
	dial := func() session.Conn {
		t.Helper()
		c, err := s.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	for _, lock := range []int64{0x123456789abcdef0, -0x123456789abcdef0, 1, -1} {
		one, two := dial(), dial()
		if err := one.Lock(t.Context(), lock, 0); err != nil {
			t.Fatal(err)
		}
		if err := two.Lock(t.Context(), lock, 0); !errors.Is(err, session.ErrHeld) {
			t.Errorf("lock %x twice: %v, want ErrHeld", lock, err)
		}
		if err := two.Lock(t.Context(), lock, one.PID()); err != nil {
			t.Errorf("lock %x of a session that is replaced: %v", lock, err)
		}
		if err := one.Answer(t.Context()); err == nil || !one.Broken() {
			t.Errorf("the replaced session answers: %v", err)
		}
		if err := two.Unlock(t.Context(), lock); err != nil || d.locks() != 0 {
			t.Errorf("after the unlock %d locks are held, %v", d.locks(), err)
		}
	}
	// Only the session that is replaced is ended.
	one, two, three := dial(), dial(), dial()
	if err := one.Lock(t.Context(), 5, 0); err != nil {
		t.Fatal(err)
	}
	if err := three.Lock(t.Context(), 5, two.PID()); !errors.Is(err, session.ErrHeld) {
		t.Errorf("a lock of a third session: %v, want ErrHeld", err)
	}
	if err := errors.Join(one.Answer(t.Context()), two.Answer(t.Context())); err != nil {
		t.Errorf("sessions that hold no lock of the replaced one were ended: %v", err)
	}
}

// A session that an operator ends is made again, and its worker trusts its leases all
// the while.
func TestTerminatedSessionsComeBack(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.joined("w", 10*time.Second, workerlock.Place{})
	k := d.keeper(server(t, d.url))
	began := time.Now()
	if err := k.Join(t.Context(), ns, "w", 10*time.Second); err != nil {
		t.Fatal(err)
	}
	k.Leased(time.Hour)
	seen := int64(1)
	for range 3 {
		d.exec(`SELECT pg_terminate_backend(pid) FROM pg_locks l JOIN pg_database b ON b.oid = l.database WHERE locktype = 'advisory' AND datname = current_database()`)
		took := d.until("the session is back", func() bool {
			last := d.number(`SELECT last_seen FROM weaver.weaver_workers`)
			back := last > seen
			seen = last
			return back
		})
		if took > 10*time.Second || d.locks() != 1 {
			t.Errorf("it was back after %s, %d locks are held", took, d.locks())
		}
	}
	s, ok := k.Session(ns, "w")
	if !ok || time.Since(s.Last) > 5*time.Second || began.Before(s.Since) {
		t.Errorf("the last answer is %s old, leases of before are trusted: %t", time.Since(s.Last), !began.Before(s.Since))
	}
}

// An outage of the network that is shorter than the grace ends no trust.
func TestAnOutageOfTheNetwork(t *testing.T) {
	t.Parallel()
	for _, dir := range []pgtest.Direction{pgtest.ToServer, pgtest.ToClient} {
		d := newDatabase(t)
		d.joined("w", 4*time.Second, workerlock.Place{})
		p := pgtest.NewProxy(t, d.url)
		s := server(t, p.URL())
		s.Named = true
		k := d.keeper(s)
		began := time.Now()
		if err := k.Join(t.Context(), ns, "w", 4*time.Second); err != nil {
			t.Fatal(err)
		}
		k.Leased(time.Hour)
		_, found := d.observer(nil)
		time.Sleep(time.Second)
		p.Swallow(dir)
		time.Sleep(2500 * time.Millisecond)
		p.Resume()
		time.Sleep(1500 * time.Millisecond)
		last, _ := k.Session(ns, "w")
		if silent := time.Since(last.Last); silent > 3*time.Second || began.Before(last.Since) {
			t.Errorf("direction %v: the last answer is %s old, leases of before are trusted: %t", dir, silent, !began.Before(last.Since))
		}
		select {
		case <-found:
			t.Errorf("direction %v: the worker was found dead", dir)
		default:
		}
	}
}
