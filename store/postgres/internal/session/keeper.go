package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/store"
)

// Conn is a connection that is a session of the server. One goroutine at a time uses it. An
// error that is not the server's answer breaks it.
type Conn interface {
	// Lock takes an advisory lock. It returns ErrHeld if another session has the lock. before
	// is the backend of the session that this one replaces (0: no session); if that session
	// still has the lock, Lock ends it.
	Lock(ctx context.Context, lock int64, before uint32) error
	// Unlock releases an advisory lock.
	Unlock(ctx context.Context, lock int64) error
	// Answer makes the smallest possible request.
	Answer(ctx context.Context) error
	// PID returns the process ID of the server's backend.
	PID() uint32
	// Broken reports whether the session has ended.
	Broken() bool
	// Close ends the session.
	Close()
	// Raw returns the connection itself; nil in tests without a server.
	Raw() *pgconn.PgConn
}

// Config configures a Keeper.
type Config struct {
	// Dial opens a session. ErrNotDirect means that a session is impossible.
	Dial func(ctx context.Context) (Conn, error)
	// Announce writes a promise into the row of a worker, and records that it is seen now,
	// which must change last_seen, in its own transaction. It is called in every session
	// except the first, once the session holds the lock.
	Announce func(ctx context.Context, c Conn, ns string, id store.WorkerID, p Promise) error
	// Withdraw is Announce on another connection, for a worker that keeps no session for now.
	// No promise with fewer withdrawals may be written later. May be nil.
	Withdraw func(ctx context.Context, ns string, id store.WorkerID, withdrawals int) error
	Log      *slog.Logger
}

// Promise is a worker's statement in its row about its session. A withdrawn promise may still
// be in flight, in a session that was given up: it has fewer withdrawals.
type Promise struct {
	Grace       time.Duration // 0: there is no session
	Withdrawals int           // number of earlier withdrawals
}

// Keeper keeps the session of the workers of a process. It is safe for concurrent use.
type Keeper struct {
	cfg     Config
	turn    chan struct{} // has a value while the connection is in use
	wake    chan struct{} // run may have work
	roles   *group.Group
	closing func() error    // close, once
	done    <-chan struct{} // of roles

	mu          sync.Mutex
	conn        Conn // nil: there is no session
	before      uint32
	last        time.Time // when the last answered request was sent
	down        time.Time // begin of the time without a session; zero: there is one
	plain       bool      // no worker relies on a session, see withdraw
	withdrawals int
	workers     map[key]*worker
	until       time.Time     // leases may be held until then
	made        chan struct{} // closed and replaced when there is a session again
}

type worker struct {
	grace time.Duration
	since time.Time // see store.Session
}

// New returns a Keeper, which connects when the first worker joins. The caller must close it.
func New(cfg Config) *Keeper {
	k := &Keeper{
		cfg: cfg, turn: make(chan struct{}, 1), wake: make(chan struct{}, 1), made: make(chan struct{}),
		workers: make(map[key]*worker), roles: group.New(context.Background()),
	}
	k.done, k.closing = k.roles.Context().Done(), sync.OnceValue(k.close)
	k.roles.Go("session", k.run)
	return k
}

// Close ends the session. Workers that did not leave look dead from then on. It may be called
// again.
func (k *Keeper) Close() error { return k.closing() }

func (k *Keeper) close() error {
	k.roles.Cancel(errClosed)
	err := k.roles.Wait()
	k.turn <- struct{}{} // never released
	if conn := k.current(); conn != nil {
		conn.Close()
	}
	return err
}

// use waits for the connection; leave releases it.
func (k *Keeper) use(ctx context.Context) error {
	select {
	case k.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-k.done:
		return store.ErrClosed
	}
}

func (k *Keeper) leave() { <-k.turn }

func (k *Keeper) wakeRun() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *Keeper) current() Conn {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.conn
}

// Join takes the lock of a worker. grace is the time for which the worker relies on its leases
// without an answer. On an error the worker has no session; ErrNotDirect means that a session
// is impossible. A worker that has joined before stays joined.
func (k *Keeper) Join(ctx context.Context, ns string, id store.WorkerID, grace time.Duration) error {
	if grace <= 0 {
		return fmt.Errorf("join %s with a session: the grace is %s, want more than 0", id, grace)
	}
	if err := k.use(ctx); err != nil {
		return err
	}
	defer k.leave()
	w := key{ns, id}
	k.mu.Lock()
	_, joined := k.workers[w]
	conn := k.conn
	k.mu.Unlock()
	if joined {
		return nil
	}
	if conn == nil {
		var err error
		if conn, err = k.cfg.Dial(ctx); err != nil {
			return err
		}
		if err := k.establish(ctx, conn); err != nil {
			return err
		}
	}
	asked := time.Now()
	if err := conn.Lock(ctx, w.lock(), 0); err != nil {
		if conn.Broken() {
			k.lost(conn, err)
		}
		return fmt.Errorf("lock worker %s: %w", id, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.workers[w] = &worker{grace: grace}
	k.last = asked
	k.wakeRun()
	return nil
}

// Leave releases the lock of a worker. The last worker ends the session.
func (k *Keeper) Leave(ctx context.Context, ns string, id store.WorkerID) {
	w := key{ns, id}
	using := k.use(ctx) == nil
	if using {
		defer k.leave()
	}
	k.mu.Lock()
	_, joined := k.workers[w]
	delete(k.workers, w)
	conn, empty := k.conn, len(k.workers) == 0
	if using && empty {
		k.conn = nil
	}
	k.mu.Unlock()
	k.wakeRun()
	switch {
	case !using || !joined || conn == nil: // a lock without a row does no harm
	case empty:
		conn.Close()
	default:
		if err := conn.Unlock(ctx, w.lock()); conn.Broken() {
			k.lost(conn, err)
		}
	}
}

// promise returns the current promise of a worker.
func (k *Keeper) promise(ns string, id store.WorkerID) Promise {
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.workers[key{ns, id}]
	if w == nil || k.conn == nil {
		return Promise{}
	}
	return Promise{w.grace, k.withdrawals}
}

// Session implements store.Ops.
func (k *Keeper) Session(ns string, id store.WorkerID) (store.Session, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.workers[key{ns, id}]
	if w == nil {
		return store.Session{}, false
	}
	if k.plain {
		return store.Session{Last: time.Now(), Since: w.since}, true
	}
	return store.Session{Last: k.last, Since: w.since}, true
}

// Leased records that leases may be held for d from now on. Until then the session is pinged
// every second.
func (k *Keeper) Leased(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if until := time.Now().Add(d); until.After(k.until) {
		k.until = until
		k.wakeRun()
	}
}

// readyWait is the maximum wait of Ready for a session that is being restored.
const readyWait = 2 * time.Second

// Ready returns when the session has just answered, so that leases granted now can be relied
// on, or ErrDown. Without workers, and while they keep no session, it does nothing.
func (k *Keeper) Ready(ctx context.Context) error {
	caller := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, part(ctx, readyWait), ErrDown)
	defer cancel()
	for {
		k.mu.Lock()
		none, made := len(k.workers) == 0 || k.plain, k.made
		k.mu.Unlock()
		if none {
			return nil
		}
		// A claim that is given up does not end the session.
		err := k.ask(ctx, context.WithoutCancel(ctx))
		if !errors.Is(err, ErrDown) {
			return err
		}
		select {
		case <-made:
		case <-ctx.Done():
			return k.withdraw(caller, context.Cause(ctx))
		case <-k.done:
			return store.ErrClosed
		}
	}
}

// Run runs a function on the connection, for heartbeats. A success counts as an answer of the
// session. The limit is half of the workers' grace. ErrDown means that there is no session.
func (k *Keeper) Run(ctx context.Context, fn func(ctx context.Context, c Conn) error) error {
	if err := k.use(ctx); err != nil {
		return err
	}
	defer k.leave()
	conn := k.current()
	if conn == nil {
		return ErrDown
	}
	return k.request(ctx, conn, k.grace()/2, fn)
}

// ask pings the session unless it has just answered. The end of asking aborts the ping.
func (k *Keeper) ask(waiting, asking context.Context) error {
	if err := k.use(waiting); err != nil {
		return err
	}
	defer k.leave()
	conn := k.current()
	if conn == nil {
		return ErrDown
	}
	k.mu.Lock()
	fresh := time.Since(k.last) < k.interval()
	k.mu.Unlock()
	if fresh {
		return nil
	}
	err := k.request(asking, conn, k.grace()/4, func(ctx context.Context, c Conn) error {
		err := c.Answer(ctx)
		if err != nil {
			c.Close() // it may be in the middle of a request
		}
		return err
	})
	if err != nil && conn.Broken() {
		return fmt.Errorf("%w: %w", ErrDown, err)
	}
	return err
}

// request makes one request within a limit.
func (k *Keeper) request(ctx context.Context, conn Conn, limit time.Duration, fn func(ctx context.Context, c Conn) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the session did not answer within %s", limit))
	defer cancel()
	asked := time.Now()
	err := fn(ctx, conn)
	switch {
	case conn.Broken():
		if err == nil {
			err = ErrDown
		}
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		k.lost(conn, err)
	case err == nil:
		k.mu.Lock()
		k.last = asked
		k.mu.Unlock()
	}
	return err
}

// lost records that the session has ended.
func (k *Keeper) lost(conn Conn, err error) {
	conn.Close()
	k.mu.Lock()
	mine := k.conn == conn
	if mine {
		k.conn, k.down = nil, time.Now()
	}
	k.mu.Unlock()
	if mine {
		k.cfg.Log.Warn("the session with the database was lost and is being restored", "error", err)
		k.wakeRun()
	}
}

// grace returns the shortest grace of the workers.
func (k *Keeper) grace() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.shortest()
}

// shortest is grace with the mutex held.
func (k *Keeper) shortest() time.Duration {
	var least time.Duration
	for _, w := range k.workers {
		if least == 0 || w.grace < least {
			least = w.grace
		}
	}
	if least == 0 {
		return 10 * time.Second
	}
	return least
}

// interval returns the ping interval of the session. The mutex is held.
func (k *Keeper) interval() time.Duration { return min(time.Second, k.shortest()/4) }
