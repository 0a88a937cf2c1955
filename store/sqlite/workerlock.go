package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

// Worker locks. Every worker of a file holds an operating-system lock on a
// file of its own, in the folder <database>.workers. The system drops the lock
// when the process ends, however it ends, so a lock that can be taken proves
// its worker dead. No file, or a system without such locks, proves nothing:
// those leases have to expire.

// workerLocks are the locks that this DB holds.
type workerLocks struct {
	mu   sync.Mutex
	held map[string]*os.File // by path

	opened func() // called before a file that was opened is locked; set by tests only
}

// lockPath names a worker's lock file. Ids are the caller's: hashed, they can
// be no path.
func (db *DB) lockPath(ns string, id store.WorkerID) string {
	sum := sha256.Sum256([]byte(ns + "\x00" + string(id)))
	return db.name + ".workers/" + hex.EncodeToString(sum[:12])
}

// holdLock takes a worker's lock, if it is not held already.
func (db *DB) holdLock(ctx context.Context, ns string, id store.WorkerID) error {
	if db.memory || !haveLocks {
		return nil
	}
	path := db.lockPath(ns, id)
	l := &db.locks
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.held[path]; f != nil {
		if isAt(f, path) {
			return nil
		}
		// It was forgotten while it was silent, and its file removed.
		dropLock(f)
		delete(l.held, path)
	}
	f, err := l.create(ctx, path)
	if err != nil {
		return err
	}
	if l.held == nil {
		l.held = make(map[string]*os.File)
	}
	l.held[path] = f
	return nil
}

// maxLockTries is how often a lock file is created again that another process
// removed before it was locked, which takes a sweep in just that moment, and how
// often a lock is tried that readers look at.
const maxLockTries = 100

// create creates a lock file, if there is none, and locks it.
func (l *workerLocks) create(ctx context.Context, path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	for range maxLockTries {
		f, err := l.take(ctx, path, os.O_CREATE)
		if !errors.Is(err, errNameless) {
			return f, err
		}
	}
	return nil, fmt.Errorf("lock %s: %w", path, errNameless)
}

// errNameless: a file was removed between its opening and its locking.
var errNameless = errors.New("the lock file was removed")

// take opens a file with flags and locks it. A lock proves something only while
// its file has its name: errNameless. store.ErrConflict: another process has the
// lock.
func (l *workerLocks) take(ctx context.Context, path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|noFollow|flags, 0o600)
	if err != nil {
		return nil, err
	}
	if l.opened != nil {
		l.opened()
	}
	ok, err := lockFile(ctx, f)
	switch {
	case err != nil:
	case !ok:
		err = store.ErrConflict
	case !isAt(f, path):
		err = errNameless
	default:
		return f, nil
	}
	dropLock(f)
	return nil, err
}

// lockFile takes the lock of an open file, unless another process has it. A
// reader that looks whether a worker is dead (Orphans) shares the lock for a moment:
// a lock that can be shared is held by no worker and no reaper, and is tried again.
func lockFile(ctx context.Context, f *os.File) (bool, error) {
	for range maxLockTries {
		if ok, err := tryLock(f); ok || err != nil {
			return ok, err
		}
		if shared, err := tryShare(f); !shared {
			return false, err
		}
		unlock(f)
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return false, nil
}

// isAt reports whether a path still leads to an open file.
func isAt(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(open, named)
}

// release gives a lock up and removes its file.
func (l *workerLocks) release(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.held[path]; f != nil {
		if isAt(f, path) {
			_ = os.Remove(path) // a reaper removes a file that remains
		}
		dropLock(f)
		delete(l.held, path)
	}
}

// releaseAll drops the locks and keeps the files: a worker that did not leave
// looks dead, and its leases need not expire.
func (l *workerLocks) releaseAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for path, f := range l.held {
		dropLock(f)
		delete(l.held, path)
	}
}

func (l *workerLocks) holds(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[path] != nil
}

// deadLocks are workers proven dead, with their locks, which keep two reapers
// from removing one file twice.
type deadLocks map[store.WorkerID]*os.File

const sqlWorkerIDs = `SELECT worker_id FROM weaver_workers WHERE namespace = ?1`

// deadWorkers tries the locks of all other workers. It does so outside any
// transaction; ids are random and never come back.
func (db *DB) deadWorkers(ctx context.Context, ns string) (deadLocks, error) {
	if db.memory || !haveLocks {
		return nil, nil
	}
	var ids []store.WorkerID
	err := db.read(ctx, func(c *conn.Conn) error {
		ids = nil
		st := c.Stmt(sqlWorkerIDs).Text(1, ns)
		for st.Next() {
			ids = append(ids, store.WorkerID(st.ColText(0)))
		}
		return st.Done()
	})
	if err != nil {
		return nil, err
	}
	dead := make(deadLocks)
	for _, id := range ids {
		path := db.lockPath(ns, id)
		if db.locks.holds(path) {
			continue
		}
		if f, err := db.locks.take(ctx, path, 0); err == nil { // else there is no proof
			dead[id] = f
		}
	}
	return dead, nil
}

const sqlAllWorkers = `SELECT namespace, worker_id FROM weaver_workers`

// youngLock is how long a lock file may wait for its worker's row: Join takes
// the lock first.
const youngLock = time.Minute

// lockName matches the names of lock files.
var lockName = regexp.MustCompile(`^[0-9a-f]{24}$`)

// sweepLocks removes lock files that prove nothing: those of
// workers that were killed before they had a row, or that another file of this
// name had. What it cannot remove stays; it is only a file. The folder may be
// that of another program, too: only empty regular files with names of ours
// are touched.
func (db *DB) sweepLocks(ctx context.Context) {
	if db.memory || !haveLocks {
		return
	}
	known := make(map[string]bool)
	err := db.read(ctx, func(c *conn.Conn) error {
		st := c.Stmt(sqlAllWorkers)
		for st.Next() {
			known[db.lockPath(st.ColText(0), store.WorkerID(st.ColText(1)))] = true
		}
		return st.Done()
	})
	if err != nil {
		return
	}
	// Those that came after the rows were read are young.
	files, _ := os.ReadDir(db.name + ".workers")
	for _, f := range files {
		path := db.name + ".workers/" + f.Name()
		info, err := f.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() > 0 || !lockName.MatchString(f.Name()) {
			continue
		}
		if known[path] || time.Since(info.ModTime()) < youngLock {
			continue
		}
		if lock, err := db.locks.take(ctx, path, 0); err == nil {
			_ = os.Remove(path)
			dropLock(lock)
		}
	}
}

// dead are workers proven dead, until it is closed.
type dead struct {
	db    *DB
	ns    string
	locks deadLocks
}

// IDs implements sqlstore.Dead.
func (d dead) IDs() []store.WorkerID { return slices.Collect(maps.Keys(d.locks)) }

// Forget implements sqlstore.Dead: it deletes lock files. One that remains does no
// harm.
func (d dead) Forget(ids []store.WorkerID) {
	for _, id := range ids {
		_ = os.Remove(d.db.lockPath(d.ns, id))
	}
}

// Close implements sqlstore.Dead.
func (d dead) Close() {
	for _, f := range d.locks {
		dropLock(f)
	}
}

// dropLock gives a lock up and closes its file. Closing alone is not enough: a
// program that is being started has copies of all descriptors until it executes,
// and while one of them is open the lock is held.
func dropLock(f *os.File) {
	unlock(f)
	_ = f.Close()
}
