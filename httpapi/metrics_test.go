//go:build !js

package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

// scrape returns the text of a collector, or only the metrics with these names, without the HELP
// lines.
func scrape(t *testing.T, c prometheus.Collector, names ...string) string {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	if rec.Code != http.StatusOK {
		t.Fatalf("%d: %s", rec.Code, rec.Body)
	}
	var text strings.Builder
	wanted := len(names) == 0
	for line := range strings.Lines(rec.Body.String()) {
		if about, isType := strings.CutPrefix(line, "# TYPE "); isType {
			name, _, _ := strings.Cut(about, " ")
			wanted = len(names) == 0 || slices.Contains(names, name)
		}
		if wanted && !strings.HasPrefix(line, "# HELP ") {
			text.WriteString(line)
		}
	}
	return text.String()
}

// compare compares a collector's output with a text.
func compare(t *testing.T, c prometheus.Collector, names []string, want string) {
	t.Helper()
	if text := strings.TrimSpace(scrape(t, c, names...)); text != strings.TrimSpace(want) {
		t.Errorf("the metrics are\n%s\nwant\n%s", text, strings.TrimSpace(want))
	}
}

// Metrics of a store's contents.
func TestStoreMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, serverOptions{direct: true})
		m := httpapi.NewStoreMetrics(s.client, nil)
		problems, err := testutil.CollectAndLint(m)
		if err != nil || len(problems) > 0 {
			t.Errorf("lint: %v, %v", problems, err)
		}
		s.enqueue(order("bad"))
		s.run()
		s.enqueue()
		s.enqueue()
		s.enqueue(func(d *httpapi.Draft) { d.Queue = "mail" })
		s.enqueue(func(d *httpapi.Draft) { d.Queue = "paused" })
		s.enqueue(func(d *httpapi.Draft) { d.Delay = httpapi.Span(time.Hour) })
		s.no(s.client.PauseQueue(t.Context(), "paused"))
		time.Sleep(30 * time.Second)
		compare(t, m, nil, `
# TYPE weaver_chores gauge
weaver_chores 0
# TYPE weaver_dispatch_oldest_seconds gauge
weaver_dispatch_oldest_seconds{queue="billing"} 30
weaver_dispatch_oldest_seconds{queue="mail"} 30
weaver_dispatch_oldest_seconds{queue="paused"} 30
# TYPE weaver_store_up gauge
weaver_store_up 1
# TYPE weaver_tasks gauge
weaver_tasks{queue="",state="blocked"} 0
weaver_tasks{queue="",state="cancelled"} 0
weaver_tasks{queue="",state="failed"} 1
weaver_tasks{queue="",state="pending"} 2
weaver_tasks{queue="",state="succeeded"} 0
weaver_tasks{queue="billing",state="ready"} 2
weaver_tasks{queue="billing",state="running"} 0
weaver_tasks{queue="mail",state="ready"} 1
weaver_tasks{queue="mail",state="running"} 0
weaver_tasks{queue="paused",state="ready"} 0
weaver_tasks{queue="paused",state="running"} 0
# TYPE weaver_workers gauge
weaver_workers{state="dead"} 0
weaver_workers{state="idle"} 0
weaver_workers{state="running"} 0
weaver_workers{state="silent"} 0
`)
		s.get("/metrics").want(http.StatusOK)
	})
}

// A worker is counted, and so is the task that it runs.
func TestStoreMetricsOfARunningTask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, serverOptions{direct: true})
		wait := weaver.Define[int, int]("acme.metrics.wait.v1")
		stop := engineOf(t, s.store, httpapi.NewMetrics(), wait.Handler(func(ctx context.Context, _ int) (int, error) { <-ctx.Done(); return 0, ctx.Err() }))
		_, err := wait.Enqueue(t.Context(), s.client, 1)
		s.no(err)
		time.Sleep(10 * time.Second)
		compare(t, httpapi.NewStoreMetrics(s.client, nil), []string{"weaver_workers", "weaver_dispatch_oldest_seconds"}, `
# TYPE weaver_dispatch_oldest_seconds gauge
weaver_dispatch_oldest_seconds{queue="default"} 0
# TYPE weaver_workers gauge
weaver_workers{state="dead"} 0
weaver_workers{state="idle"} 0
weaver_workers{state="running"} 1
weaver_workers{state="silent"} 0
`)
		stop()
	})
}

// The metrics count hints that are pushed and popped, and hints of the store that are unsent.
func TestHintMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, serverOptions{direct: true})
		ofStore := httpapi.NewStoreMetrics(s.client, nil)
		ofStore.CountHints()
		typ := weaver.Define[int, int]("acme.metrics.hint.v1")
		_, err := typ.Enqueue(t.Context(), s.client, 1)
		s.no(err)
		time.Sleep(40 * time.Second)
		unsent := []string{"weaver_hints_unsent", "weaver_hints_unsent_oldest_seconds", "weaver_hints_refused"}
		compare(t, ofStore, unsent, `
# TYPE weaver_hints_refused gauge
weaver_hints_refused 0
# TYPE weaver_hints_unsent gauge
weaver_hints_unsent 1
# TYPE weaver_hints_unsent_oldest_seconds gauge
weaver_hints_unsent_oldest_seconds 40
`)
		transport := delivery.NewMemory()
		publisher, worker := httpapi.NewMetrics(), httpapi.NewMetrics()
		stop := startEngine(t, s.store, weaver.Config{Plugins: []weaver.Plugin{publisher}, Delivery: transport})
		time.Sleep(time.Second)
		stopWorker := startEngine(t, s.store, weaver.Config{
			Plugins: []weaver.Plugin{worker}, Delivery: transport, NoPublisher: true, Handlers: []weaver.Handler{typ.Handler(func(context.Context, int) (int, error) { return 0, nil })},
		})
		time.Sleep(10 * time.Second)
		names := []string{"weaver_hints_pushed_total", "weaver_hints_popped_total"}
		compare(t, publisher, names, `
# TYPE weaver_hints_popped_total counter
weaver_hints_popped_total 0
# TYPE weaver_hints_pushed_total counter
weaver_hints_pushed_total{result="failed"} 0
weaver_hints_pushed_total{result="refused"} 0
weaver_hints_pushed_total{result="taken"} 1
`)
		compare(t, worker, names, `
# TYPE weaver_hints_popped_total counter
weaver_hints_popped_total 1
# TYPE weaver_hints_pushed_total counter
weaver_hints_pushed_total{result="failed"} 0
weaver_hints_pushed_total{result="refused"} 0
weaver_hints_pushed_total{result="taken"} 0
`)
		compare(t, ofStore, unsent[:1], "# TYPE weaver_hints_unsent gauge\nweaver_hints_unsent 0")
		if problems, err := testutil.CollectAndLint(worker); err != nil || len(problems) > 0 {
			t.Errorf("lint: %v, %v", problems, err)
		}
		stop()
		stopWorker()
		s.no(transport.Close())
	})
}

// A worker that cannot run tasks of a type is counted, also by readyz.
func TestWorkerInTrouble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, serverOptions{direct: true})
		typ := weaver.Define[int, int]("acme.metrics.trouble.v1")
		stop := engineOf(t, s.store, httpapi.NewMetrics(), typ.Handler(func(context.Context, int) (int, error) { return 0, weaver.NotHere(errors.New("no licence")) }))
		_, err := typ.Enqueue(t.Context(), s.client, 1)
		s.no(err)
		time.Sleep(10 * time.Second)
		compare(t, httpapi.NewStoreMetrics(s.client, nil), []string{"weaver_worker_troubles"}, `
# TYPE weaver_worker_troubles gauge
weaver_worker_troubles{task_type="acme.metrics.trouble.v1"} 1
`)
		var ready httpapi.Health
		s.get("/readyz").want(http.StatusOK).into(&ready)
		if ready.Status != "ready" || ready.WorkersInTrouble != 1 {
			t.Errorf("readyz: %+v", ready)
		}
		stop()
	})
}

// engineOf starts an engine with metrics.
func engineOf(t *testing.T, s store.Store, m *httpapi.Metrics, handlers ...weaver.Handler) (stop func()) {
	t.Helper()
	return startEngine(t, s, weaver.Config{Plugins: []weaver.Plugin{m}, Handlers: handlers})
}

func startEngine(t *testing.T, s store.Store, cfg weaver.Config) (stop func()) {
	t.Helper()
	cfg.DrainTimeout, cfg.Logger = time.Second, slog.New(slog.DiscardHandler)
	eng, err := weaver.New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- eng.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// overviews is a store that returns given overviews, counts the calls, or fails.
type overviews struct {
	store.Store
	queues []store.Queue
	err    error
	reads  int
}

func (s *overviews) Overview(context.Context, string, store.OverviewRequest) (store.Overview, error) {
	s.reads++
	return store.Overview{At: time.Now(), Queues: s.queues}, s.err
}

// Several scrapes share a read of the store. The number of series is bounded, and a failed read is
// reported.
func TestStoreMetricsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &overviews{Store: memstore.New()}
		for i := range 3000 {
			s.queues = append(s.queues, store.Queue{Name: fmt.Sprint("q", i), Due: store.CountOf(1), OldestDue: time.Now()})
		}
		srv := newServer(t, serverOptions{direct: true, store: s})
		m := httpapi.NewStoreMetrics(srv.client, slog.New(slog.NewTextHandler(srv.log, nil)))
		for range 10 {
			if n := testutil.CollectAndCount(m, "weaver_dispatch_oldest_seconds"); n != 501 {
				t.Errorf("%d series of queues, want 501", n)
			}
		}
		if s.reads != 1 {
			t.Errorf("10 scrapes read the store %d times", s.reads)
		}
		if text := scrape(t, m, "weaver_tasks"); !strings.Contains(text, `weaver_tasks{queue="(other)",state="ready"} 2500`+"\n") {
			t.Errorf("the tasks of other queues are not added up: %s", text)
		}
		time.Sleep(6 * time.Second)
		s.err = errors.New("down")
		compare(t, m, nil, "# TYPE weaver_store_up gauge\nweaver_store_up 0")
		if s.reads != 2 {
			t.Errorf("the store was read %d times", s.reads)
		}
		if text := srv.log.String(); !strings.Contains(text, "read the store for its metrics") || !strings.Contains(text, "down") {
			t.Errorf("the log has %q", text)
		}
		time.Sleep(6 * time.Second)
		s.err = nil
		compare(t, m, []string{"weaver_store_up"}, "# TYPE weaver_store_up gauge\nweaver_store_up 1")
	})
}

// Metrics of the engines of the process.
func TestMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, serverOptions{direct: true})
		run := weaver.Define[string, int]("acme.metrics.run.v1", weaver.MaxAttempts(2), weaver.Backoff(time.Second))
		m := httpapi.NewMetrics()
		if problems, err := testutil.CollectAndLint(m); err != nil || len(problems) > 0 {
			t.Errorf("lint: %v, %v", problems, err)
		}
		var ids []weaver.TaskID
		for _, in := range []string{"ok", "ok", "fails", "sleeps"} {
			h, err := run.Enqueue(t.Context(), s.client, in)
			s.no(err)
			ids = append(ids, h.ID())
		}
		time.Sleep(2 * time.Second)
		stop := engineOf(t, s.store, m, run.Handler(func(ctx context.Context, in string) (int, error) {
			if err := weaver.Do(ctx, "s", func(context.Context) error { time.Sleep(100 * time.Millisecond); return nil }); err != nil {
				return 0, err
			}
			switch in {
			case "fails":
				return 0, errors.New("no")
			case "sleeps":
				return 1, weaver.Sleep(ctx, "nap", time.Minute)
			}
			return 1, nil
		}))
		for _, id := range ids {
			_, _ = s.client.Wait(t.Context(), id)
		}
		stop()
		compare(t, m, []string{"weaver_attempts_total", "weaver_steps_total", "weaver_leases_lost_total"}, `
# TYPE weaver_attempts_total counter
weaver_attempts_total{error_kind="",outcome="success",type="acme.metrics.run.v1"} 3
weaver_attempts_total{error_kind="",outcome="suspended",type="acme.metrics.run.v1"} 1
weaver_attempts_total{error_kind="handler_error",outcome="failure",type="acme.metrics.run.v1"} 2
# TYPE weaver_leases_lost_total counter
weaver_leases_lost_total{why="crash"} 0
weaver_leases_lost_total{why="dropped"} 0
weaver_leases_lost_total{why="taken"} 0
# TYPE weaver_steps_total counter
weaver_steps_total 4
`)
		text := scrape(t, m)
		for _, want := range []string{
			"weaver_attempt_seconds_count 6\n", `weaver_attempt_seconds_bucket{le="0.05"} 2` + "\n", // they found their step
			"weaver_claim_latency_seconds_count 6\n", `weaver_claim_latency_seconds_bucket{le="1"} 2` + "\n", // they were due 2 s before the engine began
			`weaver_store_op_seconds_count{op="record"}`, `weaver_store_op_seconds_count{op="finish"}`, `weaver_store_op_seconds_count{op="reap"}`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	})
}

// A claim that waits for work does not count as the store's latency.
func TestMetricsLeaveOutIdleness(t *testing.T) {
	t.Parallel()
	s, m := newServer(t, serverOptions{store: onSQLite(t)}), httpapi.NewMetrics()
	run := weaver.Define[string, int]("acme.metrics.idle.v1")
	waited := make(chan time.Duration, 100)
	spy := weaver.PluginFunc(func(setup *weaver.Setup) error { // called after the metrics
		setup.OnStoreCall(func(op string, took time.Duration, _ error) {
			if op == "claim_or_wait" {
				waited <- took
			}
		})
		return nil
	})
	eng, err := weaver.New(s.store, weaver.Config{
		Plugins: []weaver.Plugin{m, spy}, Logger: slog.New(slog.DiscardHandler),
		Handlers: []weaver.Handler{run.Handler(func(context.Context, string) (int, error) { return 1, nil })},
	})
	s.no(err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- eng.Run(ctx) }()
	h, err := run.Enqueue(ctx, s.client, "x")
	s.no(err)
	_, err = s.client.Wait(ctx, h.ID())
	s.no(err)
	cancel()
	s.no(<-done)
	if len(waited) == 0 {
		t.Error("no claim waited for work")
	}
	if text := scrape(t, m); strings.Contains(text, "claim_or_wait") || !strings.Contains(text, `weaver_store_op_seconds_count{op="finish"} 1`) {
		t.Errorf("the metrics are\n%s", text)
	}
}

// A lease that was taken over is counted; its type is a label only if it has a handler.
func TestMetricsOfLostLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		s := newServer(t, serverOptions{direct: true, store: mem})
		ours, foreign := weaver.Define[int, int]("acme.metrics.ours.v1"), weaver.Define[int, int]("acme.metrics.foreign.v1")
		for _, typ := range []*weaver.Type[int, int]{ours, foreign} {
			_, err := typ.Enqueue(t.Context(), s.client, 1)
			s.no(err)
		}
		s.no(mem.Join(t.Context(), "default", store.WorkerInfo{ID: "gone", TTL: time.Second}))
		got, err := mem.Claim(t.Context(), "default", store.ClaimRequest{Worker: "gone", LeaseID: task.NewLeaseID(), TTL: time.Second, Limit: 5, Types: map[string]int{ours.Name(): 1, foreign.Name(): 1}})
		s.no(err)
		if len(got.Tasks) != 2 {
			t.Fatalf("claimed %d tasks", len(got.Tasks))
		}
		m := httpapi.NewMetrics()
		stop := engineOf(t, mem, m, ours.Handler(func(context.Context, int) (int, error) { return 1, nil }))
		time.Sleep(2 * time.Minute)
		stop()
		compare(t, m, []string{"weaver_attempts_total", "weaver_leases_lost_total"}, `
# TYPE weaver_attempts_total counter
weaver_attempts_total{error_kind="",outcome="success",type="acme.metrics.ours.v1"} 1
weaver_attempts_total{error_kind="lease_expired",outcome="lease_lost",type="(other)"} 1
weaver_attempts_total{error_kind="lease_expired",outcome="lease_lost",type="acme.metrics.ours.v1"} 1
# TYPE weaver_leases_lost_total counter
weaver_leases_lost_total{why="crash"} 2
weaver_leases_lost_total{why="dropped"} 0
weaver_leases_lost_total{why="taken"} 0
`)
	})
}

// An attempt that lost its lease before its end is counted separately from leases that were taken
// over.
func TestMetricsOfDroppedAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, serverOptions{direct: true})
		typ := weaver.Define[int, int]("acme.metrics.deaf.v1")
		m := httpapi.NewMetrics()
		stop := engineOf(t, s.store, m, typ.Handler(func(context.Context, int) (int, error) { time.Sleep(time.Minute); return 1, nil }))
		h, err := typ.Enqueue(t.Context(), s.client, 1)
		s.no(err)
		time.Sleep(time.Second)
		s.no(s.client.Cancel(t.Context(), h.ID(), weaver.Force()))
		time.Sleep(2 * time.Minute)
		stop()
		compare(t, m, []string{"weaver_attempts_total", "weaver_leases_lost_total"}, `
# TYPE weaver_leases_lost_total counter
weaver_leases_lost_total{why="crash"} 0
weaver_leases_lost_total{why="dropped"} 1
weaver_leases_lost_total{why="taken"} 0
`)
	})
}

// GET /metrics returns the program's metrics to principals with Read.
func TestMetricsRoute(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "acme_up", Help: "Ours."})
	registry.MustRegister(gauge, httpapi.NewMetrics())
	s := newServer(t, serverOptions{config: func(cfg *httpapi.Config) { cfg.Metrics = registry }})
	a := s.get("/metrics", "Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1").want(http.StatusOK)
	if !strings.Contains(string(a.body), "acme_up 0\n") || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("%s: %s", a.header.Get("Content-Type"), a.body)
	}
	if err := testutil.ScrapeAndCompare(s.url+"/metrics", strings.NewReader("# HELP acme_up Ours.\n# TYPE acme_up gauge\nacme_up 0\n"), "acme_up"); err != nil {
		t.Error(err)
	}
	s.get("/metrics?x=1").problem(http.StatusBadRequest, "bad-query")

	closed := newServer(t, serverOptions{config: func(cfg *httpapi.Config) {
		cfg.Authorize = httpapi.Open(httpapi.Principal{Name: "ann", Access: httpapi.Submit})
	}})
	closed.get("/metrics").problem(http.StatusForbidden, "forbidden")

	failing := newServer(t, serverOptions{config: func(cfg *httpapi.Config) {
		r := prometheus.NewRegistry()
		r.MustRegister(broken{})
		cfg.Metrics = r
	}})
	failing.get("/metrics").problem(http.StatusInternalServerError, "internal")
	if !strings.Contains(failing.log.String(), "gather the metrics") {
		t.Errorf("the log has %q", failing.log.String())
	}
}

// broken is a collector that fails.
type broken struct{}

func (broken) Describe(chan<- *prometheus.Desc) {}
func (broken) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(errors.New("no such thing")), errors.New("no such thing"))
}

// Metrics that NewMetrics did not create are rejected when the engine is created.
func TestEmptyMetrics(t *testing.T) {
	t.Parallel()
	for _, m := range []*httpapi.Metrics{nil, {}} {
		_, err := weaver.New(memstore.New(), weaver.Config{Plugins: []weaver.Plugin{m}})
		if !errors.Is(err, weaver.ErrConfig) || !strings.Contains(err.Error(), "make them with NewMetrics") {
			t.Errorf("New: %v", err)
		}
	}
}
