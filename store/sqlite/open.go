package sqlite

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/goweaver/weaver/store/sqlite/internal/conn"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs/mvcc" // in-memory databases whose readers do not block the writer

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/internal/workerlock"
	"github.com/goweaver/weaver/store/sqlite/internal/commit"

	"github.com/goweaver/weaver/internal/notify"
	"github.com/goweaver/weaver/store"
)

// DB is an open database. It implements store.Store, and is safe for concurrent use.
type DB struct {
	verbs

	path    string // as in messages; ":memory:" in memory
	name    string // the name that connections open: a file name without symbolic links, or a URI
	place   place  // identities of the open files
	memory  bool
	opts    options
	clock   storeClock
	closed  atomic.Bool
	capsule []byte // of Capsule; set by open
	token   string // distinguishes our connections from those of other databases

	writer  *commit.Writer
	lanes   lane.Cache
	readers *conn.Pool
	reads   openReads
	locks   *workerlock.Folder // nil in memory, and on systems without such locks
	alone   *alone             // the workers of a file that only this process can open, or nil

	userOnce sync.Once
	user     *sql.DB
	calls    callTable

	listeners notify.Listeners
	poller    poller

	faults commit.Faults // set by tests of this package only
}

var _ store.Store = (*DB)(nil)

// Capabilities implements store.Core.
func (db *DB) Capabilities() store.Capabilities {
	return store.AllCapabilities
}

// Open opens or creates the database in the file path. It does not migrate: call Migrate, or
// run `weaver migrate up`. path may have the form of the command's setting WEAVER_STORE,
// sqlite:PATH.
//
// Open follows symbolic links once. Only their owner can read a new file, its log and its
// locks. The log and the workers' locks of an existing file get its mode, owner and group. If
// the file is deleted or replaced while it is open, every call returns store.ErrUnavailable,
// and nothing is written to it (on systems that report this: Unix).
//
// Errors: store.ErrNotDatabase, store.ErrForeignDatabase, store.ErrReadOnly, store.ErrBusy,
// store.ErrUnavailable (the folder does not exist, the file has several hard links, or it
// belongs to another user in a world-writable folder).
func Open(ctx context.Context, path string, opts ...Option) (*DB, error) {
	path = strings.TrimPrefix(path, "sqlite:")
	if strings.HasPrefix(path, "postgres://") || strings.HasPrefix(path, "postgresql://") {
		return nil, fmt.Errorf("open sqlite: the name is that of a PostgreSQL database: open it with package store/postgres")
	}
	if path == "" {
		return nil, fmt.Errorf("open sqlite: no file name given: name a file, or use OpenMemory")
	}
	if strings.ContainsRune(path, 0) { // SQLite would open the file named by the part before it
		return nil, fmt.Errorf("open sqlite: %q: %w: the name contains a NUL byte", path, store.ErrUnavailable)
	}
	db := &DB{path: path, opts: defaults()}
	done, err := db.find(path)
	if err != nil {
		return nil, fmt.Errorf("open sqlite: %s: %w", path, err)
	}
	defer done()
	return db.open(ctx, opts)
}

// OpenMemory opens an empty database in memory, which ends with Close. Every DB has its own
// data, and its DB method opens connections to the same data. It is migrated already; Migrate
// does no harm.
func OpenMemory(ctx context.Context) (*DB, error) {
	empty, err := migratedMemory()
	if err != nil {
		return nil, err
	}
	return openMemory(ctx, empty)
}

// migratedMemory is the snapshot of a migrated database in memory. Migrating takes longer than
// most tests.
var migratedMemory = sync.OnceValues(func() (mvcc.Snapshot, error) {
	ctx := context.Background()
	db, err := openMemory(ctx, mvcc.Snapshot{})
	if err != nil {
		return mvcc.Snapshot{}, err
	}
	if err := db.Migrate(ctx); err != nil {
		return mvcc.Snapshot{}, errors.Join(err, db.Close())
	}
	migrated := mvcc.TakeSnapshot(db.name)
	return migrated, db.Close()
})

func openMemory(ctx context.Context, holds mvcc.Snapshot) (*DB, error) {
	key := "weaver-" + rand.Text()
	mvcc.Create(key, holds)
	name := (&url.URL{Scheme: "file", OmitHost: true, Path: "/" + key, RawQuery: "vfs=mvcc"}).String()
	db := &DB{path: ":memory:", name: name, memory: true, opts: defaults()}
	if _, err := db.open(ctx, nil); err != nil {
		mvcc.Delete(name)
		return nil, err
	}
	return db, nil
}

func (db *DB) open(ctx context.Context, opts []Option) (*DB, error) {
	for _, o := range opts {
		o(&db.opts)
	}
	db.verbs = sqlstore.New(database{db: db})
	db.Whole, db.Part = rules.MaxWhole, rules.MaxMoves // the other callers wait while one transaction writes
	if db.opts.scan > 0 {
		db.Page, db.StatsLooks = db.opts.scan, db.opts.scan
	}
	if db.opts.looks > 0 {
		db.Looks = db.opts.looks
	}
	if db.opts.counted > 0 {
		db.Counted = db.opts.counted
	}
	if db.opts.graphEdges > 0 {
		db.GraphEdges = db.opts.graphEdges
	}
	db.clock.Shift(db.opts.shift)
	db.token = rand.Text()
	db.readers = conn.NewPool(maxReaders, func() (*conn.Conn, error) { return db.connect(true) })
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open sqlite %s: %w", db.path, context.Cause(ctx))
	}
	if !db.memory {
		createPrivate(db.name)
	}
	c, err := db.connect(false)
	if err != nil {
		return nil, fmt.Errorf("open sqlite: %w", db.translate(err))
	}
	db.clock.forget = db.lanes.Invalidate
	err = db.prepareFile(ctx, c)
	if err == nil && !db.memory {
		db.loadCapsule(c)
	}
	if err == nil {
		// From here on external commits are noticed: the first read of Notify's users may be
		// older.
		db.writer, err = commit.New(commit.Config{
			Conn: c, Busy: db.opts.busy, Lanes: &db.lanes, Notify: db.listeners.Notify, NotifyAll: db.listeners.NotifyAll, Faults: &db.faults,
			Now: db.clock.Now, Begun: db.begun, Ending: db.ending,
			Connect: func() (*conn.Conn, error) { return db.connect(false) }, LogLimit: db.opts.logLimit, OpenTurns: db.openTurns(),
		})
	}
	if err == nil && !db.memory {
		db.clock.load(c)
		// Only now, because the first read creates the log.
		db.place = locate(c, db.name)
		err = db.checkPlace()
	}
	if err != nil {
		_ = c.Close() // the first error has the cause
		return nil, fmt.Errorf("open sqlite: %w", db.translate(err))
	}
	if !db.memory && db.opts.sync != off {
		db.opts.syncFolder(filepath.Dir(db.name))
	}
	return db, nil
}

// openTurns returns a function that opens the lock file by which processes take turns to
// write. The file is in the folder of worker locks, which exists once a worker has run.
func (db *DB) openTurns() func() (*os.File, error) {
	if db.memory {
		return nil
	}
	return func() (*os.File, error) { return db.locks.OpenFile("turns") }
}

// syncFolder makes the names in a folder durable. Without the name of the new log its commits
// are lost. A new file's first journal must stay deleted, because it would roll back
// everything since. SQLite leaves this to its file layer, but the driver's layer (v0.35.6)
// syncs the file again instead. Some systems cannot do it, and some need not.
func syncFolder(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	_ = f.Sync() // not every file system can
	_ = f.Close()
}

// connect opens one raw connection.
func (db *DB) connect(readOnly bool) (*conn.Conn, error) {
	cfg := conn.Config{Name: db.name, URI: true, Busy: db.opts.busy, Synchronous: db.opts.sync.pragma(), ReadOnly: readOnly}
	if !db.memory {
		cfg.Name = db.address()
	}
	c, err := conn.Open(cfg)
	if err != nil {
		return nil, err
	}
	if err := db.checkPlace(); err != nil { // it may be a connection to another file
		_ = c.Close() // nothing was done on it
		return nil, err
	}
	return c, nil
}

// begun runs in each transaction of the group commit, before its operations.
func (db *DB) begun(c *conn.Conn, external bool) error {
	if err := db.checkPlace(); err != nil || db.memory {
		return err
	}
	if err := db.refuseCapsule(); err != nil {
		return err
	}
	db.clock.begun(c, external)
	return nil
}

// ending runs in each transaction of the group commit, before its COMMIT.
func (db *DB) ending(c *conn.Conn) error {
	if db.memory {
		return nil
	}
	return db.clock.ending(c)
}

// logLimit is the size from which on a copied log is truncated, and to which its file is
// truncated when it starts over.
const logLimit = 64 << 20

// prepareFile ensures that c's file is usable for us, and in WAL mode.
func (db *DB) prepareFile(ctx context.Context, c *conn.Conn) error {
	// The first read fails on a file that is not a database.
	if err := db.checkForeign(c); err != nil {
		return err
	}
	if ro, _ := c.Raw().ReadOnly("main"); ro {
		return fmt.Errorf("the file cannot be written: %w", sqlite3.READONLY)
	}
	if db.memory {
		return nil
	}
	// For new files only. A page then holds about forty tasks, and batches are a tenth faster
	// than with half the size.
	if err := c.Script("PRAGMA page_size=8192"); err != nil {
		return err
	}
	// A new file can return the space freed by Collect (GiveBack). In an existing file the
	// pragma would write without an effect.
	if pages, err := c.Pragma("PRAGMA page_count"); err != nil {
		return err
	} else if pages == "0" && !db.opts.old {
		if err := c.Script("PRAGMA auto_vacuum=INCREMENTAL"); err != nil {
			return err
		}
	}
	return c.UseWAL(ctx, db.opts.busy, db.opts.logLimit)
}

// Path returns the file's name as it was given to Open, or ":memory:".
func (db *DB) Path() string { return db.path }

// Close waits for running writes and closes all connections. Workers that did not leave look
// dead from then on.
func (db *DB) Close() error {
	db.listeners.Close()
	db.poller.close()
	var user error
	err := db.writer.Close(func() {
		db.closed.Store(true)
		user = db.DB().Close() // opened only now, it is closed for all later callers
		db.readers.Close()
		db.locks.Close()
		db.alone.close(db)
		if db.memory {
			mvcc.Delete(db.name)
		}
	})
	if err := db.translate(cmp.Or(user, err)); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}
