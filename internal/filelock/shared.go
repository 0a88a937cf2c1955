package filelock

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CheckShared refuses files that another user may have put into a folder that everybody can
// write to, where this process expects its own: who waits for a name there can have a
// program use a file of theirs. Such a file belongs to this user, to root, to the owner of
// the folder, or to one of owners. What is not there is no trouble, and nor is a folder
// that not everybody can write to: who may write to it is trusted.
func CheckShared(owners []int, paths ...string) error {
	for _, path := range paths {
		folder, err := os.Stat(filepath.Dir(path))
		if err != nil || folder.Mode().Perm()&0o002 == 0 {
			continue
		}
		if uid, foreign := foreignOwner(path, folder, owners); foreign {
			return fmt.Errorf("%s belongs to user %d, and everybody can write to its folder: that user may have put it there for others to use. "+
				"Take a folder of your own, or if you trust the file: `chown %d %s`", path, uid, os.Geteuid(), path)
		}
	}
	return nil
}

// maxLinks limits the symbolic links that CheckLinks follows.
const maxLinks = 40

// CheckLinks refuses an absolute path that leads through a symbolic link which another user
// may have put into a folder that everybody can write to. It belongs to this user, to root,
// or to the owner of the folder.
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
			return nil // what is not there leads nowhere
		}
		if info.Mode()&os.ModeSymlink == 0 {
			continue
		}
		if parent, err := os.Stat(folder); err == nil && parent.Mode().Perm()&0o002 != 0 {
			if uid, foreign := foreignOwner(at, parent, nil); foreign {
				return fmt.Errorf("%s is a link of user %d, and everybody can write to its folder: that user may have put it there for others to use. Name the file itself, if you trust it", at, uid)
			}
		}
		if to, err = os.Readlink(at); err != nil || links == maxLinks {
			return nil // to open it says so
		}
		links++
		if !filepath.IsAbs(to) {
			to = filepath.Join(folder, to)
		}
		at, rest = string(filepath.Separator), filepath.Join(to, rest)
	}
}

// CheckFolder refuses a folder for locks in which others could remove or replace the locks:
// one that does not belong to a user that CheckShared accepts, that everybody can write to,
// or that is a link. One that is not there is no trouble.
func CheckFolder(owners []int, dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil
	}
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is no folder, or a link to one: `rm %s`, and it is made again", dir, dir)
	case info.Mode().Perm()&0o002 != 0:
		return fmt.Errorf("everybody can write to %s, and make workers look dead: `chmod o-w %s`", dir, dir)
	}
	if folder, err := os.Stat(filepath.Dir(dir)); err == nil {
		if uid, foreign := foreignOwner(dir, folder, owners); foreign {
			return fmt.Errorf("%s belongs to user %d, who can make workers look dead: `rm -r %s` if no worker runs, and it is made again", dir, uid, dir)
		}
	}
	return nil
}

// OwnersOf returns who owns a file, if it is there and that is known.
func OwnersOf(path string) (owners []int) {
	if info, err := os.Stat(path); err == nil {
		if uid, known := OwnerOf(info); known {
			owners = append(owners, uid)
		}
	}
	return owners
}

// foreignOwner reports whether a file belongs to another user than those who are trusted.
func foreignOwner(path string, folder os.FileInfo, owners []int) (uid int, foreign bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, false
	}
	uid, known := OwnerOf(info)
	of, _ := OwnerOf(folder)
	return uid, known && !slices.Contains(append([]int{os.Geteuid(), 0, of}, owners...), uid)
}
