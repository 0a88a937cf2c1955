//go:build linux || darwin

package filelock

import (
	"errors"
	"io"
	"math"
	"os"
	"syscall"
)

// Bytes reports whether the system supports locks of single bytes. A lock belongs to the open file, like the
// other locks of this package, and its byte may lie past the end of the file.
const Bytes = true

// TryByte locks a byte of an open file if no other open file holds that lock.
func TryByte(f *os.File, at int64) bool {
	return lockRange(f, setLock, &syscall.Flock_t{Type: syscall.F_WRLCK, Start: at, Len: 1}) == nil
}

// UnlockByte releases the lock of a byte, if the open file holds it.
func UnlockByte(f *os.File, at int64) {
	_ = lockRange(f, setLock, &syscall.Flock_t{Type: syscall.F_UNLCK, Start: at, Len: 1})
}

// LockedRange reports whether another open file holds the lock of a byte in [from, before). Pass math.MaxInt64 as
// before for no upper limit.
func LockedRange(f *os.File, from, before int64) bool {
	l := &syscall.Flock_t{Type: syscall.F_WRLCK, Start: from, Len: before - from}
	if before == math.MaxInt64 {
		l.Len = 0
	}
	return lockRange(f, getLock, l) == nil && l.Type != syscall.F_UNLCK
}

func lockRange(f *os.File, cmd int, l *syscall.Flock_t) error {
	l.Whence = io.SeekStart
	for {
		if err := syscall.FcntlFlock(f.Fd(), cmd, l); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
