package conn

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/goweaver/weaver/internal/pgtest"
)

// wire counts writes to the server, and can be cut.
type wire struct {
	net.Conn
	writes *atomic.Int64
	onSend func(b []byte) error
}

func (w *wire) Write(b []byte) (int, error) {
	w.writes.Add(1)
	if w.onSend != nil {
		if err := w.onSend(b); err != nil {
			return 0, err
		}
	}
	return w.Conn.Write(b)
}

// dialer wraps the connections that it dials.
func dialer(writes *atomic.Int64, onSend func(b []byte) error) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &wire{c, writes, onSend}, nil
	}
}

const sqlSchema = `
	CREATE SCHEMA weaver;
	CREATE TABLE weaver.things (id bigint PRIMARY KEY, name text COLLATE "C", data bytea, small smallint, mid integer, flag boolean, doc json, docb jsonb);
	CREATE TABLE weaver.counters (id bigint PRIMARY KEY, n bigint NOT NULL);
	INSERT INTO weaver.counters SELECT i, 0 FROM generate_series(1, 10) i`

// database returns the URL of a database with a few tables.
func database(t testing.TB) string {
	t.Helper()
	return pgtest.Migrated(t, "conn", func(url string) error {
		c, err := pgconn.Connect(context.Background(), url)
		if err != nil {
			return err
		}
		_, err = c.Exec(context.Background(), sqlSchema).ReadAll()
		return errors.Join(err, c.Close(context.Background()))
	})
}

func connect(t testing.TB, url string, s Settings) *Conn {
	t.Helper()
	cfg, err := pgconn.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Connect(t.Context(), cfg, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, c.Close()) })
	return c
}

func open(t testing.TB, url string, s Settings) *Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Open(t.Context(), cfg, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want fails unless err contains all the texts.
func want(t testing.TB, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error %q lacks %q", err, text)
		}
	}
}

func begin(t testing.TB, c *Conn) {
	t.Helper()
	check(t, c.Begin(t.Context(), false))
}

func statement(t testing.TB, c *Conn, sql string) *Stmt {
	t.Helper()
	s, err := c.Statement(sql)
	check(t, err)
	return s
}

// exec queues a statement with numeric parameters.
func exec(t testing.TB, c *Conn, sql string, args ...int64) {
	t.Helper()
	s := statement(t, c, sql)
	for i, a := range args {
		check(t, s.BindInt(i+1, a))
	}
	check(t, s.Exec())
}

// one returns the numeric result of a query.
func one(t testing.TB, c *Conn, sql string) int64 {
	t.Helper()
	s := statement(t, c, sql)
	if !s.Step() {
		t.Fatalf("%s: no row: %v", sql, s.Err())
	}
	n := s.Int(0)
	check(t, s.Reset())
	return n
}

// soon is a RoundTimeout for missing answers. Answers that arrive use the default.
const soon = 100 * time.Millisecond
