package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver/internal/migrate"
	"github.com/goweaver/weaver/store"
)

// Source is a parsed URL, for tests.
type Source struct{ *source }

func ParseURL(raw string) (Source, error) {
	s, err := parseURL(raw)
	return Source{s}, err
}

// Config returns the configuration of connections.
func (s Source) Config() *pgx.ConnConfig { return s.config }

// Schema returns the schema of the tables.
func (s Source) Schema() string { return s.schema }

// Shown returns the URL as in messages.
func (s Source) Shown() string { return s.shown }

// Connect connects and checks as Open does.
func (s Source) Connect(ctx context.Context, unsafe bool) (*pgx.Conn, Server, error) {
	c, found, err := s.connectChecked(ctx, unsafe)
	return c, Server(found), err
}

// ConnectError explains an error of a connection.
func (s Source) ConnectError(err error) error { return s.connectError(err) }

// Server is the result of inspect.
type Server server

// ServerOf returns a good server with the changes that change makes.
func ServerOf(change func(product, version, encoding, sync *string, number, standbys *int, fsync, recovery, readOnly, usable *bool)) Server {
	s := server{product: "PostgreSQL", version: "15.4", number: 150004, encoding: "UTF8", database: "shop", user: "app", fsync: true, sync: "on", usable: true}
	change(&s.product, &s.version, &s.encoding, &s.sync, &s.number, &s.standbys, &s.fsync, &s.recovery, &s.readOnly, &s.usable)
	return Server(s)
}

// Check returns the reason for which the server is refused.
func (s Server) Check(src Source) error { return server(s).check(src.source, false) }

// Direct reports whether the server is reached directly.
func (s Server) Direct() bool { return server(s).direct() }

// Warnings returns the server's warnings.
func (s Server) Warnings(src Source) []store.Warning { return server(s).warnings(src.source) }

// using runs a function with a migrator on a connection of its own.
func (s Source) using(ctx context.Context, f func(m migrator, known []migrate.Migration) error) error {
	known, err := migrations()
	if err != nil {
		return err
	}
	c, err := pgx.ConnectConfig(ctx, s.config.Copy()) // unchecked: the server may have changed
	if err != nil {
		return s.connectError(err)
	}
	return errors.Join(f(migrator{c, s.source}, known), closeConn(ctx, c))
}

// Migrate brings the schema up to this program's version.
func (s Source) Migrate(ctx context.Context) error {
	return s.using(ctx, func(m migrator, known []migrate.Migration) error { return m.up(ctx, known) })
}

// MigrateAs migrates as a later program with these additional migrations would.
func (s Source) MigrateAs(ctx context.Context, sql ...string) error {
	return s.using(ctx, func(m migrator, known []migrate.Migration) error {
		later := append([]migrate.Migration(nil), known...)
		for _, text := range sql {
			later = append(later, migrate.Parse(len(later)+1, "later", []byte(text)))
		}
		return m.up(ctx, later)
	})
}

// MigrationStatus lists the migrations.
func (s Source) MigrationStatus(ctx context.Context) (list []store.MigrationStatus, err error) {
	err = s.using(ctx, func(m migrator, known []migrate.Migration) error {
		list, err = m.status(ctx, known)
		return err
	})
	return list, err
}

// Ready returns an error if this program cannot use the schema.
func (s Source) Ready(ctx context.Context) error {
	return s.using(ctx, func(m migrator, known []migrate.Migration) error { return m.ready(ctx, known) })
}

// MigrationSQL returns the schema as a script.
func MigrationSQL(schema string) string { return migrationSQL(schema) }

// LockKey returns the key of the advisory lock that serializes migrations.
func LockKey(schema string) int64 { return lockKey(schema) }
