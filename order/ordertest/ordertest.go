// Package ordertest is the conformance suite of order.Store. It runs in real time with short
// leases, so that any database can play it. A store passes if it behaves as package order says;
// the random test compares it with a plain model.
package ordertest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/goweaver/weaver/order"
)

// Config describes a store.
type Config struct {
	// New returns an empty store, which the test closes.
	New func(t testing.TB) order.Store
	// Kill makes a worker of the namespace "default" look as if its process had died.
	Kill func(s order.Store, worker string)
	// Steps is the number of operations of the random test; 400 unless set.
	Steps int
}

// Run plays the suite.
func Run(t *testing.T, cfg Config) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, *world)
	}{
		{"the first acceptance is created, a repetition finds it, another request conflicts", accept},
		{"one of many acceptances at once is created", acceptAtOnce},
		{"namespaces do not see each other", namespaces},
		{"a claim takes due rows once, retries first, and leases them", claim},
		{"claims at once share the rows", claimAtOnce},
		{"a lease is renewed by its holder only", renew},
		{"a send needs the lease", send},
		{"a success settles ledger and row once", succeed},
		{"a failure waits for its delay, and counts", retry},
		{"an abort settles the ledger with the failure", abort},
		{"a release gives back what was not sent", release},
		{"an expired lease is taken by a steady worker, and counts nothing", reclaim},
		{"the order of a dead worker is taken at once, and counts", func(t *testing.T, w *world) { dead(t, w, cfg.Kill) }},
		{"a reclaim forgets dead and silent workers without orders", func(t *testing.T, w *world) { forget(t, w, cfg.Kill) }},
		{"late answers: the negative is dropped, the positive settles", lateAnswers},
		{"a requeue sends an aborted order again; one in doubt wants a confirmation", requeue},
		{"an operator settles by hand", settleByHand},
		{"what was never sent is withdrawn, what may have been is in doubt", withdraw},
		{"an aborted order is resubmitted under a new key", resubmit},
		{"a hold keeps all unsettled orders, a release lets them go on", hold},
		{"an unlock takes expired leases back at once", unlock},
		{"a prune removes settled orders whose time is over", prune},
		{"lists come newest first, page by page", list},
		{"statistics count each state", stats},
		{"requests and results are walked and replaced as the values of tasks are", rewrite},
		{"random operations agree with a model", func(t *testing.T, w *world) { random(t, w, cfg.Steps) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, &world{t: t, s: cfg.New(t), ns: "default"})
		})
	}
}

// world is a store under test.
type world struct {
	t  *testing.T
	s  order.Store
	ns string
}

const (
	lease = time.Minute
	short = 40 * time.Millisecond // a lease that ends within the test
)

var success = order.ExecResult{Status: order.OK, Fills: []order.Fill{{Px: "100", Qty: "1"}}, ExecutedQty: "1", Broker: order.Broker{Name: "test"}}

// request returns a request; text makes it another one.
func request(key string, text ...string) order.New {
	body, err := json.Marshal(map[string]any{"instrument": "X", "side": "BUY", "qty": "1", "tags": text})
	if err != nil {
		panic(err)
	}
	digest, err := order.Digest(body)
	if err != nil {
		panic(err)
	}
	return order.New{Profile: "order", Parsed: order.Parsed{
		Key: key, Ref: "o-" + key, TraceID: "t", Body: body, Digest: digest, Timeout: 20 * time.Millisecond, MaxAge: time.Hour,
	}}
}

func (w *world) ctx() context.Context { return w.t.Context() }

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) accept(keys ...string) {
	w.t.Helper()
	for _, key := range keys {
		got, err := w.s.AcceptOrders(w.ctx(), w.ns, nil, request(key))
		w.ok(err)
		if !got[0].Created || got[0].Err != nil {
			w.t.Fatalf("%s: %+v", key, got[0])
		}
	}
}

func (w *world) claim(worker string, d time.Duration, limit int) []order.Row {
	w.t.Helper()
	got, err := w.s.ClaimOrders(w.ctx(), w.ns, order.ClaimRequest{Worker: worker, Lease: d, Limit: limit, MaxAttempts: 6})
	w.ok(err)
	return got.Claimed
}

// claimed accepts and claims one order.
func (w *world) claimed(key string, d time.Duration) order.Lease {
	w.t.Helper()
	w.accept(key)
	rows := w.claim("w", d, 1)
	if len(rows) != 1 || rows[0].Key != key {
		w.t.Fatalf("claimed %+v, want %s", rows, key)
	}
	return order.Lease{Key: key, Token: rows[0].Token}
}

func (w *world) send(l order.Lease) {
	w.t.Helper()
	errs, err := w.s.SendOrders(w.ctx(), w.ns, order.Send{Lease: l, EndsAt: time.Now().Add(time.Second)})
	w.ok(err)
	w.ok(errs[0])
}

func (w *world) settle(end order.Settlement) order.Settled {
	w.t.Helper()
	if end.Digest == "" {
		end.Digest = request(end.Key).Digest
	}
	got, err := w.s.SettleOrders(w.ctx(), w.ns, end)
	w.ok(err)
	return got[0]
}

func (w *world) get(key string) order.Order {
	w.t.Helper()
	o, err := w.s.GetOrder(w.ctx(), w.ns, key)
	w.ok(err)
	return o
}

func (w *world) operate(cmd order.Command) order.Ack {
	w.t.Helper()
	ack, err := w.s.OperateOrder(w.ctx(), w.ns, cmd)
	w.ok(err)
	return ack
}

// want compares the state of an order.
func (w *world) want(key string, row order.State, ledger order.LedgerState) order.Order {
	w.t.Helper()
	o := w.get(key)
	if o.Row.State != row || o.Entry.State != ledger {
		w.t.Errorf("%s is %s, the ledger %s; want %s, %s", key, o.Row.State, o.Entry.State, row, ledger)
	}
	return o
}

// random compares a store with a model that knows the protocol in a few lines.
func random(t *testing.T, w *world, steps int) {
	if steps == 0 {
		steps = 400
	}
	m := newModel(7)
	for range steps {
		if problem := m.step(w); problem != "" {
			t.Fatalf("%s\nthe last operations:\n%s", problem, fmt.Sprint(m.log[max(0, len(m.log)-30):]))
		}
	}
}
