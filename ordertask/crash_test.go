package ordertask_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/ordertask"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/sqlite"
)

// fault is one failing call of a store.
type fault struct {
	method string
	nth    int
	after  bool // the call is committed, and its reply is lost
}

func (f fault) String() string {
	return fmt.Sprintf("%s %d %s", f.method, f.nth, map[bool]string{true: "after", false: "before"}[f.after])
}

// faulty is a store of tasks and orders with one fault.
type faulty struct {
	store.Store
	orders order.Store
	fault  fault

	mu    sync.Mutex
	calls map[string]int
}

// Orders makes order.Of return the store with the fault.
func (f *faulty) Orders() (order.Store, bool) { return faultyOrders{f.orders, f}, true }

func (f *faulty) hit() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[f.fault.method] >= f.fault.nth
}

// through makes a call, which may be the one that fails.
func through[T any](f *faulty, method string, call func() (T, error)) (T, error) {
	f.mu.Lock()
	f.calls[method]++
	now := method == f.fault.method && f.calls[method] == f.fault.nth
	f.mu.Unlock()
	var none T
	if now && !f.fault.after {
		return none, fmt.Errorf("%w: a fault of the test", store.ErrUnavailable)
	}
	got, err := call()
	if now && err == nil {
		return none, fmt.Errorf("%w: a fault of the test", store.ErrUnknown)
	}
	return got, err
}

type faultyOrders struct {
	order.Store
	f *faulty
}

func (o faultyOrders) AcceptOrders(ctx context.Context, ns string, tx order.Tx, reqs ...order.New) ([]order.Accepted, error) {
	return through(o.f, "AcceptOrders", func() ([]order.Accepted, error) { return o.Store.AcceptOrders(ctx, ns, tx, reqs...) })
}

func (o faultyOrders) JoinOrders(ctx context.Context, ns string, w order.WorkerInfo) error {
	_, err := through(o.f, "JoinOrders", func() (any, error) { return nil, o.Store.JoinOrders(ctx, ns, w) })
	return err
}

func (o faultyOrders) LeaveOrders(ctx context.Context, ns, worker string) error {
	_, err := through(o.f, "LeaveOrders", func() (any, error) { return nil, o.Store.LeaveOrders(ctx, ns, worker) })
	return err
}

func (o faultyOrders) ClaimOrders(ctx context.Context, ns string, req order.ClaimRequest) (order.ClaimResult, error) {
	return through(o.f, "ClaimOrders", func() (order.ClaimResult, error) { return o.Store.ClaimOrders(ctx, ns, req) })
}

func (o faultyOrders) RenewOrders(ctx context.Context, ns, worker string, lease time.Duration, leases ...order.Lease) ([]bool, error) {
	return through(o.f, "RenewOrders", func() ([]bool, error) { return o.Store.RenewOrders(ctx, ns, worker, lease, leases...) })
}

func (o faultyOrders) SendOrders(ctx context.Context, ns string, sends ...order.Send) ([]error, error) {
	return through(o.f, "SendOrders", func() ([]error, error) { return o.Store.SendOrders(ctx, ns, sends...) })
}

func (o faultyOrders) SettleOrders(ctx context.Context, ns string, list ...order.Settlement) ([]order.Settled, error) {
	return through(o.f, "SettleOrders", func() ([]order.Settled, error) { return o.Store.SettleOrders(ctx, ns, list...) })
}

func (o faultyOrders) ReclaimOrders(ctx context.Context, ns, worker string, lease time.Duration) (order.Reclaimed, error) {
	return through(o.f, "ReclaimOrders", func() (order.Reclaimed, error) { return o.Store.ReclaimOrders(ctx, ns, worker, lease) })
}

func (o faultyOrders) GetOrder(ctx context.Context, ns, key string) (order.Order, error) {
	return through(o.f, "GetOrder", func() (order.Order, error) { return o.Store.GetOrder(ctx, ns, key) })
}

// TestSend_CrashSweep fails the first calls of each method of the store, before and after the
// commit. Each order is executed once, and its task gets the result. SettleOrders writes the
// signal that wakes the task.
func TestSend_CrashSweep(t *testing.T) {
	stores := []struct {
		name string
		most int // calls of a method
		open func(t *testing.T) (store.Store, order.Store)
	}{
		{"memory", 6, func(*testing.T) (store.Store, order.Store) { s := memstore.New(); return s, s }},
		{"SQLite", 2, func(t *testing.T) (store.Store, order.Store) {
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
			return db, db
		}},
	}
	methods := []string{"AcceptOrders", "JoinOrders", "LeaveOrders", "ClaimOrders", "RenewOrders", "SendOrders", "SettleOrders", "ReclaimOrders", "GetOrder"}
	for _, s := range stores {
		for _, method := range methods {
			reached := false
			for nth := 1; nth <= s.most; nth++ {
				for _, after := range []bool{false, true} {
					f := &faulty{fault: fault{method, nth, after}, calls: make(map[string]int)}
					t.Run(s.name+" "+f.fault.String(), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							f.Store, f.orders = s.open(t)
							crash(t, f)
						})
					})
					reached = reached || f.hit()
				}
			}
			if !reached {
				t.Errorf("%s: %s was never called", s.name, method)
			}
		}
	}
}

// crash runs tasks whose orders are filled at once, after a failure, and without an answer.
func crash(t *testing.T, f *faulty) {
	ctx, stop := context.WithCancel(t.Context())
	var first sync.Map
	paper := &order.Paper{Behave: func(out order.Outgoing) string {
		if _, again := first.LoadOrStore(out.Ref, true); again {
			return ""
		}
		return map[string]string{"o-1": "down", "o-2": "lost"}[out.Ref]
	}}
	eng, err := weaver.New(f, weaver.Config{Logger: slog.New(slog.DiscardHandler), Handlers: []weaver.Handler{
		buy.Handler(func(ctx context.Context, p purchase) (order.ExecResult, error) {
			return ordertask.Send(ctx, "buy", request(p))
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	orders, _ := f.Orders()
	var running sync.WaitGroup
	running.Go(func() {
		if err := eng.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	running.Go(func() {
		for ctx.Err() == nil {
			w, err := order.NewWorker(order.WorkerConfig{Store: orders, Adapter: paper, Config: order.Config{PollInterval: 5 * time.Second}})
			if err != nil {
				t.Error(err)
				return
			}
			_ = w.Run(ctx) // it could not join
			time.Sleep(time.Second)
		}
	})
	var handles []*weaver.Handle[order.ExecResult]
	for i := range 3 {
		h, err := buy.Enqueue(ctx, eng, purchase{fmt.Sprint("o-", i), "2"})
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, h)
	}
	wait, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	for _, h := range handles {
		if res, err := h.Wait(wait); err != nil || res.Status != order.OK || res.ExecutedQty != "2" {
			t.Errorf("%+v, %v", res, err)
		}
	}
	time.Sleep(2 * time.Minute) // the worker's heartbeats
	stop()
	running.Wait()
	page, _, err := f.orders.ListOrders(t.Context(), "default", order.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range page {
		if o := &page[i]; o.Row.State != order.Succeeded || o.Entry.State != order.LedgerSucceeded || !o.Row.Signalled {
			t.Errorf("%+v", o.Row)
		}
	}
	if len(page) != 3 || paper.Executed() != 3 {
		t.Errorf("%d orders, %d executed", len(page), paper.Executed())
	}
}
