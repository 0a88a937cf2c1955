package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store/sqlite/internal/commit"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"

	"github.com/goweaver/weaver/internal/migrate"
	"github.com/goweaver/weaver/store"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// schemaSQL is the schema that the migrations create in an empty database. TestSchemaFile
// writes it.
//
//go:embed schema.sql
var schemaSQL string

// schemaHeader is its first line, with its last migration.
const schemaHeader = "-- What the migrations 0001 to %04d make of an empty database.\n"

// snapshot returns schemaSQL for package migrate. A file without its header contains no
// migration.
func snapshot() migrate.Snapshot {
	s := migrate.Snapshot{SQL: schemaSQL}
	if n, err := fmt.Sscanf(schemaSQL, schemaHeader, &s.Version); n != 1 || err != nil {
		return migrate.Snapshot{}
	}
	return s
}

var migrations = sync.OnceValues(func() ([]migrate.Migration, error) {
	return migrate.Load(migrationFiles, "migrations")
})

// MigrationStatus is the state of one migration in the database.
type MigrationStatus = store.MigrationStatus

const sqlCreateVersions = `
CREATE TABLE IF NOT EXISTS weaver_schema_versions (
  version    INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  checksum   TEXT NOT NULL,
  applied_at INTEGER NOT NULL
)`

var sqlVersions = `SELECT ` + versionColumns.List() + ` FROM weaver_schema_versions ORDER BY version`

// The record of an additive migration, in addition to its version: a row of weaver_store_meta.
// That table exists since the first migration, so the record needs no migration.
const (
	sqlAdditive    = `SELECT 1 FROM weaver_store_meta WHERE namespace = '' AND key = ?1`
	sqlAddAdditive = `INSERT INTO weaver_store_meta (namespace, key, value) VALUES ('', ?1, ?2)`
)

const sqlAddVersion = `INSERT INTO weaver_schema_versions (version, name, checksum, applied_at) VALUES (?1, ?2, ?3, ?4)`

// Migrate brings the schema up to this program's version. It is idempotent, and any number of
// processes may call it at once. If no migration is missing it only reads, and waits for no
// writer. Errors: store.ErrNewerSchema, store.ErrForeignDatabase, store.ErrReadOnly,
// store.ErrBusy.
func (db *DB) Migrate(ctx context.Context) error {
	known, err := migrations()
	if err != nil {
		return err
	}
	pending, err := db.pending(ctx, known)
	if err == nil && pending {
		var failed error
		err = db.writer.Exclusive(ctx, func(c *conn.Conn) { failed = db.migrate(c, known) })
		err = db.translate(errors.Join(err, failed))
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// pending reports whether migrations are missing.
func (db *DB) pending(ctx context.Context, known []migrate.Migration) (pending bool, err error) {
	err = db.read(ctx, func(c *conn.Conn) error {
		if err := db.checkForeign(c); err != nil {
			return err
		}
		applied, err := schema{c, db.path, len(known)}.read()
		if errors.Is(db.translate(err), store.ErrNotMigrated) {
			applied, err = nil, nil // no table: nothing was applied
		}
		if err != nil {
			return err
		}
		missing, err := migrate.Pending(known, applied)
		pending = len(missing) > 0
		return err
	})
	return pending, err
}

// migrate runs with the lead. The write lock makes a second process wait, and then find
// everything done.
func (db *DB) migrate(c *conn.Conn, known []migrate.Migration) error {
	if err := c.Script("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		c.Reset()
		if !c.Autocommit() {
			_ = c.Script("ROLLBACK") // the caller has the error that counts
		}
	}()
	if err := db.checkPlace(); err != nil {
		return err
	}
	if err := db.checkForeign(c); err != nil {
		return err
	}
	if n, err := migrate.Run(schema{c, db.path, len(known)}, known, snapshot(), db.clock.Now()); err != nil || n == 0 {
		return err
	}
	// Crash here: the schema stays unchanged, and Migrate starts over.
	return c.Script("COMMIT")
}

// schema implements migrate.Database.
type schema struct {
	conn  *conn.Conn
	path  string // for messages
	known int    // migrations of this program
}

// Applied implements migrate.Database.
func (s schema) Applied() ([]migrate.Applied, error) {
	if err := s.conn.Script(sqlCreateVersions); err != nil {
		return nil, err
	}
	return s.read()
}

// Exec implements migrate.Database.
func (s schema) Exec(sql string) error {
	err := s.conn.Script(sql)
	if err == nil {
		return nil
	}
	if taken := nameTaken.FindStringSubmatch(err.Error()); taken != nil && strings.Contains(err.Error(), "already") {
		return fmt.Errorf("%s: %w: the %s %s exists, but Weaver did not create it: rename it, or give Weaver a file of its own; nothing was changed",
			s.path, store.ErrForeignDatabase, taken[1], taken[2])
	}
	return err
}

// nameTaken matches SQLite's error for a name that a user's object has: "table weaver_audit
// already exists", "there is already an index named x".
var nameTaken = regexp.MustCompile(`\b(table|index|view|trigger) (?:named )?(\w+)(?: already exists)?$`)

// Record implements migrate.Database.
func (s schema) Record(a migrate.Applied) error {
	err := s.conn.Stmt(sqlAddVersion).Int(1, int64(a.Version)).Text(2, a.Name).Text(3, a.Checksum).Time(4, a.At).Run()
	if err != nil || !a.Additive {
		return err
	}
	return s.conn.Stmt(sqlAddAdditive).Text(1, migrate.AdditiveKey(a.Version)).Text(2, a.Name).Run()
}

var versionColumns = sqlstmt.Columns[migrate.Applied]{
	sqlstmt.Col("version", func(a *migrate.Applied, r *sqlstmt.Row, i int) { a.Version = int(r.Int(i)) }),
	sqlstmt.Col("name", func(a *migrate.Applied, r *sqlstmt.Row, i int) { a.Name = r.Text(i) }),
	sqlstmt.Col("checksum", func(a *migrate.Applied, r *sqlstmt.Row, i int) { a.Checksum = r.Text(i) }),
	sqlstmt.Col("applied_at", func(a *migrate.Applied, r *sqlstmt.Row, i int) { a.At = r.Time(i) }),
}

// read returns the records of weaver_schema_versions, and which unknown migrations are
// additive.
func (s schema) read() ([]migrate.Applied, error) {
	applied, err := versionColumns.All(s.conn.Stmt(sqlVersions))
	if err != nil {
		return nil, err
	}
	for i := s.known; i < len(applied); i++ {
		st := s.conn.Stmt(sqlAdditive).Text(1, migrate.AdditiveKey(applied[i].Version))
		applied[i].Additive = st.One()
		if err := st.Done(); err != nil {
			return nil, err
		}
	}
	return applied, nil
}

// MigrationStatus lists the migrations of this program and of the database.
func (db *DB) MigrationStatus(ctx context.Context) ([]MigrationStatus, error) {
	known, err := migrations()
	if err != nil {
		return nil, err
	}
	var applied []migrate.Applied
	err = db.read(ctx, func(c *conn.Conn) error {
		if err := db.checkForeign(c); err != nil {
			return err
		}
		applied, err = schema{c, db.path, len(known)}.read()
		if errors.Is(db.translate(err), store.ErrNotMigrated) {
			err = nil // no table: nothing was applied
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the schema's version: %w", err)
	}
	return migrate.List(known, applied), nil
}

// MigrationSQL returns the whole schema as SQL.
func (db *DB) MigrationSQL() string {
	known, err := migrations()
	if err != nil {
		return "-- " + err.Error()
	}
	return strings.TrimSpace(sqlCreateVersions) + ";\n\n" + migrate.Script(known)
}

// Ready implements store.Core. It refuses a newer schema if one of the unknown migrations is
// not additive.
func (db *DB) Ready(ctx context.Context) error {
	known, err := migrations()
	if err != nil {
		return err
	}
	err = db.read(ctx, func(c *conn.Conn) error {
		if err := db.checkForeign(c); err != nil {
			return err
		}
		applied, err := schema{c, db.path, len(known)}.read()
		if err != nil {
			return err
		}
		pending, err := migrate.Pending(known, applied)
		if err == nil && len(pending) > 0 {
			err = fmt.Errorf("%s: %w: %d of %d migrations are missing: %s", db.path, store.ErrNotMigrated, len(pending), len(known), conn.MigrateAdvice)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("check the schema: %w", err)
	}
	if db.writer.Refused() {
		return db.Writable(ctx)
	}
	return nil
}

// A row that is inserted and deleted in one transaction changes nothing, but makes SQLite
// write a page. (Setting a value to itself does not: SQLite compares.)
const (
	sqlProbe   = `INSERT INTO weaver_schema_versions (version, name, checksum, applied_at) VALUES (-1, 'probe', '', 0)`
	sqlUnprobe = `DELETE FROM weaver_schema_versions WHERE version = -1`
)

// Writable writes a row that changes nothing, and returns the reason why the database cannot
// be written: store.ErrFull, store.ErrReadOnly, store.ErrUnavailable, store.ErrBusy.
func (db *DB) Writable(ctx context.Context) error {
	err := db.commit(ctx, &commit.Op{Weight: 1, Run: func(t *commit.Tx) error {
		if err := t.Conn.Stmt(sqlProbe).Run(); err != nil {
			return err
		}
		return t.Conn.Stmt(sqlUnprobe).Run()
	}})
	if err != nil {
		return fmt.Errorf("check that it can be written: %w", err)
	}
	return nil
}

// sqlOurTables finds tables with our most distinctive names, and the columns of
// weaver_schema_versions if it exists.
const sqlOurTables = `
SELECT name, (SELECT count(*) FROM pragma_table_info('weaver_schema_versions') WHERE name IN ('version', 'name', 'checksum', 'applied_at'))
FROM sqlite_schema WHERE type = 'table' AND name IN ('weaver_schema_versions', 'weaver_tasks', 'weaver_jobs', 'weaver_outbox_events')
ORDER BY name = 'weaver_schema_versions' DESC`

// checkForeign returns store.ErrForeignDatabase if tables have our names but Weaver did not
// create them: without our weaver_schema_versions they belong to another program.
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
