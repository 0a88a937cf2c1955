package memstore_test

import (
	"testing"

	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/order/ordertest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

func TestOrders(t *testing.T) {
	t.Parallel()
	ordertest.Run(t, ordertest.Config{New: func(testing.TB) order.Store { return memstore.New() }, Kill: func(s order.Store, worker string) {
		s.(*memstore.Store).Kill(store.WorkerID(worker))
	}, Steps: 3000})
}
