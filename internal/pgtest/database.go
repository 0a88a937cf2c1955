package pgtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// URL returns the URL of a new database, which is dropped at the end of the test. The tests of
// this program share its server. The server has 200 connections, fsync and full_page_writes
// off, and a collation that does not sort by bytes.
func URL(t testing.TB) string {
	t.Helper()
	return fresh(t, func(*server) (string, error) { return "template1", nil })
}

// Migrated is URL for a copy of a database prepared by migrate. migrate is called once for
// each key. It must close its connections.
func Migrated(t testing.TB, key string, migrate func(url string) error) string {
	t.Helper()
	return fresh(t, func(s *server) (string, error) { return template(s, key, migrate) })
}

// template returns the name of the template database of a key.
func template(s *server, key string, migrate func(url string) error) (string, error) {
	templates.Lock()
	made := templates.of[key]
	if made == nil {
		made = sync.OnceValues(func() (string, error) { return newTemplate(s, key, migrate) })
		templates.of[key] = made
	}
	templates.Unlock()
	return made()
}

// Reused is Migrated, but the database may come from an earlier test of this program. Then
// clean was called with its URL, and must have removed every change of that test. This is much
// faster than a copy.
func Reused(t testing.TB, key string, migrate, clean func(url string) error) string {
	t.Helper()
	skipShort(t)
	var url string
	var err error
	outside(func() { url, err = reuse(key, migrate) })
	if err != nil {
		t.Fatalf("a database for the test: %v", err)
	}
	t.Cleanup(func() {
		var err error
		outside(func() { err = clean(url) })
		if err != nil {
			t.Errorf("clean the test's database: %v", err)
			return
		}
		idle.Lock()
		defer idle.Unlock()
		idle.of[key] = append(idle.of[key], url)
	})
	return url
}

// Analyze makes the server analyze all tables of a database now. Autovacuum would do it within
// a minute.
func Analyze(url string) error { return execute(url, "ANALYZE") }

// CheckTasks adds the constraints of weaver_tasks that the store's code guarantees and that
// are too expensive in production. A task has a lease if and only if it runs, and end_state is
// its state if it ended without success.
func CheckTasks(url, schema string) error {
	return execute(url, `ALTER TABLE "`+strings.ReplaceAll(schema, `"`, `""`)+`".weaver_tasks
ADD CONSTRAINT leased CHECK ((lease_id IS NOT NULL) = (state = 'running')),
ADD CONSTRAINT ended CHECK (end_state IS NOT DISTINCT FROM CASE WHEN state IN ('failed', 'blocked', 'cancelled') THEN state END)`)
}

// execute executes statements in its own connection.
func execute(url, sql string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, sql).ReadAll()
	return err
}

// idle holds the databases of Reused that no test uses, by key.
var idle = struct {
	sync.Mutex
	of map[string][]string
}{of: make(map[string][]string)}

func reuse(key string, migrate func(url string) error) (string, error) {
	idle.Lock()
	if n := len(idle.of[key]); n > 0 {
		url := idle.of[key][n-1]
		idle.of[key] = idle.of[key][:n-1]
		idle.Unlock()
		return url, nil
	}
	idle.Unlock()
	s, err := shared()
	if err != nil {
		return "", err
	}
	from, err := template(s, key, migrate)
	if err != nil {
		return "", err
	}
	name, err := s.create(from)
	return s.url(name), err
}

// shared is the server of URL. It ends with the program.
var shared = sync.OnceValues(func() (*server, error) {
	return boot(Options{})
})

// templates holds the functions that create the template databases, by key.
var templates = struct {
	sync.Mutex
	of map[string]func() (string, error)
}{of: make(map[string]func() (string, error))}

// databases counts the created databases, for their names.
var databases atomic.Int64

func newTemplate(s *server, key string, migrate func(url string) error) (string, error) {
	name, err := s.create("template1")
	if err != nil {
		return "", err
	}
	err = errors.New("it did not return")
	func() {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("it panicked: %v", r)
			}
		}()
		err = migrate(s.url(name))
	}()
	err = errors.Join(err, release(s.url(name)))
	if err != nil {
		return "", fmt.Errorf("migrate the template %q: %w", key, err)
	}
	// Copying it fails while it has connections.
	if _, err := s.query(context.Background(), "postgres", "ALTER DATABASE "+name+" ALLOW_CONNECTIONS false"); err != nil {
		return "", err
	}
	return name, nil
}

// fresh copies a database of the shared server.
func fresh(t testing.TB, template func(*server) (string, error)) string {
	t.Helper()
	skipShort(t)
	var s *server
	var name string
	err := errors.New("the template was not made")
	outside(func() {
		if s, err = shared(); err != nil {
			return
		}
		var from string
		if from, err = template(s); err == nil {
			name, err = s.create(from)
		}
	})
	if err != nil {
		t.Fatalf("a database for the test: %v", err)
	}
	t.Cleanup(func() {
		var err error
		outside(func() {
			err = release(s.url(name))
			if _, dropErr := s.query(context.Background(), "postgres", "DROP DATABASE "+name+" WITH (FORCE)"); dropErr != nil {
				err = errors.Join(err, dropErr)
			}
		})
		if err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return s.url(name)
}

// create creates a database and returns its name.
func (s *server) create(template string) (string, error) {
	name := "test" + strconv.FormatInt(databases.Add(1), 10)
	_, err := s.query(context.Background(), "postgres", "CREATE DATABASE "+name+" TEMPLATE "+template)
	return name, err
}
