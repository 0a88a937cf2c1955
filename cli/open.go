package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// checkGlobals refuses an invalid transport or bucket.
func (s *session) checkGlobals() error {
	_, err := s.delivery()
	if err == nil {
		_, err = s.bucketName()
	}
	return err
}

// withStore runs fn with an open store, migrated or not. It creates a missing store only if create is set.
func (s *session) withStore(ctx context.Context, create bool, fn func(openedStore) error) error {
	if err := s.checkGlobals(); err != nil {
		return err
	}
	defer s.closeHints()
	p, err := placeOf(s.flags.Store)
	if err != nil {
		return err
	}
	st, err := p.open(ctx, create)
	if errors.Is(err, errNoStore) {
		return badStore(fmt.Sprintf("Name the store with --store or WEAVER_STORE; `%s` creates this one.", s.command("migrate", "up")), "%w", err)
	}
	if err != nil {
		return err
	}
	err, closed := fn(st), st.Close()
	if errors.Is(err, errStoreGone) {
		return err // the close returns the same error
	}
	return errors.Join(err, closed)
}

// withClient runs fn with a client of a usable store.
func (s *session) withClient(ctx context.Context, fn func(*weaver.Client) error) error {
	return s.withStore(ctx, false, func(st openedStore) error {
		if err := st.Ready(ctx); err != nil {
			return err
		}
		c, err := s.newClient(st, false)
		if err != nil {
			return err
		}
		return fn(c)
	})
}

// absent replaces an ErrNotFound about a task or job by a more precise error if the store knows more. It returns
// other errors unchanged.
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
	return fmt.Errorf("no %s %s in namespace %q of %s: %w", kind, id, c.Namespace(), s.store(), store.ErrNotFound)
}
