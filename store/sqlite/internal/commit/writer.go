package commit

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/goweaver/weaver/internal/batch"
	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

// minStall is a third of the shortest lease: a shorter wait for the write lock makes no worker
// miss its lease.
const minStall = time.Second / 3

// Config configures New.
type Config struct {
	Conn   *conn.Conn    // the connection that writes; the writer closes it
	Busy   time.Duration // maximum wait while one transaction of the program writes
	Lanes  *lane.Cache   // receives external writes and claims' observations
	Notify func(ns string, n store.Notice)
	// NotifyAll sends a notice to the listeners of all namespaces.
	NotifyAll func(n store.Notice)
	Now       func() time.Time // the store's clock; nil: store.Now
	// Connect opens a connection for copying and truncating a log of more than LogLimit bytes.
	// nil disables this.
	Connect  func() (*conn.Conn, error)
	LogLimit int
	// Begun is called in each transaction before its operations, and Ending before its COMMIT;
	// an error refuses them. external reports that another connection committed. Both may be
	// nil.
	Begun  func(c *conn.Conn, external bool) error
	Ending func(c *conn.Conn) error
	// OpenTurns opens the lock file by which processes take turns; nil disables turns.
	OpenTurns func() (*os.File, error)
	Faults    *Faults // set by tests only
}

// Faults lets tests inject database failures. Nil functions do nothing.
type Faults struct {
	OnOp     func(*conn.Conn) error          // before each operation
	OnCommit func(commit func() error) error // around COMMIT
}

// Writer commits the operations of all callers. Use New.
type Writer struct {
	cfg       Config
	queue     *batch.Queue[*Op]
	turns     turns     // the turns of writers in this process
	processes processes // the turns of writing processes
	waiting   waitingClaims
	refused   atomic.Bool // the disk refused the whole last group
	log       checkpoints

	// Used by the leader only.
	conn        *conn.Conn
	memory      sqlstore.Memory // its generations are as of dataVersion
	dataVersion int64           // last value seen; changes when another connection commits
	seenVersion bool
	external    bool      // another connection committed since the last notice
	stalled     time.Time // end of the last long wait for the write lock
	stalledFor  time.Duration
}

// New returns a writer on a connection. It notices external commits from its return on.
func New(cfg Config) (*Writer, error) {
	w := &Writer{cfg: cfg, conn: cfg.Conn, processes: processes{openFile: cfg.OpenTurns, patience: cfg.Busy / 2}}
	w.log.next, w.log.group = checkpointPages, group.New(context.Background())
	if cfg.Now == nil {
		w.cfg.Now = store.Now
	}
	w.queue = batch.New(sqlstore.MaxWeight, w.commit)
	// The hook also switches off SQLite's own checkpoints, which would run inside COMMIT,
	// before any caller got its answer.
	w.conn.Raw().WALHook(func(_ *sqlite3.Conn, _ string, pages int) error {
		w.log.note(pages)
		return nil
	})
	return w, w.compareVersion()
}

// Op is one operation of one caller: a pure function of its transaction. It may run more than
// once, so it must set all its results each time and touch nothing else. The consequences of
// its commit are in the transaction's Effects.
type Op struct {
	NS     string
	Run    func(*Tx) error
	Weight int  // changed rows; counted as at least 1
	Urgent bool // takes precedence over operations that are not urgent

	// Of the last run:
	fx      sqlstore.Effects
	waiting *WaitingClaim // the claim found nothing and waits
}

// Tx is an operation's view of its transaction.
type Tx struct {
	Conn    *conn.Conn
	Now     time.Time // the store's clock, read once per operation
	Effects *sqlstore.Effects

	op *Op
}

// Do commits op together with concurrent writes of other callers, and returns its error. It
// returns batch.ErrClosed after Close. If ctx ends, it returns the cause of ctx if no group
// took the operation before, else batch.ErrTaken.
func (w *Writer) Do(ctx context.Context, op *Op) error {
	return w.queue.Do(ctx, &batch.Op[*Op]{Do: op, Weight: op.Weight, Urgent: op.Urgent})
}

// Exclusive runs fn with the connection while no group is being committed, in the order of the
// queue. Errors are those of Do.
func (w *Writer) Exclusive(ctx context.Context, fn func(*conn.Conn)) error {
	return w.queue.Exclusive(ctx, func() { fn(w.conn) })
}

// Peek checks for external commits, unless a group is being committed, which checks by itself.
func (w *Writer) Peek() {
	w.queue.TryExclusive(func() {
		if w.compareVersion() == nil {
			w.publish(nil, nil)
		}
		w.shrinkIfLong()
	})
}

// Refused reports whether the disk refused the whole last group.
func (w *Writer) Refused() bool { return w.refused.Load() }

// Stalled returns the end and the duration of the writer's last wait for the write lock that
// was long enough to make workers miss their leases. Operations may call it.
func (w *Writer) Stalled() (until time.Time, d time.Duration) { return w.stalled, w.stalledFor }

// Close commits the waiting operations, answers the waiting claims with batch.ErrClosed, runs
// fn, and closes the connection. Only the first call has an effect.
func (w *Writer) Close(fn func()) (err error) {
	w.log.group.Cancel(nil)
	w.queue.Close(func() {
		w.waiting.closeAll()
		fn()
		err = w.conn.Close()
	})
	w.log.close()
	w.processes.close()
	return err
}

const sqlDataVersion = "PRAGMA data_version"

// compareVersion compares data_version, which changes with other connections' commits.
func (w *Writer) compareVersion() error {
	st := w.conn.Stmt(sqlDataVersion)
	var v int64
	if st.One() {
		v = st.ColInt(0)
	}
	if err := st.Done(); err != nil {
		return err
	}
	if w.seenVersion && v != w.dataVersion {
		w.external = true
		w.memory.ForgetGenerations()
		w.cfg.Lanes.Invalidate()
	}
	w.memory.Begun()
	w.dataVersion, w.seenVersion = v, true
	return nil
}
