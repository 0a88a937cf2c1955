package postgres_test

import (
	"slices"
	"testing"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/internal/sqlstore/sqltext"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

// PostgreSQL parses every statement, also those that no test runs.
func TestEveryStatementPrepares(t *testing.T) {
	t.Parallel()
	db := openURL(t, pgtest.Migrated(pgtest.InShort(t), "weaver", migrateURL))
	own := map[string]bool{"sqlSchemaHolds": true} // it reads the catalog in any schema
	for name, sql := range sqltext.All(t, postgres.Generated, ".") {
		if own[name] {
			continue
		}
		if err := db.Prepare(t.Context(), sql); err != nil {
			t.Errorf("%s: %v\n%s", name, err, postgres.Translate(sql))
		}
	}
}

// A list of IDs can be a parameter in transactions of database/sql, too.
func TestStmtIDs(t *testing.T) {
	t.Parallel()
	db := openURL(t, pgtest.Migrated(t, "weaver", migrateURL))
	tx, err := db.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for n := range 3 {
		ids := make([]task.ID, n)
		for i := range ids {
			ids[i] = task.ID{15: byte(i)}
		}
		if got, err := postgres.StmtIDs(t.Context(), tx, ids); err != nil || !slices.Equal(got, ids) {
			t.Errorf("the list %v came as %v (%v)", ids, got, err)
		}
	}
}
