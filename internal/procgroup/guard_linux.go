package procgroup

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// newTable opens a file in memory, which needs no writable directory.
func newTable() (*os.File, error) {
	fd, err := unix.MemfdCreate("weaver-guard", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3, which may insist on the seal
		fd, err = unix.MemfdCreate("weaver-guard", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "weaver-guard"), nil
}
