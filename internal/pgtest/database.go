package pgtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// URL returns the URL of a fresh database, which is dropped at the end of the
// test. Its server is shared by the tests of this program: it has 200
// connections, fsync and full_page_writes off, and texts that do not sort by
// their bytes.
func URL(t testing.TB) string {
	t.Helper()
	return fresh(t, func(*server) (string, error) { return "template1", nil })
}

// Migrated is like URL with what migrate does to a database. It is called once
// for each key, and the database is copied. It must close its connections.
func Migrated(t testing.TB, key string, migrate func(url string) error) string {
	t.Helper()
	return fresh(t, func(s *server) (string, error) {
		templates.Lock()
		made := templates.of[key]
		if made == nil {
			made = sync.OnceValues(func() (string, error) { return newTemplate(s, key, migrate) })
			templates.of[key] = made
		}
		templates.Unlock()
		return made()
	})
}

// shared is the server of URL. It ends with the program.
var shared = sync.OnceValues(func() (*server, error) {
	return boot(Options{})
})

// templates has the makers of the databases that Migrated copies, by key.
var templates = struct {
	sync.Mutex
	of map[string]func() (string, error)
}{of: make(map[string]func() (string, error))}

// databases counts those that were made, for their names.
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
	if err != nil {
		return "", fmt.Errorf("migrate the template %q: %w", key, err)
	}
	// A copy of it fails while it has connections.
	if _, err := s.query(context.Background(), "postgres", "ALTER DATABASE "+name+" ALLOW_CONNECTIONS false"); err != nil {
		return "", err
	}
	return name, nil
}

// fresh copies a database of the shared server.
func fresh(t testing.TB, template func(*server) (string, error)) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs PostgreSQL")
	}
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
		outside(func() { _, err = s.query(context.Background(), "postgres", "DROP DATABASE "+name+" WITH (FORCE)") })
		if err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return s.url(name)
}

// create makes a database and returns its name.
func (s *server) create(template string) (string, error) {
	name := "test" + strconv.FormatInt(databases.Add(1), 10)
	_, err := s.query(context.Background(), "postgres", "CREATE DATABASE "+name+" TEMPLATE "+template)
	return name, err
}
