package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goweaver/weaver/internal/filelock"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

// The database's file has one name. SQLite names the log after it, workers name their locks
// after it, and other processes find it by it. Therefore symbolic links are followed once, at
// Open; a second name (a hard link) is refused; and a file that lost its name accepts no
// further write.

// maxLinks is the maximum number of symbolic links to a file.
const maxLinks = 40

// resolve follows the symbolic links of an absolute path. The file, or the target of a link to
// it, may be missing; its folder must exist.
func resolve(path string) (string, error) {
	for range maxLinks {
		full, err := filepath.EvalSymlinks(path)
		if !errors.Is(err, fs.ErrNotExist) {
			return full, err
		}
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		path = filepath.Join(dir, filepath.Base(path))
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil // not a link: a new file
		}
		if path = to; !filepath.IsAbs(to) {
			path = filepath.Join(dir, to)
		}
	}
	return "", fmt.Errorf("more than %d symbolic links", maxLinks)
}

// createPrivate creates an empty file, which SQLite accepts as a database, that only its owner
// can read. It leaves an existing file unchanged. It ignores errors, because SQLite reports
// the same ones.
func createPrivate(path string) {
	if f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		_ = f.Close() // it is empty
	}
}

// checkLinks refuses a file with several names, because each name would have its own log and
// locks.
func checkLinks(path string) error {
	if id, ok := identify(path); ok && id.names > 1 {
		return fmt.Errorf("the file has %d names (hard links), and each would have a log of its own: "+
			"remove the other names, or open a copy of it", id.names)
	}
	return nil
}

// checkOwners refuses a file that another user may have planted at its path, and the files
// next to it: the log, locks, and artifacts.
func checkOwners(path string) error {
	if err := filelock.CheckShared(nil, path); err != nil {
		return err
	}
	var beside []string
	for _, end := range []string{"-wal", "-shm", "-journal", ".workers", ".logs", ".blobs"} {
		beside = append(beside, path+end)
	}
	return filelock.CheckShared(filelock.OwnersOf(path), beside...)
}

// place holds the identities of a database's open files, itself and its log, at Open. The zero
// value has no files, so nothing can be lost.
type place struct {
	files []placed
}

type placed struct {
	path string
	id   fileID
}

// locate records the identities of the files of an open connection.
func locate(c *conn.Conn, path string) (p place) {
	for _, path := range []string{path, path + "-wal"} {
		if id, ok := identify(path); ok {
			p.files = append(p.files, placed{path, id})
		}
	}
	if len(p.files) > 0 && c.HasMoved() {
		p.files[0].id = fileID{} // another file took the name since the connection was opened
	}
	return p
}

// lost reports whether one of the names now belongs to another file, or to no file. While the
// files are open no other file can get their identities. It takes one or two microseconds and
// runs in every transaction.
func (p *place) lost() bool {
	for i := range p.files {
		if isElsewhere(p.files[i].path, p.files[i].id) {
			return true
		}
	}
	return false
}

// Gone returns store.ErrGone if the file was deleted, moved or replaced while it was open. It
// takes one or two microseconds, so a caller may call it often.
func (db *DB) Gone() error { return db.checkPlace() }

// checkPlace returns store.ErrGone if the file was deleted, moved or replaced while it was
// open, and store.ErrClosed if it is closed. Writes to such a file would be lost when the last
// process closes it, so they are refused.
func (db *DB) checkPlace() error {
	switch {
	case !db.place.lost():
		return nil
	case db.closed.Load(): // the last process that closes a file removes its log
		return store.ErrClosed
	}
	return fmt.Errorf("%s: %w: %w, and takes no more writes: "+
		"put it back under its name, or end this program and start it again with the file that is there now", db.path, store.ErrUnavailable, store.ErrGone)
}
