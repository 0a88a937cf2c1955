//go:build unix && !illumos && !solaris && !aix

package filelock

import (
	"errors"
	"os"
	"syscall"
)

// Supported: this system has locks.
const Supported = true

// NoFollow is a flag of os.OpenFile that keeps a lock from being taken on what a symbolic
// link leads to.
const NoFollow = syscall.O_NOFOLLOW

// Try takes the lock of an open file if it is free.
func Try(f *os.File) (bool, error) { return try(f, syscall.LOCK_EX) }

// TryShare takes the lock of an open file if none has it for itself. Others may share it.
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

// Lock waits until it has the lock of an open file.
func Lock(f *os.File) error { return flock(f, syscall.LOCK_EX) }

// Unlock frees the lock of an open file, if that has it.
func Unlock(f *os.File) { _ = flock(f, syscall.LOCK_UN) } // it goes with the file at the latest

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// OwnerOf returns the user that owns a file.
func OwnerOf(info os.FileInfo) (uid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
