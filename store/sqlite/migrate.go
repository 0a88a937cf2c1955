package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/goweaver/weaver/internal/migrate"
	"github.com/goweaver/weaver/store"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

var migrations = sync.OnceValues(func() ([]migrate.Migration, error) {
	return migrate.Load(migrationFiles, "migrations")
})

// MigrationStatus is one migration, as the database has it.
type MigrationStatus = store.MigrationStatus

const sqlCreateVersions = `
CREATE TABLE IF NOT EXISTS schema_versions (
  version    INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  checksum   TEXT NOT NULL,
  applied_at INTEGER NOT NULL
)`

const sqlVersions = `SELECT version, name, checksum, applied_at FROM schema_versions ORDER BY version`

const sqlAddVersion = `INSERT INTO schema_versions (version, name, checksum, applied_at) VALUES (?1, ?2, ?3, ?4)`

// Migrate brings the schema up to this program's version. It is idempotent,
// and any number of processes may call it at once. Errors:
// store.ErrNewerSchema, store.ErrForeignDatabase, store.ErrReadOnly,
// store.ErrBusy.
func (db *DB) Migrate(ctx context.Context) error {
	known, err := migrations()
	if err != nil {
		return err
	}
	var failed error
	err = db.queue.Exclusive(ctx, func() { failed = db.migrate(known) })
	return db.translate("migrate", errors.Join(err, failed))
}

// migrate runs with the lead. The write lock makes a second process wait, and
// then find everything done.
func (db *DB) migrate(known []migrate.Migration) error {
	w := &db.w
	if err := w.script(sqlBegin); err != nil {
		return err
	}
	defer w.rollback()
	if err := db.checkForeign(w.conn); err != nil {
		return err
	}
	if err := w.script(sqlCreateVersions); err != nil {
		return err
	}
	applied, err := w.applied()
	if err != nil {
		return err
	}
	pending, err := migrate.Pending(known, applied)
	if err != nil || len(pending) == 0 {
		return err
	}
	for _, m := range pending {
		if err := w.script(m.SQL); err != nil {
			return fmt.Errorf("migration %04d_%s: %w", m.Version, m.Name, err)
		}
		if err := w.stmt(sqlAddVersion).int(1, int64(m.Version)).text(2, m.Name).text(3, m.Checksum).time(4, store.Now()).run(); err != nil {
			return err
		}
	}
	// Crash here: the schema stays as it was, and Migrate starts over.
	return w.script(sqlCommit)
}

// applied returns what schema_versions says.
func (c *conn) applied() ([]migrate.Applied, error) {
	var list []migrate.Applied
	st := c.stmt(sqlVersions)
	for st.next() {
		list = append(list, migrate.Applied{Version: int(st.colInt(0)), Name: st.colText(1), Checksum: st.colText(2), At: st.colTime(3)})
	}
	return list, st.done()
}

// MigrationStatus lists the migrations of this program and of the database.
func (db *DB) MigrationStatus(ctx context.Context) ([]MigrationStatus, error) {
	known, err := migrations()
	if err != nil {
		return nil, err
	}
	var applied []migrate.Applied
	err = db.read(ctx, "read the schema version", "", func(v *view) error {
		if err := db.checkForeign(v.conn); err != nil {
			return err
		}
		applied, err = v.applied()
		if errors.Is(db.translate("", err), store.ErrNotMigrated) {
			err = nil // no table: nothing was applied
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var list []MigrationStatus
	for _, s := range migrate.List(known, applied) {
		list = append(list, MigrationStatus(s))
	}
	return list, nil
}

// MigrationSQL returns the whole schema as SQL, for people.
func (db *DB) MigrationSQL() string {
	known, err := migrations()
	if err != nil {
		return "-- " + err.Error()
	}
	return strings.TrimSpace(sqlCreateVersions) + ";\n\n" + migrate.Script(known)
}

// Ready implements store.Reader.
func (db *DB) Ready(ctx context.Context) error {
	known, err := migrations()
	if err != nil {
		return err
	}
	err = db.read(ctx, "check the schema", "", func(v *view) error {
		if err := db.checkForeign(v.conn); err != nil {
			return err
		}
		applied, err := v.applied()
		if err != nil {
			return err
		}
		pending, err := migrate.Pending(known, applied)
		if err == nil && len(pending) > 0 {
			err = fmt.Errorf("%s: %w: %d of %d migrations are missing: %s", db.path, store.ErrNotMigrated, len(pending), len(known), migrateAdvice)
		}
		return err
	})
	if err != nil || !db.refused.Load() {
		return err
	}
	return db.Writable(ctx)
}

// A row that comes and goes in one transaction changes nothing, and has a page
// written. (To set a value to what it is does not: SQLite compares.)
const (
	sqlProbe   = `INSERT INTO schema_versions (version, name, checksum, applied_at) VALUES (-1, 'probe', '', 0)`
	sqlUnprobe = `DELETE FROM schema_versions WHERE version = -1`
)

// Writable writes something that changes nothing, and returns what keeps the
// database from being written: store.ErrFull, store.ErrReadOnly,
// store.ErrUnavailable, store.ErrBusy.
func (db *DB) Writable(ctx context.Context) error {
	return db.write(ctx, "check that it can be written", "", 1, func(t *tx) error {
		if err := t.stmt(sqlProbe).run(); err != nil {
			return err
		}
		return t.stmt(sqlUnprobe).run()
	})
}

// sqlOurTables finds tables under our most telling names, and the columns of
// schema_versions if there is one.
const sqlOurTables = `
SELECT name, (SELECT count(*) FROM pragma_table_info('schema_versions') WHERE name IN ('version', 'name', 'checksum', 'applied_at'))
FROM sqlite_schema WHERE type = 'table' AND name IN ('schema_versions', 'tasks', 'jobs', 'outbox_events') ORDER BY name = 'schema_versions' DESC`

// checkForeign refuses a database in which somebody else's tables have our
// names: without our schema_versions they are not ours.
func (db *DB) checkForeign(c *conn) error {
	st := c.stmt(sqlOurTables)
	var table string
	var columns int64
	if st.one() {
		table, columns = st.colText(0), st.colInt(1)
	}
	if err := st.done(); err != nil {
		return err
	}
	if table == "" || table == "schema_versions" && columns == 4 {
		return nil
	}
	return fmt.Errorf("%s: %w: it has a table %s that Weaver did not make: use a file of its own", db.path, store.ErrForeignDatabase, table)
}

const (
	sqlJournalMode = "PRAGMA journal_mode"
	sqlUseWAL      = "PRAGMA journal_mode=WAL"
)

// useWAL switches the file to write-ahead logging, once in its life.
func (db *DB) useWAL(ctx context.Context, c *conn) error {
	if !vfs.SupportsSharedMemory {
		return nil // one process, one journal: slower, and just as safe
	}
	limit := fmt.Sprintf("PRAGMA journal_size_limit=%d", walLimit)
	// SQLite does not wait for the lock that the switch needs: another process
	// that opens the same new file may hold it for a moment.
	deadline := time.Now().Add(db.opts.busy)
	for {
		mode, err := c.pragma(sqlJournalMode)
		if err == nil && mode != "wal" {
			mode, err = c.pragma(sqlUseWAL)
		}
		switch {
		case err == nil && mode == "wal":
			return c.script(limit)
		case err == nil:
			return fmt.Errorf("write-ahead logging is not possible here (journal mode %s): %w", mode, sqlite3.CANTOPEN)
		case !errors.Is(err, sqlite3.BUSY) || time.Now().After(deadline):
			return err
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// pragma runs a statement and returns its only value.
func (c *conn) pragma(sql string) (string, error) {
	st, _, err := c.raw.Prepare(sql)
	if err != nil {
		return "", err
	}
	defer st.Close()
	var v string
	if st.Step() {
		v = st.ColumnText(0)
	}
	return v, st.Err()
}

// pause waits, but not longer than ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
