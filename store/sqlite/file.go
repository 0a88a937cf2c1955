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

// The database's file has one name. SQLite names the log after it, workers
// their locks, and other processes find it by it. So symbolic links are followed
// once, when it is opened; a second name (a hard link) is refused; and a
// file that lost its name takes no further write.

// maxLinks is how many symbolic links are followed to a file.
const maxLinks = 40

// resolve follows the symbolic links of an absolute path. The file, or what a
// link to it names, need not exist; its folder must.
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
			return path, nil // no link: a new file
		}
		if path = to; !filepath.IsAbs(to) {
			path = filepath.Join(dir, to)
		}
	}
	return "", fmt.Errorf("more than %d symbolic links", maxLinks)
}

// createPrivate creates an empty file, which is a database for SQLite, that only
// its owner can read. One that exists stays as it is. What keeps it from being
// created SQLite finds as well, and says so.
func createPrivate(path string) {
	if f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		_ = f.Close() // it is empty
	}
}

// checkLinks refuses a file with several names: each name would have a log and
// locks of its own.
func checkLinks(path string) error {
	if id, ok := identify(path); ok && id.names > 1 {
		return fmt.Errorf("the file has %d names (hard links), and each would have a log of its own: "+
			"remove the other names, or open a copy of it", id.names)
	}
	return nil
}

// checkOwners refuses a file that another user may have put where it is found, and what
// stands beside it: a log, locks, or artifacts.
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

// place is where the open files of a database, itself and its log, were when they
// were opened. The zero value is nowhere, where nothing gets lost.
type place struct {
	files []placed
}

type placed struct {
	path string
	id   fileID
}

// locate notes where the files of an open connection are.
func locate(c *conn.Conn, path string) (p place) {
	for _, path := range []string{path, path + "-wal"} {
		if id, ok := identify(path); ok {
			p.files = append(p.files, placed{path, id})
		}
	}
	if len(p.files) > 0 && c.HasMoved() {
		p.files[0].id = fileID{} // the name is another file's since the connection was opened
	}
	return p
}

// lost reports whether another file, or none, has the name of one of the files.
// While they are open no other file can get their identities. It takes a
// microsecond or two, and is asked in every transaction.
func (p *place) lost() bool {
	for i := range p.files {
		if isElsewhere(p.files[i].path, p.files[i].id) {
			return true
		}
	}
	return false
}

// Gone returns store.ErrGone once the file was deleted, moved or replaced while it was
// open. A caller may ask often: it takes a microsecond or two.
func (db *DB) Gone() error { return db.checkPlace() }

// checkPlace returns store.ErrGone when the file was deleted, moved or replaced while it
// was open, store.ErrClosed when it is closed. What is written to it then is lost when the last process
// closes it, so nothing may be.
func (db *DB) checkPlace() error {
	switch {
	case !db.place.lost():
		return nil
	case db.closed.Load(): // the last one that closes a file removes its log
		return store.ErrClosed
	}
	return fmt.Errorf("%s: %w: %w, and takes no more writes: "+
		"put it back under its name, or end this program and start it again with the file that is there now", db.path, store.ErrUnavailable, store.ErrGone)
}
