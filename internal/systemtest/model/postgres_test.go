package model_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/goweaver/weaver/internal/pgharness"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"

	"pgregory.net/rapid"
)

// TestModelOnPostgres is TestModel with PostgreSQL instead of SQLite: two handles on one database, of which the
// second closes at times.
func TestModelOnPostgres(t *testing.T) {
	unlessGiven(t, "rapid.checks", strconv.Itoa(postgresChecks))
	unlessGiven(t, "rapid.steps", strconv.Itoa(modelSteps))
	unlessGiven(t, "rapid.seed", "1")
	unlessGiven(t, "rapid.nofailfile", "true")
	url := pgtest.Migrated(t, "model", func(url string) error {
		ctx := bubbled(t.Context())
		db, err := postgres.Open(ctx, url)
		if err != nil {
			return err
		}
		return errors.Join(db.Migrate(ctx), db.Close(), pgtest.CheckTasks(url, "weaver"))
	})
	rapid.Check(t, func(t *rapid.T) {
		if err := pgtest.Truncate(url, "weaver"); err != nil {
			t.Fatal(err)
		}
		rapid.SyncTest(t, func(t *rapid.T) { runSequence(t, url, tally{}) })
	})
}

// bubbled makes a store take its time from the bubble, as memstore does.
func bubbled(ctx context.Context) context.Context {
	return pgharness.With(ctx, pgharness.Settings{FsyncOff: true, Clock: store.Now, ScanPage: 7})
}

func (p *pair) openPostgres() database {
	p.Helper()
	db, err := postgres.Open(bubbled(p.Context()), p.url, postgres.MaxConns(2))
	if err != nil {
		p.Fatal(err)
	}
	return db
}
