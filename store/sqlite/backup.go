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

// ErrExists means that a file with the backup's name exists. A backup never overwrites a file.
var ErrExists = errors.New("the file exists already")

// Backup writes a copy of the database at one instant into a new file, and returns its size in
// bytes. The file gets the mode of the original and, in a folder of the original's owner, its
// owner and group. Other connections continue to read and write meanwhile; the log of the
// original grows until the copy is finished. The copy has no free pages.
//
// The copy is complete, and on the disk, once it has its name. Until then it is next to it as
// NAME.partial-…, which a killed process leaves behind. Before the copy replaces the original,
// `weaver doctor --post-restore` begins a new generation.
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
		return 0, fmt.Errorf("%q: %w: not a file name; name a new file", path, store.ErrUnavailable)
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
	partial := file.Name()
	defer func() {
		if err != nil {
			_ = os.Remove(partial) // the first error has the cause
		}
	}()
	if sameOwner(filepath.Dir(path), db.name) {
		owned.As{Path: db.name}.Give(file)
	}
	// A file of a browser is open once: it is closed while SQLite writes into it.
	if err := file.Close(); err != nil {
		return 0, err
	}
	if err := db.copyInto(ctx, partial); err != nil {
		return 0, err
	}
	if file, err = os.OpenFile(partial, os.O_RDWR, 0); err != nil {
		return 0, err
	}
	err = file.Chmod(info.Mode().Perm())
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
	// Crash here: the copy is complete, but its name still says partial.
	if err := os.Rename(partial, path); err != nil {
		return 0, err
	}
	db.opts.syncFolder(filepath.Dir(path))
	return made.Size(), nil
}

// sameOwner reports whether a folder and a file belong to the same user. A copy that root
// makes in such a folder belongs to that user too. A copy in a folder of root stays root's.
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

// copyInto makes SQLite write a copy into an empty file, from one snapshot.
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
	if mode != fmt.Sprint(incremental) { // of a file from an earlier version: the copy can return its free space
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
