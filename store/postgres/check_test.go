package postgres_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
)

// An unusable server or database is refused, with the remedy.
func TestServerIsRefused(t *testing.T) {
	t.Parallel()
	src := parse(t, "postgres://app:hidden@db/shop")
	type server struct {
		product, version, encoding, sync  string
		number, standbys                  int
		fsync, recovery, readOnly, usable bool
	}
	good := server{product: "PostgreSQL", version: "13.0", encoding: "UTF8", sync: "on", number: 130000, fsync: true, usable: true}
	check := func(s server) error {
		return postgres.ServerOf(func(product, version, encoding, sync *string, number, standbys *int, fsync, recovery, readOnly, usable *bool) {
			*product, *version, *encoding, *sync, *number, *standbys = s.product, s.version, s.encoding, s.sync, s.number, s.standbys
			*fsync, *recovery, *readOnly, *usable = s.fsync, s.recovery, s.readOnly, s.usable
		}).Check(src)
	}
	if err := check(good); err != nil {
		t.Errorf("a good server: %v", err)
	}
	for want, c := range map[string]struct {
		kind   error
		change func(s *server)
	}{
		"PostgreSQL 12.4 is too old: Weaver needs 13 or later":   {store.ErrNotDatabase, func(s *server) { s.version, s.number = "12.4", 120004 }},
		"it is CockroachDB: Weaver needs PostgreSQL":             {store.ErrNotDatabase, func(s *server) { s.product = "CockroachDB" }},
		`database "shop" has the encoding SQL_ASCII`:             {store.ErrNotDatabase, func(s *server) { s.encoding = "SQL_ASCII" }},
		"the server is a standby: name the primary":              {store.ErrReadOnly, func(s *server) { s.recovery, s.readOnly = true, true }},
		"default_transaction_read_only is on for user":           {store.ErrReadOnly, func(s *server) { s.readOnly = true }},
		"fsync = off: a power failure would damage the database": {nil, func(s *server) { s.fsync = false }},
		"may not look into the schema weaver":                    {store.ErrUnavailable, func(s *server) { s.usable = false }},
	} {
		s := good
		c.change(&s)
		says(t, check(s), c.kind, "postgres://app:xxxxx@db/shop: ", want)
	}
}

// fresh creates a database on the shared server and changes it with SQL.
func fresh(t *testing.T, sql ...string) string {
	t.Helper()
	url := pgtest.URL(t)
	u := connect(t, url)
	for _, s := range sql {
		u.exec(strings.ReplaceAll(s, "DB", parse(t, url).Config().Database))
	}
	return url
}

func TestServerThatIsThere(t *testing.T) {
	t.Parallel()
	url := fresh(t)
	// The server of these tests runs with fsync = off.
	_, _, err := parse(t, url).Connect(t.Context(), false)
	says(t, err, nil, "fsync = off")

	_, _, err = parse(t, fresh(t, "ALTER DATABASE DB SET default_transaction_read_only = on")).Connect(t.Context(), true)
	says(t, err, store.ErrReadOnly, "default_transaction_read_only is on")

	gone := parse(t, url).Config()
	_, _, err = parse(t, strings.Replace(url, gone.Database, "nowhere", 1)).Connect(t.Context(), true)
	says(t, err, store.ErrUnavailable, "there is no database \"nowhere\": create it with `createdb nowhere`")

	_, _, err = parse(t, strings.Replace(url, "postgres@", "nobody_here@", 1)).Connect(t.Context(), true)
	says(t, err, store.ErrUnavailable, "there is no user \"nobody_here\"")

	u := connect(t, url)
	u.exec("CREATE DATABASE " + gone.Database + "_ascii ENCODING 'SQL_ASCII' LOCALE 'C' LOCALE_PROVIDER libc TEMPLATE template0")
	t.Cleanup(func() {
		if _, err := u.conn.Exec(context.Background(), "DROP DATABASE "+gone.Database+"_ascii WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	_, _, err = parse(t, strings.Replace(url, gone.Database, gone.Database+"_ascii", 1)).Connect(t.Context(), true)
	says(t, err, store.ErrNotDatabase, "has the encoding SQL_ASCII", "ENCODING 'UTF8' TEMPLATE template0")
}

// keys lists the keys of the warnings about the server of a URL.
func keys(t *testing.T, url string) (list []string) {
	t.Helper()
	src := parse(t, url)
	c, s, err := src.Connect(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, c)
	for _, w := range s.Warnings(src) {
		if !strings.Contains(w.Text, "doctor --post-restore") {
			t.Errorf("the warning does not say what to do: %s", w.Text)
		}
		list = append(list, w.Key)
	}
	return list
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	if got := keys(t, url); len(got) > 0 {
		t.Errorf("warnings of a good server: %q", got)
	}
	if got := keys(t, with(url, "synchronous_commit=off")); len(got) != 1 || got[0] != "synchronous_commit" {
		t.Errorf("warnings with synchronous_commit off: %q", got)
	}
}

// A standby is refused; there is a warning if commits do not wait for one.
func TestStandby(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	standby := primary.Standby()
	u := connect(t, primary.URL("postgres"))
	u.exec("DO $$BEGIN WHILE NOT EXISTS (SELECT 1 FROM pg_stat_replication WHERE state = 'streaming') LOOP PERFORM pg_stat_clear_snapshot(), pg_sleep(0.01); END LOOP; END$$")
	if got := keys(t, primary.URL("postgres")); len(got) != 1 || got[0] != "asynchronous standby" {
		t.Errorf("warnings with a standby: %q", got)
	}
	u.exec("CREATE ROLE guest LOGIN")
	if got := keys(t, strings.Replace(primary.URL("postgres"), "postgres@", "guest@", 1)); len(got) != 1 || got[0] != "asynchronous standby" {
		t.Errorf("warnings for a user without rights: %q", got)
	}
	src := parse(t, standby.URL("postgres"))
	_, _, err := src.Connect(t.Context(), true)
	says(t, err, store.ErrReadOnly, src.Shown(), "the server is a standby: name the primary, or all servers with target_session_attrs=read-write")

	// The store finds the writable one of several servers.
	both := parse(t, strings.Replace(standby.URL("postgres"), hostOf(standby), hostOf(standby)+","+hostOf(primary), 1))
	c, _, err := both.Connect(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, c)
}

// hostOf returns the host and port of a server.
func hostOf(s *pgtest.Server) string {
	_, rest, _ := strings.Cut(s.URL("postgres"), "@")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

func TestSynchronousStandby(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{ConfigLines: []string{"synchronous_standby_names = 'walreceiver'"}})
	primary.Standby()
	connect(t, primary.URL("postgres")).exec("CREATE TABLE public.waits (n bigint)") // waits until the standby has applied it
	if got := keys(t, primary.URL("postgres")); len(got) > 0 {
		t.Errorf("warnings with a synchronous standby: %q", got)
	}
	if got := keys(t, with(primary.URL("postgres"), "synchronous_commit=local")); len(got) != 1 || got[0] != "asynchronous standby" {
		t.Errorf("warnings with a standby for which commits do not wait: %q", got)
	}
}

// A server as users run it: fsync, passwords, and a socket.
func TestServerOfAUser(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{Fsync: true, HBALines: []string{"host all app 127.0.0.1/32 scram-sha-256", "host all locked 127.0.0.1/32 reject"}})
	u := connect(t, s.URL("postgres"))
	u.exec("CREATE ROLE app LOGIN PASSWORD 'right'; CREATE ROLE locked LOGIN")
	as := func(user string) postgres.Source {
		return parse(t, strings.Replace(s.URL("postgres"), "postgres@", user+"@", 1))
	}
	c, _, err := as("app:right").Connect(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, c)
	for user, want := range map[string]string{
		"app:hidden": `the password of user "app" is wrong`,
		"app":        `the password of user "app" is wrong`,
		"locked":     `the server does not let user "locked" in from here: look at its pg_hba.conf`,
	} {
		_, _, err := as(user).Connect(t.Context(), false)
		says(t, err, store.ErrUnavailable, want)
		if err != nil && strings.Contains(err.Error(), "hidden") {
			t.Errorf("%v\nhas the password", err)
		}
	}
	socket := parse(t, s.SocketURL("postgres"))
	c, found, err := socket.Connect(t.Context(), false)
	if err != nil || found.Direct() {
		t.Fatalf("by the socket: direct %v, %v", found.Direct(), err)
	}
	closed(t, c)
	s.Stop(pgtest.Fast)
	for _, src := range []postgres.Source{as("app:right"), socket} {
		_, _, err = src.Connect(t.Context(), false)
		says(t, err, store.ErrUnavailable, "check that the server runs")
	}
}

func closed(t *testing.T, c *pgx.Conn) {
	t.Helper()
	if err := c.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// A connection is direct only if the server sees the port of this end.
func TestDirect(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	direct := func(url string) bool {
		c, s, err := parse(t, url).Connect(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		defer closed(t, c)
		return s.Direct()
	}
	if !direct(url) {
		t.Error("a connection to the server itself is not direct")
	}
	if direct(pgtest.NewProxy(t, url).URL()) {
		t.Error("a connection through a proxy is direct")
	}
	if direct(pgtest.Bouncer(t, url, "transaction")) {
		t.Error("a connection through PgBouncer is direct")
	}
	if (postgres.Server{}).Direct() {
		t.Error("a connection over a Unix socket is direct")
	}
}
