package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goweaver/weaver/store/sqlite"
)

var (
	_ openedStore = (*sqlite.DB)(nil)
	_ writeProber = (*sqlite.DB)(nil)
	_ backuper    = (*sqlite.DB)(nil)
)

// sqliteFile is a store in a file.
type sqliteFile struct {
	given string // --store
	path  string
}

// open implements place.
func (f sqliteFile) open(ctx context.Context, create bool) (openedStore, error) {
	if _, err := os.Stat(f.path); err != nil && (!create || !errors.Is(err, fs.ErrNotExist)) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the store %s does not exist: %w %s", f.given, errNoStore, f.path)
		}
		return nil, badStore("Check the permissions of the file and its folder.", "the store %s cannot be read: %w", f.given, err)
	}
	db, err := sqlite.Open(ctx, f.path)
	if err != nil {
		return nil, err // not the nil *DB: the interface would not be nil
	}
	return db, nil
}

// shown implements place.
func (f sqliteFile) shown() string { return f.given }

// full implements place.
func (f sqliteFile) full() string {
	path, err := filepath.Abs(f.path)
	if err != nil {
		return f.path
	}
	return path
}

// url implements place.
func (f sqliteFile) url() string { return "sqlite:" + f.full() }

// schema implements place.
func (sqliteFile) schema() string { return new(sqlite.DB).MigrationSQL() }

// file implements place.
func (f sqliteFile) file() string { return f.beside("") }

// logs implements place.
func (f sqliteFile) logs() string { return f.beside(".logs") }

// blobs implements place.
func (f sqliteFile) blobs() string { return f.beside(".blobs") }

// beside returns the path of a companion of the store's file. It follows symbolic links, so that every name of the
// store leads to the same companion.
func (f sqliteFile) beside(suffix string) string {
	path := f.path
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	return path + suffix
}

// madeByWork implements place: a file is cheap.
func (sqliteFile) madeByWork() bool { return true }

// backupAdvice implements place.
func (sqliteFile) backupAdvice(string) string { return "" }
