package postgres

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A pooler in transaction mode gives each transaction of a connection another session of the
// server. That session may lack a statement that the connection prepared under a name (SQLSTATE
// 26000), or have one of that name from another connection (42P05). The store's own statements have
// no names behind a pooler (conn.ModePooled). This file handles the program's statements, in StepTx
// and on Pool and DB.

// unname makes connections prepare statements without names, in one round trip each once the types
// of a statement are known.
func unname(c *pgx.ConnConfig) {
	switch c.DefaultQueryExecMode {
	case pgx.QueryExecModeCacheStatement, pgx.QueryExecModeDescribeExec:
		c.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	if c.DescriptionCacheCapacity == 0 {
		c.DescriptionCacheCapacity = 512
	}
}

// errNamed rejects a caller's pool whose statements would fail intermittently.
var errNamed = errors.New("the pool names its statements (default_query_exec_mode=cache_statement), and the pooler before the server gives each transaction " +
	"another session, in which such a name is unknown or taken: set DefaultQueryExecMode of the pool's ConnConfig to pgx.QueryExecModeCacheDescribe, " +
	"or let PgBouncer keep the names (max_prepared_statements)")

// checkNames rejects a connection of a pool that names statements if a pooler mixes up the names of
// two connections.
func checkNames(ctx context.Context, c *pgx.Conn) error {
	config := c.Config()
	if config.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
		return nil
	}
	other, err := pgconn.ConnectConfig(ctx, &config.Config)
	if err != nil {
		return nil // the pool has one connection and may have no room for a second
	}
	defer func() { _ = other.Close(ctx) }()
	for range 3 { // another client may interleave
		if mixed(ctx, c.PgConn(), other) {
			return errNamed
		}
	}
	return nil
}

// mixed reports whether the server confuses a name that one connection prepared with the same name
// on another.
func mixed(ctx context.Context, a, b *pgconn.PgConn) bool {
	name := "weaver_" + rand.Text()
	if _, err := a.Prepare(ctx, name, "SELECT 1", nil); err != nil {
		return false
	}
	_, err := b.Prepare(ctx, name, "SELECT 2", nil)
	var pg *pgconn.PgError
	taken := errors.As(err, &pg) && pg.Code == "42P05"
	for _, c := range []*pgconn.PgConn{a, b} {
		_, _ = c.Exec(ctx, "DEALLOCATE "+pgx.Identifier{name}.Sanitize()).ReadAll() // may run on another session
	}
	return taken
}
