// Package workerlock proves on one machine that a worker's process is dead.
//
// Every worker holds an operating-system lock on a file of its own in a folder.
// The system drops the lock when the process ends, however it ends, so a lock that
// can be taken proves its worker dead. No file, or a system without such locks,
// proves nothing: those leases have to expire.
//
// Processes that share the folder by its name (beside a database file) look at a
// worker's file by that name. Processes that share only a database say in it where
// the file is: see [Place].
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

// Supported says whether the system has such locks.
const Supported = filelock.Supported

// Folder is a folder of lock files, and those of its locks that this Folder holds.
// It is safe for concurrent use. A nil Folder is one without locks: its methods do
// nothing, and prove nothing.
type Folder struct {
	dir string
	as  owned.As // of the folder and its files

	mu   sync.Mutex
	held map[string]*os.File // by path

	opened func() // called before a file that was opened is locked; set by tests only
}

// In returns a Folder, which is made when the first lock is taken. Without
// Supported it is nil.
func In(dir string) *Folder {
	if !filelock.Supported {
		return nil
	}
	return &Folder{dir: dir, held: make(map[string]*os.File)}
}

// Beside is In for the folder of a database's file, to whose owner and group it and its
// files belong.
func Beside(database, dir string) *Folder {
	l := In(dir)
	if l != nil {
		l.as = owned.As{Path: database}
	}
	return l
}

// name names a worker's lock file. Ids are the caller's: hashed, they can be no
// path.
func name(ns string, id store.WorkerID) string {
	sum := sha256.Sum256([]byte(ns + "\x00" + string(id)))
	return hex.EncodeToString(sum[:12])
}

// lockName matches the names of lock files.
var lockName = regexp.MustCompile(`^[0-9a-f]{24}$`)

// Path returns the path of a worker's lock file; "" without locks.
func (l *Folder) Path(ns string, id store.WorkerID) string {
	if l == nil {
		return ""
	}
	return l.dir + "/" + name(ns, id)
}

// Hold takes a worker's lock, if this Folder does not hold it already.
// store.ErrConflict: another process has it.
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
		// It was forgotten while it was silent, and its file removed. The old file
		// stays open until the new one is locked, which so cannot get its inode: a
		// row that names the old one (Place) does not lead to the new one before
		// that is locked.
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

// maxTries is how often a lock file is created again that another process
// removed before it was locked, which takes a sweep in just that moment, and how
// often a lock is tried that readers look at.
const maxTries = 100

// create creates a lock file, if there is none, and locks it.
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

// errNameless: a file was removed between its opening and its locking.
var errNameless = errors.New("the lock file was removed")

// existing opens a file that is there.
func existing(path string, flags int) (*os.File, error) { return os.OpenFile(path, flags, 0) }

// take opens a file and locks it. A lock proves something only while
// its file has its name: errNameless. store.ErrConflict: another process has the
// lock.
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

// lockFile takes the lock of an open file, unless another process has it. A
// reader that looks whether a worker is dead (LooksDead) shares the lock for a moment:
// a lock that can be shared is held by no worker and no reaper, and is tried again.
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

// OpenFile opens, or makes, a file of the Folder that is no lock of a worker. It does not
// make the folder: [fs.ErrNotExist].
func (l *Folder) OpenFile(name string) (*os.File, error) {
	if l == nil {
		return nil, fs.ErrNotExist
	}
	if err := l.trust(); err != nil {
		return nil, err
	}
	return l.as.Open(filepath.Join(l.dir, name), os.O_RDWR|filelock.NoFollow)
}

// Release gives a lock up and removes its file.
func (l *Folder) Release(ns string, id store.WorkerID) {
	if l == nil {
		return
	}
	path := l.Path(ns, id)
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.held[path]; f != nil {
		if isAt(f, path) {
			_ = os.Remove(path) // a reaper removes a file that remains
		}
		_ = filelock.Close(f)
		delete(l.held, path)
	}
}

// Drop gives the lock of a worker up and keeps its file, as the end of its process
// would.
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

// Close drops the locks and keeps the files: a worker that did not leave looks
// dead, and its leases need not expire.
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

// BeforeLock has fn called between the opening of a lock file and its locking; nil
// takes it away. For tests, which do nothing else meanwhile.
func (l *Folder) BeforeLock(fn func()) { l.opened = fn }
