package opfs

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"syscall/js"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/goweaver/weaver/internal/promise"
)

// Name is the registered name of the file layer.
const Name = "opfs"

// layer is the only file layer of the worker.
var layer = &files{nodes: make(map[string]*node)}

func init() { vfs.Register(Name, layer) }

var (
	// ErrMissing: this page has no origin private file system.
	ErrMissing = errors.New("this page has no private file system (OPFS)")
	// ErrElsewhere: another tab, or a worker that is about to end, has the file open.
	ErrElsewhere = errors.New("another tab has the file open")
)

// patience is the maximum wait for a file that another worker holds. A worker whose page was closed or reloaded may
// hold its files for two more seconds.
const patience = 10 * time.Second

// files is the file layer.
type files struct {
	mu    sync.Mutex // held while a file is opened, so that two connections open it once
	nodes map[string]*node

	open, gone sync.Map // the open files: places by name, and the names that were deleted
}

// root returns the directory of the origin.
func root() (js.Value, error) {
	storage := js.Global().Get("navigator").Get("storage")
	if !js.Global().Get("isSecureContext").Truthy() {
		return js.Value{}, fmt.Errorf("%w: the page is not in a secure context: serve it over https, or from localhost", ErrMissing)
	}
	if storage.IsUndefined() || storage.Get("getDirectory").IsUndefined() {
		return js.Value{}, fmt.Errorf("%w: use a newer browser", ErrMissing)
	}
	if js.Global().Get("FileSystemSyncAccessHandle").IsUndefined() || js.Global().Get("document").Truthy() {
		return js.Value{}, fmt.Errorf("%w: only dedicated workers have it: start the program in one (weaver.js does)", ErrMissing)
	}
	dir, err := promise.Await(func() js.Value { return storage.Call("getDirectory") })
	if err != nil {
		return js.Value{}, fmt.Errorf("%w: the browser refuses it, perhaps because this is a private window: %w", ErrMissing, err)
	}
	return dir, nil
}

// folder returns the directory of a file, and the file's last name. It creates missing directories if create is true.
func folder(name string, create bool) (dir js.Value, base string, err error) {
	dir, err = root()
	if err != nil {
		return js.Value{}, "", err
	}
	parts := strings.Split(strings.TrimPrefix(path.Clean("/"+name), "/"), "/")
	for _, part := range parts[:len(parts)-1] {
		dir, err = promise.Await(func() js.Value {
			return dir.Call("getDirectoryHandle", part, map[string]any{"create": create})
		})
		if err != nil {
			return js.Value{}, "", err
		}
	}
	return dir, parts[len(parts)-1], nil
}

// handle opens a file for synchronous access. It waits for up to wait for another worker to close it. Errors: of
// promise (NotFoundError), ErrMissing, ErrElsewhere.
func handle(name string, create bool, wait time.Duration) (h js.Value, err error) {
	dir, base, err := folder(name, create)
	if err != nil {
		return js.Value{}, err
	}
	defer func() {
		if err == nil {
			layer.gone.Delete(name)
			layer.open.Store(name, place{dir, base})
		}
	}()
	file, err := promise.Await(func() js.Value {
		return dir.Call("getFileHandle", base, map[string]any{"create": create})
	})
	if err != nil {
		return js.Value{}, err
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for began := time.Now(); ; <-again.C {
		h, err := promise.Await(func() js.Value { return file.Call("createSyncAccessHandle") })
		switch {
		case err == nil:
			return h, nil
		case !promise.Is(err, "NoModificationAllowedError", "InvalidStateError"):
			return js.Value{}, err
		case time.Since(began) > wait:
			return js.Value{}, fmt.Errorf("%s: %w: close that tab, or go on in it", name, ErrElsewhere)
		}
	}
}

// Warm opens a database's file for the worker, so that the reason is known if that is not possible. The caller
// calls closer when its connections are open. Errors: ErrMissing, ErrElsewhere, sqlite3.FULL.
func Warm(name string) (closer func(), err error) {
	layer.mu.Lock()
	defer layer.mu.Unlock()
	n, err := layer.node(name, true)
	if err != nil {
		return nil, code(err, sqlite3.ExtendedErrorCode(sqlite3.CANTOPEN))
	}
	return func() {
		layer.mu.Lock()
		defer layer.mu.Unlock()
		layer.release(n)
	}, nil
}

// Open implements vfs.VFS.
func (l *files) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	const lasting = vfs.OPEN_MAIN_DB | vfs.OPEN_MAIN_JOURNAL | vfs.OPEN_WAL | vfs.OPEN_SUPER_JOURNAL
	if name == "" || flags&lasting == 0 {
		return &vfsutil.SliceFile{}, flags | vfs.OPEN_MEMORY, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.node(name, flags&vfs.OPEN_CREATE != 0)
	if err != nil {
		return nil, flags, code(err, sqlite3.ExtendedErrorCode(sqlite3.CANTOPEN))
	}
	return &file{node: n, readOnly: flags&vfs.OPEN_READONLY != 0}, flags, nil
}

// node returns the node of a file with one more reference. l.mu is held.
func (l *files) node(name string, create bool) (*node, error) {
	n := l.nodes[name]
	if n == nil {
		n = &node{layer: l, name: name, changed: make(chan struct{})}
		l.nodes[name] = n
	}
	if n.absent && !create {
		return nil, errAbsent
	}
	if !n.open {
		h, err := handle(name, create, patience)
		if err != nil {
			n.absent = promise.Is(err, "NotFoundError")
			return nil, err
		}
		n.handle, n.open, n.absent = h, true, false
	}
	n.refs++
	return n, nil
}

// errAbsent is the browser's error for a file that is not there.
var errAbsent = &promise.Error{Name: "NotFoundError", Message: "the file does not exist"}

// release ends the use of a node. l.mu is held. The handle of a journal stays open with that of its database.
func (l *files) release(n *node) {
	n.refs--
	if n.refs > 0 || beside(n.name) && l.used(strings.TrimSuffix(strings.TrimSuffix(n.name, "-journal"), "-wal")) {
		return
	}
	l.drop(n)
	for _, suffix := range []string{"-journal", "-wal"} {
		if b := l.nodes[n.name+suffix]; b != nil && b.refs == 0 {
			l.drop(b)
		}
	}
}

func (l *files) used(name string) bool { return l.nodes[name] != nil && l.nodes[name].refs > 0 }

func (l *files) drop(n *node) {
	l.open.Delete(n.name)
	l.gone.Delete(n.name)
	n.close()
	delete(l.nodes, n.name)
}

// beside reports whether a file belongs to a database's file and lives as long as it.
func beside(name string) bool {
	return strings.HasSuffix(name, "-journal") || strings.HasSuffix(name, "-wal")
}

// Delete implements vfs.VFS. A journal is emptied instead: SQLite takes an empty journal for a missing one, and its
// handle stays open for the next transaction.
func (l *files) Delete(name string, _ bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if beside(name) {
		n, err := l.node(name, false)
		if err != nil {
			return sqlite3.IOERR_DELETE_NOENT
		}
		defer l.release(n)
		return errors.Join(n.truncate(0), n.flush())
	}
	if n := l.nodes[name]; n != nil {
		l.drop(n)
	}
	dir, base, err := folder(name, false)
	if err == nil {
		_, err = promise.Await(func() js.Value { return dir.Call("removeEntry", base) })
	}
	if promise.Is(err, "NotFoundError") {
		return sqlite3.IOERR_DELETE_NOENT
	}
	return code(err, sqlite3.IOERR_DELETE)
}

// Access implements vfs.VFS. An empty journal does not exist for SQLite.
func (l *files) Access(name string, _ vfs.AccessFlag) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// SQLite asks for the journal in every transaction: the node knows whether it is there.
	n, err := l.node(name, false)
	if promise.Is(err, "NotFoundError") {
		return false, nil
	}
	if err != nil {
		return false, code(err, sqlite3.IOERR_ACCESS)
	}
	defer l.release(n)
	size, err := n.size()
	return size > 0, err
}

// FullPathname implements vfs.VFS.
func (*files) FullPathname(name string) (string, error) { return path.Clean("/" + name), nil }

// code returns err with a code for SQLite.
func code(err error, otherwise sqlite3.ExtendedErrorCode) error {
	var own sqlite3.ErrorCode
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return err
	case promise.Is(err, "QuotaExceededError"):
		return vfs.SystemError(err, sqlite3.FULL)
	case errors.Is(err, ErrElsewhere):
		return vfs.SystemError(err, sqlite3.BUSY)
	}
	return vfs.SystemError(err, otherwise)
}
