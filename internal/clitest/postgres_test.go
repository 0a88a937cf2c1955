package clitest_test

import (
	"context"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/goweaver/weaver/internal/pgtest"
)

// The sessions of testdata/postgres have a server, with fsync as a user's has it. Each
// finds these variables:
//
//	PG        the URL of an empty database of its own
//	DATABASE  its name
//	OTHERS    the same with the schema others
//	WITHPASS  the same for the user pass, with the password hunter2; WRONGPASS: another one
//	NODATABASE  a database that does not exist
//	READER    the same for the user reader, who may create nothing
//	STANDBY   a standby of the server
//	POOLED    the same database through PgBouncer, in transaction mode
func TestPostgresSessions(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{
		Fsync:    true,
		HBALines: []string{"host all pass 127.0.0.1/32 scram-sha-256"},
	})
	admin(t, server.URL("postgres"),
		`CREATE ROLE pass LOGIN SUPERUSER PASSWORD 'hunter2'`,
		`CREATE ROLE reader LOGIN`,
	)
	standby := server.Standby()
	p := sessions(filepath.Join("testdata", "postgres"), func(env *testscript.Env) error {
		database := server.Database()
		env.Setenv("PG", database)
		env.Setenv("WITHPASS", as(t, database, url.UserPassword("pass", "hunter2")))
		env.Setenv("DATABASE", strings.SplitN(path.Base(database), "?", 2)[0])
		env.Setenv("WRONGPASS", as(t, database, url.UserPassword("pass", "hunter3")))
		env.Setenv("NODATABASE", server.URL("nowhere"))
		env.Setenv("OTHERS", withParam(t, database, "schema", "others"))
		env.Setenv("READER", as(t, database, url.User("reader")))
		env.Setenv("STANDBY", standby.URL("postgres"))
		env.Setenv("POOLED", pgtest.Bouncer(t, database, "transaction"))
		env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
		return nil
	})
	p.Cmds["pg"] = func(ts *testscript.TestScript, _ bool, args []string) {
		ts.Check(execute(ts.Getenv("PG"), args...))
	}
	t.Run("sessions", func(t *testing.T) { testscript.Run(t, p) })
}

// as is the URL of a database for another user.
func as(t *testing.T, database string, user *url.Userinfo) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.User = user
	return u.String()
}

// withParam is a URL with another parameter.
func withParam(t *testing.T, database, key, value string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(key, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// admin runs statements in a database.
func admin(t *testing.T, database string, statements ...string) {
	t.Helper()
	if err := execute(database, statements...); err != nil {
		t.Fatal(err)
	}
}

func execute(database string, statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	for _, sql := range statements {
		if err == nil {
			_, err = c.Exec(ctx, sql)
		}
	}
	if cerr := c.Close(ctx); err == nil {
		err = cerr
	}
	return err
}
