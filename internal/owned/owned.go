// Package owned creates files and folders with the owner and group of another file. Files next to a database must
// stay usable by everyone who may open the database, even if root created them.
//
// Root may give a file to any user. Another user may only give it one of its own groups and stays the owner; that
// group gets the access that it has to the database. If a file cannot be given away, it stays with the user who
// created it.
//
// Only files that the call itself created are given away, through their open file: in a folder that others can write
// to, a name may lead elsewhere a moment later. Existing files stay unchanged.
package owned

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// As names the file whose owner, group and mode are copied. The zero value copies nothing.
type As struct {
	Path string // "" copies nothing
	// OwnerOnly copies the owner and group but not the mode, so that new files stay private.
	OwnerOnly bool
}

// Mkdir creates a folder; without a Path only its owner can use it. It returns [fs.ErrExist] if the folder exists.
func (as As) Mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if as.Path == "" {
		return nil
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil // the folder exists and is private
	}
	as.Give(f)
	return f.Close()
}

// MkdirAll creates a folder and its missing parents.
func (as As) MkdirAll(dir string) error {
	if _, err := os.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(dir, 0o700) // returns the error if this is not a folder
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

// Open opens a file and creates it if it is missing; without a Path only its owner can use a new file. flags are
// those of [os.OpenFile] without O_CREATE.
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
		// Another process may remove the file before this call opens it.
		if f, err = os.OpenFile(path, flags, 0); try == maxTries || !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
}

// maxTries limits the attempts to open a file that others create and remove concurrently.
const maxTries = 100

// Give gives away a file or folder that this process just created.
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
		_ = f.Chmod(mode) // whatever the umask is; failure leaves a file that only its owner can use, which is safe
	}
}

// modeOf returns the mode for a new file or folder: a user who may read the model file may enter the folder. If the
// group could not be copied (theirs is false), the group gets no access.
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
