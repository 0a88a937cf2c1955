package session_test

import (
	"context"
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

// Settings of the server or the role that end idle sessions do not end this session.
func TestTheSessionsSettings(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.exec(`DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || quote_ident(current_database()) || ' SET idle_session_timeout = ''1s'''; END $$`)
	c, err := server(t, d.url).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := c.Raw().ExecParams(t.Context(), `SELECT current_setting('search_path'), current_setting('tcp_keepalives_idle'), current_setting('idle_session_timeout')`, nil, nil, nil, nil).Read()
	if r.Err != nil || string(r.Rows[0][0]) != `"weaver", pg_temp` || string(r.Rows[0][1]) != "10" || string(r.Rows[0][2]) != "0" {
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
	// Only the replaced session is ended.
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

// A session that an operator ends is restored, and its worker trusts its leases throughout.
func TestTerminatedSessionsComeBack(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	const grace = 10 * time.Minute // longer than any delay
	d.joined("w", grace, workerlock.Place{})
	k := d.keeper(server(t, d.url))
	began := time.Now()
	if err := k.Join(t.Context(), ns, "w", grace); err != nil {
		t.Fatal(err)
	}
	k.Leased(time.Hour)
	for range 3 {
		ended := time.Now()
		d.exec(`SELECT pg_terminate_backend(pid) FROM pg_locks l JOIN pg_database b ON b.oid = l.database WHERE locktype = 'advisory' AND datname = current_database()`)
		d.until("the session is back", func() bool {
			s, ok := k.Session(ns, "w")
			return ok && s.Last.After(ended) && d.locks() == 1
		})
	}
	if s, ok := k.Session(ns, "w"); !ok || began.Before(s.Since) {
		t.Errorf("leases of before are trusted: %t", !began.Before(s.Since))
	}
}

// A request that the network swallows breaks its session when its time is over, and attempts
// to open one fail. When the network is back another session replaces the broken one, which
// the server may still have.
func TestAnOutageOfTheNetwork(t *testing.T) {
	t.Parallel()
	for _, dir := range []pgtest.Direction{pgtest.ToServer, pgtest.ToClient} {
		p := pgtest.NewProxy(t, newDatabase(t).url)
		s := server(t, p.URL())
		s.Named = true
		one, err := s.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := one.Lock(t.Context(), 5, 0); err != nil {
			t.Fatal(err)
		}
		p.Swallow(dir)
		swallowed := func(request func(context.Context) error) error {
			ctx, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			got := make(chan error, 1)
			go func() { got <- request(ctx) }()
			p.AwaitSwallowed()
			giveUp()
			return <-got
		}
		if err := swallowed(one.Answer); err == nil || !one.Broken() {
			t.Errorf("direction %v: a request that is swallowed: %v", dir, err)
		}
		if err := swallowed(func(ctx context.Context) error { _, err := s.Dial(ctx); return err }); err == nil {
			t.Errorf("direction %v: a session is made though all is swallowed", dir)
		}
		p.Resume()
		two, err := s.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := two.Lock(t.Context(), 5, one.PID()); err != nil {
			t.Errorf("direction %v: the lock of the broken session: %v", dir, err)
		}
		two.Close()
	}
}
