package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/order/ordertest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

func TestOrders(t *testing.T) {
	t.Parallel()
	ordertest.Run(t, ordertest.Config{
		New: func(t testing.TB) order.Store {
			return openFile(t.(*testing.T), filepath.Join(t.TempDir(), "weaver.db"))
		},
		Kill: func(s order.Store, worker string) { s.(*sqlite.DB).Kill("default", store.WorkerID(worker)) },
	})
}
