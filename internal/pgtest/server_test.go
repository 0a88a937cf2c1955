package pgtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/internal/pgtest"
)

const rows = "CREATE TABLE rows (a int); INSERT INTO rows VALUES (1), (2)"

func TestServerStopsAndStarts(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{
		Fsync:       true,
		ConfigLines: []string{"max_connections = 20"},
		HBALines:    []string{"host all guest 127.0.0.1/32 scram-sha-256"},
	})
	db := s.Database()
	want(t, db, "SHOW fsync", "on")
	want(t, db, "SHOW full_page_writes", "on")
	want(t, db, "SHOW max_connections", "20")
	want(t, db, rows, "")
	want(t, s.SocketURL("postgres"), "SELECT inet_client_port() IS NULL", "t")
	want(t, db, "CREATE ROLE guest LOGIN PASSWORD 'secret'", "")
	for password, code := range map[string]string{"secret": "", "wrong": "28P01"} {
		guest, err := url.Parse(s.URL("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		guest.User = url.UserPassword("guest", password)
		if _, err := ask(guest.String(), "SELECT 1"); code == "" && err != nil || code != "" && !isCode(err, code) {
			t.Errorf("with the password %q: %v, want code %q", password, err, code)
		}
	}

	for name, c := range map[string]struct {
		end func()
		log string
	}{
		"fast":                 {func() { s.Stop(pgtest.Fast) }, "database system is shut down"},
		"immediate":            {func() { s.Stop(pgtest.Immediate) }, "received immediate shutdown request"},
		"fast, from a pause":   {func() { s.Pause(); s.Stop(pgtest.Fast) }, "database system is shut down"},
		"killed":               {s.Kill, "was not properly shut down"},
		"killed, from a pause": {func() { s.Pause(); s.Kill() }, "was not properly shut down"},
	} {
		before := strings.Count(s.Log(), c.log)
		held, err := pgconn.Connect(context.Background(), db)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c.end()
		if _, err := held.Exec(context.Background(), "SELECT 1").ReadAll(); err == nil {
			t.Errorf("%s: a connection of before still answers", name)
		}
		if _, err := ask(db, "SELECT 1"); err == nil {
			t.Errorf("%s: it still answers", name)
		}
		s.Stop(pgtest.Fast) // has no effect
		s.Start()
		want(t, db, "SELECT count(*) FROM rows", "2")
		if strings.Count(s.Log(), c.log) != before+1 {
			t.Errorf("%s: its log does not say %q", name, c.log)
		}
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs PostgreSQL")
	}
	url, remove, err := pgtest.Serve(pgtest.Options{Fsync: true, ConfigLines: []string{"shared_buffers = 16MB"}})
	if err != nil {
		t.Fatal(err)
	}
	want(t, url, "SHOW shared_buffers", "16MB")
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := ask(url, "SELECT 1"); err == nil {
		t.Error("it still answers")
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	conn, err := pgconn.Connect(context.Background(), s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	s.Pause()
	answer := make(chan error, 2)
	go func() {
		_, err := conn.Exec(context.Background(), "SELECT 1").ReadAll()
		answer <- err
	}()
	go func() {
		_, err := ask(s.URL("postgres"), "SELECT 1")
		answer <- err
	}()
	other := pgtest.URL(t)
	for range 20 { // another server answers meanwhile
		want(t, other, "SELECT 1", "1")
	}
	select {
	case err := <-answer:
		t.Errorf("a paused server answers: %v", err)
	default:
	}
	s.Resume()
	for range 2 {
		if err := <-answer; err != nil {
			t.Errorf("after the pause: %v", err)
		}
	}
	if err := conn.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestStandby(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	standby := primary.Standby()
	// It follows the primary soon after it answers.
	await(t, func() error {
		if state, err := ask(primary.URL("postgres"), "SELECT usename || ' ' || sync_state FROM pg_stat_replication"); err != nil || state != "postgres async" {
			return fmt.Errorf("the standby is %q, %w", state, err)
		}
		return nil
	})
	want(t, primary.URL("postgres"), "ALTER SYSTEM SET synchronous_standby_names = 'walreceiver'", "")
	want(t, primary.URL("postgres"), "SELECT pg_reload_conf()", "t")
	// From here on a commit waits until the standby has applied it.
	await(t, func() error {
		if state, err := ask(primary.URL("postgres"), "SELECT sync_state FROM pg_stat_replication"); err != nil || state != "sync" {
			return fmt.Errorf("the standby is %q, %w", state, err)
		}
		return nil
	})
	want(t, primary.URL("postgres"), "SET synchronous_commit = remote_apply; "+rows, "")
	want(t, standby.URL("postgres"), "SELECT count(*) FROM rows", "2")
	if _, err := ask(standby.URL("postgres"), "INSERT INTO rows VALUES (3)"); !isCode(err, "25006") {
		t.Errorf("a write to the standby: %v, want that it is read-only", err)
	}
	primary.Kill()
	want(t, standby.URL("postgres"), "SELECT pg_is_in_recovery()", "t")
	standby.Promote()
	want(t, standby.URL("postgres"), "INSERT INTO rows VALUES (3)", "")
	want(t, standby.URL("postgres"), "SELECT count(*) FROM rows", "3")
}

// In transaction mode several server connections serve the statements of one connection.
func TestBouncer(t *testing.T) {
	t.Parallel()
	direct := pgtest.URL(t)
	pooled := pgtest.Bouncer(t, direct, "transaction", "default_pool_size = 1")
	ctx := context.Background()
	var pids []string
	for range 2 {
		conn, err := pgconn.Connect(ctx, pooled)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := conn.Close(ctx); err != nil {
				t.Error(err)
			}
		}()
		results, err := conn.Exec(ctx, "SELECT pg_backend_pid()").ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, string(results[0].Rows[0][0]))
	}
	if pids[0] != pids[1] {
		t.Errorf("two connections, both open, were played by %v, want one", pids)
	}
	want(t, pooled, rows, "")
	want(t, direct, "SELECT count(*) FROM rows", "2")

	session := pgtest.Bouncer(t, direct, "session")
	want(t, session, "SELECT count(*) FROM rows", "2")
}

func TestProxyCuts(t *testing.T) {
	t.Parallel()
	p := pgtest.NewProxy(t, pgtest.URL(t))
	conn, err := pgconn.Connect(context.Background(), p.URL())
	if err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if _, err := conn.Exec(context.Background(), "SELECT 1").ReadAll(); err == nil {
		t.Error("a connection that was cut answers")
	}
	want(t, p.URL(), "SELECT 1", "1")
}

func TestProxySwallows(t *testing.T) {
	t.Parallel()
	direct := pgtest.URL(t)
	want(t, direct, rows, "")
	for d, reaches := range map[pgtest.Direction]string{pgtest.ToServer: "2", pgtest.ToClient: "3", pgtest.Both: "2"} {
		p := pgtest.NewProxy(t, direct)
		conn, err := pgconn.Connect(context.Background(), p.URL())
		if err != nil {
			t.Fatal(err)
		}
		want(t, direct, "DELETE FROM rows WHERE a = 3", "")
		p.Swallow(d)
		answer := make(chan error, 1)
		go func() {
			_, err := conn.Exec(context.Background(), "INSERT INTO rows VALUES (3)").ReadAll()
			answer <- err
		}()
		p.AwaitSwallowed()
		want(t, direct, "SELECT count(*) FROM rows", reaches)
		select {
		case err := <-answer:
			t.Errorf("direction %d: an answer though it is swallowed: %v", d, err)
		default:
		}
		p.Resume()
		if err := <-answer; err != nil {
			t.Errorf("direction %d, after it: %v", d, err)
		}
		want(t, direct, "SELECT count(*) FROM rows", "3")
		if err := conn.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// The end of a connection does not get through, and neither does a new connection.
func TestProxySwallowsEnds(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	p := pgtest.NewProxy(t, "postgres://"+l.Addr().String()+"/db")
	u, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range []struct {
		name string
		of   func(server net.Conn) error
		sent string
	}{
		{"the server's end", func(server net.Conn) error {
			_, err := server.Write([]byte("late"))
			return errors.Join(err, server.Close())
		}, "late"},
		{"the server gave up", func(server net.Conn) error {
			p.CutServer()
			if n, err := server.Read(make([]byte, 1)); err == nil {
				return fmt.Errorf("the server still reads %d bytes, want the end", n)
			}
			return server.Close()
		}, ""},
	} {
		client, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		// After a first exchange the proxy knows both sides.
		if _, err := client.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		p.Swallow(pgtest.ToClient)
		if err := end.of(server); err != nil {
			t.Errorf("%s: %v", end.name, err)
		}
		p.AwaitSwallowed()
		p.Resume()
		if text, err := io.ReadAll(client); string(text) != end.sent {
			t.Errorf("%s: the client then reads %q, %v, want %q and the end", end.name, text, err, end.sent)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}

	p.Swallow(pgtest.ToServer)
	again, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	p.AwaitSwallowed()
	if err := again.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
