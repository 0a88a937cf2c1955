package disktest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/ncruces/go-sqlite3/vfs"
)

// Kind is a kind of operation on a file.
type Kind uint8

// The operations that change files or make changes durable.
const (
	Write Kind = iota
	Truncate
	Allocate // extends the file before a write
	Sync
	Open // for writing
	Delete
	Kinds // number of kinds
)

// String returns the kind's name.
func (k Kind) String() string {
	return [...]string{"write", "truncate", "allocate", "sync", "open", "delete", "kinds"}[k]
}

// Op is one operation that a Plan decides on.
type Op struct {
	Kind  Kind
	Log   bool  // on a write-ahead log or a journal, not on the database file
	N     int   // counts the operations of this kind since Fail, from 1
	Off   int64 // Write: the offset; Truncate, Allocate: the new size
	Len   int   // Write: the length in bytes
	Grows bool  // it extends the file
}

// Fault describes how an operation fails.
type Fault struct {
	Err  error
	Keep int // Write: number of bytes that reach the file before the error
}

// Plan returns the fault of an operation; nil lets the operation through. Calls of a Plan
// are sequential.
type Plan func(Op) *Fault

// Disk is a VFS under a unique name. Use New.
type Disk struct {
	name string
	os   vfs.VFSFilename

	mu     sync.Mutex // held while a file changes, so that changes have one order
	plan   Plan
	counts [Kinds]int
	faults int
	hist   *History
}

// New registers a disk without faults, until Close.
func New() *Disk {
	d := &Disk{name: "disktest-" + strings.ToLower(rand.Text()), os: vfs.Find("os").(vfs.VFSFilename)}
	vfs.Register(d.name, d)
	return d
}

// Name returns the VFS name under which a database is opened: file:…?vfs=NAME.
func (d *Disk) Name() string { return d.name }

// Close unregisters the VFS. No file of the disk may be open.
func (d *Disk) Close() { vfs.Unregister(d.name) }

// Fail sets the plan that decides from now on which operations fail, and resets the counters.
// With a nil plan every operation succeeds.
func (d *Disk) Fail(plan Plan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.plan, d.counts, d.faults = plan, [Kinds]int{}, 0
}

// Count returns the number of operations of a kind since Fail.
func (d *Disk) Count(k Kind) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts[k]
}

// Faults returns the number of failed operations since Fail.
func (d *Disk) Faults() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.faults
}

// Record begins a history. The present contents of the named existing files count as
// synced; no other file may be written.
func (d *Disk) Record(paths ...string) (*History, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := &History{disk: d, base: make(map[string][]byte, len(paths))}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			h.base[p] = nil
		case err != nil:
			return nil, fmt.Errorf("record %s: %w", p, err)
		default:
			h.base[p] = append([]byte{}, b...)
		}
	}
	d.hist = h
	return h, nil
}

// faultOf counts an operation and returns the plan's fault. d.mu is held.
func (d *Disk) faultOf(op Op) *Fault {
	d.counts[op.Kind]++
	op.N = d.counts[op.Kind]
	if d.plan == nil {
		return nil
	}
	f := d.plan(op)
	if f != nil {
		d.faults++
	}
	return f
}

func (d *Disk) note(e entry) {
	if d.hist != nil {
		d.hist.entries = append(d.hist.entries, e)
	}
}

// Open implements vfs.VFS. SQLite calls OpenFilename instead.
func (d *Disk) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	return d.os.Open(name, flags)
}

// OpenFilename implements vfs.VFSFilename.
func (d *Disk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	log := flags&(vfs.OPEN_WAL|vfs.OPEN_MAIN_JOURNAL|vfs.OPEN_SUPER_JOURNAL) != 0
	if name == nil || !log && flags&vfs.OPEN_MAIN_DB == 0 {
		return d.os.OpenFilename(name, flags) // temporary files
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if flags&vfs.OPEN_READWRITE != 0 {
		if f := d.faultOf(Op{Kind: Open, Log: log}); f != nil {
			return nil, flags, f.Err
		}
	}
	inner, flags, err := d.os.OpenFilename(name, flags)
	if err != nil {
		return nil, flags, err
	}
	f, ok := inner.(osFile)
	if !ok {
		return nil, flags, errors.Join(fmt.Errorf("the system's %T lacks what a write-ahead log needs", inner), inner.Close())
	}
	return &file{osFile: f, d: d, path: name.String(), log: log, folder: log && flags&vfs.OPEN_CREATE != 0}, flags, nil
}

// Delete implements vfs.VFS.
func (d *Disk) Delete(name string, _ bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.faultOf(Op{Kind: Delete, Log: true}); f != nil {
		return f.Err
	}
	if err := d.os.Delete(name, false); err != nil {
		return err
	}
	d.note(entry{kind: Delete, path: name})
	return nil
}

// Access implements vfs.VFS.
func (d *Disk) Access(name string, flags vfs.AccessFlag) (bool, error) {
	return d.os.Access(name, flags)
}

// FullPathname implements vfs.VFS.
func (d *Disk) FullPathname(name string) (string, error) { return d.os.FullPathname(name) }
