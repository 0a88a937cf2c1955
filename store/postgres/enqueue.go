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
		for ns, of := range byNamespace(ops) {
			fx := new(sqlstore.Effects)
			t, err := db.begun(c, ns, fx, 0)
			if err != nil {
				return err
			}
			effects[ns] = fx
			subs := make([]*store.Submission, len(of))
			for i, e := range of {
				subs[i] = e.sub
			}
			got, err := t.EnqueueAll(subs...)
			if err != nil {
				return err
			}
			for i, e := range of {
				e.got = got[i]
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

func byNamespace(ops []*batch.Op[*enqueueing]) map[string][]*enqueueing {
	of := make(map[string][]*enqueueing, 1)
	for _, o := range ops {
		of[o.Do.ns] = append(of[o.Do.ns], o.Do)
	}
	return of
}
