//go:build !js

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goweaver/weaver/internal/filelock"
	"github.com/goweaver/weaver/internal/workerlock"
	"github.com/goweaver/weaver/store"
)

// find finds the file that Open opens, which may be missing. done is called when it is open.
func (db *DB) find(path string) (done func(), err error) {
	abs, err := filepath.Abs(path) // a later chdir must not lead new connections to another file
	if err != nil {
		return nil, err
	}
	if dir := filepath.Dir(abs); !isDir(dir) {
		return nil, fmt.Errorf("%w: the folder %s does not exist: create it first", store.ErrUnavailable, dir)
	}
	info, err := os.Stat(abs)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w: check the permissions of its folder: %w", store.ErrUnavailable, err)
	}
	if err == nil && info.IsDir() {
		return nil, fmt.Errorf("%w: it is a folder: name a file in it", store.ErrNotDatabase)
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is a device, a pipe or a socket: name a file", store.ErrNotDatabase)
	}
	db.name, err = resolve(abs)
	if err == nil {
		err = filelock.CheckLinks(abs)
	}
	if err == nil {
		err = checkLinks(db.name)
	}
	if err == nil {
		err = checkOwners(db.name)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	db.locks = workerlock.Beside(db.name, db.name+".workers")
	return func() {}, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
