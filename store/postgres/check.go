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

// minVersion is the oldest PostgreSQL that works, as in server_version_num.
const minVersion = 13_00_00

// server is what Open asks of a server and of the session with it.
type server struct {
	product    string // "PostgreSQL" or what else speaks its protocol
	number     int    // server_version_num
	version    string // server_version, without what a distribution adds
	encoding   string
	database   string
	user       string
	fsync      bool
	sync       string // synchronous_commit of the session
	standbys   int    // that follow without being waited for
	recovery   bool
	readOnly   bool
	usable     bool // the schema does not exist, or the user may look into it
	clientPort int  // of the client, as the server sees it; 0 over a Unix socket
	localPort  int  // of this end
}

// Older and other servers do not know all that sqlServer asks for. Standbys count if
// the session's commits wait for none of them; who subscribes to a logical replication
// or archives the log is no standby.
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

// inspect asks the server behind a connection. It works through a pooler too.
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
		return s, nil // what follows may not exist there
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

// digits is a number that comes as text.
type digits int

// Scan implements sql.Scanner.
func (d *digits) Scan(v any) error {
	_, err := fmt.Sscan(fmt.Sprint(v), (*int)(d))
	return err
}

// outdated says what is wrong with the server's kind and version.
func (s server) outdated() error {
	switch {
	case s.product != "PostgreSQL":
		return fmt.Errorf("it is %s: Weaver needs PostgreSQL 13 or later", s.product)
	case s.number < minVersion:
		return fmt.Errorf("PostgreSQL %s is too old: Weaver needs 13 or later", s.version)
	}
	return nil
}

// check says why the store cannot be used at all. It does not look at the tables:
// Ready does. unsafe allows fsync to be off, for tests.
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

// direct reports whether nothing stands between this process and the server: the
// server sees the port of our own end. It does not through a pooler, a proxy or an
// address translation, nor over a Unix socket, where there may be a pooler too.
func (s server) direct() bool { return s.localPort != 0 && s.localPort == s.clientPort }

// warnings are what endangers acknowledged commits.
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

// quoted is a name as it stands in SQL.
func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// connectChecked connects and does all of it: the connection, what the server is, and
// an error that says what to do.
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
