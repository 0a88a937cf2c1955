package pgtest_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/internal/pgtest"
)

// ask runs a statement and returns the first value of its first row.
func ask(url, sql string) (value string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err == nil && len(results) > 0 && len(results[0].Rows) > 0 {
		value = string(results[0].Rows[0][0])
	}
	return value, err
}

func want(t *testing.T, url, sql, want string) {
	t.Helper()
	if got, err := ask(url, sql); err != nil || got != want {
		t.Errorf("%s: %q, %v; want %q", sql, got, err, want)
	}
}

func TestURL(t *testing.T) {
	if testing.Short() {
		t.Skip("needs PostgreSQL")
	}
	var first string
	t.Run("a test", func(t *testing.T) {
		first = pgtest.URL(t)
		second := pgtest.URL(t)
		want(t, first, "CREATE TABLE mine (a int)", "")
		want(t, second, "SELECT count(*) FROM pg_tables WHERE tablename = 'mine'", "0")
		want(t, first, "SHOW max_connections", "200")
		want(t, first, "SHOW fsync", "off")
		want(t, first, "SHOW server_encoding", "UTF8")
	})
	if _, err := ask(first, "SELECT 1"); !isCode(err, "3D000") {
		t.Errorf("the database after its test: %v, want that it does not exist", err)
	}
}

func isCode(err error, code string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code
}

// once returns a key that no earlier run of a test used (-count).
func once(key string) string { return key + strconv.FormatInt(runs.Add(1), 10) }

var runs atomic.Int64

func TestMigrated(t *testing.T) {
	key, calls := once("made"), 0
	migrate := func(url string) error {
		calls++
		_, err := ask(url, "CREATE TABLE made (a int); INSERT INTO made VALUES (7)")
		return err
	}
	for range 2 {
		url := pgtest.Migrated(t, key, migrate)
		want(t, url, "SELECT a FROM made", "7")
		want(t, url, "UPDATE made SET a = 8", "")
	}
	if calls != 1 {
		t.Errorf("migrated %d times, want once", calls)
	}
	want(t, pgtest.Migrated(t, "other", func(string) error { return nil }), "SELECT count(*) FROM pg_tables WHERE tablename = 'made'", "0")
}

func TestDatabasesAreMadeTogether(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	key := once("together")
	for i := range 20 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			want(t, pgtest.URL(t), "SELECT 1", "1")
			want(t, pgtest.Migrated(t, key, func(url string) error {
				calls.Add(1)
				_, err := ask(url, "CREATE TABLE made (a int)")
				return err
			}), "SELECT count(*) FROM made", "0")
			if n := calls.Load(); n != 1 {
				t.Errorf("migrated %d times, want once", n)
			}
		})
	}
}

// Started processes do not belong to the bubble: its time continues.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url := pgtest.Migrated(t, "bubble", func(string) error { return nil })
		start := time.Now()
		time.Sleep(time.Hour)
		if d := time.Since(start); d != time.Hour {
			t.Errorf("an hour took %v", d)
		}
		want(t, url, "SELECT 1", "1")
	})
}

// await polls for a condition without a signal.
func await(t *testing.T, holds func() error) {
	t.Helper()
	late := time.After(time.Minute)
	for err := holds(); err != nil; err = holds() {
		select {
		case <-late:
			t.Fatal(err)
		default:
			runtime.Gosched()
		}
	}
}

// A reused database has no changes of an earlier test.
func TestReused(t *testing.T) {
	const tables = "CREATE SCHEMA s; CREATE TABLE s.weaver_store_meta (namespace text, a int); CREATE TABLE s.weaver_schema_versions (a int); " +
		"CREATE TABLE s.x (a int); CREATE TABLE s.y (a int); INSERT INTO s.weaver_store_meta VALUES ('', 1); INSERT INTO s.weaver_schema_versions VALUES (1)"
	migrate := func(url string) error {
		_, err := ask(url, tables)
		return err
	}
	clean := func(url string) error { return pgtest.Truncate(url, "s") }
	var first string
	for range 2 {
		t.Run("a test", func(t *testing.T) {
			url := pgtest.Reused(t, "reused", migrate, clean)
			if first == "" {
				first = url
			}
			if other := pgtest.Reused(t, "reused", migrate, clean); other == url {
				t.Errorf("two tests got %s", url)
			}
			for name, rows := range map[string]string{"s.weaver_store_meta": "1", "s.weaver_schema_versions": "1", "s.x": "0", "s.y": "0"} {
				want(t, url, "SELECT count(*) FROM "+name, rows)
			}
			want(t, url, "SELECT count(*) FROM pg_tables WHERE tablename = 'mine'", "0")
			want(t, url, "INSERT INTO s.weaver_store_meta VALUES ('n', 2); INSERT INTO s.x VALUES (1); CREATE TABLE mine (a int)", "")
			want(t, url, "INSERT INTO s.y SELECT * FROM generate_series(1, 10000)", "") // more rows than are deleted
		})
	}
	var again string
	t.Run("another test", func(t *testing.T) {
		again = pgtest.Reused(t, "reused", migrate, clean)
		if other := pgtest.Reused(t, "reused", migrate, clean); first != again && first != other {
			t.Errorf("the databases are %s and %s, want %s again", again, other, first)
		}
	})
}

// Truncate keeps a connection. It notices changes of the connection and of the tables.
func TestTruncateAgain(t *testing.T) {
	url := pgtest.URL(t)
	want(t, url, "CREATE SCHEMA s; CREATE TABLE s.weaver_store_meta (namespace text); CREATE TABLE s.x (a int)", "")
	for _, c := range []struct{ change, result, table string }{
		{"INSERT INTO s.x VALUES (2)", "", "s.x"},
		{"CREATE TABLE s.later (a int); INSERT INTO s.later VALUES (1)", "", "s.later"},
		{"DROP TABLE s.later; CREATE TABLE s.later (b text); INSERT INTO s.later VALUES ('b')", "", "s.later"},
		{"SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()", "t", "s.x"},
	} {
		want(t, url, "INSERT INTO s.weaver_store_meta VALUES ('n'); INSERT INTO s.x VALUES (1)", "")
		want(t, url, c.change, c.result)
		if err := pgtest.Truncate(url, "s"); err != nil {
			t.Fatal(err)
		}
		want(t, url, "SELECT (SELECT count(*) FROM "+c.table+") + (SELECT count(*) FROM s.weaver_store_meta)", "0")
	}
}
