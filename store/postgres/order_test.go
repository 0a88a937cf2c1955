package postgres_test

import (
	"testing"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/order/ordertest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
)

func TestOrders(t *testing.T) {
	t.Parallel()
	ordertest.Run(t, ordertest.Config{Steps: 150, New: func(t testing.TB) order.Store {
		return openURL(t.(*testing.T), pgtest.Reused(t.(*testing.T), "weaver", migrateURL, truncate))
	}, Kill: func(s order.Store, worker string) { s.(*postgres.DB).Kill(store.WorkerID(worker)) }})
}
