package cli

import (
	"os"
	"path/filepath"
)

// storeFile is the name of a default store's file.
const storeFile = "weaver.db"

// defaultStore returns the store of work in a folder when none was named: the
// nearest weaver.db from there upwards, as far as the root of its repository or
// the home folder, whichever comes first; else the folder's own, which may not be
// there yet. Outside of both it is always the folder's own.
//
// Above the folder, stores and folders of other users, and those that everybody may
// write, are passed over: a store says which commands are run.
func defaultStore(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "sqlite:" + filepath.Join(dir, storeFile)
	}
	found := filepath.Join(abs, storeFile)
	if _, err := os.Lstat(found); err != nil {
		if above := storeAbove(abs); above != "" {
			found = above
		}
	}
	if here, err := os.Getwd(); err == nil && filepath.Dir(found) == here {
		found = storeFile
	}
	return "sqlite:" + found
}

func storeAbove(dir string) string {
	top := topFolder(dir)
	for top != "" && dir != top {
		dir = filepath.Dir(dir)
		info, err := os.Stat(dir)
		if err != nil || !ours(info) {
			return ""
		}
		path := filepath.Join(dir, storeFile)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && ours(info) {
			return path
		}
	}
	return ""
}

// topFolder returns the last folder that is searched for a store: the root of a
// folder's repository, or the home folder above it; "" if it is in neither.
func topFolder(dir string) string {
	home, err := os.UserHomeDir()
	var homeInfo os.FileInfo
	if err == nil {
		homeInfo, _ = os.Stat(home)
	}
	for {
		for _, mark := range []string{".git", ".hg", ".jj", ".svn"} {
			if _, err := os.Stat(filepath.Join(dir, mark)); err == nil {
				return dir
			}
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "" // also of a home folder that is the root of all
		}
		if info, err := os.Stat(dir); err == nil && homeInfo != nil && os.SameFile(info, homeInfo) {
			return dir
		}
		dir = above
	}
}
