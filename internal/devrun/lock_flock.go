//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package devrun

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock of an open file if it is free. It ends with the file, or the
// process, however that ends.
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

// ours reports whether this user owns a file.
func ours(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}
