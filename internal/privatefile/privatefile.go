// Package privatefile checks whether other users can read or write a file of secrets: tokens, passwords or keys. On a
// system without owners and modes every file passes.
package privatefile

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/goweaver/weaver/internal/filelock"
)

// Check returns an error if other users can change or replace a file, and a warning if they can read it. Both name
// the command that fixes it. Check follows links. A file that is missing or cannot be inspected passes: opening it
// reports the error.
func Check(path string) (warning string, err error) {
	full, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", nil
	}
	info, err := os.Stat(full)
	if err != nil {
		return "", nil
	}
	uid, known := filelock.OwnerOf(info)
	mode := info.Mode().Perm()
	switch {
	case !known || !info.Mode().IsRegular(): // such as a pipe of the shell
		return "", nil
	case uid != os.Geteuid() && uid != 0:
		return "", fmt.Errorf("%s belongs to user %d, who can change it: `chown %d %s` if you trust what is in it", path, uid, os.Geteuid(), path)
	case mode&0o022 != 0:
		return "", fmt.Errorf("%s has mode %#o, so other users can change it: `chmod 600 %s` if you trust what is in it", path, mode, path)
	}
	if dir, err := os.Stat(filepath.Dir(full)); err == nil && dir.Mode().Perm()&0o002 != 0 && dir.Mode()&os.ModeSticky == 0 {
		return "", fmt.Errorf("every user can write to the folder of %s, and replace the file: `chmod o-w %s`, or keep the file in another folder", path, filepath.Dir(full))
	}
	if mode&0o044 != 0 {
		return fmt.Sprintf("%s has mode %#o, so other users can read it: `chmod 600 %s`", path, mode, path), nil
	}
	return "", nil
}
