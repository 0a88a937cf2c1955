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

// openedStore is what the verbs need of a store of any kind. One may also be a
// writeProber, a backuper or a monitored.
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

// monitored is implemented by stores on a server.
type monitored interface {
	// Health returns the server's figures for a namespace, and what an operator
	// should know of them beside store.Warner's warnings.
	Health(ctx context.Context, ns string) (figures []slog.Attr, alarms []store.Warning, err error)
}

// linked is implemented by stores on a server.
type linked interface {
	// Direct reports whether nothing stands between this process and the server.
	Direct() bool
}

// warnOfNamespace warns when the namespace of a store on a server was not named: other
// programs of the database may use the default one, too.
func (s *session) warnOfNamespace(st any, say func(string, ...any)) {
	if _, ok := st.(linked); ok && !s.namedNS {
		say("warning: no namespace was named (--namespace, WEAVER_NAMESPACE): %q of a database that other programs may use, too; name one to have it to yourself", s.flags.Namespace)
	}
}

var errBackupExists = sqlite.ErrExists

// errNoStore says that a store's file does not exist.
var errNoStore = errors.New("no file")

// place is a store that --store names, of whatever kind. Until it is opened nothing is
// looked at.
type place interface {
	// open opens the store, migrated or not. Only with create it makes one that
	// does not exist; else that is errNoStore.
	open(ctx context.Context, create bool) (openedStore, error)
	// shown is how messages name it: as it was given, without passwords.
	shown() string
	// full is shown so that it means the same in any folder.
	full() string
	// url is the store as WEAVER_STORE names it, in any folder, with its password.
	url() string
	// schema is the schema as a script.
	schema() string
	// file is the file to whose owner and group belongs what is kept beside it; "" for
	// none.
	file() string
	// logs is the folder where this machine keeps the output of commands, "" for none.
	logs() string
	// blobs is the folder where large values and artifacts are kept by default, "" for
	// none.
	blobs() string
	// madeByWork reports whether the verbs that do work give an empty store its schema.
	// Else only `migrate up` does.
	madeByWork() bool
	// backupAdvice is how the store is copied if it is no backuper.
	backupAdvice(file string) string
}

// placeOf returns the place that a store URL names. This file and those of its kinds,
// opener_*.go, alone know which kinds of stores there are.
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

// store returns how messages name the store.
func (s *session) store() string {
	if p, err := placeOf(s.flags.Store); err == nil {
		return p.shown()
	}
	return redact(s.flags.Store)
}

// storePlace returns the place of the store, for messages: store in any folder.
func (s *session) storePlace() string {
	if p, err := placeOf(s.flags.Store); err == nil {
		return p.full()
	}
	return redact(s.flags.Store)
}

// logFolder returns the folder where this machine keeps the output of the commands of
// the store, "" if there is none.
func (s *session) logFolder() string {
	p, err := placeOf(s.flags.Store)
	if err != nil {
		return ""
	}
	return p.logs()
}

// logsIn returns the logs of a folder that logFolder returned.
func (s *session) logsIn(dir string, warn func(error)) *attemptlog.Folder {
	cfg := attemptlog.Config{Dir: dir, Warn: warn}
	if p, err := placeOf(s.flags.Store); err == nil {
		cfg.Beside = p.file()
	}
	return attemptlog.New(cfg)
}

const storeForms = "Write --store sqlite:PATH, for example --store sqlite:weaver.db, or --store postgres://USER@HOST/DATABASE, or set WEAVER_STORE."

// storePath returns the file that the URL of a store names, which is none of PostgreSQL.
func storePath(given string) (string, error) {
	scheme, rest, found := strings.Cut(given, ":")
	switch {
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
