package conn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/goweaver/weaver/store"
)

// ErrClosed is returned by a closed [Pool].
var ErrClosed = errors.New("no more operations are taken")

// Pool is a pool of connections. Statements stay prepared with the connection.
type Pool struct {
	*common
	pool   *pgxpool.Pool
	own    bool
	closed atomic.Bool
}

// Open returns a new pool. It connects when a connection is first needed.
func Open(ctx context.Context, cfg *pgxpool.Config, s Settings) (*Pool, error) {
	m := newCommon(s)
	cfg = cfg.Copy()
	m.adopt(&cfg.ConnConfig.Config)
	setDefault(&cfg.PingTimeout, min(m.RoundTimeout/2, 5*time.Second)) // of a connection that was idle
	before := cfg.PrepareConn
	cfg.PrepareConn = func(ctx context.Context, pg *pgx.Conn) (bool, error) {
		if ctx.Value(ours{}) == nil {
			if err := m.unsettle(ctx, pg.PgConn()); err != nil {
				return false, err
			}
		}
		if before == nil {
			return true, nil
		}
		return before(ctx, pg)
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Pool{common: m, pool: pool, own: true}, nil
}

// ours marks the context of callers that take a connection for statements of this package.
type ours struct{}

// unsettle removes our settings from the session of a connection that a program gets, so that
// the program's tables are not looked up in our schema.
func (m *common) unsettle(ctx context.Context, pg *pgconn.PgConn) error {
	c, ok := pg.CustomData()[m.key].(*Conn)
	if !ok || !c.kept {
		return nil
	}
	c.kept = false
	_, err := pg.Exec(ctx, "RESET ALL").ReadAll()
	return err
}

// Share returns a pool over one of the caller's, whose sessions keep their settings.
func Share(pool *pgxpool.Pool, s Settings) *Pool { return &Pool{common: newCommon(s), pool: pool} }

// Raw returns the driver's pool.
func (p *Pool) Raw() *pgxpool.Pool { return p.pool }

// Close stops handing out connections. A pool from Open waits for those in use and closes
// them.
func (p *Pool) Close() {
	if !p.closed.Swap(true) && p.own {
		p.pool.Close()
	}
}

// Of returns the Conn of another owner's connection, for example of a caller's transaction,
// for [Conn.Join].
func (p *Pool) Of(pg *pgconn.PgConn) *Conn { return p.of(pg) }

// Acquire takes a connection out of the pool. It waits at most RoundTimeout. A call of Release
// must follow.
func (p *Pool) Acquire(ctx context.Context) (*Conn, error) {
	if p.closed.Load() {
		return nil, ErrClosed
	}
	bounded, cancel := context.WithTimeout(ctx, p.RoundTimeout)
	defer cancel()
	lease, err := p.pool.Acquire(context.WithValue(bounded, ours{}, true))
	if err != nil {
		return nil, p.refused(ctx, bounded, err)
	}
	c := p.of(lease.Conn().PgConn())
	c.lease, c.own, c.ctx = lease, p.own, ctx
	if err := c.settle(ctx); err != nil {
		p.Release(c)
		return nil, err
	}
	return c, nil
}

// refused returns the reason why no connection is available.
func (p *Pool) refused(ctx, bounded context.Context, err error) error {
	all := p.pool.Config().MaxConns
	used := p.pool.Stat().AcquiredConns() >= all
	switch {
	case p.closed.Load():
		return ErrClosed
	case ctx.Err() != nil && used:
		return fmt.Errorf("wait for one of the pool's %d connections, all in use: %w", all, context.Cause(ctx))
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case bounded.Err() != nil && used:
		return fmt.Errorf("%w: none of the pool's %d connections became free within %v", store.ErrBusy, all, p.RoundTimeout)
	case bounded.Err() != nil:
		return fmt.Errorf("%w: %w within %v", errBroken, errSilent, p.RoundTimeout)
	}
	return err
}

// Release puts a connection back. It rolls back an open transaction.
func (p *Pool) Release(c *Conn) {
	lease := c.lease
	if lease == nil {
		return
	}
	c.Rollback()
	if c.pipe != nil {
		_ = c.Flush() // nobody waits for the answer
	}
	c.lease, c.ctx = nil, context.Background()
	lease.Release() // closes the connection if it is broken or in a transaction
}

// maxRedo is the maximum number of repetitions of a transaction.
const maxRedo = 10

// Tx runs fn in a transaction and commits when fn returns nil. It runs fn again as a whole
// after a deadlock, a serialization failure, or if the connection turns out to be lost at the
// first try. fn must not keep results of an earlier run.
func (p *Pool) Tx(ctx context.Context, readOnly bool, fn func(*Conn) error) error {
	return p.redone(ctx, func() error { return p.once(ctx, readOnly, fn) })
}

// TxOn is Tx on a connection of the caller's that is in no transaction and not in use
// elsewhere. If the connection is lost the transaction does not run again.
func (p *Pool) TxOn(ctx context.Context, pg *pgconn.PgConn, fn func(*Conn) error) error {
	if p.closed.Load() {
		return ErrClosed
	}
	c := p.of(pg)
	return p.redone(ctx, func() error {
		defer c.Rollback() // also after a panic
		return c.run(ctx, false, fn)
	})
}

// Alone commits the statements that queue sends in one round trip, and then calls read for the
// rows. queue waits for no answer, and may be called again like fn of [Pool.Tx].
func (p *Pool) Alone(ctx context.Context, queue func(*Conn) error, read func() error) error {
	return p.redone(ctx, func() error {
		c, err := p.Acquire(ctx)
		if err != nil {
			return err
		}
		defer p.Release(c)
		if c.kept {
			return c.alone(ctx, queue, read)
		}
		if err := c.Begin(ctx, false); err != nil {
			return err
		}
		if err := queue(c); err != nil {
			return err
		}
		c.after = read
		return c.Commit()
	})
}

// redone runs a transaction, and again as long as that can help.
func (p *Pool) redone(ctx context.Context, once func() error) error {
	for try := 0; ; try++ {
		err := once()
		lost := try == 0 && isLost(err)
		if err == nil || try >= maxRedo || !Redo(err) && !lost {
			return err
		}
		if p.Redone != nil {
			p.Redone(err)
		}
		if lost {
			continue
		}
		timer := time.NewTimer(pause(try))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

func (p *Pool) once(ctx context.Context, readOnly bool, fn func(*Conn) error) error {
	c, err := p.Acquire(ctx)
	if err != nil {
		return err
	}
	defer p.Release(c) // rolls back, also after a panic
	return c.run(ctx, readOnly, fn)
}

// run runs fn in a transaction. It leaves the transaction open if fn fails.
func (c *Conn) run(ctx context.Context, readOnly bool, fn func(*Conn) error) error {
	if err := c.Begin(ctx, readOnly); err != nil {
		return err
	}
	if err := fn(c); err != nil {
		return err
	}
	return c.Commit()
}

// pause returns the wait before the next try: up to 1 ms, 2 ms, 4 ms … 100 ms.
func pause(try int) time.Duration {
	return rand.N(min(time.Millisecond<<try, 100*time.Millisecond))
}
