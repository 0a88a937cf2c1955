package session

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/store"
)

const (
	testNS    = "test"
	testGrace = 10 * time.Second
)

var errCut = errors.New("the test cut the connection")

// server is a fake server: the state of its sessions and its reachability.
type server struct {
	mu       sync.Mutex
	refuses  bool             // it refuses connections
	swallows bool             // nothing is answered, nothing fails
	locks    map[int64]uint32 // lock → the session that holds it
	lastPID  uint32
	open     map[uint32]*fakeConn
	answers  int
	seen     map[key]int64 // LastSeen of rows
	grace    time.Duration
	heal     chan struct{} // closed when it answers again
	away     bool          // unreachable for sessions of observers
	life     int           // a change ends the sessions of observers
	looks    int
	announce func() // called before a worker is announced
}

func newServer() *server {
	return &server{locks: make(map[int64]uint32), open: make(map[uint32]*fakeConn), seen: make(map[key]int64), grace: testGrace, heal: make(chan struct{})}
}

type fakeConn struct {
	s      *server
	pid    uint32
	broken bool
}

// swallow makes the server stop or resume answering.
func (s *server) swallow(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.swallows = on; !on {
		close(s.heal)
		s.heal = make(chan struct{})
	}
}

func (s *server) refuse(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses = on
}

// cut ends all sessions. The clients notice with their next request.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.locks)
	clear(s.open)
}

// cutClients ends all connections without the server noticing.
func (s *server) cutClients() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.open {
		c.broken = true
	}
}

// reach waits while nothing is answered.
func (s *server) reach(ctx context.Context) error {
	for {
		s.mu.Lock()
		on, heal := s.swallows, s.heal
		s.mu.Unlock()
		if !on {
			return nil
		}
		select {
		case <-heal:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *server) dial(ctx context.Context) (Conn, error) {
	s.mu.Lock()
	lost := s.swallows
	s.mu.Unlock()
	if lost { // and sent again much later
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses {
		return nil, errCut
	}
	s.lastPID++
	c := &fakeConn{s: s, pid: s.lastPID}
	s.open[c.pid] = c
	return c, nil
}

func (s *server) note(_ context.Context, _ Conn, ns string, id store.WorkerID, _ Promise) error {
	if s.announce != nil {
		s.announce()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[key{ns, id}]++
	return nil
}

// request is one request of a connection.
func (c *fakeConn) request(ctx context.Context, do func()) error {
	err := c.s.reach(ctx)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if err == nil && (c.broken || c.s.open[c.pid] != c) {
		err = errCut
	}
	if err != nil {
		c.broken = true
		return err
	}
	do()
	return nil
}

func (c *fakeConn) Lock(ctx context.Context, lock int64, before uint32) error {
	held := false
	err := c.request(ctx, func() {
		if by := c.s.locks[lock]; by == before && by != 0 {
			delete(c.s.open, by)
			delete(c.s.locks, lock)
		}
		if held = c.s.locks[lock] != 0; !held {
			c.s.locks[lock] = c.pid
		}
	})
	if held {
		return ErrHeld
	}
	return err
}

func (c *fakeConn) Unlock(ctx context.Context, lock int64) error {
	return c.request(ctx, func() { delete(c.s.locks, lock) })
}

func (c *fakeConn) Answer(ctx context.Context) error {
	return c.request(ctx, func() { c.s.answers++ })
}

func (c *fakeConn) PID() uint32          { return c.pid }
func (c *fakeConn) Raw() *pgconn.PgConn  { return nil }
func (s *server) holder(k key) uint32    { s.mu.Lock(); defer s.mu.Unlock(); return s.locks[k.lock()] }
func (s *server) asked() (answers int)   { s.mu.Lock(); defer s.mu.Unlock(); return s.answers }
func (s *server) seenOf(k key) (n int64) { s.mu.Lock(); defer s.mu.Unlock(); return s.seen[k] }

func (c *fakeConn) Broken() bool {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.broken
}

func (c *fakeConn) Close() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.broken = true
	if c.s.open[c.pid] != c || c.s.swallows {
		return
	}
	delete(c.s.open, c.pid)
	for lock, by := range c.s.locks {
		if by == c.pid {
			delete(c.s.locks, lock)
		}
	}
}

var testWorker = key{testNS, "w"}

// keeping plays a test with a Keeper whose worker has joined.
func keeping(t *testing.T, test func(t *testing.T, s *server, k *Keeper)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		k := New(Config{Dial: s.dial, Announce: s.note, Log: slog.New(slog.DiscardHandler)})
		defer func() {
			if err := k.Close(); err != nil {
				t.Error(err)
			}
		}()
		if err := k.Join(t.Context(), testNS, "w", testGrace); err != nil {
			t.Fatal(err)
		}
		test(t, s, k)
	})
}

// silent returns the time without an answer of the session, and whether leases from before the
// instant are trusted.
func (k *Keeper) silent(t *testing.T, before time.Time) (d time.Duration, trusted bool) {
	t.Helper()
	s, ok := k.Session(testNS, "w")
	if !ok {
		t.Fatal("the worker has no session")
	}
	return time.Since(s.Last), !before.Before(s.Since)
}

func TestTheSessionAnswersEachSecondWhileLeasesAreHeld(t *testing.T) {
	keeping(t, func(t *testing.T, s *server, k *Keeper) {
		time.Sleep(time.Minute)
		if n := s.asked(); n != 0 {
			t.Errorf("it was asked %d times without leases", n)
		}
		k.Leased(30 * time.Second)
		time.Sleep(10*time.Second + time.Millisecond)
		if n := s.asked(); n != 11 {
			t.Errorf("it was asked %d times in 10 s, want 11", n)
		}
		if d, _ := k.silent(t, time.Now()); d > time.Second {
			t.Errorf("the last answer is %s old", d)
		}
		time.Sleep(time.Minute)
		if n := s.asked(); n != 30 && n != 31 {
			t.Errorf("it was asked %d times, want those of 30 s", n)
		}
		if err := k.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		if d, trusted := k.silent(t, time.Now().Add(-time.Minute)); d != 0 || !trusted {
			t.Errorf("after Ready the last answer is %s old, trusted %t", d, trusted)
		}
		asked := s.asked()
		if err := k.Ready(t.Context()); err != nil || s.asked() != asked {
			t.Error("Ready asks again at once", err)
		}
	})
}

func TestAHeartbeatIsAnAnswer(t *testing.T) {
	keeping(t, func(t *testing.T, s *server, k *Keeper) {
		time.Sleep(5 * time.Second)
		if err := k.Run(t.Context(), func(ctx context.Context, c Conn) error { time.Sleep(time.Second); return c.Answer(ctx) }); err != nil {
			t.Fatal(err)
		}
		if d, _ := k.silent(t, time.Now()); d != time.Second {
			t.Errorf("the last answer is %s old, want that the request was sent a second ago", d)
		}
		time.Sleep(time.Second)
		if err := k.Run(t.Context(), func(context.Context, Conn) error { return errCut }); !errors.Is(err, errCut) {
			t.Error(err)
		}
		if d, _ := k.silent(t, time.Now()); d != 2*time.Second {
			t.Errorf("an error counts as an answer: %s", d)
		}
		if s.holder(testWorker) != 1 {
			t.Error("an error of the function ended the session")
		}
	})
}

// The trust of the worker after an outage, by its duration.
func TestOutages(t *testing.T) {
	for name, c := range map[string]struct {
		outage func(s *server) (mend func())
		d      time.Duration
		lapsed bool
	}{
		"refused for 8 s":           {func(s *server) func() { s.cut(); s.refuse(true); return func() { s.refuse(false) } }, 8 * time.Second, false},
		"swallowed for 8 s":         {func(s *server) func() { s.swallow(true); return func() { s.swallow(false) } }, 8 * time.Second, false},
		"swallowed for 11 s":        {func(s *server) func() { s.swallow(true); return func() { s.swallow(false) } }, 11 * time.Second, true},
		"refused for a minute":      {func(s *server) func() { s.cut(); s.refuse(true); return func() { s.refuse(false) } }, time.Minute, true},
		"ended for a moment":        {func(s *server) func() { s.cut(); return func() {} }, time.Millisecond, false},
		"cut at the client for 8 s": {func(s *server) func() { s.cutClients(); s.refuse(true); return func() { s.refuse(false) } }, 8 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			for phase := range 10 {
				keeping(t, func(t *testing.T, s *server, k *Keeper) {
					k.Leased(time.Hour)
					time.Sleep(5*time.Second + time.Duration(phase)*100*time.Millisecond)
					before := time.Now()
					session, _ := k.Session(testNS, "w")
					mend := c.outage(s)
					worst := time.Duration(0)
					for end := time.Now().Add(c.d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
						d, _ := k.silent(t, before)
						worst = max(worst, d)
					}
					mend()
					for range 300 {
						d, _ := k.silent(t, before)
						worst = max(worst, d)
						time.Sleep(10 * time.Millisecond)
					}
					d, trusted := k.silent(t, before)
					if trusted == c.lapsed {
						t.Errorf("leases of before are trusted: %t; the worst silence was %s", trusted, worst)
					}
					if !c.lapsed && worst > testGrace {
						t.Errorf("no answer for %s: leases were not trusted for a while", worst)
					}
					if c.lapsed && worst <= testGrace {
						t.Errorf("answers in an outage: the worst silence was %s", worst)
					}
					if d > time.Second {
						t.Errorf("3 s after the outage the last answer is %s old", d)
					}
					if _, trusted := k.silent(t, time.Now()); !trusted {
						t.Error("leases of now are not trusted")
					}
					if s.holder(testWorker) == 0 {
						t.Error("nobody holds the worker's lock")
					}
					if now, _ := k.Session(testNS, "w"); !now.Last.After(session.Last) {
						t.Error("the last answer went back")
					}
				})
			}
		})
	}
}

// No answer of a new session counts before the session has recorded the worker as seen.
func TestAnnouncedBeforeItCounts(t *testing.T) {
	keeping(t, func(t *testing.T, s *server, k *Keeper) {
		time.Sleep(time.Second)
		before := time.Now()
		blocked := make(chan struct{})
		s.announce = func() { <-blocked } // by the transaction that takes its leases
		s.cut()
		if err := k.Run(t.Context(), func(ctx context.Context, c Conn) error { return c.Answer(ctx) }); !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		time.Sleep(testGrace)
		if s.holder(testWorker) == 0 {
			t.Fatal("the new session did not take the lock")
		}
		if d, _ := k.silent(t, before); d < testGrace {
			t.Errorf("the last answer is %s old: one that was not announced counts", d)
		}
		close(blocked)
		synctest.Wait()
		if d, trusted := k.silent(t, before); d != testGrace || trusted {
			t.Errorf("after the announcement: last answer %s ago, leases of before trusted: %t; want that it was asked for before it waited", d, trusted)
		}
		k.Leased(time.Hour)
		if s.seenOf(testWorker) == 0 {
			t.Error("it was not announced")
		}
		time.Sleep(2 * time.Second)
		if d, trusted := k.silent(t, time.Now()); d > time.Second || !trusted {
			t.Errorf("later: last answer %s ago, leases of now trusted: %t", d, trusted)
		}
	})
}

func TestReadyWaitsForTheSession(t *testing.T) {
	keeping(t, func(t *testing.T, s *server, k *Keeper) {
		time.Sleep(time.Minute)
		s.cut() // an idle worker does not notice
		if err := k.Ready(t.Context()); err != nil {
			t.Errorf("Ready beside a session that can be made again: %v", err)
		}
		if s.holder(testWorker) != 2 {
			t.Errorf("session %d holds the lock", s.holder(testWorker))
		}
		s.cut()
		s.refuse(true)
		time.Sleep(time.Minute)
		began := time.Now()
		if err := k.Ready(t.Context()); !errors.Is(err, ErrDown) || time.Since(began) > readyWait+time.Second {
			t.Errorf("Ready without a server: %v after %s", err, time.Since(began))
		}
		if err := k.Run(t.Context(), nil); !errors.Is(err, ErrDown) {
			t.Errorf("Run without a server: %v", err)
		}
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errClosed)
		if err := k.Ready(ended); err == nil {
			t.Error("Ready after the end of its context returned nil")
		}
	})
}

func TestJoinAndLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		k := New(Config{Dial: s.dial, Announce: s.note, Log: slog.New(slog.DiscardHandler)})
		a, b := key{testNS, "a"}, key{testNS, "b"}
		s.refuse(true)
		if err := k.Join(t.Context(), testNS, "a", testGrace); !errors.Is(err, errCut) {
			t.Errorf("Join without a server: %v", err)
		}
		if _, ok := k.Session(testNS, "a"); ok {
			t.Error("a worker that could not join has a session")
		}
		if err := k.Ready(t.Context()); err != nil {
			t.Errorf("Ready without workers: %v", err)
		}
		s.refuse(false)
		for _, id := range []store.WorkerID{"a", "a", "b"} {
			if err := k.Join(t.Context(), testNS, id, testGrace); err != nil {
				t.Fatal(err)
			}
		}
		other := New(Config{Dial: s.dial, Announce: s.note, Log: slog.New(slog.DiscardHandler)})
		if err := other.Join(t.Context(), testNS, "a", testGrace); !errors.Is(err, ErrHeld) {
			t.Errorf("the same worker in another process: %v, want ErrHeld", err)
		}
		if err := other.Join(t.Context(), "other", "a", testGrace); err != nil {
			t.Errorf("the same id in another namespace: %v", err)
		}
		k.Leave(t.Context(), testNS, "a")
		if s.holder(a) != 0 || s.holder(b) == 0 {
			t.Errorf("after a left, sessions %d and %d hold the locks of a and b", s.holder(a), s.holder(b))
		}
		k.Leave(t.Context(), testNS, "b")
		if s.holder(b) != 0 || len(s.open) != 2-1 {
			t.Errorf("after all left, %d sessions are open", len(s.open))
		}
		if err := k.Join(t.Context(), testNS, "c", 0); err == nil {
			t.Error("a worker without a grace joins")
		}
		if err := errors.Join(k.Close(), other.Close()); err != nil {
			t.Error(err)
		}
		if len(s.open) != 0 {
			t.Errorf("after Close %d sessions are open", len(s.open))
		}
		if err := k.Join(t.Context(), testNS, "d", testGrace); !errors.Is(err, store.ErrClosed) {
			t.Errorf("Join after Close: %v", err)
		}
	})
}

// A worker that joins while the session is away restores it for all.
func TestJoinMakesTheSessionForAll(t *testing.T) {
	keeping(t, func(t *testing.T, s *server, k *Keeper) {
		s.swallow(true)
		k.Leased(time.Hour)
		time.Sleep(7 * time.Second) // run waits for a patient try
		s.swallow(false)
		if err := k.Join(t.Context(), testNS, "late", testGrace); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		if d, _ := k.silent(t, time.Now()); d > time.Second {
			t.Errorf("the last answer is %s old", d)
		}
		if by := s.holder(testWorker); by == 0 || by != s.holder(key{testNS, "late"}) {
			t.Errorf("session %d holds the lock of the first, %d that of the late one", by, s.holder(key{testNS, "late"}))
		}
	})
}
