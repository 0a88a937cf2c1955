package postgres_test

import (
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
)

// A server or a database that cannot be used is refused with what to do about it.
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

// fresh is a database of the shared server, changed by SQL.
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
	// The server of these tests has fsync off.
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

func TestWarnings(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	warnings := func(url string) (keys string) {
		src := parse(t, url)
		c, s, err := src.Connect(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		defer closed(t, c)
		for _, w := range s.Warnings(src) {
			keys += w.Key + ": " + w.Text + "\n"
		}
		return keys
	}
	if got := warnings(url); got != "" {
		t.Errorf("warnings of a good server:\n%s", got)
	}
	if got := warnings(with(url, "synchronous_commit=off")); !strings.HasPrefix(got, "synchronous_commit: synchronous_commit is off: ") || !strings.Contains(got, "doctor --post-restore") {
		t.Errorf("warnings with synchronous_commit off:\n%s", got)
	}
	src := parse(t, url)
	list := postgres.ServerOf(func(_, _, _, _ *string, _, standbys *int, _, _, _, _ *bool) { *standbys = 1 }).Warnings(src)
	if len(list) != 1 || list[0].Key != "asynchronous standby" || !strings.Contains(list[0].Text, "synchronous_standby_names") {
		t.Errorf("warnings with a standby: %+v", list)
	}
}

func closed(t *testing.T, c *pgx.Conn) {
	t.Helper()
	if err := c.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// Only what the server sees under the port of our own end is direct.
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
	config := parse(t, url).Config()
	if direct(strings.Replace(url, net.JoinHostPort(config.Host, port(config)), forward(t, net.JoinHostPort(config.Host, port(config))), 1)) {
		t.Error("a connection through a proxy is direct")
	}
	if (postgres.Server{}).Direct() {
		t.Error("a connection over a Unix socket is direct")
	}
}

func port(c *pgx.ConnConfig) string { return strconv.Itoa(int(c.Port)) }

// forward is the address of a proxy that passes on one connection.
func forward(t *testing.T, to string) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // ends with either connection
		_ = to.Close()
	}
	all.Go(func() {
		from, err := l.Accept()
		if err != nil {
			return
		}
		there, err := new(net.Dialer).DialContext(t.Context(), "tcp", to)
		if err != nil {
			t.Error(err)
			_ = from.Close()
			return
		}
		all.Go(func() { pass(there, from) })
		pass(from, there)
	})
	return l.Addr().String()
}
