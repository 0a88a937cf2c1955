package cli

import (
	"os"
	"path/filepath"
)

// storeFile is the file name of a default store.
const storeFile = "weaver.db"

// defaultStore returns the store for work in a folder when no store is named. It is the nearest weaver.db from there
// upwards, up to the root of the repository or the home folder, whichever comes first. Otherwise, and always outside
// of both, it is weaver.db in the folder itself, which may not exist yet.
//
// Above the folder it skips stores and folders that belong to other users or that everyone may write to, because a
// store determines which commands run.
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

// topFolder returns the last folder to search for a store: the root of the repository or the home folder above dir.
// It returns "" if dir is in neither.
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
			return "" // also for a home folder that is the root folder
		}
		if info, err := os.Stat(dir); err == nil && homeInfo != nil && os.SameFile(info, homeInfo) {
			return dir
		}
		dir = above
	}
}
