//go:build unix

package cli

import (
	"io/fs"
	"os"
	"syscall"
)

// ours reports whether a file or folder belongs to this user and is not world-writable.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && info.Mode().Perm()&0o002 == 0
}
