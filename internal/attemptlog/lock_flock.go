//go:build unix && !illumos && !solaris && !aix

package attemptlog

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock of an open file if it is free. The lock ends with the
// file, or with the process, whatever happens to it.
func tryLock(f *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
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

// lock waits until it has the lock of an open file.
func lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// haveLocks: a log that no process has locked is not being written any more.
const haveLocks = true
