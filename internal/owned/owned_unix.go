//go:build unix

package owned

import (
	"io/fs"
	"os"
	"syscall"
)

// noFollow makes the open fail if a link has replaced the folder, so that the link's target is not given away.
const noFollow = syscall.O_NOFOLLOW | syscall.O_DIRECTORY

// give changes the owner and group of f to those of like as far as the system allows. It reports whether f now has
// the group of like.
func give(f *os.File, made, like fs.FileInfo) (theirs bool) {
	is, ok := made.Sys().(*syscall.Stat_t)
	want, also := like.Sys().(*syscall.Stat_t)
	if !ok || !also {
		return false
	}
	if is.Uid == want.Uid && is.Gid == want.Gid {
		return true
	}
	return f.Chown(int(want.Uid), int(want.Gid)) == nil || f.Chown(-1, int(want.Gid)) == nil
}
