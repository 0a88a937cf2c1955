package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/goweaver/weaver/store/sqlite/internal/conn"

	"github.com/goweaver/weaver/internal/migrate"
	"github.com/goweaver/weaver/store"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

var migrations = sync.OnceValues(func() ([]migrate.Migration, error) {
	return migrate.Load(migrationFiles, "migrations")
})

// MigrationStatus is one migration, as the database has it.
type MigrationStatus struct {
	Version   int
	Name      string
	AppliedAt time.Time // zero: not applied
}

const sqlCreateVersions = `
CREATE TABLE IF NOT EXISTS weaver_schema_versions (
  version    INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  checksum   TEXT NOT NULL,
  applied_at INTEGER NOT NULL
)`

const sqlVersions = `SELECT version, name, checksum, applied_at FROM weaver_schema_versions ORDER BY version`

const sqlAddVersion = `INSERT INTO weaver_schema_versions (version, name, checksum, applied_at) VALUES (?1, ?2, ?3, ?4)`

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
	if err := w.conn.Script(sqlBegin); err != nil {
		return err
	}
	defer w.rollback()
	if err := db.checkForeign(w.conn); err != nil {
		return err
	}
	if err := w.conn.Script(sqlCreateVersions); err != nil {
		return err
	}
	had, err := applied(w.conn)
	if err != nil {
		return err
	}
	pending, err := migrate.Pending(known, had)
	if err != nil || len(pending) == 0 {
		return err
	}
	for _, m := range pending {
		if err := w.conn.Script(m.SQL); err != nil {
			return fmt.Errorf("migration %04d_%s: %w", m.Version, m.Name, err)
		}
		if err := w.conn.Stmt(sqlAddVersion).Int(1, int64(m.Version)).Text(2, m.Name).Text(3, m.Checksum).Time(4, store.Now()).Run(); err != nil {
			return err
		}
	}
	// Crash here: the schema stays as it was, and Migrate starts over.
	return w.conn.Script(sqlCommit)
}

// applied returns what weaver_schema_versions records.
func applied(c *conn.Conn) ([]migrate.Applied, error) {
	var list []migrate.Applied
	st := c.Stmt(sqlVersions)
	for st.Next() {
		list = append(list, migrate.Applied{Version: int(st.ColInt(0)), Name: st.ColText(1), Checksum: st.ColText(2), At: st.ColTime(3)})
	}
	return list, st.Done()
}

// MigrationStatus lists the migrations of this program and of the database.
func (db *DB) MigrationStatus(ctx context.Context) ([]MigrationStatus, error) {
	known, err := migrations()
	if err != nil {
		return nil, err
	}
	var had []migrate.Applied
	err = db.read(ctx, "read the schema version", "", func(v *view) error {
		if err := db.checkForeign(v.conn); err != nil {
			return err
		}
		had, err = applied(v.conn)
		if errors.Is(db.translate("", err), store.ErrNotMigrated) {
			err = nil // no table: nothing was applied
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var list []MigrationStatus
	for _, s := range migrate.List(known, had) {
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
		had, err := applied(v.conn)
		if err != nil {
			return err
		}
		pending, err := migrate.Pending(known, had)
		if err == nil && len(pending) > 0 {
			err = fmt.Errorf("%s: %w: %d of %d migrations are missing: %s", db.path, store.ErrNotMigrated, len(pending), len(known), conn.MigrateAdvice)
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
	sqlProbe   = `INSERT INTO weaver_schema_versions (version, name, checksum, applied_at) VALUES (-1, 'probe', '', 0)`
	sqlUnprobe = `DELETE FROM weaver_schema_versions WHERE version = -1`
)

// Writable writes something that changes nothing, and returns what keeps the
// database from being written: store.ErrFull, store.ErrReadOnly,
// store.ErrUnavailable, store.ErrBusy.
func (db *DB) Writable(ctx context.Context) error {
	return db.write(ctx, "check that it can be written", "", 1, func(t *tx) error {
		if err := t.stmt(sqlProbe).Run(); err != nil {
			return err
		}
		return t.stmt(sqlUnprobe).Run()
	})
}

// sqlOurTables finds tables under our most telling names, and the columns of
// weaver_schema_versions if there is one.
const sqlOurTables = `
SELECT name, (SELECT count(*) FROM pragma_table_info('weaver_schema_versions') WHERE name IN ('version', 'name', 'checksum', 'applied_at'))
FROM sqlite_schema WHERE type = 'table' AND name IN ('weaver_schema_versions', 'weaver_tasks', 'weaver_jobs', 'weaver_outbox_events')
ORDER BY name = 'weaver_schema_versions' DESC`

// checkForeign returns store.ErrForeignDatabase when tables have our names
// and Weaver did not make them: without our weaver_schema_versions they are
// another program's.
func (db *DB) checkForeign(c *conn.Conn) error {
	st := c.Stmt(sqlOurTables)
	var table string
	var columns int64
	if st.One() {
		table, columns = st.ColText(0), st.ColInt(1)
	}
	if err := st.Done(); err != nil {
		return err
	}
	if table == "" || table == "weaver_schema_versions" && columns == 4 {
		return nil
	}
	return fmt.Errorf("%s: %w: it has a table %s that Weaver did not make: use a file of its own", db.path, store.ErrForeignDatabase, table)
}
