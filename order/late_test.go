package order_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store/memstore"
)

// blocking is an adapter whose sends wait for the test, whatever their context says.
type blocking struct {
	began  chan struct{}
	answer chan error // nil: filled
}

func newBlocking() *blocking { return &blocking{make(chan struct{}), make(chan error)} }

func (*blocking) Name() string { return "blocking" }

func (b *blocking) Send(ctx context.Context, out order.Outgoing) (order.ExecResult, error) {
	b.began <- struct{}{}
	if err := <-b.answer; err != nil {
		return order.ExecResult{}, err
	}
	return new(order.Paper).Send(ctx, out)
}

// TestWorker_StoppedLongerThanItsLease stops a worker in the middle of a send. Another worker
// takes the order. A late negative answer changes nothing, a late positive one settles.
func TestWorker_StoppedLongerThanItsLease(t *testing.T) {
	rejected := &order.SendError{Kind: order.FailRejected}
	for _, tc := range []struct {
		name  string
		late  error // answer to the stopped worker; nil: filled
		gives bool  // the other worker gives the order up with an unknown outcome
		want  order.State
	}{
		{"a failure, while the other one sends", &order.SendError{Kind: order.FailTimeout}, false, order.Sending},
		{"a rejection, while the other one sends", rejected, false, order.Sending},
		{"a success, while the other one sends", nil, false, order.Succeeded},
		{"a rejection, after an abort", rejected, true, order.Aborted},
		{"a success, after an abort", nil, true, order.Succeeded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				s := memstore.New()
				accept(t, s, "k")
				done := make(chan error)
				run := func(s order.Store, a order.Adapter, attempts int) {
					w := newWorker(t, s, a, func(c *order.WorkerConfig) { c.Config.Lease, c.Config.MaxAttempts = 20*time.Second, attempts })
					go func() { done <- w.Run(ctx) }()
				}
				first, stopped := newBlocking(), &failing{Store: s}
				run(stopped, first, 6)
				<-first.began
				stopped.down.Store(true)
				other := newBlocking()
				if tc.gives {
					run(s, other, 1)
					time.Sleep(2 * time.Minute)
				} else {
					run(s, other, 6)
					<-other.began
				}
				before := get(t, s, "k")
				if before.Row.Attempts != 1 || before.Entry.Unknown != tc.gives {
					t.Fatalf("before the late answer: %+v", before)
				}
				stopped.down.Store(false)
				first.answer <- tc.late
				time.Sleep(time.Second)
				o := get(t, s, "k")
				if o.Row.State != tc.want || o.Row.Attempts != 1 || tc.late != nil && (o.Row.LastErrorCode != before.Row.LastErrorCode || o.Entry.State != before.Entry.State) {
					t.Errorf("after the late answer: %+v", o)
				}
				if !tc.gives {
					// The other worker's answer: it settles, or comes after a success.
					var answer error
					if tc.want == order.Succeeded {
						answer = rejected
					}
					other.answer <- answer
					time.Sleep(time.Second)
					o = get(t, s, "k")
				}
				stop()
				for range 2 {
					if err := <-done; err != nil {
						t.Error(err)
					}
				}
				settled := order.Succeeded
				if tc.gives && tc.late != nil {
					settled = order.Aborted
				}
				if o.Row.State != settled || (o.Entry.State == order.LedgerSucceeded) != (settled == order.Succeeded) ||
					slices.Contains(decode(t, o).Warnings, order.WarnUnknown) != (settled == order.Aborted) {
					t.Errorf("in the end: %+v", o)
				}
			})
		})
	}
}
