//go:build unix && !illumos && !solaris && !aix

package workerlock

import (
	"errors"
	"os"
	"syscall"
)

const haveLocks = true

// noFollow keeps a lock from being taken on what a symbolic link leads to.
const noFollow = syscall.O_NOFOLLOW

// tryLock takes the lock of an open file if it is free. flock belongs to
// the open file, not to the process: two DBs of one process see each other's.
func tryLock(f *os.File) (bool, error) { return flock(f, syscall.LOCK_EX) }

// tryShare takes the lock of an open file if none has it for itself. Others may
// share it.
func tryShare(f *os.File) (bool, error) { return flock(f, syscall.LOCK_SH) }

func flock(f *os.File, how int) (bool, error) {
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, err
		}
	}
}

// unlock frees the lock of an open file, if that has it.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) } // it goes with the file at the latest

// ownerOf returns the user that owns a file.
func ownerOf(info os.FileInfo) (uid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
