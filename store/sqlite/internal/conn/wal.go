package conn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

const (
	sqlJournalMode = "PRAGMA journal_mode"
	sqlUseWAL      = "PRAGMA journal_mode=WAL"
)

// keptJournal is the size in bytes to which a rollback journal is truncated after a transaction.
const keptJournal = 4 << 20

// LeaveWAL gives a file with a write-ahead log, such as one that comes from a server, a rollback
// journal. It is for systems without shared memory, where the file could not be opened
// otherwise.
func LeaveWAL(uri string) error {
	c, err := sqlite3.OpenFlags(uri, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE|sqlite3.OPEN_URI)
	if err != nil {
		return err
	}
	// The first statement reads nothing, so that the second one opens the log alone.
	err = c.Exec("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=PERSIST")
	return errors.Join(err, c.Close())
}

// UseWAL switches the connection's file to write-ahead logging, once in the file's life.
// SQLite does not wait for the lock that the switch needs, which another process opening the
// same new file may hold for a moment. UseWAL retries for up to busy. limit is the size in
// bytes to which the log file is truncated when it starts over.
func (c *Conn) UseWAL(ctx context.Context, busy time.Duration, limit int) error {
	if !vfs.SupportsSharedMemory {
		// A rollback journal, which is kept: in a browser deleting or truncating it takes longer
		// than all else.
		return c.Script(fmt.Sprintf("PRAGMA journal_mode=PERSIST; PRAGMA journal_size_limit=%d", keptJournal))
	}
	deadline := time.Now().Add(busy)
	for {
		mode, err := c.Pragma(sqlJournalMode)
		if err == nil && mode != "wal" {
			mode, err = c.Pragma(sqlUseWAL)
		}
		switch {
		case err == nil && mode == "wal":
			return c.Script(fmt.Sprintf("PRAGMA journal_size_limit=%d", limit))
		case err == nil:
			return fmt.Errorf("write-ahead logging is not possible here (journal mode %s): %w", mode, sqlite3.CANTOPEN)
		case !errors.Is(err, sqlite3.BUSY) || time.Now().After(deadline):
			return err
		}
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
