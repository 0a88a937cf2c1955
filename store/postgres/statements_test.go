package postgres_test

import (
	"testing"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/internal/sqlstore/sqltext"
	"github.com/goweaver/weaver/store/postgres"
)

// PostgreSQL reads every statement, also those that no test runs.
func TestEveryStatementPrepares(t *testing.T) {
	t.Parallel()
	db := openURL(t, pgtest.Migrated(t, "weaver", migrateURL))
	own := map[string]bool{"sqlHolds": true} // reads the catalog in any schema
	for name, sql := range sqltext.All(t, nil, ".") {
		if own[name] {
			continue
		}
		if err := db.Prepare(t.Context(), sql); err != nil {
			t.Errorf("%s: %v\n%s", name, err, postgres.Translate(sql))
		}
	}
}
