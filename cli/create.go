package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// withWork runs fn with a store that work can be put into. A file that is not
// there is created: whoever runs a pipeline has not asked for a store, but
// for work that survives. A store with an older schema is not touched.
func (s *session) withWork(ctx context.Context, fn func(*sqlite.DB) error) error {
	return s.withDB(ctx, true, func(db *sqlite.DB) error {
		err := db.Ready(ctx)
		if errors.Is(err, store.ErrNotMigrated) {
			err = s.migrateNew(ctx, db, err)
		}
		if err != nil {
			return err
		}
		return fn(db)
	})
}

// migrateNew gives an empty store its schema; one that has a part of it is
// left to `migrate up` and keeps its error.
func (s *session) migrateNew(ctx context.Context, db *sqlite.DB, notReady error) error {
	list, err := db.MigrationStatus(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(m sqlite.MigrationStatus) bool { return !isPending(m) }) {
		return notReady
	}
	if err := db.Migrate(ctx); err != nil {
		return fmt.Errorf("create the store %s: %w", s.flags.Store, err)
	}
	s.created = true
	return nil
}
