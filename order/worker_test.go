package order_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store/memstore"
)

const ns = "default"

// orderBody is a valid request; fields replace its own.
func orderBody(key string, fields ...string) []byte {
	body := map[string]any{
		"order_id": "o-" + key, "instrument": "BTC-JPY", "side": "BUY", "qty": "0.5", "price": nil, "time_in_force": "GTC",
		"idempotency_key": key, "requested_at": time.Now().UTC().Format(time.RFC3339),
	}
	for i := 0; i < len(fields); i += 2 {
		body[fields[i]] = fields[i+1]
	}
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return raw
}

func accept(t *testing.T, s order.Store, key string, fields ...string) order.Accepted {
	t.Helper()
	p, err := order.Orders{}.Parse(orderBody(key, fields...), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.AcceptOrders(t.Context(), ns, nil, p.New(order.Orders{}))
	if err != nil {
		t.Fatal(err)
	}
	return got[0]
}

func get(t *testing.T, s order.Store, key string) order.Order {
	t.Helper()
	o, err := s.GetOrder(t.Context(), ns, key)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func newWorker(t *testing.T, s order.Store, a order.Adapter, change ...func(*order.WorkerConfig)) *order.Worker {
	t.Helper()
	cfg := order.WorkerConfig{Store: s, Adapter: a}
	for _, c := range change {
		c(&cfg)
	}
	w, err := order.NewWorker(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func untilIdle(t *testing.T, w *order.Worker) {
	t.Helper()
	if err := w.RunUntilIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func decode(t *testing.T, o order.Order) order.ExecResult {
	t.Helper()
	var res order.ExecResult
	if err := json.Unmarshal(o.Entry.Result, &res); err != nil {
		t.Fatalf("%s: %v", o.Entry.Result, err)
	}
	return res
}

// W-101: pending, sending, succeeded.
func TestW101_Succeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		accept(t, s, "k")
		paper := &order.Paper{}
		untilIdle(t, newWorker(t, s, paper))
		o := get(t, s, "k")
		if o.Row.State != order.Succeeded || o.Entry.State != order.LedgerSucceeded || o.Entry.HTTPStatus != 200 || o.Row.SendNo != 1 || paper.Executed() != 1 {
			t.Errorf("%+v", o)
		}
		if res := decode(t, o); res.Status != order.OK || res.ExecutedQty != "0.5" || res.OrderID != "o-k" || res.IdempotencyKey != "k" {
			t.Errorf("%+v", res)
		}
	})
}

// W-102: a timeout makes it fail, and the second send succeeds.
func TestW102_TimeoutIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		accept(t, s, "k")
		paper := &order.Paper{Behave: func(out order.Outgoing) string {
			if out.SendNo == 1 {
				return "timeout"
			}
			return ""
		}}
		w := newWorker(t, s, noReconcile{paper})
		untilIdle(t, w)
		o := get(t, s, "k")
		if o.Row.State != order.Retrying || o.Row.Attempts != 1 || o.Row.LastErrorCode != "BROKER_TIMEOUT" || !o.Row.Unknown {
			t.Fatalf("after the timeout: %+v", o.Row)
		}
		time.Sleep(5 * time.Second)
		untilIdle(t, newWorker(t, s, noReconcile{paper}))
		if o = get(t, s, "k"); o.Row.State != order.Succeeded || o.Row.SendNo != 2 {
			t.Errorf("after the backoff: %+v", o.Row)
		}
	})
}

// noReconcile hides that an adapter can ask its partner.
type noReconcile struct{ order.Adapter }

// W-103: a worker dies in a send; another one takes its order at once, with one attempt counted,
// asks the partner, and settles the order.
func TestW103_DeadWorkersOrderGoesOn(t *testing.T) {
	for _, executed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := memstore.New()
			accept(t, s, "k")
			paper := &order.Paper{}
			if err := s.JoinOrders(t.Context(), ns, order.WorkerInfo{ID: "dead", Name: "host:1", Lease: time.Hour}); err != nil {
				t.Fatal(err)
			}
			got, err := s.ClaimOrders(t.Context(), ns, order.ClaimRequest{Worker: "dead", Lease: time.Hour, Limit: 1})
			if err != nil || len(got.Claimed) != 1 {
				t.Fatal(got, err)
			}
			r := got.Claimed[0]
			if _, err := s.SendOrders(t.Context(), ns, order.Send{Lease: order.Lease{Key: "k", Token: r.Token}, EndsAt: time.Now().Add(r.Timeout)}); err != nil {
				t.Fatal(err)
			}
			if executed {
				if _, err := paper.Send(t.Context(), order.Outgoing{Key: "k", Profile: "order", Body: r.Body}); err != nil {
					t.Fatal(err)
				}
			}
			s.Kill("dead")
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- newWorker(t, s, paper).Run(ctx) }()
			time.Sleep(time.Minute)
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
			want := 2 // sends: that of the dead worker, and one more if the partner has never seen the key
			if executed {
				want = 1
			}
			if o := get(t, s, "k"); o.Row.State != order.Succeeded || o.Row.SendNo != want || paper.Executed() != 1 {
				t.Errorf("executed %t: %+v, executed %d", executed, o.Row, paper.Executed())
			}
		})
	}
}

// W-104: no attempt is left; an operator requeues it, and it succeeds.
func TestW104_AbortedIsRequeued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		accept(t, s, "k")
		down := true
		paper := &order.Paper{Behave: func(order.Outgoing) string {
			if down {
				return "down"
			}
			return ""
		}}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- newWorker(t, s, paper).Run(ctx) }()
		time.Sleep(10 * time.Minute)
		o := get(t, s, "k")
		if o.Row.State != order.Aborted || o.Row.Attempts != 6 || o.Entry.HTTPStatus != 503 || o.Entry.Unknown {
			t.Fatalf("after six attempts: %+v", o)
		}
		down = false
		if _, err := s.OperateOrder(t.Context(), ns, order.Requeue{Audit: order.Audit{By: "ann"}, Key: "k"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if o = get(t, s, "k"); o.Row.State != order.Succeeded || o.Entry.State != order.LedgerSucceeded {
			t.Errorf("after the requeue: %+v", o)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestWorker_Unknown aborts an order that may have been executed with a warning, and a
// reconciler finds out.
func TestWorker_Unknown(t *testing.T) {
	for _, asks := range []bool{false, true} {
		t.Run(fmt.Sprint("reconciler ", asks), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				accept(t, s, "k")
				paper := &order.Paper{Behave: func(order.Outgoing) string { return "lost" }}
				var a order.Adapter = noReconcile{paper}
				if asks {
					a = paper
				}
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- newWorker(t, s, a).Run(ctx) }()
				time.Sleep(20 * time.Minute)
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
				o := get(t, s, "k")
				switch {
				case asks && (o.Row.State != order.Succeeded || o.Row.SendNo != 1):
					t.Errorf("%+v", o.Row)
				case !asks && (o.Row.State != order.Aborted || !o.Entry.Unknown || !slices.Contains(decode(t, o).Warnings, order.WarnUnknown)):
					t.Errorf("%+v", o)
				}
				if asks {
					return
				}
				if _, err := s.OperateOrder(t.Context(), ns, order.Requeue{Key: "k"}); !errors.Is(err, order.ErrInDoubt) {
					t.Errorf("a requeue of an unknown: %v", err)
				}
			})
		})
	}
}

// TestWorker_Rejected settles a rejection at once.
func TestWorker_Rejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		accept(t, s, "k")
		untilIdle(t, newWorker(t, s, &order.Paper{Behave: func(order.Outgoing) string { return "reject" }}))
		if o := get(t, s, "k"); o.Row.State != order.Aborted || o.Entry.HTTPStatus != 400 || o.Entry.Unknown || o.Row.SendNo != 1 {
			t.Errorf("%+v", o)
		}
	})
}

// TestWorker_OutageCountsNothing keeps orders alive through outages of the store that last three
// leases: GTC orders succeed, IOC and FOK orders are given up by their age only.
func TestWorker_OutageCountsNothing(t *testing.T) {
	for _, tif := range []string{"GTC", "IOC", "FOK"} {
		t.Run(tif, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { outage(t, tif) }) })
	}
}

func outage(t *testing.T, tif string) {
	s := &failing{Store: memstore.New()}
	for i := range 20 {
		accept(t, s, fmt.Sprint("k", i), "time_in_force", tif)
	}
	paper := &order.Paper{}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- newWorker(t, s, slowAdapter{paper}, func(c *order.WorkerConfig) { c.Config.Lease = 20 * time.Second; c.Config.Concurrency = 2 }).Run(ctx)
	}()
	for range 3 {
		time.Sleep(3 * time.Second)
		s.down.Store(true)
		time.Sleep(60 * time.Second)
		s.down.Store(false)
	}
	time.Sleep(10 * time.Minute)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	expired := 0
	for i := range 20 {
		o := get(t, s, fmt.Sprint("k", i))
		switch {
		case o.Row.Attempts > 0:
			t.Errorf("an outage counts: %+v", o.Row)
		case o.Row.State == order.Succeeded:
		case tif != "GTC" && o.Row.State == order.Aborted && slices.Contains(decode(t, o).Warnings, order.WarnExpired):
			expired++
		default:
			t.Errorf("%+v", o)
		}
	}
	if tif != "GTC" && (expired == 0 || expired == 20) {
		t.Errorf("%d of 20 expired", expired)
	}
}

type slowAdapter struct{ *order.Paper }

func (a slowAdapter) Send(ctx context.Context, out order.Outgoing) (order.ExecResult, error) {
	time.Sleep(time.Second)
	return a.Paper.Send(ctx, out)
}

// TestOrders_Parse names each mistake by its field.
func TestOrders_Parse(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	valid := `{"order_id":"o","instrument":"BTC-JPY","side":"BUY","qty":"1.50","price":null,"idempotency_key":"k","requested_at":"2026-11-20T12:00:00Z"}`
	profile := order.Orders{Instruments: map[string]order.Instrument{"BTC-JPY": {MinQty: "0.01", QtyStep: "0.01"}}}
	p, err := profile.Parse([]byte(valid), now)
	if err != nil {
		t.Fatal(err)
	}
	again, err := profile.Parse([]byte(strings.NewReplacer(`"1.50"`, `1.5`, `12:00:00Z`, `13:00:00+01:00`).Replace(valid)), now)
	if err != nil || again.Digest != p.Digest || !strings.HasPrefix(p.Digest, "sha256:") {
		t.Errorf("a resend: %v, digests %s and %s", err, p.Digest, again.Digest)
	}
	for _, tc := range []struct{ old, new, field, says string }{
		{`"qty":"1.50"`, `"qty":"1e400"`, "qty", "not a decimal"},
		{`"qty":"1.50"`, `"qty":0.001`, "qty", "below the minimum"},
		{`"qty":"1.50"`, `"qty":"0.015"`, "qty", "not a multiple"},
		{`"qty":"1.50"`, `"qty":true`, "qty", "not a decimal"},
		{`"BTC-JPY"`, `"DOGE"`, "instrument", "not on the list"},
		{`"BUY"`, `"buy"`, "side", "BUY or SELL"},
		{`"price":null`, `"price":"-1"`, "price", "greater than 0"},
		{`"price":null`, `"Price":null`, "Price", "not a field"},
		{`"price":null`, `"price":null,"qty":"2"`, "qty", "twice"},
		{`"price":null`, `"price":null,"tags":["a",7]`, "tags", "must be"},
		{`"price":null`, `"price":null,"risk_constraints":{"max_dd":"x"}`, "risk_constraints.max_dd", "not a decimal"},
		{`"price":null`, `"price":null,"tags":["\u0000"]`, "tags[0]", "NUL"},
		{`"price":null`, `"price":null,"trace_id":"\ud800"`, "trace_id", "surrogate"},
		{`"k"`, `"a\nb"`, "idempotency_key", "byte 2"},
		{`"k"`, `"` + strings.Repeat("k", 300) + `"`, "idempotency_key", "300 bytes"},
		{`12:00:00Z`, `13:00:00Z`, "requested_at", "ahead"},
		{`"2026-11-20T12:00:00Z"`, `"yesterday"`, "requested_at", "RFC 3339"},
		{`"requested_at"`, `"requested"`, "requested", "not a field"},
		{valid, `[]`, "", "object"},
		{valid, valid + `{}`, "", "behind"},
	} {
		_, err := profile.Parse([]byte(strings.Replace(valid, tc.old, tc.new, 1)), now)
		var inv *order.Invalid
		if !errors.As(err, &inv) || !slices.ContainsFunc(inv.Fields, func(f order.FieldError) bool {
			return f.Field == tc.field && strings.Contains(f.Message, tc.says)
		}) {
			t.Errorf("%s for %s: %v, want %s: … %s", tc.new, tc.old, err, tc.field, tc.says)
		}
	}
	exact := strings.Replace(valid, `"1.50"`, `12345678901234567890.123456789012345678`, 1)
	p, err = order.Orders{}.Parse([]byte(exact), now)
	if err != nil || !strings.Contains(string(p.Body), `"12345678901234567890.123456789012345678"`) {
		t.Errorf("beyond a float's digits: %v %s", err, p.Body)
	}
}

// slowQueue is a partner that begins to execute an order four seconds after it arrived, when the
// caller has gone.
type slowQueue struct{ *order.Paper }

func (p slowQueue) Send(ctx context.Context, out order.Outgoing) (order.ExecResult, error) {
	time.AfterFunc(4*time.Second, func() { _, _ = p.Paper.Send(context.WithoutCancel(ctx), out) })
	<-ctx.Done()
	return order.ExecResult{}, &order.SendError{Kind: order.FailTimeout, Message: "no answer"}
}

// A partner that does not know a key shortly after a send may still execute it.
func TestWorker_LateExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		p, err := order.Orders{}.Parse(orderBody("k"), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		n := p.New(order.Orders{})
		n.Timeout = 100 * time.Millisecond
		if _, err := s.AcceptOrders(t.Context(), ns, nil, n); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- newWorker(t, s, slowQueue{&order.Paper{}}, func(c *order.WorkerConfig) {
				c.Config.MaxAttempts, c.Config.Backoff = 1, []time.Duration{time.Second}
			}).Run(ctx)
		}()
		time.Sleep(20 * time.Minute)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if o := get(t, s, "k"); o.Row.State != order.Succeeded {
			t.Errorf("%+v", o)
		}
	})
}
