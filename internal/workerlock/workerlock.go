// Package workerlock proves on one machine that a worker's process is dead.
//
// Every worker holds an operating-system lock on its own file in a folder. The system releases the lock when the
// process ends, however it ends, so a lock that can be taken proves its worker dead. A missing file, or a system
// without such locks, proves nothing: those leases have to expire.
//
// Processes that know the folder (it lies next to the database file) find a worker's file by its name. Processes that
// share only a database read the file's location from it: see [Place].
package workerlock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/goweaver/weaver/internal/filelock"
	"github.com/goweaver/weaver/internal/owned"
	"github.com/goweaver/weaver/store"
)

// Supported reports whether the system has such locks.
const Supported = filelock.Supported

// Folder is a folder of lock files, together with the locks that this Folder holds. It is safe for concurrent use. A
// nil Folder has no locks: its methods do nothing and prove nothing.
type Folder struct {
	dir string
	as  owned.As // owner of the folder and its files

	mu   sync.Mutex
	held map[string]*os.File // by path

	opened func() // called between opening and locking a file; set by tests only
}

// In returns a Folder; the first lock creates the folder on disk. It returns nil if the system has no such locks.
func In(dir string) *Folder {
	if !filelock.Supported {
		return nil
	}
	return &Folder{dir: dir, held: make(map[string]*os.File)}
}

// Beside is In for the folder next to a database file. The folder and its files get the owner and group of that file.
func Beside(database, dir string) *Folder {
	l := In(dir)
	if l != nil {
		l.as = owned.As{Path: database}
	}
	return l
}

// name returns the name of a worker's lock file. Callers choose worker IDs; the hash keeps an ID from acting as a
// path.
func name(ns string, id store.WorkerID) string {
	sum := sha256.Sum256([]byte(ns + "\x00" + string(id)))
	return hex.EncodeToString(sum[:12])
}

// lockName matches the names of lock files.
var lockName = regexp.MustCompile(`^[0-9a-f]{24}$`)

// Path returns the path of a worker's lock file, or "" without locks.
func (l *Folder) Path(ns string, id store.WorkerID) string {
	if l == nil {
		return ""
	}
	return l.dir + "/" + name(ns, id)
}

// Hold takes a worker's lock, unless this Folder holds it already. It returns store.ErrConflict if another process
// holds the lock.
func (l *Folder) Hold(ctx context.Context, ns string, id store.WorkerID) error {
	if l == nil {
		return nil
	}
	path := l.Path(ns, id)
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.held[path]
	if old != nil {
		if isAt(old, path) {
			return nil
		}
		// A reaper removed the file of this silent worker. The old file stays open until the new one is locked, so
		// the new one cannot get its inode. A row that names the old file (Place) therefore does not lead to the new
		// one before that is locked.
		defer func() { _ = filelock.Close(old) }()
		delete(l.held, path)
	}
	f, err := l.create(ctx, path)
	if err != nil {
		return err
	}
	l.held[path] = f
	return nil
}

// maxTries limits two kinds of retries: creating a file that a sweep removed just before it was locked, and locking a
// file whose lock readers share for a moment.
const maxTries = 100

// create opens a lock file, creating it if it is missing, and locks it.
func (l *Folder) create(ctx context.Context, path string) (*os.File, error) {
	if err := l.as.MkdirAll(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := l.trust(); err != nil {
		return nil, err
	}
	for range maxTries {
		f, err := l.take(ctx, path, l.as.Open)
		if !errors.Is(err, errNameless) {
			return f, err
		}
	}
	return nil, fmt.Errorf("lock %s: %w", path, errNameless)
}

// errNameless reports a file that was removed between its opening and its locking.
var errNameless = errors.New("the lock file was removed")

// existing opens an existing file.
func existing(path string, flags int) (*os.File, error) { return os.OpenFile(path, flags, 0) }

// take opens a file and locks it. A lock proves something only while its file has its name: otherwise take returns
// errNameless. It returns store.ErrConflict if another process holds the lock.
func (l *Folder) take(ctx context.Context, path string, open func(path string, flags int) (*os.File, error)) (*os.File, error) {
	f, err := open(path, os.O_RDWR|filelock.NoFollow)
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
	_ = filelock.Close(f)
	return nil, err
}

// lockFile takes the lock of an open file unless another process holds it. LooksDead shares the lock for a moment; a
// lock that can be shared is held by no worker and no reaper, so lockFile tries again.
func lockFile(ctx context.Context, f *os.File) (bool, error) {
	for range maxTries {
		if ok, err := filelock.Try(f); ok || err != nil {
			return ok, err
		}
		if shared, err := filelock.TryShare(f); !shared {
			return false, err
		}
		filelock.Unlock(f)
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

// OpenFile opens or creates a file of the Folder that is not a worker's lock. If the folder is missing it returns
// [fs.ErrNotExist].
func (l *Folder) OpenFile(name string) (*os.File, error) {
	if l == nil {
		return nil, fs.ErrNotExist
	}
	if err := l.trust(); err != nil {
		return nil, err
	}
	return l.as.Open(filepath.Join(l.dir, name), os.O_RDWR|filelock.NoFollow)
}

// Release releases a lock and removes its file.
func (l *Folder) Release(ns string, id store.WorkerID) {
	if l == nil {
		return
	}
	path := l.Path(ns, id)
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.held[path]; f != nil {
		if isAt(f, path) {
			_ = os.Remove(path) // a reaper removes a file that stays behind
		}
		_ = filelock.Close(f)
		delete(l.held, path)
	}
}

// Drop releases the lock of a worker and keeps its file, as if the process had ended.
func (l *Folder) Drop(ns string, id store.WorkerID) {
	if l == nil {
		return
	}
	path := l.Path(ns, id)
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.held[path]; f != nil {
		_ = filelock.Close(f)
		delete(l.held, path)
	}
}

// Close releases the locks and keeps the files: a worker that did not leave looks dead, so its leases need not
// expire.
func (l *Folder) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for path, f := range l.held {
		_ = filelock.Close(f)
		delete(l.held, path)
	}
}

func (l *Folder) holds(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[path] != nil
}

// BeforeLock makes the Folder call fn between opening and locking a lock file; nil removes fn. It is for tests that
// use the Folder from one goroutine.
func (l *Folder) BeforeLock(fn func()) { l.opened = fn }
