package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/group"
)

// run pings the session while leases are held, and restores it after a loss.
func (k *Keeper) run(ctx context.Context) error {
	for ctx.Err() == nil {
		k.mu.Lock()
		workers, conn := len(k.workers), k.conn
		due := time.Duration(-1)
		if time.Now().Before(k.until) {
			due = max(0, k.interval()-time.Since(k.last))
		}
		k.mu.Unlock()
		switch {
		case workers == 0:
			wait(k.done, -1, k.wake)
		case conn == nil:
			k.reconnect(ctx)
		case due != 0:
			wait(k.done, due, k.wake)
		default:
			_ = k.ask(ctx, ctx) // on an error it is lost, and the next round restores it
		}
	}
	return nil
}

// needed reports whether a session must be opened.
func (k *Keeper) needed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.conn == nil && len(k.workers) > 0
}

// reconnect restores the session, however long that takes.
func (k *Keeper) reconnect(ctx context.Context) {
	began := time.Now()
	for pause := firstPause; ctx.Err() == nil && k.needed(); pause = min(2*pause, maxPause) {
		conn := k.dial(ctx)
		if conn == nil {
			return
		}
		err := k.replace(ctx, conn)
		if err == nil {
			k.cfg.Log.Info("the session with the database is back", "after", time.Since(began).Round(time.Millisecond))
			return
		}
		if ctx.Err() == nil {
			k.cfg.Log.Warn("restore the session with the database", "error", err)
		}
		wait(k.done, pause, nil)
	}
}

// replace makes conn the session, unless a joining worker opened one meanwhile.
func (k *Keeper) replace(ctx context.Context, conn Conn) error {
	if err := k.use(ctx); err != nil {
		conn.Close()
		return err
	}
	defer k.leave()
	if !k.needed() {
		conn.Close()
		return nil
	}
	limit, cancel := context.WithTimeout(ctx, max(k.grace()/2, time.Second))
	defer cancel()
	return k.establish(limit, conn)
}

// establish makes conn the session: it takes the locks of all workers and then records that
// they are seen. No answer counts before that: see the package comment. The connection is in
// use.
func (k *Keeper) establish(ctx context.Context, conn Conn) error {
	k.mu.Lock()
	before := k.before
	workers := make(map[key]time.Duration, len(k.workers))
	for w, s := range k.workers {
		workers[w] = s.grace
	}
	plain, withdrawals := k.plain, k.withdrawals
	if plain { // they rely on a session again; their rows say so later
		k.plain, k.last = false, time.Now()
	}
	k.mu.Unlock()
	for w := range workers {
		if err := conn.Lock(ctx, w.lock(), before); err != nil {
			conn.Close()
			k.mu.Lock()
			k.plain = plain // no row says otherwise
			k.mu.Unlock()
			return fmt.Errorf("lock worker %s: %w", w.id, err)
		}
	}
	asked := time.Now()
	for w, grace := range workers {
		if err := k.cfg.Announce(ctx, conn, w.ns, w.id, Promise{grace, withdrawals}); err != nil {
			conn.Close()
			return fmt.Errorf("announce worker %s: %w", w.id, err)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.distrust(time.Now())
	k.conn, k.before, k.last, k.down = conn, conn.PID(), asked, time.Time{}
	close(k.made)
	k.made = make(chan struct{})
	return nil
}

// distrust ends the trust in the leases of workers whose session was silent for longer than
// their grace. The mutex is held.
func (k *Keeper) distrust(now time.Time) {
	for _, w := range k.workers {
		if silence(k.last, now) > w.grace {
			w.since = now
		}
	}
}

// withdraw lets the workers continue without a session if they could not open a session for
// long although the database is reachable. Their leases then last until they expire, and their
// deaths are found then. Otherwise withdraw returns why. The workers' rows record the
// withdrawal before the workers rely on it. Leases taken by earlier conclusions of other
// processes are older than Since, so the workers do not trust them.
func (k *Keeper) withdraw(ctx context.Context, why error) error {
	k.mu.Lock()
	away := k.conn == nil && !k.down.IsZero() && time.Since(k.down) >= max(2*k.shortest(), leastAway)
	k.mu.Unlock()
	if !away || k.cfg.Withdraw == nil || !errors.Is(why, ErrDown) {
		return why
	}
	if err := k.use(ctx); err != nil {
		return err
	}
	defer k.leave()
	k.mu.Lock()
	away = k.conn == nil && !k.plain
	workers := make([]key, 0, len(k.workers))
	for w := range k.workers {
		workers = append(workers, w)
	}
	if away {
		k.withdrawals++
	}
	withdrawals := k.withdrawals
	k.mu.Unlock()
	if !away {
		return nil
	}
	for _, w := range workers {
		if err := k.cfg.Withdraw(ctx, w.ns, w.id, withdrawals); err != nil {
			return fmt.Errorf("%w: %w", why, err)
		}
	}
	k.mu.Lock()
	k.distrust(time.Now())
	k.plain = true
	k.mu.Unlock()
	k.cfg.Log.Warn("cannot open a session with the database: workers continue without one, so their deaths are found only on their machine, or when their leases expire")
	return nil
}

// leastAway is the minimum time without a session before workers continue without one.
const leastAway = 5 * time.Second

// silence returns the time from the last answer to now, by the clock with the larger
// difference: the monotonic clock stands still while the machine sleeps.
func silence(last, now time.Time) time.Duration {
	return max(now.Sub(last), now.Round(0).Sub(last.Round(0)))
}

const (
	firstPause = 50 * time.Millisecond
	maxPause   = time.Second
)

// dial connects, however long that takes. It returns nil if no session is needed any more. Two
// loops try concurrently. Quick tries reach a recovered server at once, and patient tries
// reach distant servers.
func (k *Keeper) dial(ctx context.Context) Conn {
	tries := group.New(ctx)
	found := make(chan Conn)
	k.mu.Lock()
	grace, made := k.shortest(), k.made
	k.mu.Unlock()
	reported := make(chan struct{}, 1) // one error is enough
	for _, limit := range []time.Duration{max(grace/20, 200*time.Millisecond), max(grace, 10*time.Second)} {
		tries.Go("connect", func(ctx context.Context) error {
			for pause := firstPause; ctx.Err() == nil && k.needed(); pause = min(2*pause, maxPause) {
				try, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no connection within %s", limit))
				conn, err := k.cfg.Dial(try)
				slow := try.Err() != nil
				cancel()
				if err == nil {
					select {
					case found <- conn:
					case <-ctx.Done():
						conn.Close()
					}
					return nil
				}
				if ctx.Err() == nil && !slow {
					select {
					case reported <- struct{}{}:
						k.cfg.Log.Warn("connect the session with the database", "error", err)
					default:
					}
				}
				if errors.Is(err, ErrNotDirect) {
					pause = maxPause
				}
				if !slow {
					wait(ctx.Done(), min(pause, limit), nil)
				}
			}
			return nil
		})
	}
	ended := make(chan struct{})
	ends := group.New(ctx)
	ends.Go("tries", func(context.Context) error { defer close(ended); return tries.Wait() })
	var conn Conn
	select {
	case conn = <-found:
	case <-ended:
	case <-made: // by a joining worker
	}
	tries.Cancel(errClosed)
	_ = ends.Wait() // they return no errors
	return conn
}
