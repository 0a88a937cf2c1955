package sweep_test

import (
	"context"
	"errors"
	"time"

	"github.com/goweaver/weaver/internal/pgharness"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
)

// onPostgres is PostgreSQL, with a handle for each process. A bubble cannot prove the death of a process: its leases
// expire.
var onPostgres = storeKind{
	name: "postgres", sql: true, file: true, server: true, limit: 3 * time.Minute,
	insert: "INSERT INTO sweep (name) VALUES ($1)", tx: postgres.SQLTx,
	build: func(fx *fixture) backend {
		url := pgtest.Reused(fx.T, "sweep", migratePostgres, func(url string) error { return pgtest.Truncate(url, "weaver") })
		var all []*postgres.DB
		open := func() store.Store {
			db, err := postgres.Open(inBubble(fx.ctx), url)
			fx.must(err)
			fx.mu.Lock()
			defer fx.mu.Unlock()
			all = append(all, db)
			return db
		}
		return backend{
			observer:   open(),
			open:       open,
			afterDeath: func(store.Store, []store.WorkerID) {},
			close: func() {
				for _, db := range all {
					fx.must(db.Close())
				}
			},
		}
	},
}

func migratePostgres(url string) error {
	ctx := inBubble(context.Background())
	db, err := postgres.Open(ctx, url)
	if err != nil {
		return err
	}
	return errors.Join(db.Migrate(ctx), db.Close())
}

// inBubble makes a store take its time from the bubble.
func inBubble(ctx context.Context) context.Context {
	return pgharness.With(ctx, pgharness.Settings{FsyncOff: true, Clock: store.Now})
}
