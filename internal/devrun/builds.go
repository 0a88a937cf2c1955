package devrun

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/goweaver/weaver/internal/filelock"
)

// The builds of a Run are in a folder with a file named buildsLock, which its process keeps locked. The lock tells
// the next Run which folders belong to killed processes.
const (
	buildsPrefix = "weaver-dev-"
	buildsLock   = "lock"
)

// makeBuilds creates the folder for builds and removes leftover ones. The remove function removes the new folder.
func (r *Runner) makeBuilds() (path string, remove func() error, err error) {
	parent, err := filepath.Abs(cmp.Or(lookup(r.config.Env, "GOTMPDIR"), os.TempDir()))
	if err != nil {
		return "", nil, err
	}
	sweepBuilds(parent)
	if path, err = os.MkdirTemp(parent, buildsPrefix); err != nil {
		return "", nil, err
	}
	unlock, err := lockBuilds(path)
	if err != nil || unlock == nil { // works without a lock, but later runs do not remove leftover builds
		unlock = func() error { return nil }
	}
	return path, func() error { return errors.Join(unlock(), os.RemoveAll(path)) }, nil
}

// lockBuilds creates the lock file of a folder. The file gets its name after it was locked, so that no other process
// finds it free. unlock is nil on systems without locks.
func lockBuilds(path string) (unlock func() error, err error) {
	f, err := os.CreateTemp(path, buildsLock)
	if err != nil {
		return nil, err
	}
	locked, err := filelock.Try(f)
	if locked && err == nil {
		err = os.Rename(f.Name(), filepath.Join(path, buildsLock))
	}
	if !locked || err != nil {
		return nil, errors.Join(err, filelock.Close(f), os.Remove(f.Name()))
	}
	return func() error { return filelock.Close(f) }, nil
}

// sweepBuilds removes builds of killed processes. Folders that it cannot remove stay until the next run.
func sweepBuilds(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.IsDir() && strings.HasPrefix(e.Name(), buildsPrefix) && ours(info) {
			sweepBuild(filepath.Join(parent, e.Name()))
		}
	}
}

// sweepBuild removes a folder whose lock is free. A folder without a lock file is just being created, or belongs to a
// program without locks.
func sweepBuild(path string) {
	name := filepath.Join(path, buildsLock)
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	f, err := os.Open(name)
	if err != nil {
		return
	}
	defer func() { _ = filelock.Close(f) }()
	free, err := filelock.Try(f)
	if err != nil || !free {
		return
	}
	if now, err := os.Lstat(name); err == nil && os.SameFile(now, info) {
		_ = os.RemoveAll(path)
	}
}

// ours reports whether this user owns a file.
func ours(info os.FileInfo) bool {
	uid, ok := filelock.OwnerOf(info)
	return ok && uid == os.Getuid()
}
