package conn

import (
	"errors"
	"sync"
	"syscall"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// layers guards the registration of our file layers.
var layers sync.Mutex

// Layer returns the name of our connections' file layer over base ("" is the operating
// system's). Its files are as private as the database's, and its errors keep their cause. The
// driver forgets the system's error with the next call, and SQLite cleans up after an error
// through the same file layer. SQLite's own codes stay unchanged.
func Layer(base string) string {
	layers.Lock()
	defer layers.Unlock()
	name := "weaver"
	if base != "" {
		name += "-" + base
	}
	if vfs.Find(name) != nil {
		return name
	}
	under, ok := vfs.Find(base).(vfs.VFSFilename)
	if !ok {
		return base
	}
	vfs.Register(name, files{under})
	return name
}

// files is a file layer whose errors keep the operating system's error, and whose new files
// have the mode of the database's file.
type files struct{ vfs.VFSFilename }

// OpenFilename implements vfs.VFSFilename.
func (l files) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	createBeside(name, flags)
	f, flags, err := l.VFSFilename.OpenFilename(name, flags)
	if whole, ok := f.(wholeFile); ok {
		f = &causeFile{whole}
	}
	return f, flags, err
}

// wholeFile is the set of file methods that the store needs. (Memory is not mapped.)
type wholeFile interface {
	vfs.FileLockState
	vfs.FileHasMoved
	vfs.FileSizeHint
	vfs.FilePersistWAL
	vfs.FilePowersafeOverwrite
	vfs.FileSharedMemory
}

type causeFile struct{ wholeFile }

// WriteAt implements vfs.File.
func (f *causeFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.wholeFile.WriteAt(p, off)
	return n, withCause(err)
}

// Truncate implements vfs.File.
func (f *causeFile) Truncate(size int64) error { return withCause(f.wholeFile.Truncate(size)) }

// Sync implements vfs.File.
func (f *causeFile) Sync(flags vfs.SyncFlag) error { return withCause(f.wholeFile.Sync(flags)) }

// SizeHint implements vfs.FileSizeHint.
func (f *causeFile) SizeHint(size int64) error { return withCause(f.wholeFile.SizeHint(size)) }

func withCause(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EFBIG), isQuota(err):
		return vfs.SystemError(err, sqlite3.FULL)
	case errors.Is(err, syscall.EROFS):
		return vfs.SystemError(err, sqlite3.READONLY)
	}
	return err
}
