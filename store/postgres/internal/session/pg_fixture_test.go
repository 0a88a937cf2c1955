package session_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/internal/workerlock"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/session"
)

const ns = "test"

const testGrace = time.Second

// database is a migrated database and a connection of the test.
type database struct {
	*testing.T
	url  string
	conn *pgx.Conn
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	return open(t, pgtest.Migrated(t, "session", migrate))
}

// migrate creates the tables as the migrations do.
func migrate(url string) error {
	files, err := filepath.Glob("../../migrations/*.sql")
	if err != nil {
		return err
	}
	script := `CREATE SCHEMA IF NOT EXISTS weaver; SET search_path TO weaver, pg_temp;`
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		script += string(text)
	}
	ctx := context.Background()
	c, err := pgconn.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, script).ReadAll()
	return errors.Join(err, c.Close(ctx))
}

func open(t *testing.T, url string) *database {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return &database{t, url, c}
}

func (d *database) exec(sql string, args ...any) {
	d.Helper()
	if _, err := d.conn.Exec(d.Context(), sql, args...); err != nil {
		d.Fatalf("%s: %v", sql, err)
	}
}

func (d *database) number(sql string, args ...any) (n int64) {
	d.Helper()
	if err := d.conn.QueryRow(d.Context(), sql, args...).Scan(&n); err != nil {
		d.Fatalf("%s: %v", sql, err)
	}
	return n
}

// server returns the configuration for sessions of a URL.
func server(t *testing.T, url string) *session.Server {
	t.Helper()
	cfg, err := pgconn.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return &session.Server{Config: cfg, Schema: "weaver"}
}

// joined writes the row of a worker with a claim.
func (d *database) joined(id store.WorkerID, grace time.Duration, p workerlock.Place) {
	d.Helper()
	d.exec(`INSERT INTO weaver.weaver_workers (ttl, last_seen, heartbeats_since, namespace, worker_id, name, session_grace, lock_host, lock_path, lock_file)
VALUES (30000000, 1, 1, $1, $2, '', $3, $4, $5, $6)`, ns, string(id), grace.Microseconds(), p.Host, p.Path, p.File)
	d.exec(`INSERT INTO weaver.weaver_claims VALUES (1, $1, decode(md5($2), 'hex'), $2, '')`, ns, string(id))
}

func announce(ctx context.Context, c session.Conn, ns string, id store.WorkerID, _ session.Promise) error {
	_, err := c.Raw().ExecParams(ctx, `UPDATE weaver_workers SET last_seen = last_seen + 1 WHERE namespace = $1 AND worker_id = $2`,
		[][]byte{[]byte(ns), []byte(id)}, nil, nil, nil).Close()
	return err
}

func (d *database) keeper(s *session.Server) *session.Keeper {
	d.Helper()
	k := session.New(session.Config{Dial: s.Dial, Announce: announce, Log: slog.New(slog.DiscardHandler)})
	d.Cleanup(func() {
		if err := k.Close(); err != nil {
			d.Error(err)
		}
	})
	return k
}

// observed is an Observer of the namespace.
type observed struct {
	*session.Observer
	looks chan session.Seen // looks at the worker w, each sent after the comparison with earlier looks
	found chan time.Time    // time of a death
}

// observer returns an Observer that looks for locks on this machine in a folder.
func (d *database) observer(folder *workerlock.Folder) observed {
	d.Helper()
	o := observed{looks: make(chan session.Seen), found: make(chan time.Time, 1)}
	dial := server(d.T, d.url).Observe
	o.Observer = session.Observe(session.ObserverConfig{
		Dial: func(ctx context.Context) (session.Looker, error) {
			l, err := dial(ctx)
			return &looker{Looker: l, looks: o.looks}, err
		},
		Folder: folder, Log: slog.New(slog.DiscardHandler),
		Own: func(string, store.WorkerID) bool { return false },
		Found: func(string) {
			select {
			case o.found <- time.Now():
			default:
			}
		},
	})
	d.Cleanup(func() {
		if err := o.Close(); err != nil {
			d.Error(err)
		}
	})
	o.Watch(ns)
	return o
}

// looker reports each look when the next one begins.
type looker struct {
	session.Looker
	looks chan session.Seen
	last  []session.Seen
}

func (l *looker) Look(ctx context.Context, namespaces []string) (seen []session.Seen, err error) {
	for _, s := range l.last {
		select {
		case l.looks <- s:
		default:
		}
	}
	l.last, err = l.Looker.Look(ctx, namespaces)
	return l.last, err
}

// locks returns the number of advisory locks held by the database's sessions.
func (d *database) locks() int64 {
	d.Helper()
	return d.number(`SELECT count(*) FROM pg_locks l JOIN pg_database b ON b.oid = l.database WHERE locktype = 'advisory' AND datname = current_database()`)
}

// until polls for a condition of the server without a signal.
func (d *database) until(what string, ok func() bool) {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), time.Minute)
	defer cancel()
	for !ok() {
		if _, err := d.conn.Exec(ctx, `SELECT pg_sleep(0.005)`); err != nil {
			d.Fatalf("%s: not yet: %v", what, err)
		}
	}
}
