package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/internal/migrate"
	"github.com/goweaver/weaver/store"
)

// explain maps a server error that occurs while the schema is read or created to an error of the
// port, with the remedy. It returns errors of the port unchanged.
func (s *source) explain(err error) error {
	var newer *migrate.NewerError
	if errors.As(err, &newer) {
		return newer.In(s.shown)
	}
	var own *refusal
	var refused *pgconn.PgError
	switch {
	case err == nil, errors.As(err, &own), errors.Is(err, context.Canceled):
		return err
	case !errors.As(err, &refused):
		if pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded) || brokenConn(err) {
			return &refusal{kind: store.ErrUnavailable, cause: err, text: fmt.Sprintf("%s: %v: %s", s.shown, store.ErrUnavailable, last(err))}
		}
		return err
	}
	advice, kind := s.advise(refused)
	if kind == nil {
		return fmt.Errorf("%s: %w", s.shown, err)
	}
	return &refusal{kind: kind, cause: err, text: fmt.Sprintf("%s: %v: %s (%s)", s.shown, kind, advice, refused.Message)}
}

// advise maps a server error to a sentinel of package store and a remedy.
func (s *source) advise(err *pgconn.PgError) (advice string, kind error) {
	user, schema := s.config.User, s.schema
	switch err.Code {
	case "42501": // insufficient_privilege
		if strings.Contains(err.Message, "for database") {
			return fmt.Sprintf("user %q may not create the schema %s: let an administrator run CREATE SCHEMA %s AUTHORIZATION %s, or migrate as another user",
				user, schema, quoted(schema), quoted(user)), store.ErrReadOnly
		}
		if strings.Contains(err.Message, "for schema") {
			return fmt.Sprintf("user %q may not create tables in the schema %s: migrate as its owner", user, schema), store.ErrReadOnly
		}
		return fmt.Sprintf("user %q lacks a permission: migrate as the owner of the schema %s, and grant the other users theirs", user, schema), store.ErrReadOnly
	case "42P01", "3F000", "42703": // undefined table, schema, column
		return migrateAdvice(s.shown), store.ErrNotMigrated
	case "25006": // read_only_sql_transaction
		return "the server is a standby, or default_transaction_read_only is on: name the primary, or switch it off", store.ErrReadOnly
	case "55P03": // lock_not_available
		return "a transaction of another program keeps a table locked: end it (pg_stat_activity shows it), and run it again", store.ErrBusy
	case "53100": // disk_full
		return "free some space and go on", store.ErrFull
	case "57P01", "57P02", "57P03":
		return "the server stops or starts: try again", store.ErrUnavailable
	}
	return "", nil
}

// noUsage returns the error for a user without USAGE on the schema. PostgreSQL reports the schema's
// tables as missing then.
func (s *source) noUsage(user string) error {
	return &refusal{kind: store.ErrUnavailable, text: fmt.Sprintf("%s: %v: user %q may not look into the schema %s: GRANT USAGE ON SCHEMA %s TO %s, and what its tables need",
		s.shown, store.ErrUnavailable, user, s.schema, quoted(s.schema), quoted(user))}
}

// brokenConn reports whether an error means that the connection is lost.
func brokenConn(err error) bool {
	return errors.Is(err, pgconn.ErrConnClosed) || pgconn.SafeToRetry(err) || strings.Contains(err.Error(), "unexpected EOF") || strings.Contains(err.Error(), "connection reset")
}

// closeConn closes a connection and bounds the wait for it.
func closeConn(ctx context.Context, c *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return c.Close(ctx)
}
