//go:build unix

package owned

import (
	"io/fs"
	"os"
	"syscall"
)

// noFollow keeps a link from being given away in the place of a folder.
const noFollow = syscall.O_NOFOLLOW | syscall.O_DIRECTORY

// give changes the owner and group of f to those of like, as far as that is allowed, and
// reports whether its group is that one now.
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
