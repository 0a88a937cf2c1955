package soak_test

import (
	"context"
	"errors"
	"testing"

	"github.com/goweaver/weaver/internal/pgharness"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store/postgres"
)

// TestLayersOnPostgres is [TestLayers] on PostgreSQL, which detects the death of workers by their locks on this
// machine.
func TestLayersOnPostgres(t *testing.T) {
	t.Parallel()
	size := sizeOfLayers(t)
	url := pgtest.Migrated(t, "layers", func(url string) error {
		ctx := context.Background()
		db, err := openPostgres(ctx, childConfig{URL: url})
		if err != nil {
			return err
		}
		return errors.Join(db.Migrate(ctx), db.Close(), pgtest.CheckTasks(url, "weaver"))
	})
	playLayers(t, childConfig{URL: url, Dir: t.TempDir()}, size)
}

// openPostgres opens the database of a process, on a server of package pgtest.
func openPostgres(ctx context.Context, o childConfig) (*postgres.DB, error) {
	return postgres.Open(pgharness.With(ctx, pgharness.Settings{FsyncOff: true}), o.URL, postgres.LockFolder(o.Dir))
}
