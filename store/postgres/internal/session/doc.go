// Package session proves by sessions of PostgreSQL that a worker's process is dead.
//
// A [Keeper] is the worker's side. It keeps one direct connection, a session of the server.
// The session holds an advisory lock for each worker of the process and carries their
// heartbeats. While leases are held it pings the session every second. A worker relies on its
// leases until the last answer plus its grace D (store.Ops.Session), so an outage shorter
// than D ends no handler.
//
// An [Observer] is the other side. It looks at the locks of workers with claims, in its own
// session. If it saw a worker's lock held, and since then found it free at each look for G = D
// + 1 s, the worker is dead or does not rely on its leases any more.
//
// Proof. A worker's last answer L was sent before its session ended, which was before the
// first look that found the lock free, at F. The worker relies on nothing after L + D < F + G.
// It could come back meanwhile with another session, also between two looks. But no answer of
// a session counts before that session, holding its lock, has recorded the worker as seen in
// its row. The last look, and the transaction that takes the leases ([Dead.Confirm]), find the
// row unchanged since the look at F. A later record waits for the row's lock, and comes after
// the leases are taken. A worker whose session was away for longer than D by then trusts no
// earlier lease (store.Session.Since).
//
// A session survives neither a failover nor a restart of the server, and an Observer's
// observations are discarded with its session. Observations are compared only within one
// session. Clocks of different machines are never compared: both sides measure durations, and
// G is a second longer than D.
//
// A lock is never taken through a pooler (ErrNotDirect), where it would outlive its client.
package session

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/goweaver/weaver/store"
)

// Errors of a session.
var (
	// ErrNotDirect means that the connection does not end at the server: there is a pooler or
	// a proxy in between, or it is a Unix socket.
	ErrNotDirect = errors.New("the connection to the server is not direct")
	// ErrStandby means that the server is read-only.
	ErrStandby = errors.New("the server is a standby")
	// ErrDown means that there is no session at the moment; it is being restored.
	ErrDown = errors.New("the session with the database was lost and is being restored")
	// ErrHeld means that another session holds the worker's lock.
	ErrHeld = errors.New("another session holds the lock of this worker")

	errClosed = errors.New("closed")
)

// Margin is the time by which an Observer waits longer than a worker trusts its leases.
const Margin = time.Second

// key identifies a worker.
type key struct {
	ns string
	id store.WorkerID
}

// lock returns the number of a worker's advisory lock.
func (k key) lock() int64 {
	sum := sha256.Sum256([]byte(k.ns + "\x00" + string(k.id)))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// part returns the timeout of a step of ctx: limit, but at most half of the time left.
func part(ctx context.Context, limit time.Duration) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(limit, time.Until(end)/2)
	}
	return limit
}

// wait waits for d (< 0: no limit), a wake-up or the end of done.
func wait(done <-chan struct{}, d time.Duration, wake <-chan struct{}) {
	var over <-chan time.Time
	if d >= 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-over:
	case <-wake:
	case <-done:
	}
}
