//go:build unix

package conn

import (
	"os"
	"syscall"

	"github.com/ncruces/go-sqlite3/vfs"
)

// createBeside creates a journal or log, and with a log the file of its shared
// memory, with the mode and, where that is allowed, the owner of the database's
// file: the users that may open the one must be able to open the others, and no
// other user. (The driver leaves their modes to the umask.) Files that exist stay as
// they are; what keeps one from being created the driver finds as well.
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
		_ = f.Chmod(info.Mode().Perm()) // whatever the umask is; one that only the owner can use is safe
		_ = f.Close()                   // it is empty
	}
}
