package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver/store"
)

// minVersion is the oldest supported PostgreSQL version, in the format of server_version_num.
const minVersion = 13_00_00

// server holds the properties of the server and of the session that Open checks.
type server struct {
	product    string // "PostgreSQL", or another product that speaks its protocol
	number     int    // server_version_num
	version    string // server_version without the suffix of a distribution
	encoding   string
	database   string
	user       string
	fsync      bool
	sync       string // synchronous_commit of the session
	standbys   int    // streaming standbys that commits do not wait for
	recovery   bool
	readOnly   bool
	usable     bool // the schema does not exist, or the user has USAGE on it
	clientPort int  // the client's port as the server sees it; 0 over a Unix socket
	localPort  int  // the port of this end of the connection
}

// Older and other servers lack some settings that sqlServer reads. Standbys count if the session's
// commits wait for no standby. Subscribers of logical replication and WAL archivers are not
// standbys.
const (
	sqlProduct = `SELECT version(), current_setting('server_version_num'), current_setting('server_version')`
	sqlServer  = `
SELECT current_setting('server_encoding'), current_database()::text, current_user::text,
  current_setting('fsync')::bool, current_setting('synchronous_commit'),
  (SELECT count(*) FROM pg_stat_replication r
   WHERE coalesce(state, '') <> 'backup' AND coalesce(application_name, '') <> 'pg_receivewal'
     AND NOT EXISTS (SELECT 1 FROM pg_replication_slots l WHERE l.active_pid = r.pid AND l.slot_type = 'logical')
     AND (current_setting('synchronous_standby_names') = '' OR current_setting('synchronous_commit') IN ('local', 'off'))),
  pg_is_in_recovery(), current_setting('transaction_read_only')::bool,
  coalesce((SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = $1), true),
  coalesce(inet_client_port(), 0)`
)

// inspect queries the server behind a connection. It also works through a pooler.
func inspect(ctx context.Context, c *pgx.Conn, schema string) (server, error) {
	var s server
	var number int
	var version, full string
	err := c.QueryRow(ctx, sqlProduct, pgx.QueryExecModeSimpleProtocol).Scan(&full, (*digits)(&number), &version)
	if err != nil {
		return s, fmt.Errorf("ask the server for its version: %w", err)
	}
	s.product, _, _ = strings.Cut(full, " ")
	s.number = number
	s.version, _, _ = strings.Cut(version, " ")
	if s.outdated() != nil {
		return s, nil // an old or foreign server may lack the settings read below
	}
	err = c.QueryRow(ctx, sqlServer, pgx.QueryExecModeExec, schema).Scan(&s.encoding, &s.database, &s.user,
		&s.fsync, &s.sync, &s.standbys, &s.recovery, &s.readOnly, &s.usable, &s.clientPort)
	if err != nil {
		return s, fmt.Errorf("ask the server for its settings: %w", err)
	}
	if local, ok := c.PgConn().Conn().LocalAddr().(*net.TCPAddr); ok {
		s.localPort = local.Port
	}
	return s, nil
}

// digits is a number that arrives as text.
type digits int

// Scan implements sql.Scanner.
func (d *digits) Scan(v any) error {
	_, err := fmt.Sscan(fmt.Sprint(v), (*int)(d))
	return err
}

// outdated returns an error if the product is not PostgreSQL or its version is too old.
func (s server) outdated() error {
	switch {
	case s.product != "PostgreSQL":
		return fmt.Errorf("it is %s: Weaver needs PostgreSQL 13 or later", s.product)
	case s.number < minVersion:
		return fmt.Errorf("PostgreSQL %s is too old: Weaver needs 13 or later", s.version)
	}
	return nil
}

// check returns an error if the store cannot use the server at all. It does not check the tables;
// Ready does. unsafe permits fsync = off, for tests.
func (s server) check(src *source, unsafe bool) error {
	refuse := func(kind error, format string, args ...any) error {
		return &refusal{text: src.shown + ": " + fmt.Sprintf(format, args...), kind: kind}
	}
	switch err := s.outdated(); {
	case err != nil:
		return refuse(store.ErrNotDatabase, "%s", err)
	case s.encoding != "UTF8":
		return refuse(store.ErrNotDatabase, "the database %q has the encoding %s: Weaver needs one with UTF8: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", s.database, s.encoding)
	case s.recovery:
		return refuse(store.ErrReadOnly, "%v: the server is a standby: name the primary, or all servers with target_session_attrs=read-write", store.ErrReadOnly)
	case s.readOnly:
		return refuse(store.ErrReadOnly, "%v: default_transaction_read_only is on for user %q or database %q: switch it off there", store.ErrReadOnly, s.user, s.database)
	case !s.fsync && !unsafe:
		return refuse(nil, "the server runs with fsync = off: a power failure would damage the database: set fsync = on in its postgresql.conf and reload it")
	case !s.usable:
		return src.noUsage(s.user)
	}
	return nil
}

// direct reports whether the process is connected to the server itself: the server sees the port of
// this end. The ports differ behind a pooler, a proxy or an address translation. Over a Unix socket
// direct reports false, because a pooler may listen there too.
func (s server) direct() bool { return s.localPort != 0 && s.localPort == s.clientPort }

// warnings lists the settings that endanger acknowledged commits.
func (s server) warnings(src *source) (list []store.Warning) {
	where := slog.String("store", src.shown)
	if s.sync == "off" {
		list = append(list, store.Warning{
			Key: "synchronous_commit",
			Text: "synchronous_commit is off: a crash of the server loses the last commits that were acknowledged, and tasks and steps with them: " +
				"set it to on, or run `weaver doctor --post-restore` after a crash",
			Attrs: []slog.Attr{where, slog.String("database", s.database), slog.String("user", s.user)},
		})
	}
	if s.standbys > 0 {
		list = append(list, store.Warning{
			Key: "asynchronous standby",
			Text: "a standby follows the server, and commits do not wait for it: if it is promoted, the last ones that were acknowledged are lost: " +
				"name it in synchronous_standby_names (with synchronous_commit on), or run `weaver doctor --post-restore` after a promotion",
			Attrs: []slog.Attr{where, slog.Int("standbys", s.standbys)},
		})
	}
	return list
}

// quoted returns a name quoted as an SQL identifier.
func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// connectChecked connects and checks the server. Its errors state the remedy.
func (src *source) connectChecked(ctx context.Context, unsafe bool) (*pgx.Conn, server, error) {
	c, err := pgx.ConnectConfig(ctx, src.config.Copy())
	if err != nil {
		return nil, server{}, src.connectError(err)
	}
	s, err := inspect(ctx, c, src.schema)
	if err != nil {
		err = src.explain(err)
	} else {
		err = s.check(src, unsafe)
	}
	if err != nil {
		return nil, server{}, errors.Join(err, closeConn(ctx, c))
	}
	return c, s, nil
}
