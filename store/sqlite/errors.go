package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/ncruces/go-sqlite3"

	"github.com/goweaver/weaver/internal/batch"
	"github.com/goweaver/weaver/internal/migrate"
	"github.com/goweaver/weaver/store"
)

// translate turns what the driver and the queue say into the errors of the
// port, with the file's path and what to do about it. It is the only place
// that knows SQLite's codes; errors that are the port's already pass through.
func (db *DB) translate(doing string, err error) error {
	if err == nil {
		return nil
	}
	advice, kind := classify(err)
	switch {
	case kind == nil:
		return fmt.Errorf("%s: %w", doing, err)
	case advice == "":
		return fmt.Errorf("%s: %s: %w: %w", doing, db.path, kind, err)
	}
	return fmt.Errorf("%s: %s: %w (%s): %w", doing, db.path, kind, advice, err)
}

func classify(err error) (advice string, kind error) {
	switch {
	case errors.Is(err, batch.ErrTaken):
		return "", store.ErrUnknown
	case errors.Is(err, batch.ErrClosed):
		return "", store.ErrClosed
	case errors.Is(err, migrate.ErrNewer):
		return "use a newer version of the program", store.ErrNewerSchema
	}
	var code sqlite3.ErrorCode
	if !errors.As(err, &code) {
		return "", nil
	}
	switch code {
	case sqlite3.BUSY, sqlite3.LOCKED, sqlite3.PROTOCOL:
		return "another process or an open transaction of the caller writes", store.ErrBusy
	case sqlite3.FULL:
		return "free some space and go on", store.ErrFull
	case sqlite3.READONLY:
		return "check the permissions of the file and its folder", store.ErrReadOnly
	case sqlite3.NOTADB:
		return "the file holds something else: name another one", store.ErrNotDatabase
	case sqlite3.CORRUPT:
		return "the file is damaged: restore it from a backup", store.ErrNotDatabase
	case sqlite3.CANTOPEN, sqlite3.IOERR, sqlite3.PERM, sqlite3.AUTH:
		return classifySystem(err)
	case sqlite3.INTERRUPT:
		return "", context.Canceled
	case sqlite3.ERROR:
		if text := err.Error(); strings.Contains(text, "no such table") || strings.Contains(text, "no such column") || strings.Contains(text, "has no column") {
			return migrateAdvice, store.ErrNotMigrated
		}
	}
	return "", nil
}

const migrateAdvice = "run `weaver migrate up` or call db.Migrate"

// classifySystem looks at what the operating system said.
func classifySystem(err error) (advice string, kind error) {
	switch {
	case errors.Is(err, syscall.ENOSPC), isQuota(err):
		return "free some space and go on", store.ErrFull
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return "check the permissions of the file and its folder", store.ErrReadOnly
	}
	return "", store.ErrUnavailable
}
