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

// database implements sqlstore.Database: one value per transaction, with the state of that
// transaction.
type database struct {
	db     *DB
	c      *conn.Conn
	locked map[task.ID]bool // locked tasks
	jobs   map[task.ID]bool // locked jobs
	keys   map[string]bool  // locked keys
	asked  *lane.Reading    // the reading of the lanes at the begin of the transaction; zero if there was no reading or it is stale
	on     *pgconn.PgConn   // the connection to write on; nil takes one of the pool
}

var _ sqlstore.Database = database{}

// Write implements sqlstore.Database.
func (d database) Write(ctx context.Context, ns string, op sqlstore.Op) error {
	var fx sqlstore.Effects
	run := func(c *conn.Conn) error {
		weight := op.Weight
		if op.Urgent {
			weight = 0 // it does not wait for heavy operations
		}
		var ahead func() error
		if len(op.Orders) > 0 {
			ahead = func() error { return sendLocks(c, ns, op.Orders) }
		}
		t, err := d.db.begunWith(c, ns, &fx, weight, ahead)
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

// begun begins an operation's transaction and returns it. One round trip begins the transaction,
// reads the time and the store's generation, and runs the statements of more, whose only parameter
// is the namespace.
//
// Heavy operations of a namespace run one after the other: reapers, chores, collectors and
// operators' commands, each of which moves many tasks.
func (db *DB) begun(c *conn.Conn, ns string, fx *sqlstore.Effects, weight int, more ...string) (*sqlstore.Tx, error) {
	return db.begunWith(c, ns, fx, weight, nil, more...)
}

// begunWith is begun with statements that ahead sends, unless it is nil.
func (db *DB) begunWith(c *conn.Conn, ns string, fx *sqlstore.Effects, weight int, ahead func() error, more ...string) (*sqlstore.Tx, error) {
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
	if err == nil && ahead != nil {
		err = ahead()
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

// ask sends a statement whose only parameter is the namespace. The same statement, run later in the
// transaction, returns this result.
func ask(c *conn.Conn, sql, ns string) (*conn.Stmt, error) {
	if err := c.Stmt(sql).Text(1, ns).Done(); err != nil { // through the handle, which keeps its bound parameters
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

// apply publishes the effects of a committed operation in this process.
func (db *DB) apply(fx *sqlstore.Effects) {
	db.memory.Apply(fx)
	fx.ApplyLanes(&db.lanes)
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

// Stalled implements sqlstore.Database: PostgreSQL has no single writer to wait for.
func (database) Stalled() (until time.Time, waited time.Duration) { return until, 0 }

// GiveBack implements sqlstore.Database: vacuum returns free space by itself.
func (database) GiveBack(context.Context) (freed int64, more bool, err error) { return 0, false, nil }

// Erase implements sqlstore.Database: vacuum removes deleted rows from the tables, and later writes
// overwrite the write-ahead log.
func (database) Erase(*sqlstore.Tx) (undo func(), err error) { return func() {}, nil }

const (
	// Locks in the order of the list. A subquery of its own finds each row by its key, even without
	// table statistics.
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

// Tasks implements sqlstore.Locks. It locks jobs, keys, dispatch rows and tasks in this order, each
// ordered by ID. A task's jobs and keys never change.
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

// lock is Tasks; if rows is false the caller locks the rows of the tasks.
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

// pad returns the 16 bytes of an ID; NULL becomes zeros.
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

// bindIDs binds a namespace and a sorted list of IDs.
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
	for !d.keys[key] { // the row may be deleted during the wait
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

// bindKeys binds a namespace and the sorted list of the keys to lock.
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

// lockedKeys records the keys that a statement locked: those that have a row.
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

// TryName implements sqlstore.Locks.
func (d database) TryName(t *sqlstore.Tx, name string) (got bool, err error) {
	st := d.c.Stmt(sqlTryAdvisory).Int(1, advisoryKey(d.c, "name "+name, t.Namespace()))
	if st.One() {
		got = st.ColBool(0)
	}
	return got, st.Done()
}

// Graph implements sqlstore.Locks. Two concurrent transactions that add edges could together close
// a cycle that neither sees.
func (d database) Graph(t *sqlstore.Tx) error { return lockAdvisory(d.c, "graph", t.Namespace()) }

// Passes implements sqlstore.Locks.
func (database) Passes() bool { return true }

// lockAdvisory queues the wait for an advisory lock of a namespace, which lasts until the end of
// the transaction.
func lockAdvisory(c *conn.Conn, what, ns string) error {
	return c.Stmt(sqlAdvisory).Int(1, advisoryKey(c, what, ns)).Run()
}

const sqlTryAdvisory = `SELECT pg_try_advisory_xact_lock(?1)`

func advisoryKey(c *conn.Conn, what, ns string) int64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "weaver %s %s %s", what, c.Schema, ns) // never fails
	return int64(h.Sum64())
}

// translate maps a driver error to an error of the port and adds the store's URL and the remedy.
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
