package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

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

// checkGlobals refuses what is part of the contract and not built yet.
func (s *session) checkGlobals() error {
	switch {
	case s.flags.Delivery != "":
		return badInput("Leave it out: workers find their tasks in the store itself.", "--delivery (WEAVER_DELIVERY): delivery transports are not built yet")
	case s.flags.Bucket != "":
		return badInput("Leave it out: payloads are kept in the store itself.", "--bucket (WEAVER_BUCKET): buckets are not built yet")
	}
	return nil
}

// openFile opens the store's file. Only migrate up may create it.
func (s *session) openFile(ctx context.Context, create bool) (*sqlite.DB, error) {
	if err := s.checkGlobals(); err != nil {
		return nil, err
	}
	path, err := storePath(s.flags.Store)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil && (!create || !errors.Is(err, fs.ErrNotExist)) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, badStore(fmt.Sprintf("Name the store with --store or WEAVER_STORE; `%s` creates this one.", s.command("migrate", "up")),
				"the store %s is not there: no file %s", s.flags.Store, path)
		}
		return nil, badStore("Check the permissions of the file and its folder.", "the store %s cannot be read: %w", s.flags.Store, err)
	}
	db, err := sqlite.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return db, nil
}

// withDB runs fn with an open database, migrated or not.
func (s *session) withDB(ctx context.Context, create bool, fn func(*sqlite.DB) error) error {
	db, err := s.openFile(ctx, create)
	if err != nil {
		return err
	}
	return errors.Join(fn(db), db.Close())
}

// withClient runs fn with a client of a store that can be used.
func (s *session) withClient(ctx context.Context, fn func(*weaver.Client) error) error {
	return s.withDB(ctx, false, func(db *sqlite.DB) error {
		if err := db.Ready(ctx); err != nil {
			return err
		}
		c, err := weaver.NewClient(db, weaver.ClientConfig{Namespace: s.flags.Namespace})
		if err != nil {
			return badInput("", "--namespace: %w", err)
		}
		return fn(c)
	})
}

// absent explains an ErrNotFound about a task or a job, as far as the store
// knows better; other errors stay as they are.
func (s *session) absent(ctx context.Context, c *weaver.Client, kind string, id task.ID, err error) error {
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if _, terr := c.Get(ctx, id); terr == nil && kind == "job" {
		return badInput(fmt.Sprintf("`%s` shows it.", s.command("task", "show", id.String())), "%s is a task, not a job", id)
	}
	if _, jerr := c.Job(ctx, id); jerr == nil && kind == "task" {
		return badInput(fmt.Sprintf("`%s` shows it.", s.command("job", "show", id.String())), "%s is a job, not a task", id)
	}
	return fmt.Errorf("no %s %s in namespace %q of %s: %w", kind, id, c.Namespace(), s.flags.Store, store.ErrNotFound)
}
