package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/internal/batch"
	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
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

// enqueuer commits submissions in groups.
type enqueuer struct {
	db     *DB
	queue  *batch.Queue[*enqueueing]
	packed *sqlstmt.Cache // used by the leader only
}

func newEnqueuer(db *DB) *enqueuer {
	q := &enqueuer{db: db, packed: sqlstmt.NewCache()}
	q.queue = batch.New(sqlstore.MaxWeight, q.group)
	return q
}

// Enqueue implements store.Core. Submissions that arrive during a commit are committed together
// next. Large submissions have a queue of their own, so that small ones do not wait for them.
func (db *DB) Enqueue(ctx context.Context, ns string, in store.Tx, sub store.Submission) ([]store.Enqueued, error) {
	if in != nil {
		return db.verbs.Enqueue(ctx, ns, in, sub)
	}
	if err := rules.CheckEnqueue(&sub); err != nil {
		return nil, err
	}
	e := &enqueueing{ctx, ns, &sub, nil}
	q, weight := db.enqueues, rules.Weight(&sub)
	if weight > sqlstore.MaxWeight {
		q = db.large
	}
	if err := q.queue.Do(ctx, &batch.Op[*enqueueing]{Do: e, Weight: weight}); err != nil {
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

// group stores the submissions of a group in one transaction. If one of them cannot be stored, it
// stores each on its own and returns the errors to their callers.
func (q *enqueuer) group(g *batch.Group[*enqueueing]) {
	ops := g.Take()
	ctx := context.Background() // the group belongs to several callers; every round trip has its own limit
	if len(ops) > 1 && q.all(ctx, ops) == nil {
		return
	}
	for _, o := range ops {
		o.Err = q.all(ctx, []*batch.Op[*enqueueing]{o})
	}
}

func (q *enqueuer) all(ctx context.Context, ops []*batch.Op[*enqueueing]) error {
	db := q.db
	if len(ops) == 1 {
		ctx = context.WithoutCancel(ops[0].Do.ctx)
	}
	if done, err := q.now(ctx, ops); done || err != nil {
		return db.translate(err)
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

// now stores submissions in one round trip if they need no earlier reads. It reports whether it
// did.
func (q *enqueuer) now(ctx context.Context, ops []*batch.Op[*enqueueing]) (done bool, err error) {
	db := q.db
	of := byNamespace(ops)
	all := make(map[string]*sqlstore.Alikes, len(of))
	for ns, list := range of {
		a := new(sqlstore.Alikes)
		for _, e := range list {
			if now, err := a.Immediate(q.packed, database{}.InlineMax(), e.sub); err != nil || !now {
				return false, err
			}
		}
		all[ns] = a
	}
	copies := false
	for _, a := range all {
		_ = a.Each(func(kind *sqlstore.Alike, rows []sqlstore.AlikeTask) error {
			copies = copies || copyable(kind, len(rows))
			return nil
		})
	}
	insert := func(alike string) error {
		return db.pool.Alone(ctx, func(c *conn.Conn) error {
			for ns, a := range all {
				err := a.Each(func(kind *sqlstore.Alike, rows []sqlstore.AlikeTask) error {
					return insertAlike(c, ns, given(c), alike, kind, rows)
				})
				if err != nil {
					return err
				}
			}
			return nil
		}, nil)
	}
	first := func() error { return insert(sqlInsertNew) }
	if copies {
		first = func() error { return db.copyAll(ctx, all) }
	}
	var pg *pgconn.PgError
	if err = first(); errors.As(err, &pg) && pg.Code == "23505" { // some tasks were already stored
		err = insert(sqlInsertAlike)
	}
	if err != nil {
		return false, err
	}
	for ns, list := range of {
		for _, e := range list {
			e.got = make([]store.Enqueued, len(e.sub.Tasks))
			for i := range e.sub.Tasks {
				e.got[i] = store.Enqueued{ID: e.sub.Tasks[i].ID, Disposition: store.DispositionCreated}
			}
		}
		_ = all[ns].Each(func(kind *sqlstore.Alike, rows []sqlstore.AlikeTask) error {
			for i := range rows {
				if i == 0 || rows[i].Group != rows[i-1].Group {
					db.lanes.AddDue(ns, lane.Key{Queue: kind.Queue, Type: kind.Type, Group: rows[i].Group, Priority: kind.Priority})
				}
			}
			return nil
		})
		fx := sqlstore.NewEffects(ns, &db.memory)
		fx.Notice.Due = true
		db.apply(&fx)
	}
	return true, nil
}

// copyAll stores new tasks in a transaction; it uses COPY for large sets with shared columns.
func (db *DB) copyAll(ctx context.Context, all map[string]*sqlstore.Alikes) error {
	return db.pool.Tx(ctx, false, func(c *conn.Conn) error {
		now, err := c.Now()
		for ns, a := range all {
			if err != nil {
				break
			}
			err = a.Each(func(kind *sqlstore.Alike, rows []sqlstore.AlikeTask) error {
				if copyable(kind, len(rows)) {
					return copyAlike(c, ns, now.UnixMicro(), kind, rows)
				}
				return insertAlike(c, ns, now.UnixMicro(), sqlInsertNew, kind, rows)
			})
		}
		return err
	})
}

// given returns the time that a test sets; 0 means the server's time.
func given(c *conn.Conn) int64 {
	if c.Clock == nil {
		return 0
	}
	return c.Clock().UnixMicro()
}

func byNamespace(ops []*batch.Op[*enqueueing]) map[string][]*enqueueing {
	of := make(map[string][]*enqueueing, 1)
	for _, o := range ops {
		of[o.Do.ns] = append(of[o.Do.ns], o.Do)
	}
	return of
}
