// Package owned makes files and folders that belong to the owner and group of another
// file: what is kept beside a database is of use to whoever may open the database, also
// when root made it.
//
// Root may give a file to any user. Another user may give it one of its own groups, and
// stays its owner; the group then has the access that it has to the database. What
// cannot be given stays with the user who made it.
//
// Only what a call made itself is given away, by its open file: in a folder that others
// can write to a name may lead elsewhere a moment later. Files that exist stay as they
// are.
package owned

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// As is a file whose owner, group and mode others get. The zero value gives nothing away.
type As struct {
	Path string // "": nothing is given away
	// OwnerOnly gives the owner and group, and leaves the mode: what is made stays private.
	OwnerOnly bool
}

// Mkdir makes a folder, for its owner alone if there is no file to go by. Error:
// [fs.ErrExist].
func (as As) Mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if as.Path == "" {
		return nil
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil // it is there, and private
	}
	as.Give(f)
	return f.Close()
}

// MkdirAll makes a folder and those above it.
func (as As) MkdirAll(dir string) error {
	if _, err := os.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(dir, 0o700) // which says what else is there
	}
	if above := filepath.Dir(dir); above != dir {
		if err := as.MkdirAll(above); err != nil {
			return err
		}
	}
	if err := as.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Open opens a file, which it makes if there is none, for its owner alone if there is no
// file to go by. flags are those of [os.OpenFile] besides O_CREATE.
func (as As) Open(path string, flags int) (*os.File, error) {
	for try := 0; ; try++ {
		f, err := os.OpenFile(path, flags|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			as.Give(f)
			return f, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		// It may be removed in between.
		if f, err = os.OpenFile(path, flags, 0); try == maxTries || !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
}

// maxTries limits the tries to open a file that others make and remove concurrently.
const maxTries = 100

// Give gives away a file or folder that this process just made.
func (as As) Give(f *os.File) {
	if as.Path == "" {
		return
	}
	like, err := os.Stat(as.Path)
	if err != nil {
		return
	}
	made, err := f.Stat()
	if err != nil {
		return
	}
	theirs := give(f, made, like)
	if as.OwnerOnly {
		return
	}
	if mode := modeOf(like, made.IsDir(), theirs); mode != made.Mode().Perm() {
		_ = f.Chmod(mode) // whatever the umask is; one that only the owner can use is safe
	}
}

// modeOf is the mode that goes with that of a file: whoever may read that may enter a
// folder. Without theirs the group is another one, and gets nothing.
func modeOf(like fs.FileInfo, dir, theirs bool) fs.FileMode {
	mode := like.Mode().Perm()&0o666 | 0o600
	if !theirs {
		mode &^= 0o070
	}
	if dir {
		mode |= mode & 0o444 >> 2
	}
	return mode
}
