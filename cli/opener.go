package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// openedStore is what the verbs need of a store of any kind. One may also be a
// writeProber.
type openedStore interface {
	store.Store
	store.Migrator
	io.Closer
}

// writeProber is implemented by stores that can test whether they accept
// writes now.
type writeProber interface {
	// Writable writes something that changes nothing, and returns what keeps
	// the store from being written: store.ErrFull, store.ErrReadOnly,
	// store.ErrUnavailable, store.ErrBusy.
	Writable(ctx context.Context) error
}

// backuper is implemented by stores that copy themselves into a file.
type backuper interface {
	// Backup writes a copy into a new file and returns its size in bytes.
	// errBackupExists: there is a file.
	Backup(ctx context.Context, path string) (int64, error)
}

var errBackupExists = sqlite.ErrExists

var (
	_ openedStore = (*sqlite.DB)(nil)
	_ writeProber = (*sqlite.DB)(nil)
	_ backuper    = (*sqlite.DB)(nil)
)

// errNoStore says that a store's file does not exist.
var errNoStore = errors.New("no file")

// openStore opens the store that a URL names, migrated or not. Only with
// create it makes one that does not exist; else that is errNoStore. This file
// alone knows which kinds of stores there are.
func openStore(ctx context.Context, given string, create bool) (openedStore, error) {
	path, err := storePath(given)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil && (!create || !errors.Is(err, fs.ErrNotExist)) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the store %s is not there: %w %s", given, errNoStore, path)
		}
		return nil, badStore("Check the permissions of the file and its folder.", "the store %s cannot be read: %w", given, err)
	}
	db, err := sqlite.Open(ctx, path)
	if err != nil {
		return nil, err // not the nil *DB: the interface would not be nil
	}
	return db, nil
}

// schemaScript returns the schema of the kind of store that a URL names, as a
// script. The store itself is not opened.
func schemaScript(given string) (string, error) {
	if _, err := storePath(given); err != nil {
		return "", err
	}
	return new(sqlite.DB).MigrationSQL(), nil
}

// logFolder returns the folder beside a store where the output of its commands
// is kept, "" for a store of a kind that has none.
func logFolder(given string) string { return besideStore(given, ".logs") }

// besideStore returns the path of what belongs to a store and is kept beside it, "" for
// a store of a kind that has no place.
func besideStore(given, suffix string) string {
	path, err := storePath(given)
	if err != nil {
		return ""
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // by whatever name it is opened
	}
	return path + suffix
}

// storePlace returns the place of a store that could be opened, for messages.
func storePlace(given string) string {
	path, err := storePath(given)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return given
	}
	return path
}

const storeForms = "Write --store sqlite:PATH, for example --store sqlite:weaver.db, or set WEAVER_STORE."

// storePath returns the file that a store URL names.
func storePath(given string) (string, error) {
	scheme, rest, found := strings.Cut(given, ":")
	switch {
	case scheme == "postgres" || scheme == "postgresql":
		// The URL itself may hold a password.
		return "", badInput(storeForms, "--store %s://…: PostgreSQL is not built yet", scheme)
	case !found && harmless(given):
		return "", badInput(fmt.Sprintf("Did you mean --store sqlite:%s?", given), "--store %q is no store: it does not say of which kind", given)
	case !found:
		return "", badInput(storeForms, "--store %q is no store: it does not say of which kind", redact(given))
	case scheme != "sqlite":
		return "", badInput(storeForms, "--store %q: unknown kind of store", redact(given))
	case rest == "":
		return "", badInput(storeForms, "--store %q names no file", given)
	case strings.HasPrefix(rest, "//") && !harmless(given):
		return "", badInput(storeForms, "--store %q: the path follows the colon, without //", redact(given))
	case strings.HasPrefix(rest, "//"):
		return "", badInput(fmt.Sprintf("Did you mean --store sqlite:%s?", strings.TrimPrefix(rest, "//")), "--store %q: the path follows the colon, without //", given)
	case rest == ":memory:":
		return "", badInput(storeForms, "--store %q: a store in memory would end with this command", given)
	}
	return rest, nil
}

// harmless reports whether a store that was named is surely no more than a
// scheme and a path. Where a password may stand differs from database to
// database (user:password@host, ?password=, password=), so what has a sign of
// any of these is never printed.
func harmless(given string) bool { return !strings.ContainsAny(given, "@?#=&;") }

// redact is how a store that was named may be printed: as it is, or its scheme
// and dots.
func redact(given string) string {
	if harmless(given) {
		return given
	}
	scheme, _, found := strings.Cut(given, ":")
	if !found || !harmless(scheme) {
		return "…"
	}
	return scheme + ":…"
}
