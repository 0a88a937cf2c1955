package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goweaver/weaver/internal/filelock"
	"github.com/goweaver/weaver/internal/owned"
	"github.com/goweaver/weaver/store"
)

// ErrExists: a backup overwrites no file.
var ErrExists = errors.New("the file exists already")

// Backup writes a copy of the database as it is at one instant into a new file,
// with the mode of the original, and in a folder of its owner with its owner and group,
// and returns its size in bytes. Others go on to read
// and write meanwhile; the log of the original grows until the copy is made. The
// copy has no free pages. It is complete, and on the disk, when it has its name:
// until then it is beside it, as NAME.partial-…, which a process that is killed
// leaves behind. Before the copy is used in place of the original `weaver doctor
// --post-restore` begins a new generation.
//
// Errors: ErrExists, store.ErrFull, store.ErrUnavailable (the folder).
func (db *DB) Backup(ctx context.Context, path string) (size int64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("back up %s: %w", db.path, db.translate(err))
		}
	}()
	if db.memory {
		return 0, fmt.Errorf("%w: a database in memory has no backup", store.ErrUnavailable)
	}
	if strings.ContainsRune(path, 0) || path == "" {
		return 0, fmt.Errorf("%q: %w: that is no name of a file", path, store.ErrUnavailable)
	}
	if path, err = filepath.Abs(path); err != nil {
		return 0, err
	}
	if _, err := os.Lstat(path); err == nil {
		return 0, fmt.Errorf("%s: %w", path, ErrExists)
	}
	info, err := os.Stat(db.name)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".partial-*")
	if err != nil {
		return 0, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // the first error has the cause
		}
	}()
	if sameOwner(filepath.Dir(path), db.name) {
		owned.As{Path: db.name}.Give(file)
	}
	err = db.copyInto(ctx, file.Name())
	if err == nil {
		err = file.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = file.Sync()
	}
	var made fs.FileInfo
	if err == nil {
		made, err = file.Stat()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return 0, err
	}
	if _, err := os.Lstat(path); err == nil {
		return 0, fmt.Errorf("%s: %w", path, ErrExists)
	}
	// Crash here: the copy is whole, under a name that says that it may not be.
	if err := os.Rename(file.Name(), path); err != nil {
		return 0, err
	}
	db.opts.syncFolder(filepath.Dir(path))
	return made.Size(), nil
}

// sameOwner reports whether a folder belongs to the user to whom a file does: a copy that
// root makes there belongs to that user, too. One in a folder of root stays root's.
func sameOwner(dir, file string) bool {
	a, err := os.Stat(dir)
	b, err2 := os.Stat(file)
	if err != nil || err2 != nil {
		return false
	}
	dirUID, ok := filelock.OwnerOf(a)
	fileUID, ok2 := filelock.OwnerOf(b)
	return ok && ok2 && dirUID == fileUID
}

// copyInto has SQLite write a copy into an empty file, from one snapshot.
func (db *DB) copyInto(ctx context.Context, path string) error {
	if err := db.checkPlace(); err != nil {
		return err
	}
	c, err := db.connect(false)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // it wrote nothing into the original
	defer c.Interruptible(ctx)()
	mode, err := c.Pragma("PRAGMA auto_vacuum")
	if err != nil {
		return err
	}
	if mode != fmt.Sprint(incremental) { // of a file that an earlier version made: the copy can give back its space
		if err := c.Script("PRAGMA auto_vacuum=INCREMENTAL"); err != nil {
			return err
		}
	}
	err = c.Script("VACUUM INTO '" + strings.ReplaceAll(path, "'", "''") + "'")
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
