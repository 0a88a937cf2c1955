package conn

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/ncruces/go-sqlite3"

	"github.com/goweaver/weaver/store"
)

// MigrateAdvice is the instruction for a missing or old schema.
const MigrateAdvice = "run `weaver migrate up` or call db.Migrate"

// Classify returns the port's error for an error of SQLite, and an instruction. kind is nil if
// err has no SQLite code, or a code without a special meaning.
func Classify(err error) (advice string, kind error) {
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
		return "the file is damaged, or the log beside it (-wal) belongs to another copy of it: restore a backup to a name that has no -wal and no -shm beside it", store.ErrNotDatabase
	case sqlite3.CANTOPEN, sqlite3.IOERR, sqlite3.PERM, sqlite3.AUTH:
		return classifySystem(err)
	case sqlite3.CONSTRAINT, sqlite3.TOOBIG, sqlite3.MISMATCH, sqlite3.RANGE:
		return "", store.ErrRefused
	case sqlite3.INTERRUPT:
		return "", context.Canceled
	case sqlite3.ERROR:
		if text := err.Error(); strings.Contains(text, "no such table") || strings.Contains(text, "no such column") || strings.Contains(text, "has no column") {
			return MigrateAdvice, store.ErrNotMigrated
		}
	}
	return "", nil
}

// classifySystem classifies the error of the operating system.
func classifySystem(err error) (advice string, kind error) {
	switch {
	case errors.Is(err, syscall.ENOSPC), isQuota(err):
		return "free some space and go on", store.ErrFull
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return "check the permissions of the file and its folder", store.ErrReadOnly
	}
	return "", store.ErrUnavailable
}
