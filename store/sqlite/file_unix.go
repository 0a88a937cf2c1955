//go:build unix

package sqlite

import (
	"errors"
	"syscall"
)

// fileID distinguishes a file from all existing files.
type fileID struct {
	device, inode uint64
	names         uint64 // number of hard links
}

// identify returns the identity of the file at a path, or false if the file is missing or
// unknown.
func identify(path string) (fileID, bool) {
	var st syscall.Stat_t
	if stat(path, &st) != nil {
		return fileID{}, false
	}
	return fileID{device: uint64(st.Dev), inode: uint64(st.Ino), names: uint64(st.Nlink)}, true
}

// isElsewhere reports whether the path leads to another file, or to no file.
func isElsewhere(path string, id fileID) bool {
	var st syscall.Stat_t
	err := stat(path, &st)
	if err == nil {
		return uint64(st.Dev) != id.device || uint64(st.Ino) != id.inode
	}
	// Any other error: unknown for now.
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ESTALE)
}

func stat(path string, st *syscall.Stat_t) error {
	for {
		if err := syscall.Stat(path, st); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
