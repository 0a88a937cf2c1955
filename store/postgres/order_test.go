package postgres_test

import (
	"path"
	"path/filepath"
	"testing"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/order/ordertest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
)

func TestOrders(t *testing.T) {
	t.Parallel()
	locks := t.TempDir() // a folder for each database: the workers have the same IDs
	ordertest.Run(t, ordertest.Config{Steps: 150, New: func(t testing.TB) order.Store {
		url := pgtest.Reused(t.(*testing.T), "weaver", migrateURL, truncate)
		return openURL(t.(*testing.T), url, postgres.LockFolder(filepath.Join(locks, path.Base(url))))
	}, Kill: func(s order.Store, worker string) { s.(*postgres.DB).Kill(store.WorkerID(worker)) }})
}
