package opfs

import (
	"fmt"
	"io"
	"sync"
	"syscall/js"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/goweaver/weaver/internal/promise"
)

const (
	// chunk is the size of the array through which bytes go to and from JavaScript. Pages have 8 KiB.
	chunk = 64 << 10
	// sector is the size of the blocks that the browser writes.
	sector = 4096
	// lockWait is the maximum wait of a connection for the locks of others. It is longer than a transaction should be.
	lockWait = 5 * time.Second
)

// node is an open file of the worker, with the locks of its connections.
type node struct {
	layer  *files
	name   string
	refs   int // of l.mu, like the two below
	open   bool
	absent bool // the last lookup did not find it, and no other process can create it
	handle js.Value

	mu       sync.Mutex
	shared   int           // connections that read, or more
	reserved *file         // the connection that writes
	pending  *file         // the connection that waits for the last readers to end, or writes into the file
	changed  chan struct{} // closed when a lock was released
}

// close closes the handle, which releases the file for other tabs.
func (n *node) close() {
	if !n.open {
		return
	}
	n.open = false
	_, _ = promise.Try(func() js.Value { return n.handle.Call("close") }) // all writes were flushed before
}

func (n *node) size() (int64, error) {
	v, err := promise.Try(func() js.Value { return n.handle.Call("getSize") })
	if err != nil {
		return 0, code(err, sqlite3.IOERR_FSTAT)
	}
	return int64(v.Float()), nil
}

func (n *node) truncate(size int64) error {
	_, err := promise.Try(func() js.Value { return n.handle.Call("truncate", float64(size)) })
	return code(err, sqlite3.IOERR_TRUNCATE)
}

func (n *node) flush() error {
	_, err := promise.Try(func() js.Value { return n.handle.Call("flush") })
	return code(err, sqlite3.IOERR_FSYNC)
}

// bytes is the array through which bytes go to and from JavaScript. Go in a browser runs one goroutine at a time, and
// none is interrupted between its use and the copy.
var bytes struct {
	whole js.Value
	parts map[int]js.Value // its beginnings, by their length
	at    js.Value         // the options of a call
}

func part(n int) js.Value {
	if bytes.parts == nil {
		bytes.whole = js.Global().Get("Uint8Array").New(chunk)
		bytes.parts = make(map[int]js.Value)
		bytes.at = js.Global().Get("Object").New()
	}
	p, ok := bytes.parts[n]
	if !ok {
		p = bytes.whole.Call("subarray", 0, n)
		if len(bytes.parts) < 64 {
			bytes.parts[n] = p
		}
	}
	return p
}

// file is a connection's use of a node. One goroutine at a time uses it.
type file struct {
	*node
	lock     vfs.LockLevel
	readOnly bool
}

var _ vfs.FileLockState = (*file)(nil)

// Close implements vfs.File.
func (f *file) Close() error {
	err := f.Unlock(vfs.LOCK_NONE)
	f.layer.mu.Lock()
	defer f.layer.mu.Unlock()
	f.layer.release(f.node)
	return err
}

// ReadAt implements vfs.File.
func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	defer func() {
		if err != io.EOF {
			err = code(err, sqlite3.IOERR_READ)
		}
	}()
	defer promise.Catch(&err)
	for n < len(p) {
		to := part(min(chunk, len(p)-n))
		bytes.at.Set("at", float64(off+int64(n)))
		got := f.handle.Call("read", to, bytes.at).Int()
		js.CopyBytesToGo(p[n:n+got], to)
		n += got
		if got < min(chunk, len(p)-n+got) {
			return n, io.EOF
		}
	}
	return n, nil
}

// WriteAt implements vfs.File.
func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	defer func() { err = code(err, sqlite3.IOERR_WRITE) }()
	defer promise.Catch(&err)
	for n < len(p) {
		size := min(chunk, len(p)-n)
		from := part(size)
		js.CopyBytesToJS(from, p[n:n+size])
		bytes.at.Set("at", float64(off+int64(n)))
		wrote := f.handle.Call("write", from, bytes.at).Int()
		n += wrote
		if wrote < size {
			return n, vfs.SystemError(fmt.Errorf("the browser wrote %d of %d bytes", wrote, size), sqlite3.FULL)
		}
	}
	return n, nil
}

// Truncate implements vfs.File.
func (f *file) Truncate(size int64) error { return f.truncate(size) }

// Sync implements vfs.File.
func (f *file) Sync(vfs.SyncFlag) error {
	err := f.flush()
	giveTurn()
	if err == nil && IsGone(f.name) {
		return sqlite3.IOERR_FSYNC
	}
	return err
}

// Size implements vfs.File.
func (f *file) Size() (int64, error) { return f.size() }

// SectorSize implements vfs.File.
func (*file) SectorSize() int { return sector }

// DeviceCharacteristics implements vfs.File. A journal keeps its handle (see Delete), so SQLite need not close it
// after each transaction.
func (*file) DeviceCharacteristics() vfs.DeviceCharacteristic {
	return vfs.IOCAP_UNDELETABLE_WHEN_OPEN | vfs.IOCAP_POWERSAFE_OVERWRITE
}

// LockState implements vfs.FileLockState.
func (f *file) LockState() vfs.LockLevel { return f.lock }

// Lock implements vfs.File. Who reads waits for a writer to end, and who writes for the readers: a connection that
// waits holds nothing that the other needs. It returns sqlite3.BUSY where SQLite has to begin anew.
func (f *file) Lock(level vfs.LockLevel) error {
	if f.lock >= level {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch level {
	case vfs.LOCK_SHARED:
		if !f.wait(func() bool { return f.pending == nil }) {
			return sqlite3.BUSY
		}
		f.shared++
	case vfs.LOCK_RESERVED:
		if f.readOnly {
			return sqlite3.IOERR_LOCK
		}
		if f.reserved != nil || f.pending != nil {
			return sqlite3.BUSY
		}
		f.reserved = f
	default: // pending and exclusive; also directly after shared, when a journal is rolled back
		if f.reserved != nil && f.reserved != f || f.pending != nil && f.pending != f {
			return sqlite3.BUSY
		}
		f.pending, f.lock = f, vfs.LOCK_PENDING
		if level == vfs.LOCK_EXCLUSIVE && !f.wait(func() bool { return f.shared == 1 }) {
			return sqlite3.BUSY
		}
	}
	f.lock = level
	return nil
}

// wait waits until ok, for at most lockWait. f.mu is held, except while it waits.
func (f *file) wait(ok func() bool) bool {
	if ok() {
		return true
	}
	limit := time.NewTimer(lockWait)
	defer limit.Stop()
	for !ok() {
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
			f.mu.Lock()
		case <-limit.C:
			f.mu.Lock()
			return ok()
		}
	}
	return true
}

// Unlock implements vfs.File.
func (f *file) Unlock(level vfs.LockLevel) error {
	if f.lock <= level {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reserved == f {
		f.reserved = nil
	}
	if f.pending == f {
		f.pending = nil
	}
	if level == vfs.LOCK_NONE {
		f.shared--
	}
	f.lock = level
	close(f.changed)
	f.changed = make(chan struct{})
	return nil
}

// CheckReservedLock implements vfs.File.
func (f *file) CheckReservedLock() (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reserved != nil || f.pending != nil, nil
}
