package order_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store/memstore"
)

// counted keeps metrics by name and labels.
type counted struct {
	mu     sync.Mutex
	values map[string]int
}

func (c *counted) Count(name string, n int, labels ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values[strings.Join(append([]string{name}, labels...), " ")] += n
}

func (c *counted) Observe(name string, _ float64, labels ...string) { c.Count(name, 1, labels...) }

// spans keeps the texts of spans.
type spans struct {
	mu   sync.Mutex
	text []string
}

func (s *spans) Start(ctx context.Context, span string, attrs ...string) (context.Context, func(error)) {
	return ctx, func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.text = append(s.text, fmt.Sprint(span, attrs, err))
	}
}

// disagreeing is a store whose ledger has another digest than the row of one key.
type disagreeing struct {
	order.Store
	key string
}

func (d disagreeing) SettleOrders(ctx context.Context, ns string, list ...order.Settlement) ([]order.Settled, error) {
	for i := range list {
		if list[i].Key == d.key {
			list[i].Digest = "sha256:another"
		}
	}
	return d.Store.SettleOrders(ctx, ns, list...)
}

// TestWorker_Observed sends orders that end in each way. Logs and spans hold neither a key nor
// content, and each metric of a worker is counted.
func TestWorker_Observed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		var log bytes.Buffer
		metrics, traced := &counted{values: make(map[string]int)}, new(spans)
		if err := s.JoinOrders(t.Context(), ns, order.WorkerInfo{ID: "dead", Name: "host:1", Lease: time.Hour}); err != nil {
			t.Fatal(err)
		}
		// SEKRET marks what must not be seen.
		accept(t, s, "SEKRET-dead", "instrument", "SEKRET")
		if got, err := s.ClaimOrders(t.Context(), ns, order.ClaimRequest{Worker: "dead", Lease: time.Hour, Limit: 1}); err != nil || len(got.Claimed) != 1 {
			t.Fatal(got, err)
		}
		s.Kill("dead")
		for _, key := range []string{"ok", "reject", "down", "panic", "alarm"} {
			accept(t, s, "SEKRET-"+key, "instrument", "SEKRET", "trace_id", "SEKRET")
		}
		paper := &order.Paper{Behave: func(out order.Outgoing) string {
			switch out.Key {
			case "SEKRET-reject":
				return "reject"
			case "SEKRET-down":
				return "down"
			case "SEKRET-panic":
				panic(string(out.Body))
			}
			return ""
		}}
		w := newWorker(t, disagreeing{s, "SEKRET-alarm"}, noReconcile{paper}, func(c *order.WorkerConfig) {
			c.Metrics, c.Tracer = metrics, traced
			c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			c.Config.MaxAttempts = 2
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(time.Minute)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, text := range append(traced.text, log.String()) {
			if strings.Contains(text, "SEKRET") {
				t.Errorf("a key or content is in:\n%s", text)
			}
		}
		if line := lineWith(log.String(), "msg=\"order aborted\""); line == "" {
			t.Errorf("no abort in the log:\n%s", log.String())
		} else {
			for _, field := range []string{"idempotency_key_hash", "outbox_id", "status", "attempts", "reason_code", "adapter", "latency_ms"} {
				if !strings.Contains(line, " "+field+"=") {
					t.Errorf("no field %s in %s", field, line)
				}
			}
		}
		for name, want := range map[string]int{
			"outbox_claimed_total":                     8, // six orders, two of them twice
			"outbox_processed_total outcome succeeded": 2, "outbox_processed_total outcome aborted": 3,
			"outbox_processed_total outcome retry": 2, "outbox_processed_total outcome alarm": 1,
			"outbox_retry_total attempt 1": 2, "outbox_lock_lease_expired_total": 1, "outbox_settled_no_rows_total": 1,
			"broker_requests_total adapter paper outcome ok": 3, "broker_requests_total adapter paper outcome rejected": 1,
			"broker_requests_total adapter paper outcome down": 2, "broker_requests_total adapter paper outcome unread": 2,
			"outbox_latency_ms phase send": 8, "outbox_latency_ms phase commit": 8,
		} {
			if metrics.values[name] != want {
				t.Errorf("%s is %d, want %d", name, metrics.values[name], want)
			}
		}
		if metrics.values["outbox_latency_ms phase claim"] == 0 {
			t.Errorf("no claims among %v", slices.Sorted(maps.Keys(metrics.values)))
		}
		for _, span := range []string{"outbox.process[outbox_id", "broker.send[adapter paper]"} {
			if !slices.ContainsFunc(traced.text, func(text string) bool { return strings.HasPrefix(text, span) }) {
				t.Errorf("no span %s in %q", span, traced.text)
			}
		}
	})
}

func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}

// TestWorker_CircuitBreaker stops sending for a minute when the partner is down, and counts no
// attempt meanwhile. Rejections are answers: they open nothing.
func TestWorker_CircuitBreaker(t *testing.T) {
	for _, how := range []string{"down", "timeout", "drop", "reject"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				for i := range 60 {
					accept(t, s, fmt.Sprint("k", i))
				}
				var mu sync.Mutex
				sends, well := 0, false
				paper := &order.Paper{Behave: func(order.Outgoing) string {
					mu.Lock()
					defer mu.Unlock()
					sends++
					if well {
						return ""
					}
					return how
				}}
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- newWorker(t, s, noReconcile{paper}).Run(ctx) }()
				time.Sleep(50 * time.Second)
				sender := func() order.Sender {
					got, err := s.OrderStats(t.Context(), ns)
					if err != nil || len(got.Senders) != 1 {
						t.Fatalf("%+v, %v", got, err)
					}
					return got.Senders[0].Sender
				}
				mu.Lock()
				first := sends
				well = true
				mu.Unlock()
				if said := sender(); said.Adapter != "paper" || said.PausedUntil.IsZero() != (how == "reject") || (said.Reason == "") != (how == "reject") {
					t.Errorf("the worker announces %+v", said)
				}
				attempts := 0
				for i := range 60 {
					o := get(t, s, fmt.Sprint("k", i))
					if attempts += o.Row.Attempts; o.Row.State == order.Sending {
						t.Errorf("an open breaker holds %+v", o.Row)
					}
				}
				if attempts != first {
					t.Errorf("%d attempts of %d sends", attempts, first)
				}
				if how == "reject" {
					if first != 60 {
						t.Errorf("%d of 60 were sent", first)
					}
				} else if first < 11 || first > 11+4 { // up to three more run when it opens, and one may begin
					t.Errorf("%d sends before the breaker opened", first)
				}
				time.Sleep(5 * time.Minute)
				if said := sender(); !said.PausedUntil.IsZero() || said.Reason != "" {
					t.Errorf("after the pause the worker announces %+v", said)
				}
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if got, err := s.OrderStats(t.Context(), ns); err != nil || len(got.Senders) != 0 {
					t.Errorf("after it left: %+v, %v", got, err)
				}
				if how != "reject" && paper.Executed() != 60 {
					t.Errorf("%d of 60 executed in the end", paper.Executed())
				}
			})
		})
	}
}

// throttling is an adapter whose partner asks to slow down at first.
type throttling struct {
	*order.Paper
	after time.Duration
	sends []time.Duration
	began time.Time
}

func (a *throttling) Send(ctx context.Context, out order.Outgoing) (order.ExecResult, error) {
	a.sends = append(a.sends, time.Since(a.began))
	if len(a.sends) == 1 {
		return order.ExecResult{}, &order.SendError{Kind: order.FailThrottled, RetryAfter: a.after}
	}
	return a.Paper.Send(ctx, out)
}

// TestWorker_Throttled pauses the whole adapter after a 429, for Retry-After or else the
// backoff, without counting an attempt.
func TestWorker_Throttled(t *testing.T) {
	for _, tc := range []struct{ after, pause time.Duration }{{30 * time.Second, 30 * time.Second}, {0, 5 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			s := memstore.New()
			for i := range 5 {
				accept(t, s, fmt.Sprint("k", i))
			}
			a := &throttling{Paper: &order.Paper{}, after: tc.after, began: time.Now()}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- newWorker(t, s, a, func(c *order.WorkerConfig) { c.Config.Concurrency = 1 }).Run(ctx) }()
			time.Sleep(time.Second)
			if got, err := s.OrderStats(ctx, ns); err != nil || len(got.Senders) != 1 || got.Senders[0].Reason != "the partner asks to slow down" || got.Senders[0].Failed != 0 {
				t.Errorf("%+v, %v", got, err)
			}
			time.Sleep(2 * time.Minute)
			stop()
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if len(a.sends) != 6 || a.sends[1] < tc.pause || a.sends[1] > tc.pause+2*time.Second {
				t.Errorf("Retry-After %v: sends at %v", tc.after, a.sends)
			}
			for i := range 5 {
				if o := get(t, s, fmt.Sprint("k", i)); o.Row.State != order.Succeeded || o.Row.Attempts != 0 {
					t.Errorf("%+v", o.Row)
				}
			}
		})
	}
}
