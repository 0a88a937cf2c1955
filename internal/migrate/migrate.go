// Package migrate brings the schemas of the SQL stores up to date. It knows the embedded files
// and their order, finds the files that a database lacks, and checks that applied files are
// unchanged. Database-specific work is in a [Database]. The caller opens and commits the
// transaction around a [Run].
//
// Files are named NNNN_name.sql, numbered from 0001 without gaps. A released file is never
// edited: its checksum is recorded with it.
//
// A file whose first line is "-- additive" makes a change that programs without it can work
// with: they continue, and may be started. Any other migration raises the floor of the
// database to itself: programs that do not know it are refused
// (docs/adr/0028-schema-floor.md).
package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
)

var (
	// ErrNewer means that the database has migrations that this program does not know and
	// cannot work with.
	ErrNewer = errors.New("the schema is newer than this program")
	// ErrChanged means that a recorded migration differs from this program's.
	ErrChanged = errors.New("an applied migration differs from this program's")
)

// Migration is one embedded file.
type Migration struct {
	Version  int
	Name     string
	SQL      string
	Checksum string // of SQL
	Additive bool   // programs that do not know it can work with it
}

// Applied is the record of one migration in a database.
type Applied struct {
	Version  int
	Name     string
	Checksum string
	Additive bool // like [Migration].Additive; used for unknown migrations
	At       time.Time
}

// Status is the state of one migration in a database.
type Status = store.MigrationStatus

var fileName = regexp.MustCompile(`^(\d{4})_([a-z0-9_]+)\.sql$`)

// Load reads the migrations of a directory, in order.
func Load(fsys fs.FS, dir string) ([]Migration, error) {
	entries, err := fs.ReadDir(fsys, dir) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	var ms []Migration
	for _, e := range entries {
		parts := fileName.FindStringSubmatch(e.Name())
		if parts == nil {
			return nil, fmt.Errorf("migration %q is not named NNNN_name.sql", e.Name())
		}
		version, _ := strconv.Atoi(parts[1]) // four digits
		if version != len(ms)+1 {
			return nil, fmt.Errorf("migration %q should be number %04d: numbers start at 0001 and have no gaps", e.Name(), len(ms)+1)
		}
		sql, err := fs.ReadFile(fsys, path.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read migration: %w", err)
		}
		ms = append(ms, Parse(version, parts[2], sql))
	}
	return ms, nil
}

// Parse returns the migration for the text of a file.
func Parse(version int, name string, sql []byte) Migration {
	return Migration{Version: version, Name: name, SQL: string(sql), Checksum: checksum(sql), Additive: additive(string(sql))}
}

// checksum does not depend on the line ends, because a checkout on Windows may change them.
func checksum(sql []byte) string {
	sum := sha256.Sum256([]byte(strings.ReplaceAll(string(sql), "\r\n", "\n")))
	return hex.EncodeToString(sum[:])
}

// additive reports whether a file begins with the line "-- additive".
func additive(sql string) bool {
	first, _, _ := strings.Cut(sql, "\n")
	return strings.TrimRight(first, "\r") == "-- additive"
}

// AdditiveKey returns the key of a row of weaver_store_meta, in the empty namespace, that
// marks a migration as additive. The table exists since the first migration.
func AdditiveKey(version int) string { return fmt.Sprintf("additive %04d", version) }

// Floor returns the last migration that a program must know, or 0.
func Floor(applied []Applied) int {
	for i := len(applied) - 1; i >= 0; i-- {
		if !applied[i].Additive {
			return applied[i].Version
		}
	}
	return 0
}

// NewerError is ErrNewer with the numbers of the last migrations.
type NewerError struct {
	Has   int // last migration of the database
	Knows int // last migration of this program
}

// Error implements error.
func (e *NewerError) Error() string {
	return fmt.Sprintf("%v: it is %04d, the last known here is %04d", ErrNewer, e.Has, e.Knows)
}

// Unwrap returns the sentinel error.
func (e *NewerError) Unwrap() error { return ErrNewer }

// In returns store.ErrNewerSchema with a text that names the place of the database, its schema
// and the known schema.
func (e *NewerError) In(place string) error {
	return &newerSchema{fmt.Sprintf("%s has schema %04d; this weaver knows %04d: use the newer weaver", place, e.Has, e.Knows)}
}

type newerSchema struct{ text string }

// Error implements error.
func (e *newerSchema) Error() string { return e.text }

// Unwrap returns the sentinel error.
func (e *newerSchema) Unwrap() error { return store.ErrNewerSchema }

// Pending returns the missing migrations in order. applied must be sorted by version. If the
// database has more migrations than the program knows, and its floor is known, Pending returns
// nil. Errors: ErrNewer, ErrChanged.
func Pending(known []Migration, applied []Applied) ([]Migration, error) {
	for i, a := range applied {
		if i >= len(known) {
			if Floor(applied) <= len(known) {
				return nil, nil
			}
			return nil, &NewerError{Has: applied[len(applied)-1].Version, Knows: len(known)}
		}
		if k := known[i]; a.Version != k.Version || a.Checksum != k.Checksum {
			return nil, fmt.Errorf("%w: the database has %04d_%s (%.12s), this program %04d_%s (%.12s)", ErrChanged, a.Version, a.Name, a.Checksum, k.Version, k.Name, k.Checksum)
		}
	}
	return known[len(applied):], nil
}

// Database is the database below Run. Its methods work in one transaction, which holds the
// lock that keeps other processes from migrating.
type Database interface {
	// Applied creates the table of records if it is missing, and returns the records sorted by
	// version.
	Applied() ([]Applied, error)
	// Exec runs the SQL of a migration.
	Exec(sql string) error
	// Record adds a record.
	Record(a Applied) error
}

// Snapshot is the schema after the migrations up to a version, as one text. Running it takes a
// tenth of the time of running the migrations.
type Snapshot struct {
	Version int // 0: no snapshot
	SQL     string
}

// Run applies and records the missing migrations, and returns their number. On an empty
// database it runs the snapshot instead of the migrations in it. Errors: those of Pending and
// of db. After an error the caller rolls back. Crash here: the transaction is not committed,
// and the next Run starts over.
func Run(db Database, known []Migration, snap Snapshot, now time.Time) (int, error) {
	applied, err := db.Applied()
	if err != nil {
		return 0, err
	}
	pending, err := Pending(known, applied)
	if err != nil {
		return 0, err
	}
	if len(applied) > 0 {
		snap.Version = 0
	}
	if snap.Version > 0 {
		if err := db.Exec(snap.SQL); err != nil {
			return 0, fmt.Errorf("migrations %04d to %04d: %w", 1, snap.Version, err)
		}
	}
	for i, m := range pending {
		if m.Version > snap.Version {
			if err := db.Exec(m.SQL); err != nil {
				return i, fmt.Errorf("migration %04d_%s: %w", m.Version, m.Name, err)
			}
		}
		if err := db.Record(Applied{Version: m.Version, Name: m.Name, Checksum: m.Checksum, Additive: m.Additive, At: now}); err != nil {
			return i, fmt.Errorf("record migration %04d_%s: %w", m.Version, m.Name, err)
		}
	}
	return len(pending), nil
}

// List returns every known or applied migration.
func List(known []Migration, applied []Applied) []Status {
	var list []Status
	for i, k := range known {
		s := Status{Version: k.Version, Name: k.Name}
		if i < len(applied) {
			s.AppliedAt = applied[i].At
		}
		list = append(list, s)
	}
	for _, a := range applied[min(len(known), len(applied)):] {
		list = append(list, Status{Version: a.Version, Name: a.Name, AppliedAt: a.At})
	}
	return list
}

// Script returns all migrations as one text, for reading or applying by hand.
func Script(known []Migration) string {
	var b strings.Builder
	for _, m := range known {
		fmt.Fprintf(&b, "-- %04d_%s\n%s\n", m.Version, m.Name, strings.TrimSpace(m.SQL))
	}
	return b.String()
}
