package conn

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/store"
)

// MigrateAdvice is the instruction for a missing or old schema.
const MigrateAdvice = "run `weaver migrate up` or call db.Migrate"

// SQLSTATEs that are handled here.
const (
	codeCannotConnectNow = "57P03"
	codeCachedPlan       = "0A000"
	codeNoStatement      = "26000"
	codeKnownStatement   = "42P05"
	codeSerialization    = "40001"
	codeDeadlock         = "40P01"
)

var (
	// errBroken is the error of every call on a lost connection.
	errBroken = errors.New("the connection to the server is lost")
	errSilent = errors.New("no answer")
	// errOutdated means that a statement was sent with its types from before a migration.
	errOutdated = errors.New("the tables of a prepared statement have changed: run the transaction again")
)

// meaning is the meaning of a SQLSTATE.
type meaning struct {
	advice string
	kind   error
}

const (
	wellAdvice    = "check that the server runs and can be reached; what was begun is tried again"
	poolerAdvice  = "a pooler gave the connection another session of the server: use no named statements (default_query_exec_mode=cache_describe), or let PgBouncer keep them (max_prepared_statements)"
	versionAdvice = "the server and this program do not understand each other: check that it is PostgreSQL 13 or later"
)

// meanings has codes, and classes of codes (their first two characters).
var meanings = map[string]meaning{
	"08":                 {wellAdvice, store.ErrUnavailable},
	"0A":                 {versionAdvice, nil},
	"22":                 {"", store.ErrRefused},
	"23":                 {"", store.ErrRefused},
	"25006":              {"the server is a standby or was made read-only: name the primary (all hosts in the URL and target_session_attrs=read-write)", store.ErrReadOnly},
	"25P03":              {"a transaction did nothing for longer than idle_in_transaction_session_timeout and was ended", store.ErrUnavailable},
	codeNoStatement:      {poolerAdvice, store.ErrUnavailable},
	"28":                 {"the server refuses this user or password: check both, and the server's pg_hba.conf", store.ErrUnavailable},
	"3D000":              {"create the database (createdb), or name another one in the URL", store.ErrUnavailable},
	"3F000":              {MigrateAdvice, store.ErrNotMigrated},
	codeSerialization:    {"other transactions kept changing the same rows", store.ErrBusy},
	codeDeadlock:         {"other transactions kept locking the same rows", store.ErrBusy},
	"42":                 {"", store.ErrRefused},
	codeKnownStatement:   {poolerAdvice, store.ErrUnavailable},
	"42501":              {"the user lacks a privilege: GRANT it, or connect as the user that ran `weaver migrate up`", store.ErrReadOnly},
	"42P01":              {MigrateAdvice, store.ErrNotMigrated},
	"42703":              {MigrateAdvice, store.ErrNotMigrated},
	"42883":              {MigrateAdvice, store.ErrNotMigrated},
	"53100":              {"free some space on the server and go on", store.ErrFull},
	"53200":              {"the server is out of memory", store.ErrUnavailable},
	"53300":              {"the server has no connection left: raise max_connections, or make the pool smaller", store.ErrUnavailable},
	"53400":              {"the server reached a limit of its configuration", store.ErrUnavailable},
	"54":                 {"", store.ErrRefused},
	"55P03":              {"another transaction kept the rows locked", store.ErrBusy},
	"57014":              {"the statement took longer than statement_timeout, or somebody cancelled it", store.ErrBusy},
	"57P01":              {wellAdvice, store.ErrUnavailable},
	"57P02":              {wellAdvice, store.ErrUnavailable},
	codeCannotConnectNow: {"the server starts or stops: what was begun is tried again", store.ErrUnavailable},
	"57P04":              {"the database was dropped", store.ErrUnavailable},
	"57P05":              {wellAdvice, store.ErrUnavailable},
	"58":                 {"the server's disk or system fails: look into its log", store.ErrUnavailable},
	"44":                 {"", store.ErrRefused},
	"P0001":              {"", store.ErrRefused}, // by a trigger
	"XX001":              {"the server found damaged data: restore a backup", store.ErrNotDatabase},
	"XX002":              {"the server found a damaged index: REINDEX it", store.ErrNotDatabase},
}

// Classify returns the port's error for an error of PostgreSQL or of the connection to it, and
// an instruction. kind is nil for other errors, and for errors without a special meaning. It
// is the context's error if the context ended the call.
func Classify(err error) (advice string, kind error) {
	var pg *pgconn.PgError
	var dial *pgconn.ConnectError
	var own net.Error
	switch {
	case err == nil:
		return "", nil
	case errors.Is(err, store.ErrUnknown):
		return "", store.ErrUnknown
	case errors.As(err, &pg):
		m, ok := meanings[pg.Code]
		if !ok && len(pg.Code) == 5 {
			m = meanings[pg.Code[:2]]
		}
		return m.advice, m.kind
	case errors.Is(err, store.ErrBusy):
		return "make the pool larger (pool_max_conns), or use fewer callers at once", store.ErrBusy
	case errors.Is(err, errBroken):
		return wellAdvice, store.ErrUnavailable
	case errors.Is(err, context.Canceled):
		return "", context.Canceled
	case errors.As(err, &dial):
		return "check the host and the port of the URL, and that the server runs and listens there", store.ErrUnavailable
	case errors.Is(err, context.DeadlineExceeded):
		return "", context.DeadlineExceeded
	case errors.As(err, &own), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return wellAdvice, store.ErrUnavailable
	}
	return "", nil
}

// Redo reports whether a transaction that failed with err had no effect and should run again
// as a whole. Causes are a deadlock, a serialization failure, or a prepared statement that the
// server forgot or whose tables were migrated.
func Redo(err error) bool {
	if errors.Is(err, store.ErrUnknown) {
		return false
	}
	var pg *pgconn.PgError
	return outdated(err) || errors.As(err, &pg) && (pg.Code == codeSerialization || pg.Code == codeDeadlock)
}

// outdated reports whether an error concerns the preparation of a statement, not its
// execution.
func outdated(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == codeNoStatement || pg.Code == codeCachedPlan && pg.Routine == "RevalidateCachedQuery"
	}
	return errors.Is(err, errOutdated)
}

// isLost reports whether err is the loss of a connection on which nothing was committed, so
// that another connection may replace it at once.
func isLost(err error) bool {
	var pg *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, store.ErrUnknown):
		return false
	case errors.As(err, &pg):
		return pg.Code == "57P01" || pg.Code == "57P02" || pg.Code == "57P05"
	}
	return errors.Is(err, errBroken) && !errors.Is(err, errSilent)
}
