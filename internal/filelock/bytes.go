//go:build linux || darwin

package filelock

import (
	"errors"
	"io"
	"math"
	"os"
	"syscall"
)

// Bytes: this system has locks of single bytes that belong to the open file, as the other
// locks of this package do. A byte need not be in the file.
const Bytes = true

// TryByte takes the lock of a byte of an open file if it is free.
func TryByte(f *os.File, at int64) bool {
	return lockRange(f, setLock, &syscall.Flock_t{Type: syscall.F_WRLCK, Start: at, Len: 1}) == nil
}

// UnlockByte frees the lock of a byte of an open file, if that has it.
func UnlockByte(f *os.File, at int64) {
	_ = lockRange(f, setLock, &syscall.Flock_t{Type: syscall.F_UNLCK, Start: at, Len: 1})
}

// LockedRange reports whether another open file has the lock of a byte from one on and
// before another one; math.MaxInt64: of all that follow.
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
