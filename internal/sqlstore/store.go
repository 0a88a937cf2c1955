package sqlstore

import (
	"context"
	"time"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	// MaxWeight is the maximum weight of one transaction, in changed rows. A claim or a finish
	// of 1,000 tasks takes about 10 to 30 ms.
	MaxWeight = 2000
	// Heavy is the weight of an operation that may fill a transaction: no transaction has two
	// of them.
	Heavy = MaxWeight/2 + 1
)

// Store implements the verbs of the port on a database. A store embeds it.
type Store struct {
	store.Unsupported // what a database cannot do, or does by itself

	db Database

	// Page is the number of tasks, jobs or keys in one part of a scan. Looks is the row limit
	// of a page of a list, and StatsLooks the row limit of a page of statistics. Counted is
	// the limit of each count of an overview. GraphEdges is the edge limit of a page of a
	// graph. Only tests change them.
	Page, Looks, StatsLooks, Counted, GraphEdges int

	// OneByOne applies each command by itself. Only tests set it.
	OneByOne bool

	// A job that weighs more than Whole is stored in parts of the weight Part. 0: never.
	Whole, Part int
}

// New returns a store over a database.
func New(db Database) Store {
	return Store{db: db, Page: scanPage, Looks: listLooks, StatsLooks: store.StatsLooks, Counted: store.MaxCount, GraphEdges: maxGraphEdges}
}

// Database is the database below the verbs.
type Database interface {
	Locks
	Feeds

	// Write runs an operation in a write transaction. It may run it more than once. Errors are
	// those of the port.
	Write(ctx context.Context, ns string, op Op) error
	// Read runs fn in a transaction that reads one state of the database.
	Read(ctx context.Context, ns string, fn func(*View) error) error
	// InTx runs fn in a caller's transaction, in its own savepoint.
	InTx(ctx context.Context, ns string, in store.Tx, fn func(*Tx) error) error

	// Lanes is this process's cache of the lanes with dispatch rows. ReadLanes reads the lanes
	// from the database, with the first due time of each. It sets all fields of when except
	// Now.
	Lanes() *lane.Cache
	ReadLanes(t *Tx) (read map[lane.Key]int64, when lane.Reading, err error)
	// Stalled returns the end and the duration of this process's last wait for the write lock
	// that was long enough to make workers miss their heartbeats.
	Stalled() (until time.Time, waited time.Duration)
	// Dead proves which workers' processes are dead. It runs outside of transactions.
	Dead(ctx context.Context, ns string) (Dead, error)
	// LooksDead returns which workers' processes are proven dead. It runs outside of
	// transactions, and writes nothing.
	LooksDead(ctx context.Context, ns string, workers []store.WorkerID) (map[store.WorkerID]bool, error)
	// Joining runs before a worker gets its row, and may set the worker's Connection. If
	// written is not nil, it runs in the transaction that writes the row, after the write.
	// Joined runs after that transaction, and Left after the deletion of the row.
	Joining(ctx context.Context, ns string, w *store.WorkerInfo) (written func(*Tx) error, err error)
	Joined(ctx context.Context)
	Left(ns string, id store.WorkerID)

	// GiveBack returns some of the space freed by collections to the file system. It returns
	// the number of bytes, and whether more space remains.
	GiveBack(ctx context.Context) (freed int64, more bool, err error)
	// Erase makes the transaction erase deleted and overwritten values from the database's
	// files, if the database can. undo ends that.
	Erase(t *Tx) (undo func(), err error)
}

// Dead is a set of workers whose processes are proven dead.
type Dead interface {
	// IDs returns the workers.
	IDs() []store.WorkerID
	// Forget removes the proofs of workers that have no row any more.
	Forget(ids []store.WorkerID)
	// Close releases the proofs. Until then no other reaper of the machine holds them.
	Close()
}

// Confirmer is a Dead whose proofs must be confirmed in the transaction that uses them.
type Confirmer interface {
	// Confirm returns the workers that are dead and whose rows cannot change until the
	// transaction ends.
	Confirm(t *Tx) ([]store.WorkerID, error)
}

// Op is one operation: a pure function of its transaction. It may run more than once, so it
// sets all its results each time and touches nothing else. The effects of its commit are in
// the transaction's Effects.
type Op struct {
	Run    func(*Tx) error
	Weight int  // changed rows; counted as at least 1
	Urgent bool // takes precedence over operations that are not urgent

	// Orders are the keys, sorted, that Run locks first with BulkOrders.LockOrders. The database
	// may send that statement with the begin of the transaction.
	Orders []string
}

// write runs fn in a write transaction and commits it.
func (s *Store) write(ctx context.Context, ns string, weight int, fn func(*Tx) error) error {
	return s.db.Write(ctx, ns, Op{Run: fn, Weight: weight})
}

// read runs fn in its own read transaction.
func (s *Store) read(ctx context.Context, ns string, fn func(*View) error) error {
	return s.db.Read(ctx, ns, fn)
}

// Conn is a connection with an open transaction.
type Conn interface {
	// Stmt returns the prepared statement for a text. The caller must not request the same
	// text again while it reads the rows.
	Stmt(sql string) *sqlstmt.Stmt
	// Cache returns the connection's cache of row values.
	Cache() *sqlstmt.Cache
}

// ListConn is a Conn of a database that accepts lists as parameters. There an idSQL's
// statement for one ID serves any number of IDs.
type ListConn interface {
	// StmtIDs is Stmt with a list of IDs bound to a parameter.
	StmtIDs(sql string, i int, ids []task.ID) *sqlstmt.Stmt
}

// View reads a namespace within one transaction.
type View struct {
	conn Conn
	ns   string
	now  func() time.Time
}

// NewView returns a view of a read transaction. now is the store's clock.
func NewView(conn Conn, ns string, now func() time.Time) *View { return &View{conn, ns, now} }

func (v *View) stmt(sql string) *sqlstmt.Stmt { return v.conn.Stmt(sql) }

// Tx is one operation's transaction, of the store or of a caller. It is a View that also
// writes.
type Tx struct {
	View
	db  Database
	at  time.Time // the store's clock, read once per operation
	mic int64     // at in microseconds, as stored
	gen string    // the store's generation, once read
	fx  *Effects

	moved    int    // rows moved in addition to the caller's rows
	bulk     Bulk   // nil: tasks are written in chunks
	alike    alikes // new tasks that are not stored yet
	costs    *moves // the jobs' costs of recorded steps, or nil
	repeated bool   // the step to record has the same value already
}

// NewTx returns an operation's transaction at an instant of the store's clock.
func NewTx(db Database, conn Conn, fx *Effects, at time.Time) *Tx {
	bulk, _ := db.(Bulk)
	return &Tx{View: View{conn, fx.NS, func() time.Time { return at }}, db: db, bulk: bulk, at: at, mic: at.UnixMicro(), fx: fx}
}

// Conn returns the connection of the transaction.
func (v *View) Conn() Conn { return v.conn }

// Now returns the instant of the transaction.
func (t *Tx) Now() time.Time { return t.at }

// Effects returns the consequences of the transaction's commit.
func (t *Tx) Effects() *Effects { return t.fx }

// Namespace returns the namespace of the transaction.
func (v *View) Namespace() string { return v.ns }

// SetGeneration sets the generation of the leases, as read by SQLGeneration in the same
// transaction.
func (t *Tx) SetGeneration(gen string) { t.gen = gen }

// Enqueue stores a submission.
func (t *Tx) Enqueue(sub *store.Submission) ([]store.Enqueued, error) {
	return t.enqueue(sub, task.ID{})
}

// EnqueueAll stores several submissions.
func (t *Tx) EnqueueAll(subs ...*store.Submission) (got [][]store.Enqueued, err error) {
	got = make([][]store.Enqueued, len(subs))
	for i, sub := range subs {
		if got[i], err = t.put(sub, task.ID{}); err != nil {
			return nil, err
		}
	}
	return got, t.flush()
}

// Record writes one record in a caller's transaction, with its cost. repeated reports that its
// step has the same value already.
func (t *Tx) Record(rec *store.Record, got *store.RecordResult) (repeated bool, err error) {
	if err = t.lockSpenders([]store.Record{*rec}); err != nil {
		return false, err
	}
	if err = t.record(rec, got); err == nil {
		err = t.settleCosts()
	}
	return t.repeated, err
}

const sqlHolds = `SELECT 1 FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2 AND lease_epoch = ?3 AND lease_id = ?4`

// Lost returns the reason why a lease is not valid any more, or nil.
func (t *Tx) Lost(l *task.Lease) (lost, err error) {
	ok, err := t.valid(l)
	if err != nil {
		return nil, err
	}
	if !ok {
		return rules.LeaseLost(l, rules.LostToRestore), nil
	}
	st := t.stmt(sqlHolds).Text(1, t.ns).ID(2, &l.Task).Int(3, l.Epoch).Lease(4, &l.ID)
	if !st.One() {
		lost = rules.LeaseLost(l, rules.LostToAnother)
	}
	return lost, st.Done()
}
