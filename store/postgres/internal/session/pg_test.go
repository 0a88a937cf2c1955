package session_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/internal/workerlock"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
	"github.com/goweaver/weaver/store/postgres/internal/session"
)

const ns = "test"

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

// migrate makes the tables as the migrations do.
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

// server is how sessions of a URL are made.
func server(t *testing.T, url string) *session.Server {
	t.Helper()
	cfg, err := pgconn.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return &session.Server{Config: cfg, Schema: "weaver"}
}

// joined writes the row of a worker that holds a claim.
func (d *database) joined(id store.WorkerID, grace time.Duration, p workerlock.Place) {
	d.Helper()
	d.exec(`INSERT INTO weaver.weaver_workers (ttl, last_seen, heartbeats_since, namespace, worker_id, name, session_grace, lock_host, lock_path, lock_file)
VALUES (30000000, 1, 1, $1, $2, '', $3, $4, $5, $6)`, ns, string(id), grace.Microseconds(), p.Host, p.Path, p.File)
	d.exec(`INSERT INTO weaver.weaver_claims VALUES (1, $1, decode(md5($2), 'hex'), $2, '')`, ns, string(id))
}

func announce(ctx context.Context, c session.Conn, ns string, id store.WorkerID) error {
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

// observer returns an Observer, and a channel that says when it found something.
func (d *database) observer(folder *workerlock.Folder) (*session.Observer, chan time.Time) {
	d.Helper()
	found := make(chan time.Time, 1)
	o := session.Observe(session.ObserverConfig{
		Dial: server(d.T, d.url).Observe, Folder: folder, Log: slog.New(slog.DiscardHandler),
		Own: func(string, store.WorkerID) bool { return false },
		Found: func(string) {
			select {
			case found <- time.Now():
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
	return o, found
}

// locks returns how many advisory locks the database's sessions hold.
func (d *database) locks() int64 {
	d.Helper()
	return d.number(`SELECT count(*) FROM pg_locks l JOIN pg_database b ON b.oid = l.database WHERE locktype = 'advisory' AND datname = current_database()`)
}

// until waits for a condition.
func (d *database) until(what string, ok func() bool) time.Duration {
	d.Helper()
	began := time.Now()
	for !ok() {
		if time.Since(began) > 30*time.Second {
			d.Fatalf("%s: not within 30 s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(began)
}

func TestOnlyDirectConnectionsAreSessions(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	pooled := pgtest.Bouncer(t, d.url, "transaction")
	proxied := pgtest.NewProxy(t, d.url)
	for what, c := range map[string]struct {
		url   string
		named bool
		want  error
	}{
		"direct":                            {d.url, false, nil},
		"through a pooler":                  {pooled, false, session.ErrNotDirect},
		"through a proxy":                   {proxied.URL(), false, session.ErrNotDirect},
		"through a proxy that a user named": {proxied.URL(), true, nil},
	} {
		s := server(t, c.url)
		s.Named = c.named
		k := d.keeper(s)
		if err := k.Join(t.Context(), ns, store.WorkerID(what), time.Second); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		_, ok := k.Session(ns, store.WorkerID(what))
		if ok != (c.want == nil) || (d.locks() == 1) != ok {
			t.Errorf("%s: has a session: %t; %d locks are held", what, ok, d.locks())
		}
		if o, err := s.Observe(t.Context()); err == nil {
			o.Close()
		} else if !errors.Is(err, c.want) {
			t.Errorf("%s, to observe: %v, want %v", what, err, c.want)
		}
		k.Leave(t.Context(), ns, store.WorkerID(what))
		d.until("the lock is given back", func() bool { return d.locks() == 0 })
	}
}

func TestOtherServers(t *testing.T) {
	t.Parallel()
	srv := pgtest.Start(t, pgtest.Options{})
	if _, err := server(t, srv.SocketURL("postgres")).Dial(t.Context()); !errors.Is(err, session.ErrNotDirect) {
		t.Errorf("by a Unix socket: %v, want ErrNotDirect", err)
	}
	standby := srv.Standby()
	if _, err := server(t, standby.URL("postgres")).Dial(t.Context()); !errors.Is(err, session.ErrStandby) {
		t.Errorf("to a standby: %v, want ErrStandby", err)
	}
}

// Settings of the server or the role that end idle sessions do not end this one.
func TestTheSessionsSettings(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.exec(`DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || quote_ident(current_database()) || ' SET idle_session_timeout = ''1s'''; END $$`)
	c, err := server(t, d.url).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	time.Sleep(1500 * time.Millisecond)
	r := c.Raw().ExecParams(t.Context(), `SELECT current_setting('search_path'), current_setting('tcp_keepalives_idle')`, nil, nil, nil, nil).Read()
	if r.Err != nil || string(r.Rows[0][0]) != `"weaver", pg_temp` || string(r.Rows[0][1]) != "10" {
		t.Errorf("settings %q, %v", r.Rows, r.Err)
	}
}

func TestLocks(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := server(t, d.url)
	dial := func() session.Conn {
		t.Helper()
		c, err := s.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	for _, lock := range []int64{0x123456789abcdef0, -0x123456789abcdef0, 1, -1} {
		one, two := dial(), dial()
		if err := one.Lock(t.Context(), lock, 0); err != nil {
			t.Fatal(err)
		}
		if err := two.Lock(t.Context(), lock, 0); !errors.Is(err, session.ErrHeld) {
			t.Errorf("lock %x twice: %v, want ErrHeld", lock, err)
		}
		if err := two.Lock(t.Context(), lock, one.PID()); err != nil {
			t.Errorf("lock %x of a session that is replaced: %v", lock, err)
		}
		if err := one.Answer(t.Context()); err == nil || !one.Broken() {
			t.Errorf("the replaced session answers: %v", err)
		}
		if err := two.Unlock(t.Context(), lock); err != nil || d.locks() != 0 {
			t.Errorf("after the unlock %d locks are held, %v", d.locks(), err)
		}
	}
	// Only the session that is replaced is ended.
	one, two, three := dial(), dial(), dial()
	if err := one.Lock(t.Context(), 5, 0); err != nil {
		t.Fatal(err)
	}
	if err := three.Lock(t.Context(), 5, two.PID()); !errors.Is(err, session.ErrHeld) {
		t.Errorf("a lock of a third session: %v, want ErrHeld", err)
	}
	if err := errors.Join(one.Answer(t.Context()), two.Answer(t.Context())); err != nil {
		t.Errorf("sessions that hold no lock of the replaced one were ended: %v", err)
	}
}

// A session that an operator ends is made again, and its worker trusts its leases all
// the while.
func TestTerminatedSessionsComeBack(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.joined("w", 10*time.Second, workerlock.Place{})
	k := d.keeper(server(t, d.url))
	began := time.Now()
	if err := k.Join(t.Context(), ns, "w", 10*time.Second); err != nil {
		t.Fatal(err)
	}
	k.Leased(time.Hour)
	seen := int64(1)
	for range 3 {
		d.exec(`SELECT pg_terminate_backend(pid) FROM pg_locks l JOIN pg_database b ON b.oid = l.database WHERE locktype = 'advisory' AND datname = current_database()`)
		took := d.until("the session is back", func() bool {
			last := d.number(`SELECT last_seen FROM weaver.weaver_workers`)
			back := last > seen
			seen = last
			return back
		})
		if took > 2*time.Second || d.locks() != 1 {
			t.Errorf("it was back after %s, %d locks are held", took, d.locks())
		}
	}
	s, ok := k.Session(ns, "w")
	if !ok || time.Since(s.Last) > 5*time.Second || began.Before(s.Since) {
		t.Errorf("the last answer is %s old, leases of before are trusted: %t", time.Since(s.Last), !began.Before(s.Since))
	}
}

// An outage of the network that is shorter than the grace ends no trust.
func TestAnOutageOfTheNetwork(t *testing.T) {
	t.Parallel()
	for _, dir := range []pgtest.Direction{pgtest.ToServer, pgtest.ToClient} {
		d := newDatabase(t)
		d.joined("w", 4*time.Second, workerlock.Place{})
		p := pgtest.NewProxy(t, d.url)
		s := server(t, p.URL())
		s.Named = true
		k := d.keeper(s)
		began := time.Now()
		if err := k.Join(t.Context(), ns, "w", 4*time.Second); err != nil {
			t.Fatal(err)
		}
		k.Leased(time.Hour)
		_, found := d.observer(nil)
		time.Sleep(time.Second)
		p.Swallow(dir)
		time.Sleep(2500 * time.Millisecond)
		p.Resume()
		time.Sleep(1500 * time.Millisecond)
		last, _ := k.Session(ns, "w")
		if silent := time.Since(last.Last); silent > 1500*time.Millisecond || began.Before(last.Since) {
			t.Errorf("direction %v: the last answer is %s old, leases of before are trusted: %t", dir, silent, !began.Before(last.Since))
		}
		select {
		case <-found:
			t.Errorf("direction %v: the worker was found dead", dir)
		default:
		}
	}
}

// child is a process with a worker.
type child struct {
	*exec.Cmd
	t *testing.T
}

// start starts a process whose worker holds its locks.
func (d *database) start(dir string) *child {
	d.Helper()
	c := &child{exec.Command(os.Args[0], "-test.run=^TestChild$"), d.T}
	c.Env = append(os.Environ(), "SESSION_TEST_URL="+d.url, "SESSION_TEST_FOLDER="+dir)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		d.Fatal(err)
	}
	if err := c.Start(); err != nil {
		d.Fatal(err)
	}
	d.Cleanup(c.kill)
	var p workerlock.Place
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if n, _ := fmt.Sscanf(lines.Text(), "joined %q %q %q", &p.Host, &p.Path, &p.File); n == 3 {
			d.joined("w", testGrace, p)
			return c
		}
	}
	d.Fatal("the child did not join")
	return nil
}

const testGrace = time.Second

func (c *child) kill() { _ = c.Process.Kill(); _ = c.Wait() }

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.Process.Signal(s); err != nil {
		c.t.Error(err)
	}
}

// TestChild is the program of start.
func TestChild(t *testing.T) {
	url := os.Getenv("SESSION_TEST_URL")
	if url == "" {
		return
	}
	folder := workerlock.In(os.Getenv("SESSION_TEST_FOLDER"))
	k := session.New(session.Config{Dial: server(t, url).Dial, Announce: announce, Log: slog.Default()})
	if err := errors.Join(folder.Hold(t.Context(), ns, "w"), k.Join(t.Context(), ns, "w", testGrace)); err != nil {
		t.Fatal(err)
	}
	k.Leased(time.Hour)
	p := folder.Place(ns, "w")
	fmt.Printf("joined %q %q %q\n", p.Host, p.Path, p.File)
	select {}
}

// A process that is killed is found dead: at once on its machine, after the grace and
// a second elsewhere. One that is stopped is not.
func TestKilledProcesses(t *testing.T) {
	t.Parallel()
	t.Run("on another machine", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		c := d.start(filepath.Join(t.TempDir(), "workers"))
		o, found := d.observer(nil) // it sees no folder
		time.Sleep(2 * time.Second)
		c.signal(syscall.SIGSTOP)
		time.Sleep(4 * time.Second)
		if ids := o.Dead(t.Context(), ns).IDs(); len(found) != 0 || len(ids) != 0 {
			t.Fatalf("a process that is stopped is found dead: %v", ids)
		}
		c.kill()
		killed := time.Now()
		after := (<-found).Sub(killed)
		if least, most := testGrace+session.Margin-100*time.Millisecond, testGrace+session.Margin+2*time.Second; after < least || after > most {
			t.Errorf("found dead %s after the kill, want from %s to %s", after, least, most)
		}
		d.confirm(o)
	})
	t.Run("on this machine", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		c := d.start(filepath.Join(t.TempDir(), "workers"))
		o, found := d.observer(workerlock.In(t.TempDir()))
		time.Sleep(2 * time.Second)
		if ids := o.Dead(t.Context(), ns).IDs(); len(found) != 0 || len(ids) != 0 {
			t.Fatalf("a process that lives is found dead: %v", ids)
		}
		c.kill()
		killed := time.Now()
		if after := (<-found).Sub(killed); after > time.Second {
			t.Errorf("found dead %s after the kill, want within 1 s", after)
		}
		dead := o.Dead(t.Context(), ns)
		defer dead.Close()
		if ids := dead.IDs(); len(ids) != 1 || ids[0] != "w" {
			t.Errorf("dead are %v", ids)
		}
	})
}

// tx is a transaction as the verbs have it.
type tx struct{ *conn.Conn }

func (x tx) Stmt(sql string) *sqlstmt.Stmt {
	st, err := x.Statement(sql)
	if err != nil {
		return sqlstmt.Failed(err)
	}
	return sqlstmt.New(st, x.Cache())
}

func (tx) Cache() *sqlstmt.Cache { return sqlstmt.NewCache() }

// confirm checks that the death of the worker w is confirmed while its row is as it
// was seen, that a worker that comes back waits for the transaction, and that its
// death is not confirmed once it was seen.
func (d *database) confirm(o *session.Observer) {
	d.Helper()
	cfg, err := pgconn.ParseConfig(d.url)
	if err != nil {
		d.Fatal(err)
	}
	c, err := conn.Connect(d.Context(), cfg, conn.Settings{})
	if err != nil {
		d.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	dead := o.Dead(d.Context(), ns)
	defer dead.Close()
	if ids := dead.IDs(); len(ids) != 1 || ids[0] != "w" {
		d.Fatalf("dead are %v", ids)
	}
	confirmed := func() int {
		d.Helper()
		if err := c.Begin(d.Context(), false); err != nil {
			d.Fatal(err)
		}
		ids, err := dead.Confirm(sqlstore.NewTx(nil, tx{c}, &sqlstore.Effects{NS: ns}, time.Now()))
		if err != nil {
			d.Fatal(err)
		}
		return len(ids)
	}
	if confirmed() != 1 {
		d.Error("a death is not confirmed")
	}
	back := make(chan error, 1)
	go func() {
		_, err := d.conn.Exec(d.Context(), `UPDATE weaver.weaver_workers SET last_seen = last_seen + 1`)
		back <- err
	}()
	select {
	case err := <-back:
		d.Errorf("a worker comes back beside the transaction that takes its leases: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := c.Commit(); err != nil {
		d.Fatal(err)
	}
	if err := <-back; err != nil {
		d.Fatal(err)
	}
	if confirmed() != 0 {
		d.Error("the death of a worker that came back is confirmed")
	}
	c.Rollback()
}
