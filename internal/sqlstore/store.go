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
	// MaxWeight is how much one transaction may hold, in rows to be changed. A
	// claim or a finish of 1,000 tasks takes some 10 to 30 ms.
	MaxWeight = 2000
	// Heavy is the weight of an operation that may take as long as a transaction
	// should: no two of them are in one.
	Heavy = MaxWeight/2 + 1
)

// Store carries out the verbs of the port in a database. A store embeds it.
type Store struct {
	db Database

	// Page is how many tasks, jobs or keys one part of a scan has, Looks how many rows
	// one page of a list looks at, StatsLooks one of statistics, Counted how far an
	// overview counts, and GraphEdges how many edges a page of a graph has. Only tests
	// change them.
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

// Database is what a database has to do for the verbs.
type Database interface {
	Locks
	Feeds

	// Write runs an operation in a transaction that writes; it may run it more than
	// once. Errors are those of the port.
	Write(ctx context.Context, ns string, op Op) error
	// Read runs fn in a transaction that reads one state of the database.
	Read(ctx context.Context, ns string, fn func(*View) error) error
	// InTx runs fn in a caller's transaction, in a savepoint of its own.
	InTx(ctx context.Context, ns string, in store.Tx, fn func(*Tx) error) error

	// Lanes are the lanes with dispatch rows, as far as this process knows them, and
	// ReadLanes reads them, with the instant before which each has no due row; all of
	// when is set but Now.
	Lanes() *lane.Cache
	ReadLanes(t *Tx) (read map[lane.Key]int64, when lane.Reading, err error)
	// Stalled returns when and for how long this process last waited to write, if
	// that was long enough to make workers miss their leases.
	Stalled() (until time.Time, waited time.Duration)
	// Dead proves what workers' processes are dead. It runs outside of transactions.
	Dead(ctx context.Context, ns string) (Dead, error)
	// LooksDead returns which workers' processes are proven dead. It runs outside of
	// transactions, and writes nothing.
	LooksDead(ctx context.Context, ns string, workers []store.WorkerID) (map[store.WorkerID]bool, error)
	// Joining runs before a worker gets its row, and may set its Connection, Joined after that, and Left after its
	// row has gone. written, if it is not nil, runs in the transaction that writes the
	// row, after that.
	Joining(ctx context.Context, ns string, w *store.WorkerInfo) (written func(*Tx) error, err error)
	Joined(ctx context.Context)
	Left(ns string, id store.WorkerID)

	// GiveBack gives some of the space that collections freed back to the file
	// system. It returns how many bytes, and whether there is more.
	GiveBack(ctx context.Context) (freed int64, more bool, err error)
	// Erase has what the transaction deletes or overwrites from now on erased from
	// the database's files, where it can; undo ends that.
	Erase(t *Tx) (undo func(), err error)
}

// Dead are workers whose processes are proven dead.
type Dead interface {
	// IDs returns them.
	IDs() []store.WorkerID
	// Forget removes what proved the death of workers that have no row any more.
	Forget(ids []store.WorkerID)
	// Close ends the proof: until then no other reaper of the machine has it.
	Close()
}

// Confirmer is a Dead whose proofs have to be confirmed in the transaction that uses
// them.
type Confirmer interface {
	// Confirm returns those that are dead, and whose rows stay as they are until the
	// transaction ends.
	Confirm(t *Tx) ([]store.WorkerID, error)
}

// Op is one operation: a pure function of its transaction. It may run more than
// once, so it sets all its results each time and touches nothing else; what
// follows from its commit stands in the transaction's Effects.
type Op struct {
	Run    func(*Tx) error
	Weight int  // rows to be changed; at least 1 counts
	Urgent bool // goes before all that are not
}

// write has fn committed.
func (s *Store) write(ctx context.Context, ns string, weight int, fn func(*Tx) error) error {
	return s.db.Write(ctx, ns, Op{Run: fn, Weight: weight})
}

// read runs fn in a read transaction of its own.
func (s *Store) read(ctx context.Context, ns string, fn func(*View) error) error {
	return s.db.Read(ctx, ns, fn)
}

// Conn is a connection with an open transaction.
type Conn interface {
	// Stmt returns the prepared statement for a text, which must not be asked for
	// again while its rows are being read.
	Stmt(sql string) *sqlstmt.Stmt
	// Cache returns what the connection remembers of its rows.
	Cache() *sqlstmt.Cache
}

// ListConn is a Conn of a database that takes lists as parameters: there the statement of
// one ID by an idSQL is that of any number.
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

// NewView returns a view of a transaction that reads. now is the store's clock.
func NewView(conn Conn, ns string, now func() time.Time) *View { return &View{conn, ns, now} }

func (v *View) stmt(sql string) *sqlstmt.Stmt { return v.conn.Stmt(sql) }

// Tx is one operation's transaction: of the store, or of a caller. It reads as a
// view does, and writes.
type Tx struct {
	View
	db  Database
	at  time.Time // the store's clock, taken once per operation
	mic int64     // the same, as stored
	gen string    // the store's generation, once it was read
	fx  *Effects

	moved    int    // rows that were moved beside those that the caller named
	bulk     Bulk   // nil: tasks are written in chunks
	alike    alikes // new tasks that are not stored yet
	costs    *moves // that steps spent, of their jobs; nil: none
	repeated bool   // the step to be recorded has the same value already
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

// Effects returns what follows from the transaction once it is committed.
func (t *Tx) Effects() *Effects { return t.fx }

// Namespace returns the namespace of the transaction.
func (v *View) Namespace() string { return v.ns }

// SetGeneration says which life of the store leases belong to, as SQLGeneration reads
// it in the same transaction.
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

// Record writes one record in a transaction that is a caller's, with what it
// costs. repeated says that its step has the same value already.
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

// Lost says why a lease is not valid any more; nil: it is.
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
