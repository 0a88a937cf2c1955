package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// fallback opens databases read-only, like SQLite's own file layer does for a file without
// write permission. The driver's layer refuses to open those.
type fallback struct{ vfs.VFSFilename }

// OpenFilename implements vfs.VFSFilename.
func (l fallback) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if flags&vfs.OPEN_MAIN_DB != 0 {
		flags = flags&^(vfs.OPEN_READWRITE|vfs.OPEN_CREATE) | vfs.OPEN_READONLY
	}
	return l.VFSFilename.OpenFilename(name, flags)
}

// Open, not each write, refuses a database that was opened read-only.
func TestOpenFallsBackToReading(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	db := openFile(t, path) // open throughout, so that there is a log to read
	vfs.Register("fallback", fallback{vfs.Find("").(vfs.VFSFilename)})
	t.Cleanup(func() { vfs.Unregister("fallback") })
	got, err := sqlite.Open(t.Context(), path, sqlite.VFS("fallback"))
	if err == nil {
		shut(t, got)
	}
	says(t, err, store.ErrReadOnly, path, "check the permissions")
	if err := db.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}
