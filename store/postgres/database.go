package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
	"github.com/goweaver/weaver/task"
)

// database is a DB as the verbs use it: one value for each transaction, with what
// belongs to that.
type database struct {
	db     *DB
	c      *conn.Conn
	locked map[task.ID]bool // tasks
	jobs   map[task.ID]bool // that are locked
	keys   map[string]bool  // that are locked
	asked  *lane.Reading    // the reading of the lanes that began with the transaction; zero: none, or it is over
	on     *pgconn.PgConn   // which connection to write on; nil: one of the pool
}

var _ sqlstore.Database = database{}

// Write implements sqlstore.Database.
func (d database) Write(ctx context.Context, ns string, op sqlstore.Op) error {
	var fx sqlstore.Effects
	run := func(c *conn.Conn) error {
		weight := op.Weight
		if op.Urgent {
			weight = 0 // it waits for no heavy one
		}
		t, err := d.db.begun(c, ns, &fx, weight)
		if err != nil {
			return err
		}
		return op.Run(t)
	}
	var err error
	if d.on != nil {
		err = d.db.pool.TxOn(ctx, d.on, run)
	} else {
		err = d.db.pool.Tx(ctx, false, run)
	}
	if err != nil {
		return d.db.translate(err)
	}
	d.db.apply(&fx)
	return nil
}

// begun returns an operation's transaction. It asks for the time, and for the
// generation of the store, with the begin of the transaction, in one round trip,
// and what statements over the namespace alone answer whose texts it gets.
// Heavy operations of a namespace run one after the other: reapers, chores,
// collectors and commands of operators, which move many tasks each.
func (db *DB) begun(c *conn.Conn, ns string, fx *sqlstore.Effects, weight int, more ...string) (*sqlstore.Tx, error) {
	if weight >= sqlstore.Heavy {
		if err := lockAdvisory(c, "heavy", ns); err != nil {
			return nil, err
		}
	}
	var reading lane.Reading
	if slices.Contains(more, sqlLanes) {
		reading = db.beginReading()
	}
	gen, err := ask(c, sqlstore.SQLGeneration, ns)
	for i := 0; err == nil && i < len(more); i++ {
		_, err = ask(c, more[i], ns)
	}
	if err != nil {
		return nil, err
	}
	now, err := c.Now()
	if err != nil {
		return nil, err
	}
	*fx = sqlstore.NewEffects(ns, &db.memory)
	d := db.database(c)
	*d.asked = reading
	t := sqlstore.NewTx(d, c, fx, now)
	if gen.Step() {
		t.SetGeneration(string(gen.Raw(0)))
	}
	return t, errors.Join(gen.Err(), gen.Reset())
}

// ask sends a statement whose only parameter is the namespace. Who runs it in the same
// transaction gets this answer.
func ask(c *conn.Conn, sql, ns string) (*conn.Stmt, error) {
	if err := c.Stmt(sql).Text(1, ns).Done(); err != nil { // by the handle, which remembers what is bound
		return nil, err
	}
	st, err := c.Statement(sql)
	if err == nil {
		err = st.Send()
	}
	return st, err
}

func (db *DB) database(c *conn.Conn) database {
	return database{db: db, c: c, asked: new(lane.Reading), locked: make(map[task.ID]bool), jobs: make(map[task.ID]bool), keys: make(map[string]bool)}
}

// apply makes the effects of a committed operation known in this process.
func (db *DB) apply(fx *sqlstore.Effects) {
	db.memory.Apply(fx)
	db.lanes.Observe(fx.NS, fx.Lanes)
	db.listeners.Notify(fx.NS, fx.Notice)
	db.notices.Committed(fx.NS, &fx.Notice)
}

// Read implements sqlstore.Database.
func (d database) Read(ctx context.Context, ns string, fn func(*sqlstore.View) error) error {
	err := d.db.pool.Tx(ctx, true, func(c *conn.Conn) error {
		now, err := c.Now()
		if err != nil {
			return err
		}
		return fn(sqlstore.NewView(c, ns, func() time.Time { return now }))
	})
	return d.db.translate(err)
}

// Stalled implements sqlstore.Database: nobody waits for one writer here.
func (database) Stalled() (until time.Time, waited time.Duration) { return until, 0 }

// GiveBack implements sqlstore.Database: PostgreSQL's vacuum does that by itself.
func (database) GiveBack(context.Context) (freed int64, more bool, err error) { return 0, false, nil }

// Erase implements sqlstore.Database: what a transaction deletes is gone when vacuum
// has come by, and from the write-ahead log when that was written over.
func (database) Erase(*sqlstore.Tx) (undo func(), err error) { return func() {}, nil }

const (
	// In the order of the list: a subquery of its own finds each row by its key, whatever
	// the server knows of the tables.
	sqlLocksOfTasks = `
SELECT t.task_id, t.job_id, t.concurrency_key FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (
  SELECT task_id, job_id, concurrency_key FROM weaver_tasks WHERE namespace = ?1 AND task_id = u.id LIMIT 1) t`
	sqlLockJobs = `
SELECT 1 FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (SELECT 1 FROM weaver_jobs WHERE namespace = ?1 AND job_id = u.id LIMIT 1 FOR UPDATE) j`
	sqlLockKeys = `
SELECT k.key FROM unnest(CAST(?2 AS text[])) AS u(name), LATERAL (SELECT key FROM weaver_conc_keys WHERE namespace = ?1 AND key = u.name LIMIT 1 FOR UPDATE) k`
	sqlLockDispatch = `
SELECT 1 FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (SELECT 1 FROM weaver_outbox_events WHERE namespace = ?1 AND task_id = u.id LIMIT 1 FOR UPDATE) o`
	sqlLockTasks = `
SELECT 1 FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (SELECT 1 FROM weaver_tasks WHERE namespace = ?1 AND task_id = u.id LIMIT 1 FOR UPDATE) t`
	sqlMakeKey  = `INSERT INTO weaver_conc_keys (namespace, key, held, cap) VALUES (?1, ?2, 0, 1) ON CONFLICT DO NOTHING`
	sqlAdvisory = `SELECT pg_advisory_xact_lock(?1)::text`
)

// Tasks implements sqlstore.Locks: jobs before keys before dispatch rows before tasks,
// each in the order of their IDs. The jobs and keys of tasks never change.
func (d database) Tasks(t *sqlstore.Tx, ids ...task.ID) (fresh bool, err error) {
	var tasks []task.ID
	for _, id := range ids {
		if !d.locked[id] {
			d.locked[id] = true
			tasks = append(tasks, id)
		}
	}
	if len(tasks) == 0 {
		return false, nil
	}
	return true, d.lock(t, tasks, true)
}

// lock is Tasks; without rows those of the tasks themselves are left to the caller.
func (d database) lock(t *sqlstore.Tx, tasks []task.ID, rows bool) error {
	var jobs []task.ID
	var keys []string
	ns := t.Namespace()
	st, err := d.bindIDs(sqlLocksOfTasks, ns, tasks)
	if err != nil {
		return err
	}
	for st.Step() {
		if job := task.ID(pad(st.Raw(1))); !job.IsZero() && !d.jobs[job] {
			d.jobs[job] = true
			jobs = append(jobs, job)
		}
		if key := string(st.Raw(2)); key != "" && !d.keys[key] && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if err := errors.Join(st.Err(), st.Reset()); err != nil {
		return err
	}
	var sent []*conn.Stmt
	var ofKeys *conn.Stmt
	send := func(sql string, list []task.ID) {
		if err == nil && len(list) > 0 {
			if st, err = d.bindIDs(sql, ns, list); err == nil {
				sent, err = append(sent, st), st.Send()
			}
		}
	}
	send(sqlLockJobs, jobs)
	if err == nil && len(keys) > 0 {
		if ofKeys, err = d.bindKeys(ns, keys...); err == nil {
			err = ofKeys.Send()
		}
	}
	send(sqlLockDispatch, tasks)
	if rows {
		send(sqlLockTasks, tasks)
	}
	if err == nil && ofKeys != nil {
		err = d.lockedKeys(ofKeys)
	}
	for _, st := range sent {
		if err == nil {
			err = finish(st)
		}
	}
	return err
}

// pad makes 16 bytes of an ID that may be NULL.
func pad(b []byte) (id [16]byte) {
	copy(id[:], b)
	return id
}

// finish reads a statement to its end.
func finish(st *conn.Stmt) error {
	for st.Step() {
	}
	return errors.Join(st.Err(), st.Reset())
}

// bindIDs binds a namespace and a list of IDs, sorted.
func (d database) bindIDs(sql, ns string, ids []task.ID) (*conn.Stmt, error) {
	st, err := d.c.Statement(sql)
	if err == nil {
		err = st.BindText(1, ns)
	}
	if err != nil {
		return nil, err
	}
	ids = slices.Clone(ids)
	slices.SortFunc(ids, task.ID.Compare)
	list := st.Array(2)
	for i := range ids {
		list.Bytes(ids[i][:])
	}
	return st, nil
}

// Job implements sqlstore.Locks.
func (d database) Job(t *sqlstore.Tx, id *task.ID) error {
	if d.jobs[*id] {
		return nil
	}
	d.jobs[*id] = true
	st, err := d.bindIDs(sqlLockJobs, t.Namespace(), []task.ID{*id})
	if err != nil {
		return err
	}
	return finish(st)
}

// Key implements sqlstore.Locks.
func (d database) Key(t *sqlstore.Tx, key string) error {
	for !d.keys[key] { // the row may be deleted while it is waited for
		if err := d.c.Stmt(sqlMakeKey).Text(1, t.Namespace()).Text(2, key).Run(); err != nil {
			return err
		}
		st, err := d.bindKeys(t.Namespace(), key)
		if err == nil {
			err = d.lockedKeys(st)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bindKeys binds a namespace and keys that are to be locked, sorted.
func (d database) bindKeys(ns string, keys ...string) (*conn.Stmt, error) {
	slices.Sort(keys)
	st, err := d.c.Statement(sqlLockKeys)
	if err == nil {
		err = st.BindText(1, ns)
	}
	if err == nil {
		st.Array(2).Texts(keys)
	}
	return st, err
}

// lockedKeys notes the keys that a statement locked: those that have a row.
func (d database) lockedKeys(st *conn.Stmt) error {
	for st.Step() {
		d.keys[string(st.Raw(0))] = true
	}
	return errors.Join(st.Err(), st.Reset())
}

// Name implements sqlstore.Locks.
func (d database) Name(t *sqlstore.Tx, name string) error {
	return lockAdvisory(d.c, "name "+name, t.Namespace())
}

// Graph implements sqlstore.Locks: of two transactions that add edges, each could
// close the circle that the other one does not see yet.
func (d database) Graph(t *sqlstore.Tx) error { return lockAdvisory(d.c, "graph", t.Namespace()) }

// Passes implements sqlstore.Locks.
func (database) Passes() bool { return true }

// lockAdvisory queues the wait for a lock that stands for something in a namespace,
// until the end of the transaction.
func lockAdvisory(c *conn.Conn, what, ns string) error {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "weaver %s %s %s", what, c.Schema, ns) // never fails
	return c.Stmt(sqlAdvisory).Int(1, int64(h.Sum64())).Run()
}

// translate turns what the driver says into the errors of the port, with the store's
// URL and what to do about it.
func (db *DB) translate(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, conn.ErrClosed) {
		return fmt.Errorf("%s: %w", db.src.shown, store.ErrClosed)
	}
	advice, kind := conn.Classify(err)
	switch {
	case kind == nil:
		return err
	case advice == "":
		return fmt.Errorf("%s: %w: %w", db.src.shown, kind, err)
	}
	return fmt.Errorf("%s: %w (%s): %w", db.src.shown, kind, advice, err)
}
