//go:build unix

package sqlite

import "syscall"

// fileID distinguishes a file from all others that exist.
type fileID struct {
	device, inode uint64
	names         uint64 // how many it has
}

// identify returns the identity of the file at a path, false if there is none
// or it cannot be known.
func identify(path string) (fileID, bool) {
	var st syscall.Stat_t
	if stat(path, &st) != nil {
		return fileID{}, false
	}
	return fileID{device: uint64(st.Dev), inode: uint64(st.Ino), names: uint64(st.Nlink)}, true
}

// isElsewhere reports whether the path leads to no file, or to another one.
func isElsewhere(path string, id fileID) bool {
	var st syscall.Stat_t
	switch err := stat(path, &st); err {
	case nil:
		return uint64(st.Dev) != id.device || uint64(st.Ino) != id.inode
	case syscall.ENOENT, syscall.ENOTDIR, syscall.ESTALE:
		return true
	}
	return false // it cannot be known now
}

func stat(path string, st *syscall.Stat_t) error {
	for {
		if err := syscall.Stat(path, st); err != syscall.EINTR {
			return err
		}
	}
}
