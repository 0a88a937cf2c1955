package sqlite_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// otherUID is a user that owns none of the test's files.
const otherUID = 65534

// unprivileged runs fn as a user without root's rights. For root it changes this thread's file
// system user until fn is done.
func unprivileged(t *testing.T, fn func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		fn()
		return
	}
	// Unlike Setuid, the call affects one thread only, and never fails: it returns the
	// previous user.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, otherUID, 0, 0)
	defer func() { _, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, 0, 0, 0) }()
	fn()
}

// readOnlyFolder creates a folder with a database, both with the given modes.
func readOnlyFolder(t *testing.T, folder, file os.FileMode) (path string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "weaver.db")
	if file != 0 {
		db := openOnce(t, path)
		shut(t, db)
		if err := os.Chmod(path, file); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, folder); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) }) // so that the folder can be removed
	return path
}

func TestOpenWithoutPermission(t *testing.T) {
	t.Parallel()
	for name, modes := range map[string][2]os.FileMode{
		"file":            {0o777, 0o444},
		"folder":          {0o555, 0o666},
		"folder and file": {0o555, 0o444},
		"empty folder":    {0o555, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := readOnlyFolder(t, modes[0], modes[1])
			unprivileged(t, func() {
				_, err := sqlite.Open(t.Context(), path)
				says(t, err, store.ErrReadOnly, path, "check the permissions")
			})
		})
	}
}

// In a folder without search permission the existence of a file is unknown.
func TestOpenInAClosedFolder(t *testing.T) {
	t.Parallel()
	path := readOnlyFolder(t, 0, 0o666)
	unprivileged(t, func() {
		_, err := sqlite.Open(t.Context(), path)
		says(t, err, store.ErrUnavailable, path, "check the permissions")
	})
}
