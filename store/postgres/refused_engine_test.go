package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver/internal/faults/refusetest"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
)

// A write that the database rejects permanently fails the task, on every write path of an engine.
func TestRefusedWrites(t *testing.T) {
	t.Parallel()
	refusetest.Run(t, func(t *testing.T, w refusetest.Write) store.Store {
		url := pgtest.Migrated(t, "weaver", migrateURL)
		u := connect(t, url)
		u.exec("CREATE TABLE public.paid (n bigint CONSTRAINT weaver_refused_twice UNIQUE DEFERRABLE INITIALLY DEFERRED)")
		u.exec(fmt.Sprintf("ALTER TABLE weaver.%s ADD CONSTRAINT %s CHECK (%s NOT LIKE '%%%s%%')", w.Table, refusetest.Said, w.Column, refusetest.Poison))
		return openURL(t, url)
	}, func(ctx context.Context, name string) error {
		return refusetest.StepTx[pgx.Tx](ctx, name, nil)
	}, func(ctx context.Context, name string) error {
		return refusetest.StepTx(ctx, name, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO public.paid VALUES (1), (1)")
			return err
		})
	})
}
