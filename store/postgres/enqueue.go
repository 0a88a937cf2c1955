package postgres

import (
	"context"
	"errors"

	"github.com/goweaver/weaver/internal/batch"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
)

// enqueueing is one caller's submission in the group commit.
type enqueueing struct {
	ctx context.Context
	ns  string
	sub *store.Submission
	got []store.Enqueued
}

// Enqueue implements store.Producer. Submissions that come while others are being
// committed are committed together.
func (db *DB) Enqueue(ctx context.Context, ns string, in store.Tx, sub store.Submission) ([]store.Enqueued, error) {
	if in != nil {
		return db.verbs.Enqueue(ctx, ns, in, sub)
	}
	e := &enqueueing{ctx, ns, &sub, nil}
	if err := db.enqueues.Do(ctx, &batch.Op[*enqueueing]{Do: e, Weight: len(sub.Tasks)}); err != nil {
		return nil, db.queued(err)
	}
	return e.got, nil
}

// queued translates an error of the queue.
func (db *DB) queued(err error) error {
	switch {
	case errors.Is(err, batch.ErrTaken):
		err = errors.Join(store.ErrUnknown, err)
	case errors.Is(err, batch.ErrClosed):
		return db.translate(conn.ErrClosed)
	}
	return err
}

// enqueueGroup stores the submissions of a group in one transaction. When one of them
// cannot be stored, each is stored by itself, and those that fail get their errors.
func (db *DB) enqueueGroup(g *batch.Group[*enqueueing]) {
	ops := g.Take()
	ctx := context.Background() // nobody's alone; every round trip has its own limit
	if len(ops) > 1 && db.enqueueAll(ctx, ops) == nil {
		return
	}
	for _, o := range ops {
		o.Err = db.enqueueAll(ctx, []*batch.Op[*enqueueing]{o})
	}
}

func (db *DB) enqueueAll(ctx context.Context, ops []*batch.Op[*enqueueing]) error {
	if len(ops) == 1 {
		ctx = context.WithoutCancel(ops[0].Do.ctx)
	}
	var effects map[string]*sqlstore.Effects
	err := db.pool.Tx(ctx, false, func(c *conn.Conn) error {
		effects = make(map[string]*sqlstore.Effects)
		txs := make(map[string]*sqlstore.Tx)
		for _, o := range ops {
			e := o.Do
			t := txs[e.ns]
			if t == nil {
				fx := new(sqlstore.Effects)
				var err error
				if t, err = db.begun(c, e.ns, fx, 0); err != nil {
					return err
				}
				txs[e.ns], effects[e.ns] = t, fx
			}
			var err error
			if e.got, err = t.Enqueue(e.sub); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return db.translate(err)
	}
	for _, fx := range effects {
		db.apply(fx)
	}
	return nil
}
