package clitest_test

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/goweaver/weaver/internal/pgtest"
)

// The sessions of testdata/postgres have a server with fsync on, like a user's. Each gets these variables:
//
//	PG        the URL of an empty database for this session
//	DATABASE  its name
//	OTHERS    the same with the schema others
//	WITHPASS  the same for the user pass, with the password hunter2; WRONGPASS: with another password
//	NODATABASE  a database that does not exist
//	READER    the same for the user reader, who may create nothing
//	STANDBY   a standby of the server
//	POOLED    the same database through PgBouncer, in transaction mode
func TestPostgresSessions(t *testing.T) {
	if underRace {
		return // they run one program at a time
	}
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
	p := sessions(t, filepath.Join("testdata", "postgres"), func(env *testscript.Env) error {
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

// The quick start on PostgreSQL: the worker of a job is killed with -9 halfway, and a second worker continues. No
// succeeded task runs again.
func TestPostgresWorkerIsKilled(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{Fsync: true}).Database()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "nightly.yaml"), `name: nightly
tasks:
  fetch:  {run: "echo fetch >>ledger"}
  clean:  {run: "echo clean >>ledger; echo up; while ! test -f go; do sleep 0.05; done", needs: [fetch], retry: {max_attempts: 2}}
  report: {run: "echo report >>ledger", needs: [clean]}
`)
	weaver := func(args ...string) *process { return start(t, dir, append([]string{"--store", url}, args...)...) }
	for _, args := range [][]string{{"migrate", "up"}, {"submit", "nightly.yaml"}} {
		if p := weaver(args...); p.end() != 0 {
			t.Fatalf("%v:\n%s%s", args, p.stdout.String(), p.stderr.String())
		}
	}
	first := weaver("worker")
	first.await("clean| up")
	ls := weaver("worker", "ls")
	ls.end()
	ls.says(fmt.Sprintf(":%d ", first.cmd.Process.Pid), " runs 1 ", " (20", "weaver.exec.run.v1")
	first.signal(syscall.SIGKILL)
	first.end()
	write(t, filepath.Join(dir, "go"), "")
	second := weaver("worker", "-o", "json")
	for _, node := range []string{"clean", "report"} {
		if line := second.await(`"event":"task.succeeded"`); field(line, "node") != node {
			t.Fatalf("%s succeeded, want %s", line, node)
		}
	}
	second.signal(syscall.SIGTERM)
	if code := second.end(); code != 0 {
		t.Errorf("the second worker: exit code %d\n%s", code, second.stderr.String())
	}
	if got, want := read(t, filepath.Join(dir, "ledger")), "fetch\nclean\nclean\nreport\n"; got != want {
		t.Errorf("the ledger is %q, want %q", got, want)
	}
	show := weaver("job", "show", "nightly")
	show.end()
	show.says("succeeded")
	if p := weaver("doctor"); p.end() != 0 {
		t.Errorf("doctor:\n%s", p.stdout.String())
	}
}

// as returns the URL of a database for another user.
func as(t *testing.T, database string, user *url.Userinfo) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.User = user
	return u.String()
}

// withParam returns a URL with an additional parameter.
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
