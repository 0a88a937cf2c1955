// Package migrate keeps the books of schema migrations for the SQL stores:
// which embedded files there are, in which order, which of them a database
// has, and whether those are still the same. It runs no SQL; its callers do,
// under a lock of their database.
//
// Files are named NNNN_name.sql, numbered from 0001 without gaps. What was
// released is never edited: its checksum is recorded with it.
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
)

var (
	// ErrNewer: the database has migrations that this program does not know.
	ErrNewer = errors.New("the schema is newer than this program")
	// ErrChanged: a recorded migration is not the one that this program has.
	ErrChanged = errors.New("an applied migration differs from this program's")
)

// Migration is one embedded file.
type Migration struct {
	Version  int
	Name     string
	SQL      string
	Checksum string // of SQL
}

// Applied is the record of one migration in a database.
type Applied struct {
	Version  int
	Name     string
	Checksum string
	At       time.Time
}

// Status is one migration, as a database has it.
type Status struct {
	Version   int
	Name      string
	AppliedAt time.Time // zero: not applied
}

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
		ms = append(ms, Migration{Version: version, Name: parts[2], SQL: string(sql), Checksum: checksum(sql)})
	}
	return ms, nil
}

// checksum does not see how lines end: a checkout on Windows may change that.
func checksum(sql []byte) string {
	sum := sha256.Sum256([]byte(strings.ReplaceAll(string(sql), "\r\n", "\n")))
	return hex.EncodeToString(sum[:])
}

// Pending returns what the database lacks, in the order in which to apply it.
// applied must be sorted by version. Errors: ErrNewer, ErrChanged.
func Pending(known []Migration, applied []Applied) ([]Migration, error) {
	for i, a := range applied {
		if i >= len(known) {
			return nil, fmt.Errorf("%w: it has migration %04d_%s, the last known here is %04d", ErrNewer, a.Version, a.Name, len(known))
		}
		if k := known[i]; a.Version != k.Version || a.Checksum != k.Checksum {
			return nil, fmt.Errorf("%w: the database has %04d_%s (%.12s), this program %04d_%s (%.12s)", ErrChanged, a.Version, a.Name, a.Checksum, k.Version, k.Name, k.Checksum)
		}
	}
	return known[len(applied):], nil
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

// Script returns all migrations as one text, for people who apply them by
// hand or read them.
func Script(known []Migration) string {
	var b strings.Builder
	for _, m := range known {
		fmt.Fprintf(&b, "-- %04d_%s\n%s\n", m.Version, m.Name, strings.TrimSpace(m.SQL))
	}
	return b.String()
}
