//go:build unix && !illumos && !solaris && !aix

package filelock

import (
	"errors"
	"os"
	"syscall"
)

// Supported reports whether the system has file locks.
const Supported = true

// NoFollow is a flag of os.OpenFile that refuses symbolic links, so that a lock is never taken on the target of a
// link.
const NoFollow = syscall.O_NOFOLLOW

// Try takes the exclusive lock of an open file if it is free.
func Try(f *os.File) (bool, error) { return try(f, syscall.LOCK_EX) }

// TryShare takes a shared lock of an open file unless another holds it exclusively.
func TryShare(f *os.File) (bool, error) { return try(f, syscall.LOCK_SH) }

func try(f *os.File, how int) (bool, error) {
	switch err := flock(f, how|syscall.LOCK_NB); {
	case err == nil:
		return true, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		return false, nil
	default:
		return false, err
	}
}

// Lock waits for the exclusive lock of an open file.
func Lock(f *os.File) error { return flock(f, syscall.LOCK_EX) }

// Unlock releases the lock of an open file, if it holds one.
func Unlock(f *os.File) { _ = flock(f, syscall.LOCK_UN) } // closing the file releases it at the latest

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// OwnerOf returns the user ID that owns a file.
func OwnerOf(info os.FileInfo) (uid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
