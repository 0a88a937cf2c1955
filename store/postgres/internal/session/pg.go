package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/internal/workerlock"
	"github.com/goweaver/weaver/store"
)

// Server configures the sessions of a server.
type Server struct {
	Config *pgconn.Config
	Schema string // of the tables
	// Named means that the user named this URL for sessions: it counts as direct.
	Named bool
}

// pg is a session of PostgreSQL.
type pg struct{ conn *pgconn.PgConn }

// A server with settings that end idle sessions must not end this one. A server whose client
// vanished with its machine must notice that before the leases end.
const sqlSettle = `
SELECT set_config(s.name, v.value, false) FROM (VALUES
	('search_path', $1), ('idle_session_timeout', '0'), ('statement_timeout', '60s'), ('lock_timeout', '10s'),
	('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '3'), ('tcp_keepalives_count', '3')
) v (name, value) JOIN pg_settings s USING (name)`

const sqlDirect = `SELECT coalesce(inet_client_port(), 0), pg_is_in_recovery()::int, pg_backend_pid()`

// Dial opens a session. Errors: ErrNotDirect, ErrStandby, those of the connection.
func (s *Server) Dial(ctx context.Context) (Conn, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Observe opens a session of a Looker. Errors are those of Dial.
func (s *Server) Observe(ctx context.Context) (Looker, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	return looker{c}, nil
}

func (s *Server) connect(ctx context.Context) (*pg, error) {
	conn, err := pgconn.ConnectConfig(ctx, s.Config)
	if err != nil {
		return nil, err
	}
	c := &pg{conn}
	if err := s.settle(ctx, c); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// settle checks a new connection before it changes its session.
func (s *Server) settle(ctx context.Context, c *pg) error {
	rows, err := c.rows(ctx, sqlDirect)
	if err != nil {
		return err
	}
	if len(rows) != 1 {
		return fmt.Errorf("ask the server for the session: %d rows", len(rows))
	}
	if !s.Named {
		local, ok := c.conn.Conn().LocalAddr().(*net.TCPAddr)
		if !ok || string(rows[0][0]) != strconv.Itoa(local.Port) {
			return ErrNotDirect
		}
	}
	if string(rows[0][1]) != "0" {
		return ErrStandby
	}
	path := `"` + strings.ReplaceAll(s.Schema, `"`, `""`) + `", pg_temp`
	_, err = c.rows(ctx, sqlSettle, path)
	return err
}

// rows runs a statement with text parameters.
func (c *pg) rows(ctx context.Context, sql string, params ...string) ([][][]byte, error) {
	values := make([][]byte, len(params))
	for i, p := range params {
		values[i] = []byte(p)
	}
	r := c.conn.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	return r.Rows, r.Err
}

// Raw implements Conn.
func (c *pg) Raw() *pgconn.PgConn { return c.conn }

// PID implements Conn.
func (c *pg) PID() uint32 { return c.conn.PID() }

// Broken implements Conn.
func (c *pg) Broken() bool { return c.conn.IsClosed() }

// Close implements Conn.
func (c *pg) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_ = c.conn.Close(ctx) // at the latest the server notices the end of the connection
}

// Answer implements Conn.
func (c *pg) Answer(ctx context.Context) error {
	_, err := c.rows(ctx, "SELECT 1")
	return err
}

const (
	sqlLock   = `SELECT pg_try_advisory_lock($1::bigint)::int`
	sqlUnlock = `SELECT pg_advisory_unlock($1::bigint)`
	sqlLocks  = `
SELECT classid::bigint, objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	sqlEndSession = `
SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND classid::bigint = $1::bigint AND objid::bigint = $2::bigint AND pid = $3::int`

	lockTries = 100 // of 20 ms each, for a session that was told to end
)

// Lock implements Conn. A session whose connection was cut exists on the server until the
// server notices.
func (c *pg) Lock(ctx context.Context, lock int64, before uint32) error {
	for try := range lockTries {
		rows, err := c.rows(ctx, sqlLock, strconv.FormatInt(lock, 10))
		if err != nil {
			return err
		}
		if len(rows) == 1 && string(rows[0][0]) == "1" {
			return nil
		}
		if before == 0 {
			break
		}
		if try == 0 {
			high, low := halves(lock)
			if _, err := c.rows(ctx, sqlEndSession, high, low, strconv.FormatUint(uint64(before), 10)); err != nil {
				return err
			}
		}
		wait(ctx.Done(), 20*time.Millisecond, nil)
	}
	return ErrHeld
}

// halves returns a lock in the form of pg_locks.
func halves(lock int64) (high, low string) {
	return strconv.FormatUint(uint64(lock)>>32, 10), strconv.FormatUint(uint64(uint32(lock)), 10)
}

// Unlock implements Conn.
func (c *pg) Unlock(ctx context.Context, lock int64) error {
	_, err := c.rows(ctx, sqlUnlock, strconv.FormatInt(lock, 10))
	return err
}

type looker struct{ c *pg }

const sqlLook = `
SELECT namespace, worker_id, last_seen, session_grace, lock_host, lock_path, lock_file FROM weaver_workers w
WHERE namespace IN (SELECT value FROM json_array_elements_text($1::json))
AND (EXISTS (SELECT FROM weaver_claims c WHERE c.namespace = w.namespace AND c.worker_id = w.worker_id)
OR EXISTS (SELECT FROM weaver_outbox_orders o WHERE o.namespace = w.namespace AND o.status = 'sending' AND o.locked_by = w.worker_id))`

// Look implements Looker: rows first, then locks, in one round trip.
func (l looker) Look(ctx context.Context, namespaces []string) ([]Seen, error) {
	batch := new(pgconn.Batch)
	batch.ExecParams(sqlLook, [][]byte{[]byte(namesJSON(namespaces))}, nil, nil, nil)
	batch.ExecParams(sqlLocks, nil, nil, nil, nil)
	results, err := l.c.conn.ExecBatch(ctx, batch).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) != 2 {
		return nil, fmt.Errorf("%d results of 2 statements", len(results))
	}
	held := make(map[string]bool, len(results[1].Rows))
	for _, r := range results[1].Rows {
		held[string(r[0])+":"+string(r[1])] = true
	}
	seen := make([]Seen, 0, len(results[0].Rows))
	for _, r := range results[0].Rows {
		s, err := parseSeen(r)
		if err != nil {
			return nil, err
		}
		high, low := halves(key{s.NS, s.ID}.lock())
		s.Held = held[high+":"+low]
		seen = append(seen, s)
	}
	return seen, nil
}

func namesJSON(names []string) string {
	text, _ := json.Marshal(names) // encoding strings does not fail
	return string(text)
}

// parseSeen parses a row of sqlLook.
func parseSeen(r [][]byte) (Seen, error) {
	last, err := strconv.ParseInt(string(r[2]), 10, 64)
	grace, err2 := strconv.ParseInt(string(r[3]), 10, 64)
	return Seen{
		NS: string(r[0]), ID: store.WorkerID(r[1]), LastSeen: last, Grace: time.Duration(grace) * time.Microsecond,
		Place: workerlock.Place{Host: string(r[4]), Path: string(r[5]), File: string(r[6])},
	}, errors.Join(err, err2)
}

// Close implements Looker.
func (l looker) Close() { l.c.Close() }
