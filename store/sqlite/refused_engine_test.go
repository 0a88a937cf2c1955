package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/goweaver/weaver/internal/faults/refusetest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// A permanent refusal by the database ends the task, on every path on which an engine writes.
func TestRefusedWrites(t *testing.T) {
	t.Parallel()
	refusetest.Run(t, func(t *testing.T, w refusetest.Write) store.Store {
		db, err := sqlite.OpenMemory(t.Context())
		if err == nil {
			err = db.Migrate(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		for _, verb := range []string{"INSERT", "UPDATE"} {
			_, err := db.DB().ExecContext(t.Context(), fmt.Sprintf(
				"CREATE TRIGGER refused_%[1]s BEFORE %[1]s ON %[2]s WHEN NEW.%[3]s LIKE '%%%[4]s%%' BEGIN SELECT RAISE(ABORT, '%[5]s'); END",
				verb, w.Table, w.Column, refusetest.Poison, refusetest.Said))
			if err != nil {
				t.Fatal(err)
			}
		}
		return db
	}, func(ctx context.Context, name string) error { return refusetest.StepTx[*sql.Tx](ctx, name, nil) }, nil)
}
