//go:build unix

package conn

import (
	"os"
	"syscall"

	"github.com/ncruces/go-sqlite3/vfs"
)

// createBeside creates a journal or a log, and with a log its shared memory file. They get the
// mode and, where that is allowed, the owner of the database's file. Exactly the users that
// may open the database must be able to open them. (The driver leaves their modes to the
// umask.) Existing files stay as they are. createBeside ignores errors, because the driver
// meets them too.
func createBeside(name *vfs.Filename, flags vfs.OpenFlag) {
	if flags&vfs.OPEN_CREATE == 0 || flags&(vfs.OPEN_WAL|vfs.OPEN_MAIN_JOURNAL) == 0 {
		return
	}
	database := name.Database()
	info, err := os.Stat(database)
	if err != nil {
		return
	}
	paths := []string{name.String()}
	if flags&vfs.OPEN_WAL != 0 {
		paths = append(paths, database+"-shm")
	}
	for _, path := range paths {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			_ = f.Chown(int(st.Uid), int(st.Gid)) // root may
		}
		_ = f.Chmod(info.Mode().Perm()) // regardless of the umask; a file that only its owner can use is safe
		_ = f.Close()                   // it is empty
	}
}
