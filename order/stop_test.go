package order_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store/memstore"
)

// hanging is an adapter whose sends have no answer until their context ends.
type hanging struct{ began chan struct{} }

func (hanging) Name() string { return "hanging" }

func (h hanging) Send(ctx context.Context, _ order.Outgoing) (order.ExecResult, error) {
	h.began <- struct{}{}
	<-ctx.Done()
	return order.ExecResult{}, &order.SendError{Kind: order.FailTimeout}
}

// TestWorker_StopNow stops a worker while one order is sent and another one waits for a slot. Both
// are due at once; the first may have reached the partner. A drain that takes too long ends alike.
func TestWorker_StopNow(t *testing.T) {
	for _, tc := range []struct {
		name       string
		drain, now bool
		took       time.Duration
	}{
		{"at once", false, true, 0},
		{"while it drains", true, true, time.Second},
		{"when the drain time is over", true, false, 3 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				accept(t, s, "sent")
				accept(t, s, "waits")
				partner := hanging{make(chan struct{})}
				w := newWorker(t, s, partner, func(c *order.WorkerConfig) {
					c.Drain, c.Config.Concurrency, c.Config.Lease = 3*time.Second, 1, time.Hour
				})
				w.StopNow() // it does not run: no effect
				ctx, drain := context.WithCancel(t.Context())
				defer drain()
				done := make(chan error, 1)
				go func() { done <- w.Run(ctx) }()
				<-partner.began
				synctest.Wait()
				began := time.Now()
				if tc.drain {
					drain()
				}
				if tc.now {
					time.Sleep(tc.took)
					w.StopNow()
				}
				if err := <-done; err != nil || time.Since(began) != tc.took {
					t.Errorf("it ended after %s, with %v", time.Since(began), err)
				}
				sent, waits := get(t, s, "sent").Row, get(t, s, "waits").Row
				if sent.State != order.Retrying || !sent.Unknown || sent.SendOpen || sent.Attempts != 0 || sent.NextRunAt.After(time.Now()) {
					t.Errorf("the order that was sent: %+v", sent)
				}
				if waits.State != order.Pending || waits.Unknown || waits.SendNo != 0 {
					t.Errorf("the order that waited: %+v", waits)
				}
				if st, err := s.OrderStats(t.Context(), ns); err != nil || len(st.Senders) != 0 {
					t.Errorf("the worker has not left: %+v, %v", st.Senders, err)
				}
				untilIdle(t, newWorker(t, s, noReconcile{&order.Paper{}}))
				for _, key := range []string{"sent", "waits"} {
					if o := get(t, s, key); o.Row.State != order.Succeeded {
						t.Errorf("%s: %+v", key, o.Row)
					}
				}
			})
		})
	}
}

// TestWorker_StopNowWithoutStore: what could not be given back keeps its lease and its holder, so
// that the end of the process proves that nobody sends it.
func TestWorker_StopNowWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &failing{Store: memstore.New()}
		accept(t, s, "k")
		partner := hanging{make(chan struct{})}
		w := newWorker(t, s, partner, func(c *order.WorkerConfig) { c.Config.Lease = time.Hour })
		done := make(chan error, 1)
		go func() { done <- w.Run(t.Context()) }()
		<-partner.began
		s.down.Store(true)
		w.StopNow()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if st, err := s.OrderStats(t.Context(), ns); err != nil || len(st.Senders) != 1 {
			t.Errorf("%+v, %v", st.Senders, err)
		}
		if r := get(t, s, "k").Row; r.State != order.Sending || !r.SendOpen {
			t.Errorf("%+v", r)
		}
	})
}
