package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite/internal/commit"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

// The mark for a scrub is written with the erased rows, and stays until a scrub is done, by
// any process.
const (
	sqlNeedScrub = `
INSERT INTO weaver_store_meta (namespace, key, value) VALUES (?1, 'scrub', ?2) ON CONFLICT DO UPDATE SET value = excluded.value`
	sqlScrub     = `SELECT value FROM weaver_store_meta WHERE namespace = '' AND key = 'scrub'`
	sqlScrubDone = `DELETE FROM weaver_store_meta WHERE namespace = '' AND key = 'scrub' AND value = ?1`
)

// needScrub marks that unused parts of the file may contain erased bytes.
func needScrub(c *conn.Conn, now time.Time) error {
	return c.Stmt(sqlNeedScrub).Text(1, "").Text(2, fmt.Sprint(now.UnixMicro())).Run()
}

// Scrub implements store.Data. VACUUM rewrites the file without its unused parts, and the
// log is copied and truncated. Other writers wait meanwhile, in every process; readers
// continue. It temporarily needs twice the file's size on the disk. A database in memory has
// no file. Crash here: the mark stays, and the next call begins again.
func (db *DB) Scrub(ctx context.Context, ns string) (store.Scrubbed, error) {
	var res store.Scrubbed
	if err := db.FinishForgetting(ctx, ns); err != nil {
		return res, err
	}
	var note string
	err := db.read(ctx, func(c *conn.Conn) error {
		note = ""
		st := c.Stmt(sqlScrub)
		if st.One() {
			note = st.ColText(0)
		}
		return st.Done()
	})
	if err != nil || note == "" {
		return res, err
	}
	if !db.memory {
		if err := db.rewrite(ctx); err != nil {
			return res, fmt.Errorf("scrub %s: %w", db.path, db.translate(err))
		}
		if info, err := os.Stat(db.name); err == nil {
			res.Bytes = info.Size()
		}
	}
	// Rows erased since then have their own mark.
	err = db.commit(ctx, &commit.Op{Weight: sqlstore.Heavy, Run: func(t *commit.Tx) error {
		return t.Conn.Stmt(sqlScrubDone).Text(1, note).Run()
	}})
	res.Done = err == nil
	return res, err
}

// rewrite runs VACUUM on its own connection, with a temporary file on the disk. It runs with
// the lead, so that this process does not wait for itself.
func (db *DB) rewrite(ctx context.Context) error {
	if err := db.checkPlace(); err != nil {
		return err
	}
	c, err := db.connect(false)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // its writes are committed or rolled back
	if err := c.Script("PRAGMA temp_store=FILE; PRAGMA secure_delete=ON"); err != nil {
		return err
	}
	if db.alone != nil { // the journal, which has old pages, is emptied too
		if err := c.Script("PRAGMA journal_mode=DELETE"); err != nil {
			return err
		}
	}
	qerr := db.writer.Exclusive(ctx, func(*conn.Conn) {
		undo := c.Interruptible(ctx)
		err = c.Script("VACUUM")
		undo()
		if err == nil {
			err = emptyLog(c)
		}
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	})
	return errors.Join(qerr, err)
}

// emptyLog copies the log into the database and truncates it. It waits for readers of old
// snapshots up to the busy timeout.
func emptyLog(c *conn.Conn) error {
	_, _, err := c.Raw().WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	if err != nil {
		return fmt.Errorf("empty the log, of which another connection may read an old part: %w", err)
	}
	return nil
}
