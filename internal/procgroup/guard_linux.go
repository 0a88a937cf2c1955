package procgroup

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// newTable creates a file in memory, which needs no writable directory.
func newTable() (*os.File, error) {
	fd, err := unix.MemfdCreate("weaver-guard", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // Linux before 6.3 rejects the seal flag; later versions may require it
		fd, err = unix.MemfdCreate("weaver-guard", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "weaver-guard"), nil
}
