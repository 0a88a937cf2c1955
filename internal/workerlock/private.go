package workerlock

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/goweaver/weaver/internal/filelock"
)

// DefaultDir returns this user's folder for locks on this machine. All processes of the user that see the same files
// get the same folder.
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

// MakePrivate creates a lock folder that only this user can write to: a user who can remove or replace a lock file
// can make its worker look dead. The parent folder must exist. Errors describe the defect of the folder.
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
