package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/internal/migrate"
	"github.com/goweaver/weaver/store"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

var migrations = sync.OnceValues(func() ([]migrate.Migration, error) {
	return migrate.Load(migrationFiles, "migrations")
})

// ddlWait bounds a migration's wait for the lock of a table. All other users of the table wait
// behind it meanwhile.
const ddlWait = 5 * time.Second

const (
	sqlCreateVersions = `
CREATE TABLE IF NOT EXISTS weaver_schema_versions (
  version    bigint PRIMARY KEY,
  applied_at bigint NOT NULL,
  name       text COLLATE "C" NOT NULL,
  checksum   text COLLATE "C" NOT NULL
)`
	sqlVersions   = `SELECT version, name, checksum, applied_at FROM weaver_schema_versions WHERE version > 0 ORDER BY version`
	sqlAddVersion = `INSERT INTO weaver_schema_versions (version, name, checksum, applied_at) VALUES ($1, $2, $3, $4)`

	sqlAdditive    = `SELECT key FROM weaver_store_meta WHERE namespace = '' AND key LIKE 'additive %'`
	sqlAddAdditive = `INSERT INTO weaver_store_meta (namespace, key, value) VALUES ('', $1, $2)`

	// sqlSchemaHolds returns the number of columns of weaver_schema_versions, and one relation that
	// belongs to no extension.
	sqlSchemaHolds = `
SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1),
  coalesce((SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = $1), true),
  (SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE n.nspname = $1 AND c.relname = 'weaver_schema_versions' AND c.relkind = 'r' AND NOT a.attisdropped
     AND a.attname IN ('version', 'name', 'checksum', 'applied_at')),
  coalesce((SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
     AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
   ORDER BY c.relname NOT LIKE 'weaver%', c.relname LIMIT 1), '')`

	sqlNow = `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`
)

// migrator brings a schema up to this program's version. It does everything in transactions, so
// that it also works through a pooler. Session state, such as settings and locks, would stay with a
// connection of the pooler.
type migrator struct {
	conn *pgx.Conn
	src  *source
}

// up applies the missing migrations, each in a transaction of its own. Any number of processes may
// call it at once: each transaction takes the same lock and then checks again which migrations are
// missing.
// Crash here: the committed migrations stay, and the next up continues.
func (m migrator) up(ctx context.Context, known []migrate.Migration) error {
	missing, err := m.pending(ctx, known)
	for err == nil && missing > 0 {
		missing, err = m.next(ctx, known)
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", m.src.explain(err))
	}
	return nil
}

// next applies one migration and returns the number of those still missing.
func (m migrator) next(ctx context.Context, known []migrate.Migration) (missing int, err error) {
	err = m.in(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, pgx.QueryExecModeExec, lockKey(m.src.schema)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, fmt.Sprintf(`SET LOCAL lock_timeout = %d; SET LOCAL statement_timeout = 0`, ddlWait.Milliseconds()), pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		s := schemaTx{ctx, tx, m.src, len(known)}
		exists, _, err := s.holds()
		if err != nil {
			return err
		}
		if !exists {
			if _, err := tx.Exec(ctx, `CREATE SCHEMA `+quoted(m.src.schema), pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		applied, err := s.Applied()
		if err != nil {
			return err
		}
		pending, err := migrate.Pending(known, applied)
		if err != nil || len(pending) == 0 {
			return err
		}
		var now int64
		if err := tx.QueryRow(ctx, sqlNow, pgx.QueryExecModeExec).Scan(&now); err != nil {
			return err
		}
		missing = len(pending) - 1
		_, err = migrate.Run(s, known[:len(applied)+1], migrate.Snapshot{}, time.UnixMicro(now))
		return err
	})
	return missing, err
}

// in runs a function in a transaction whose search_path is the schema.
func (m migrator) in(ctx context.Context, opts pgx.TxOptions, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, m.conn, opts, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL search_path TO `+searchPath(m.src.schema), pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		return f(tx)
	})
}

// lockKey returns the key of the advisory lock that serializes migrations of a schema. The server
// keeps advisory locks per database.
func lockKey(schema string) int64 {
	h := fnv.New64a()
	h.Write([]byte("weaver migrate " + schema))
	return int64(h.Sum64())
}

// pending returns the number of migrations that the schema lacks. It only reads.
func (m migrator) pending(ctx context.Context, known []migrate.Migration) (int, error) {
	applied, err := m.applied(ctx, len(known))
	if err != nil {
		return 0, err
	}
	missing, err := migrate.Pending(known, applied)
	return len(missing), err
}

// applied returns the migrations that the schema has; it is empty if the schema does not exist. It
// only reads.
func (m migrator) applied(ctx context.Context, known int) (applied []migrate.Applied, err error) {
	err = m.in(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		s := schemaTx{ctx, tx, m.src, known}
		_, ours, err := s.holds()
		if err == nil && ours {
			applied, err = s.read()
		}
		return err
	})
	return applied, err
}

// status lists the migrations of this program and of the database.
func (m migrator) status(ctx context.Context, known []migrate.Migration) ([]store.MigrationStatus, error) {
	applied, err := m.applied(ctx, len(known))
	if err != nil {
		return nil, fmt.Errorf("read the schema's version: %w", m.src.explain(err))
	}
	return migrate.List(known, applied), nil
}

// ready returns an error if the schema lacks migrations. It also returns one if the schema has a
// migration that this program does not know and that is not additive.
func (m migrator) ready(ctx context.Context, known []migrate.Migration) error {
	missing, err := m.pending(ctx, known)
	if err == nil && missing > 0 {
		err = fmt.Errorf("%s: %w: %d of %d migrations are missing: %s", m.src.shown, store.ErrNotMigrated, missing, len(known), migrateAdvice(m.src.shown))
	}
	if err != nil {
		return fmt.Errorf("check the schema: %w", m.src.explain(err))
	}
	return nil
}

// migrationSQL returns the whole schema as a script.
func migrationSQL(schema string) string {
	known, err := migrations()
	if err != nil {
		return "-- " + err.Error()
	}
	return fmt.Sprintf("CREATE SCHEMA IF NOT EXISTS %s;\nSET search_path TO %s;\n\n%s;\n\n%s",
		quoted(schema), searchPath(schema), strings.TrimSpace(sqlCreateVersions), migrate.Script(known))
}

// schemaTx implements migrate.Database, which takes no contexts: a schemaTx lives for one call.
type schemaTx struct {
	ctx   context.Context
	tx    pgx.Tx
	src   *source
	known int // migrations of this program
}

// holds reports whether the schema exists, and whether it is Weaver's. If the schema contains other
// relations it returns store.ErrForeignDatabase.
func (s schemaTx) holds() (exists, ours bool, err error) {
	var usable bool
	var columns int
	var relation string
	err = s.tx.QueryRow(s.ctx, sqlSchemaHolds, pgx.QueryExecModeExec, s.src.schema).Scan(&exists, &usable, &columns, &relation)
	switch {
	case err != nil:
		return false, false, err
	case !usable:
		return false, false, s.src.noUsage(s.src.config.User)
	case columns == 4:
		return true, true, nil
	case relation != "":
		return false, false, s.foreign(relation)
	}
	return exists, false, nil
}

func (s schemaTx) foreign(relation string) error {
	return &refusal{kind: store.ErrForeignDatabase, text: fmt.Sprintf(
		"%s: %v: the schema %s has a table or view %s that Weaver did not make: give Weaver a schema of its own, for example with schema=weaver2 in the URL; nothing was changed",
		s.src.shown, store.ErrForeignDatabase, s.src.schema, relation)}
}

// Applied implements migrate.Database.
func (s schemaTx) Applied() ([]migrate.Applied, error) {
	if err := s.Exec(sqlCreateVersions); err != nil {
		return nil, err
	}
	return s.read()
}

// Exec implements migrate.Database.
func (s schemaTx) Exec(sql string) error {
	_, err := s.tx.Conn().PgConn().Exec(s.ctx, sql).ReadAll()
	var refused *pgconn.PgError
	if errors.As(err, &refused) && (refused.Code == "42P07" || refused.Code == "42710") {
		return &refusal{kind: store.ErrForeignDatabase, cause: err, text: fmt.Sprintf(
			"%s: %v: in the schema %s Weaver did not make what is there: %s; rename it, or give Weaver a schema of its own with schema=NAME in the URL; nothing was changed",
			s.src.shown, store.ErrForeignDatabase, s.src.schema, refused.Message)}
	}
	return err
}

// Record implements migrate.Database.
func (s schemaTx) Record(a migrate.Applied) error {
	_, err := s.tx.Exec(s.ctx, sqlAddVersion, pgx.QueryExecModeExec, a.Version, a.Name, a.Checksum, a.At.UnixMicro())
	if err == nil && a.Additive {
		_, err = s.tx.Exec(s.ctx, sqlAddAdditive, pgx.QueryExecModeExec, migrate.AdditiveKey(a.Version), a.Name)
	}
	return err
}

// read returns the rows of weaver_schema_versions, and whether the migrations that this program
// does not know are additive.
func (s schemaTx) read() ([]migrate.Applied, error) {
	rows, err := s.tx.Query(s.ctx, sqlVersions, pgx.QueryExecModeExec)
	if err != nil {
		return nil, err
	}
	applied, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a migrate.Applied, err error) {
		var at int64
		err = row.Scan(&a.Version, &a.Name, &a.Checksum, &at)
		a.At = time.UnixMicro(at)
		return a, err
	})
	if err != nil || len(applied) <= s.known {
		return applied, err
	}
	rows, err = s.tx.Query(s.ctx, sqlAdditive, pgx.QueryExecModeExec)
	if err != nil {
		return nil, err
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, key := range keys {
		for i := s.known; i < len(applied); i++ {
			applied[i].Additive = applied[i].Additive || key == migrate.AdditiveKey(applied[i].Version)
		}
	}
	return applied, err
}
