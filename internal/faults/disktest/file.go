package disktest

import (
	"github.com/ncruces/go-sqlite3/vfs"
)

// osFile holds the methods of the operating system's files that SQLite needs here. Memory
// mapping is not among them: every change must pass through the Disk.
type osFile interface {
	vfs.File
	vfs.FileLockState
	vfs.FileHasMoved
	vfs.FileSizeHint
	vfs.FilePersistWAL
	vfs.FilePowersafeOverwrite
	vfs.FileSharedMemory
}

// file is an open file of a Disk.
type file struct {
	osFile
	d    *Disk
	path string
	log  bool
	// folder makes the next sync also sync the folder.
	folder bool
}

// grows reports whether a write up to end makes the file longer.
func (f *file) grows(end int64) bool {
	size, err := f.osFile.Size()
	return err != nil || size < end
}

// WriteAt implements vfs.File.
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	fault := f.d.faultOf(Op{Kind: Write, Log: f.log, Off: off, Len: len(p), Grows: f.grows(off + int64(len(p)))})
	if fault != nil {
		if p = p[:min(fault.Keep, len(p))]; len(p) == 0 {
			return 0, fault.Err
		}
	}
	n, err := f.osFile.WriteAt(p, off)
	if n > 0 {
		f.d.note(entry{kind: Write, path: f.path, off: off, data: append([]byte(nil), p[:n]...)})
	}
	if err == nil && fault != nil {
		err = fault.Err
	}
	return n, err
}

// Truncate implements vfs.File.
func (f *file) Truncate(size int64) error {
	return f.resize(Truncate, size, f.osFile.Truncate)
}

// SizeHint implements vfs.FileSizeHint.
func (f *file) SizeHint(size int64) error {
	if !f.grows(size) {
		return nil
	}
	return f.resize(Allocate, size, f.osFile.SizeHint)
}

func (f *file) resize(kind Kind, size int64, do func(int64) error) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if fault := f.d.faultOf(Op{Kind: kind, Log: f.log, Off: size, Grows: f.grows(size)}); fault != nil {
		return fault.Err
	}
	if err := do(size); err != nil {
		return err
	}
	f.d.note(entry{kind: kind, path: f.path, off: size})
	return nil
}

// Sync implements vfs.File. It only records the sync.
func (f *file) Sync(vfs.SyncFlag) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	fault := f.d.faultOf(Op{Kind: Sync, Log: f.log})
	f.d.note(entry{kind: Sync, path: f.path, failed: fault != nil, folder: f.folder})
	if fault != nil {
		return fault.Err
	}
	f.folder = false
	return nil
}
