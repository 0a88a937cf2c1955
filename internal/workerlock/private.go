package workerlock

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/goweaver/weaver/internal/filelock"
)

// DefaultDir returns the folder of this user for locks on this machine: it is the same
// for all processes of the user, as far as they see the same files.
func DefaultDir() string {
	uid := os.Geteuid()
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "weaver")
	}
	if uid == 0 {
		return "/run/weaver"
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("weaver-workers-%d", uid))
}

// MakePrivate makes a folder for locks, which this user alone can write to: who can
// remove or replace a lock file can make its worker look dead. Its parent must exist.
// Errors say what is wrong with the folder.
func MakePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return fmt.Errorf("folder for worker locks: %w", err)
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("folder for worker locks: %w", err)
	case !info.IsDir():
		return fmt.Errorf("folder for worker locks: %s is not a folder: name one that only this user can write to", dir)
	}
	if uid, ok := filelock.OwnerOf(info); ok && uid != os.Geteuid() {
		return fmt.Errorf("folder for worker locks: %s belongs to user %d, not to %d: name one that only this user can write to", dir, uid, os.Geteuid())
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("folder for worker locks: %s has mode %#o, so others can write to it: `chmod 700 %[1]s`", dir, mode)
	}
	if kind := remoteFS(dir); kind != "" {
		return fmt.Errorf("folder for worker locks: %s is on a remote file system (%s): name one on this machine, on tmpfs or a disk", dir, kind)
	}
	return nil
}
