package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/goweaver/weaver/internal/attemptlog"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// openedStore is the interface that verbs need from a store of any kind. A store may also implement writeProber,
// backuper or monitored.
type openedStore interface {
	store.Store
	io.Closer
}

// writeProber is implemented by stores that can test whether they accept writes.
type writeProber interface {
	// Writable performs a write that changes nothing. It returns the reason why the store rejects writes:
	// store.ErrFull, store.ErrReadOnly, store.ErrUnavailable or store.ErrBusy.
	Writable(ctx context.Context) error
}

// backuper is implemented by stores that can copy themselves into a file.
type backuper interface {
	// Backup writes a copy into a new file and returns its size in bytes. It returns errBackupExists if the file
	// exists.
	Backup(ctx context.Context, path string) (int64, error)
}

// monitored is implemented by stores on a server.
type monitored interface {
	// Health returns the server's figures for a namespace, and alarms for operators in addition to store.Warner's
	// warnings.
	Health(ctx context.Context, ns string) (figures []slog.Attr, alarms []store.Warning, err error)
}

// linked is implemented by stores on a server.
type linked interface {
	// Direct reports whether this process connects to the server directly, without a proxy or pooler.
	Direct() bool
}

// warnOfNamespace warns if a store on a server is used without an explicit namespace: other programs of the database
// may use the default one, too.
func (s *session) warnOfNamespace(st any, say func(string, ...any)) {
	if _, ok := st.(linked); ok && !s.namedNS {
		say("warning: no namespace was set (--namespace, WEAVER_NAMESPACE): other programs of the database may use %q, too; set one of your own", s.flags.Namespace)
	}
}

var errBackupExists = sqlite.ErrExists

// errNoStore reports that a store's file does not exist.
var errNoStore = errors.New("no file")

// place is the location of a store named by --store. Only open accesses it.
type place interface {
	// open opens the store, migrated or not. It creates a missing store only if create is set; otherwise it returns
	// errNoStore.
	open(ctx context.Context, create bool) (openedStore, error)
	// shown returns the location as given, without passwords, for messages.
	shown() string
	// full is shown in a form that is valid in any folder.
	full() string
	// url returns the value of WEAVER_STORE for any folder, including the password.
	url() string
	// schema returns the schema as an SQL script.
	schema() string
	// file returns the file whose owner and group apply to files next to it; "" if there is no such file.
	file() string
	// logs returns the folder for command output on this machine; "" for no folder.
	logs() string
	// blobs returns the default folder for large values and artifacts; "" for no folder.
	blobs() string
	// madeByWork reports whether verbs that do work create the schema of an empty store. Otherwise only `migrate up`
	// does.
	madeByWork() bool
	// backupAdvice tells how to copy a store that is not a backuper.
	backupAdvice(file string) string
}

// placeOf returns the place of a store URL. Only this file and the files opener_*.go know the kinds of stores.
func placeOf(given string) (place, error) {
	switch scheme, _, _ := strings.Cut(given, ":"); scheme {
	case "postgres", "postgresql":
		return postgresPlace(given)
	default:
		path, err := storePath(given)
		if err != nil {
			return nil, err
		}
		return sqliteFile{given: given, path: path}, nil
	}
}

// store returns the store's name for messages.
func (s *session) store() string {
	if p, err := placeOf(s.flags.Store); err == nil {
		return p.shown()
	}
	return redact(s.flags.Store)
}

// storePlace returns the store's name for messages in a form that is valid in any folder.
func (s *session) storePlace() string {
	if p, err := placeOf(s.flags.Store); err == nil {
		return p.full()
	}
	return redact(s.flags.Store)
}

// logFolder returns the folder for the command output of the store's tasks on this machine; "" for no folder.
func (s *session) logFolder() string {
	p, err := placeOf(s.flags.Store)
	if err != nil {
		return ""
	}
	return p.logs()
}

// logsIn returns the logs of a folder from logFolder.
func (s *session) logsIn(dir string, warn func(error)) *attemptlog.Folder {
	cfg := attemptlog.Config{Dir: dir, Warn: warn}
	if p, err := placeOf(s.flags.Store); err == nil {
		cfg.Beside = p.file()
	}
	return attemptlog.New(cfg)
}

const storeForms = "Write --store sqlite:PATH, for example --store sqlite:weaver.db, or --store postgres://USER@HOST/DATABASE, or set WEAVER_STORE."

// storePath returns the file of a store URL. The URL must not be one of PostgreSQL.
func storePath(given string) (string, error) {
	scheme, rest, found := strings.Cut(given, ":")
	switch {
	case !found && harmless(given):
		return "", badInput(fmt.Sprintf("Did you mean --store sqlite:%s?", given), "--store %q: not a store URL", given)
	case !found:
		return "", badInput(storeForms, "--store %q: not a store URL", redact(given))
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

// harmless reports whether the value of --store is certainly only a scheme and a path. Databases put passwords in
// different places (user:password@host, ?password=, password=), so a value with a sign of any of these is never
// printed.
func harmless(given string) bool { return !strings.ContainsAny(given, "@?#=&;") }

// redact returns the value of --store for printing: unchanged, or its scheme and dots.
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
