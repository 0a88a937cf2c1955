package filelock

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CheckShared refuses a file that another user may have planted in a world-writable folder. Without this check that
// user could make a program open their file under the expected name. Accepted owners are this user, root, the owner
// of the folder, and owners. A missing file passes, and so does each file in a folder that is not world-writable:
// whoever may write to such a folder is trusted.
func CheckShared(owners []int, paths ...string) error {
	for _, path := range paths {
		folder, err := os.Stat(filepath.Dir(path))
		if err != nil || folder.Mode().Perm()&0o002 == 0 {
			continue
		}
		if uid, foreign := foreignOwner(path, folder, owners); foreign {
			return fmt.Errorf("%s belongs to user %d, and every user can write to its folder: that user may have put it there for others to use. "+
				"Take a folder of your own, or if you trust the file: `chown %d %s`", path, uid, os.Geteuid(), path)
		}
	}
	return nil
}

// maxLinks limits the symbolic links that CheckLinks follows.
const maxLinks = 40

// CheckLinks refuses an absolute path that passes through a symbolic link in a world-writable folder, unless the link
// belongs to this user, to root, or to the owner of the folder.
func CheckLinks(path string) error {
	at, rest := filepath.VolumeName(path)+string(filepath.Separator), filepath.Clean(path)
	for links := 0; ; {
		rest = strings.TrimLeft(strings.TrimPrefix(rest, filepath.VolumeName(rest)), string(filepath.Separator))
		name, below, _ := strings.Cut(rest, string(filepath.Separator))
		if name == "" {
			return nil
		}
		folder, to := at, ""
		at, rest = filepath.Join(at, name), below
		info, err := os.Lstat(at)
		if err != nil {
			return nil // a missing file cannot be a link
		}
		if info.Mode()&os.ModeSymlink == 0 {
			continue
		}
		if parent, err := os.Stat(folder); err == nil && parent.Mode().Perm()&0o002 != 0 {
			if uid, foreign := foreignOwner(at, parent, nil); foreign {
				return fmt.Errorf("%s is a link of user %d, and every user can write to its folder: that user may have put it there for others to use. Name the file itself, if you trust it", at, uid)
			}
		}
		if to, err = os.Readlink(at); err != nil || links == maxLinks {
			return nil // opening the path reports the error
		}
		links++
		if !filepath.IsAbs(to) {
			to = filepath.Join(folder, to)
		}
		at, rest = string(filepath.Separator), filepath.Join(to, rest)
	}
}

// CheckFolder refuses a lock folder in which other users could remove or replace the locks: a folder whose owner
// CheckShared does not accept, a world-writable folder, or a link. A missing folder passes.
func CheckFolder(owners []int, dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil
	}
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder, or is a link to one: `rm %s`; it is created again", dir, dir)
	case info.Mode().Perm()&0o002 != 0:
		return fmt.Errorf("every user can write to %s, and make workers look dead: `chmod o-w %s`", dir, dir)
	}
	if folder, err := os.Stat(filepath.Dir(dir)); err == nil {
		if uid, foreign := foreignOwner(dir, folder, owners); foreign {
			return fmt.Errorf("%s belongs to user %d, who can make workers look dead: `rm -r %s` if no worker runs; it is created again", dir, uid, dir)
		}
	}
	return nil
}

// OwnersOf returns the owner of a file, or nil if the file is missing or its owner unknown.
func OwnersOf(path string) (owners []int) {
	if info, err := os.Stat(path); err == nil {
		if uid, known := OwnerOf(info); known {
			owners = append(owners, uid)
		}
	}
	return owners
}

// foreignOwner reports whether a file belongs to a user who is not trusted.
func foreignOwner(path string, folder os.FileInfo, owners []int) (uid int, foreign bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, false
	}
	uid, known := OwnerOf(info)
	of, _ := OwnerOf(folder)
	return uid, known && !slices.Contains(append([]int{os.Geteuid(), 0, of}, owners...), uid)
}
