package conn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/store"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	code := func(c string) error { return fmt.Errorf("claim tasks: %w", &pgconn.PgError{Code: c}) }
	for _, c := range []struct {
		err    error
		kind   error
		advice string
	}{
		{nil, nil, ""},
		{errors.New("another"), nil, ""},
		{code("23505"), store.ErrRefused, ""},
		{code("22P05"), store.ErrRefused, ""},
		{code("42804"), store.ErrRefused, ""},
		{code("54000"), store.ErrRefused, ""},
		{code("26000"), store.ErrUnavailable, "pooler"},
		{code("42P05"), store.ErrUnavailable, "pooler"},
		{code("08006"), store.ErrUnavailable, "check that the server runs"},
		{code("57P01"), store.ErrUnavailable, "check that the server runs"},
		{code("57P03"), store.ErrUnavailable, "starts or stops"},
		{code("53100"), store.ErrFull, "free some space"},
		{code("53300"), store.ErrUnavailable, "max_connections"},
		{code("25006"), store.ErrReadOnly, "primary"},
		{code("25P03"), store.ErrUnavailable, "idle_in_transaction"},
		{code("28P01"), store.ErrUnavailable, "password"},
		{code("28000"), store.ErrUnavailable, "pg_hba.conf"},
		{code("3D000"), store.ErrUnavailable, "createdb"},
		{code("42501"), store.ErrReadOnly, "GRANT"},
		{code("42P01"), store.ErrNotMigrated, "weaver migrate up"},
		{code("3F000"), store.ErrNotMigrated, "weaver migrate up"},
		{code("40001"), store.ErrBusy, "same rows"},
		{code("40P01"), store.ErrBusy, "same rows"},
		{code("55P03"), store.ErrBusy, "locked"},
		{code("57014"), store.ErrBusy, "statement_timeout"},
		{code("58030"), store.ErrUnavailable, "disk"},
		{code("XX001"), store.ErrNotDatabase, "restore a backup"},
		{fmt.Errorf("%w: %w", store.ErrUnknown, code("57P01")), store.ErrUnknown, ""},
		{fmt.Errorf("%w: %w", errBroken, context.DeadlineExceeded), store.ErrUnavailable, "check that the server runs"},
		{fmt.Errorf("x: %w", context.Canceled), context.Canceled, ""},
		{context.DeadlineExceeded, context.DeadlineExceeded, ""},
		{io.ErrUnexpectedEOF, store.ErrUnavailable, "check that the server runs"},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, store.ErrUnavailable, "check that the server runs"},
	} {
		advice, kind := Classify(c.err)
		if !errors.Is(kind, c.kind) || (kind == nil) != (c.kind == nil) || !strings.Contains(advice, c.advice) || (advice == "") != (c.advice == "") {
			t.Errorf("%v is %v: %q", c.err, kind, advice)
		}
	}
	for c, redo := range map[string]bool{"40001": true, "40P01": true, "26000": true, "0A000": false, "57P01": false, "23505": false} {
		if Redo(code(c)) != redo {
			t.Errorf("%s is redone: %v", c, !redo)
		}
		if Redo(fmt.Errorf("%w: %w", store.ErrUnknown, code(c))) {
			t.Errorf("%s is redone when the outcome is unknown", c)
		}
	}
}

// The errors of a real server and of the connection to it do not contain the password.
func TestWrongURLs(t *testing.T) {
	t.Parallel()
	url := database(t)
	cfg, err := pgconn.ParseConfig(url)
	check(t, err)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	check(t, closed.Close())
	for name, c := range map[string]struct {
		change func(*pgconn.Config)
		advice string
	}{
		"refused":  {func(c *pgconn.Config) { c.Port = uint16(closed.Addr().(*net.TCPAddr).Port) }, "host and the port"},
		"no host":  {func(c *pgconn.Config) { c.Host = "nowhere.invalid" }, "host and the port"},
		"database": {func(c *pgconn.Config) { c.Database = "absent" }, "createdb"},
		"user":     {func(c *pgconn.Config) { c.User = "nobody_here" }, "user or password"},
	} {
		cfg := cfg.Copy()
		cfg.Fallbacks, cfg.Password = nil, "s3cret"
		c.change(cfg)
		_, err := Connect(t.Context(), cfg, Settings{})
		advice, kind := Classify(err)
		if !errors.Is(kind, store.ErrUnavailable) || !strings.Contains(advice, c.advice) {
			t.Errorf("%s: %v is %v: %q", name, err, kind, advice)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the password is in %q", name, err)
		}
	}

	c := connect(t, url, Settings{Schema: "absent"})
	begin(t, c)
	_, err = c.Statement("SELECT n FROM counters")
	if advice, kind := Classify(err); !errors.Is(kind, store.ErrNotMigrated) || advice != MigrateAdvice {
		t.Errorf("%v is %v: %q", err, kind, advice)
	}
	c.Rollback()
	begin(t, c)
	_, err = c.Statement("SELECT FROM WHERE")
	want(t, err, "42601", "in the statement SELECT FROM WHERE")
	c.Rollback()
}
