package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/store"
)

// withWork runs fn with a store that accepts work. It creates a missing file: a user who runs a pipeline asks for
// work that survives, not for a store. It does not migrate a store with an older schema.
func (s *session) withWork(ctx context.Context, fn func(store.Store) error) error {
	return s.withStore(ctx, true, func(st openedStore) error {
		err := st.Ready(ctx)
		if errors.Is(err, store.ErrNotMigrated) {
			err = s.migrateNew(ctx, st, err)
		}
		if err != nil {
			return err
		}
		return fn(st)
	})
}

// migrateNew creates the schema of an empty store. For a store with a part of the schema, which only `migrate up`
// completes, it returns notReady.
func (s *session) migrateNew(ctx context.Context, m store.Ops, notReady error) error {
	if p, err := placeOf(s.flags.Store); err != nil || !p.madeByWork() {
		return errors.Join(err, notReady)
	}
	list, err := m.MigrationStatus(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(st store.MigrationStatus) bool { return !isPending(st) }) {
		return notReady
	}
	if err := m.Migrate(ctx); err != nil {
		return fmt.Errorf("create the store %s: %w", s.store(), err)
	}
	s.created = true
	return nil
}
