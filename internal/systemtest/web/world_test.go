package web_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/dashboard"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/internal/systemtest/webtasks"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/ordertask"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

type work = webtasks.Work

var mail, report = webtasks.Mail, webtasks.Report

// tasks is a client of a world, which may be in a tab.
type tasks interface {
	weaver.Enqueuer
	Get(context.Context, weaver.TaskID) (weaver.TaskInfo, error)
	Wait(context.Context, weaver.TaskID, ...weaver.WaitOption) (weaver.TaskInfo, error)
}

// world is a store with an engine that works on it, and an API. In a tab it has tasks and states only.
type world struct {
	testing.TB
	tasks   tasks
	states  func() map[task.State]store.Count
	client  *weaver.Client
	api     *httpapi.API
	started chan bool // a task runs
	task    map[string]weaver.TaskID
	job     weaver.JobID
}

// newWorld returns an empty world, whose API lets in everybody.
func newWorld(t testing.TB) *world {
	t.Helper()
	return worldWith(t, func(cfg *httpapi.Config) {
		cfg.Authorize = httpapi.Open(httpapi.Principal{Name: "ann", Access: httpapi.Full})
	})
}

func worldWith(t testing.TB, configure func(*httpapi.Config)) *world {
	t.Helper()
	w := &world{TB: t, started: make(chan bool, 100), task: map[string]weaver.TaskID{}}
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "weaver.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.must(db.Close()) })
	w.must(db.Migrate(t.Context()))
	silent := slog.New(slog.DiscardHandler)
	engine, err := weaver.New(db, weaver.Config{
		Handlers: []weaver.Handler{mail.Handler(w.handle), report.Handler(w.handle)},
		Plugins:  []weaver.Plugin{schema.Plugin()}, Logger: silent, Poll: 100 * time.Millisecond, InlineLimit: 2 << 20,
	})
	w.must(err)
	w.client, w.tasks = engine.Client, engine.Client
	w.states = func() map[task.State]store.Count {
		o, err := w.client.Overview(w.Context(), store.OverviewRequest{Parts: store.OverviewCounts})
		w.must(err)
		return o.Counts.States
	}
	w.must(w.client.KeepEvents(t.Context(), time.Hour))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- engine.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		engine.StopNow()
		w.must(<-ended)
	})
	cfg := httpapi.Config{Client: w.client, Logger: silent, Orders: &httpapi.OrderConfig{Orders: order.Orders{}}}
	configure(&cfg)
	w.api, err = httpapi.New(cfg)
	w.must(err)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) handle(ctx context.Context, in work) (string, error) {
	if in.Do == "run" {
		w.started <- true
		<-ctx.Done()
		return "", ctx.Err()
	}
	return webtasks.Handle(ctx, in)
}

// enqueue enqueues a task and waits until it has ended, blocks or runs; a task with a delay only waits.
func (w *world) enqueue(in work, opts ...weaver.EnqueueOption) weaver.TaskID {
	w.Helper()
	h, err := mail.Enqueue(w.Context(), w.tasks, in, opts...)
	w.must(err)
	switch in.Do {
	case "wait":
	case "run":
		<-w.started
	default:
		_, _ = w.tasks.Wait(w.Context(), h.ID()) // its failure is an error
		w.must(w.Context().Err())
	}
	return h.ID()
}

// fill makes one of everything.
func (w *world) fill() {
	w.Helper()
	w.must(w.client.PauseQueue(w.Context(), "billing", weaver.Reason("migration of the ledger")))
	w.must(w.client.SetLimit(w.Context(), "queue:default", weaver.Limit{Running: 50}, weaver.Reason("month end")))
	for name, opts := range map[string][]weaver.EnqueueOption{
		"ok": {weaver.Label("team", "mail")}, "fail": {weaver.Label("team", "web")}, "block": nil, "run": nil,
	} {
		w.task[name] = w.enqueue(work{Do: name}, opts...)
	}
	w.task["wait"] = w.enqueue(work{Do: "wait"}, weaver.Delay(time.Hour))
	w.task["paused"] = w.enqueue(work{Do: "wait"}, weaver.Queue("billing"))
	job := weaver.NewJob("nightly")
	first := job.Add("fetch", report.With(work{Do: "ok"}))
	second := job.Add("clean", report.With(work{Do: "fail"}), weaver.Needs(first))
	job.Add("publish", report.With(work{Do: "ok"}), weaver.Needs(second))
	job.Add("alarm", report.With(work{Do: "ok"}), weaver.IfFailed(second))
	h, err := w.client.Submit(w.Context(), job)
	w.must(err)
	w.job = h.ID()
	_, _ = w.client.WaitJob(w.Context(), w.job) // its failure is an error
	_, err = w.client.PutSchedule(w.Context(), weaver.NewSchedule("nightly-report", report.With(work{Do: "ok"}), weaver.Cron("0 3 * * *", "Europe/Berlin")))
	w.must(err)
	_, err = w.client.TriggerSchedule(w.Context(), "nightly-report")
	w.must(err)
	w.send("order-filled", "order-refused", "order-lost")
	w.accept("order-held")
	_, err = w.orders().Hold(w.Context(), order.Audit{By: "ann", Reason: "the partner is closed"})
	w.must(err)
}

// orders returns the client of the orders.
func (w *world) orders() *order.Client {
	w.Helper()
	st, ok := ordertask.Orders(w.client)
	if !ok {
		w.Fatal("the store keeps no orders")
	}
	c, err := order.NewClient(order.ClientConfig{Store: st})
	w.must(err)
	return c
}

// accept accepts orders with these keys; no worker sends them.
func (w *world) accept(keys ...string) {
	w.Helper()
	for _, key := range keys {
		_, err := w.orders().Send(w.Context(), order.OrderRequest{
			OrderID: "of-" + key, Instrument: "BTC-JPY", Side: order.Buy, Qty: "0.5", TimeInForce: order.GoodTillCancelled, IdempotencyKey: key, RequestedAt: time.Now(),
		})
		w.must(err)
	}
}

// send accepts orders and sends all that are due once. The partner refuses order-refused, and does not answer about
// order-lost, which waits for another send.
func (w *world) send(keys ...string) {
	w.Helper()
	w.accept(keys...)
	st, _ := ordertask.Orders(w.client)
	worker, err := order.NewWorker(order.WorkerConfig{
		Store: st, Config: order.Config{Backoff: []time.Duration{time.Hour}},
		Adapter: &order.Paper{Behave: func(out order.Outgoing) string {
			return map[string]string{"order-refused": "reject", "order-lost": "drop"}[out.Key]
		}},
	})
	w.must(err)
	w.must(worker.RunUntilIdle(w.Context()))
}

// dashboard returns the dashboard of the world.
func (w *world) dashboard(cfg dashboard.Config) *dashboard.Dashboard {
	w.Helper()
	cfg.API = w.api
	d, err := dashboard.New(w.client, cfg)
	w.must(err)
	return d
}

// serve serves a handler, and returns its URL with a slash at the end.
func (w *world) serve(h http.Handler) string {
	w.Helper()
	server := httptest.NewServer(h)
	w.Cleanup(func() {
		w.api.Stop()
		server.Close()
	})
	return server.URL + "/"
}
