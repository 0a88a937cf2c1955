package docs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/blob/zstd"
	"github.com/goweaver/weaver/cli"
	"github.com/goweaver/weaver/codec/aesgcm"
	"github.com/goweaver/weaver/dashboard"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/internal/capsule"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/ordertask"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/weavertest"
)

// The code of each guide stands below its name; TestGoBlocks compares them.
// What they have in common: an order, a payment partner, a warehouse.

type Order struct {
	ID    string
	Cents int
}

type Receipt struct{ Order string }

type partner struct{ charged, refunded []string }

func (p *partner) Charge(_ context.Context, o Order, _ ...string) (Receipt, error) {
	p.charged = append(p.charged, o.ID)
	return Receipt{Order: o.ID}, nil
}

func (p *partner) Refund(_ context.Context, args ...any) error {
	p.refunded = append(p.refunded, fmt.Sprint(args...))
	return nil
}

type depot struct{ closed bool }

func (d *depot) Ship(context.Context, Order) error {
	if d.closed {
		return weaver.Permanent(errors.New("the warehouse is closed"))
	}
	return nil
}

var (
	psp       = &partner{}
	warehouse = &depot{}

	PlaceOrder = weaver.Define[Order, Receipt]("guide.shop.order.v1")
	Refund     = weaver.Define[Order, string]("guide.shop.refund.v1")
	Publish    = weaver.Define[string, string]("guide.report.publish.v1")
	Remind     = weaver.Define[string, weaver.None]("guide.shop.remind.v1")
	Count      = weaver.Define[string, int]("guide.file.count.v1")
	Total      = weaver.Define[[]string, int]("guide.file.total.v1")
	Decision   = weaver.Define[string, string]("guide.report.decide.v1")
	Charge     = weaver.Define[Payment, string]("guide.shop.charge.v1")
)

// getting-started.md

func placeOrder(ctx context.Context, o Order) (Receipt, error) {
	receipt, err := weaver.Step(ctx, "charge", func(ctx context.Context) (Receipt, error) {
		return psp.Charge(ctx, o, weaver.Current(ctx).StepKey("charge")) // the key is the same in every attempt
	})
	if err != nil {
		return Receipt{}, err
	}
	return receipt, weaver.Do(ctx, "ship", func(ctx context.Context) error { return warehouse.Ship(ctx, o) })
}

func newEngine(db store.Store, handlers []weaver.Handler, timed func(weaver.HandlerFunc) weaver.HandlerFunc) (*weaver.Engine, error) {
	eng, err := weaver.New(db, weaver.Config{
		Handlers: handlers,
		Plugins: []weaver.Plugin{
			weaver.PersistLogs(), weaver.PersistEvents(), // keep them for Client.Subscribe and `weaver logs`
			schema.Plugin(), // announce the JSON Schemas of the types
			weaver.PluginFunc(func(s *weaver.Setup) error { s.WrapHandler(timed); return nil }),
		},
		Retain: []weaver.Retention{
			weaver.Retain(weaver.Forever).States(weaver.StateFailed), // the first rule that matches decides
			weaver.Retain(30 * 24 * time.Hour),
		},
		Bucket: blob.Dir("app.db.blobs", zstd.Codec()), // for artifacts, and for values over 64 KiB
	})
	return eng, err
}

// testing.md

func TestRefund(t *testing.T) {
	e := weavertest.New(t, Refund.Handler(refund))
	h, err := Refund.Enqueue(t.Context(), e, Order{ID: "o-7", Cents: 25_000})
	if err != nil {
		t.Fatal(err)
	}
	weavertest.RunUntilIdle(t, e)              // the handler asks a person
	weavertest.Advance(t, e, 3*24*time.Hour)   // three days pass
	err = e.Unblock(t.Context(), h.ID(), true) // the person agrees
	if err != nil {
		t.Fatal(err)
	}
	if out := weavertest.Continue(t, e, Refund, h.ID()); out != "refunded" {
		t.Errorf("output %q", out)
	}
}

func TestOrder_SurvivesCrashes(t *testing.T) {
	e := weavertest.New(t, PlaceOrder.Handler(placeOrder))
	receipt := weavertest.Replay(t, e, PlaceOrder, Order{ID: "o-8", Cents: 100})
	if receipt.Order != "o-8" {
		t.Errorf("receipt %+v", receipt)
	}
}

func TestNightlyReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := weavertest.NewConfig(t, weaver.Config{
			Handlers:  []weaver.Handler{Report.Handler(report)},
			Schedules: []weaver.Schedule{weaver.NewSchedule("nightly", Report.With(reportInput{}), weaver.Cron("30 2 * * *", "Europe/Berlin"))},
		})
		weavertest.Advance(t, e, 366*24*time.Hour)
		if list := weavertest.RequireEnqueued(t, e, Report, nil); len(list) != 366 {
			t.Errorf("%d runs in a year", len(list))
		}
	})
}

func report(context.Context, reportInput) (weaver.None, error) { return weaver.None{}, nil }

// capsules.md

func TestCapsule(t *testing.T) {
	t.Chdir(t.TempDir())
	e := weavertest.New(t, PlaceOrder.Handler(placeOrder))
	h, err := PlaceOrder.Enqueue(t.Context(), e, Order{ID: "o-9", Cents: 100})
	if err != nil {
		t.Fatal(err)
	}
	weavertest.Continue(t, e, PlaceOrder, h.ID())
	content, err := capsule.Collect(t.Context(), e.Client, h.ID(), capsule.Options{})
	if err == nil {
		err = os.Mkdir("testdata", 0o700)
	}
	if err == nil {
		_, err = capsule.Write(t.Context(), func(ctx context.Context, path string) (capsule.DB, error) { return sqlite.Open(ctx, path) }, "testdata/run.capsule", false, content)
	}
	if err != nil {
		t.Fatal(err)
	}
	weavertest.ReplayCapsule(t, PlaceOrder.Handler(placeOrder), "testdata/run.capsule")
}

// waits.md

func charge(context.Context, string) error { return nil }

func remind(ctx context.Context, customer string) (weaver.None, error) {
	if err := weaver.Sleep(ctx, "trial", 30*24*time.Hour); err != nil {
		return weaver.None{}, err
	}
	return weaver.None{}, weaver.Do(ctx, "charge", func(ctx context.Context) error { return charge(ctx, customer) })
}

var Approved = weaver.DefineSignal[bool]("approved")

func publish(ctx context.Context, report string) (string, error) {
	yes, ok, err := Approved.Wait(ctx, "manager", 48*time.Hour) // ok is false after 48 hours without a signal
	switch {
	case err != nil:
		return "", err
	case !ok:
		return "nobody answered", nil
	case !yes:
		return "refused", nil
	}
	return "published " + report, nil
}

func refund(ctx context.Context, o Order) (string, error) {
	approved, err := weaver.Ask[bool](ctx, "large refund", fmt.Sprintf("Refund %d cents?", o.Cents), 7*24*time.Hour)
	if errors.Is(err, weaver.ErrNoAnswer) || err == nil && !approved {
		return "refused", nil
	}
	if err != nil {
		return "", err
	}
	return "refunded", nil
}

func total(ctx context.Context, files []string) (int, error) {
	counts, err := weaver.CallAll(ctx, "count", Count, files, weaver.Queue("small"))
	if err != nil {
		return 0, err
	}
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum, nil
}

func race(ctx context.Context, report string) (string, error) {
	var yes bool
	first, err := weaver.Race(ctx, "decision", weaver.OnSignal(Approved, &yes), weaver.OnSleep(time.Hour))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("case %d of %s: %t", first, report, yes), nil
}

func TestWaits(t *testing.T) {
	e := weavertest.New(t, Remind.Handler(remind), Publish.Handler(publish), Decision.Handler(race), Total.Handler(total),
		Count.Handler(func(_ context.Context, file string) (int, error) { return len(file), nil }))
	weavertest.Run(t, e, Remind, "ann")
	if out := weavertest.Run(t, e, Publish, "may"); out != "nobody answered" {
		t.Errorf("publish without a signal: %q", out)
	}
	h, err := Publish.Enqueue(t.Context(), e, "june")
	if err != nil {
		t.Fatal(err)
	}
	if err := Approved.Send(t.Context(), e, h.ID(), "click-77", true); err != nil {
		t.Fatal(err)
	}
	if out := weavertest.Continue(t, e, Publish, h.ID()); out != "published june" {
		t.Errorf("publish with a signal: %q", out)
	}
	if out := weavertest.Run(t, e, Decision, "may"); out != "case 1 of may: false" {
		t.Errorf("race: %q", out)
	}
	if sum := weavertest.Run(t, e, Total, []string{"a", "bc"}); sum != 3 {
		t.Errorf("total: %d", sum)
	}
}

// jobs.md

var (
	Extract = weaver.Define[string, []int]("guide.report.extract.v1")
	Sum     = weaver.Define[weaver.None, int]("guide.report.sum.v1")
	Alert   = weaver.Define[string, weaver.None]("guide.report.alert.v1")
)

func nightly(ctx context.Context, client *weaver.Client, day string) (*weaver.JobHandle, error) {
	j := weaver.NewJob("nightly", weaver.Budget{MaxAttemptsPerTask: 3, MaxDuration: 2 * time.Hour})
	extract := j.Add("extract", Extract.With(day))
	sum := j.Add("sum", Sum.With(weaver.None{}), weaver.Needs(extract))
	j.Add("alert", Alert.With("the report of "+day+" failed"), weaver.IfFailed(extract, sum))
	return client.Submit(ctx, j, weaver.IdempotencyKey("nightly/"+day))
}

func sum(ctx context.Context, _ weaver.None) (int, error) {
	rows, err := Extract.Output(ctx, "extract")
	total := 0
	for _, n := range rows {
		total += n
	}
	return total, err
}

func TestNightly(t *testing.T) {
	e := weavertest.New(t, Sum.Handler(sum),
		Extract.Handler(func(context.Context, string) ([]int, error) { return []int{20, 22}, nil }),
		Alert.Handler(func(context.Context, string) (weaver.None, error) { return weaver.None{}, errors.New("not needed") }))
	h, err := nightly(t.Context(), e.Client, "2026-11-20")
	if err != nil {
		t.Fatal(err)
	}
	weavertest.RunUntilIdle(t, e)
	res, err := h.Wait(t.Context())
	if err != nil || res.State != task.JobSucceeded {
		t.Fatalf("the job: %+v, %v", res, err)
	}
	if again, err := nightly(t.Context(), e.Client, "2026-11-20"); err != nil || again.ID() != h.ID() {
		t.Errorf("submitted again: %v, %v", again, err)
	}
}

// deciders.md

func withDeciders(db store.Store, handlers []weaver.Handler, byCost decide.Decider) (*weaver.Engine, error) {
	cards := decide.Func(func(in decide.Input) decide.Decision {
		if in.Error.Code != "card_refused" { // weaver.WithCode
			return decide.Decision{} // no opinion
		}
		return decide.Decision{Kind: task.DecideBlock, Reason: task.Reason{
			Policy: "cards", Version: 1, Text: "the customer gives another card",
			Evidence: map[string]any{"attempts": in.Task.AttemptCount + 1},
		}}
	})
	eng, err := weaver.New(db, weaver.Config{Decider: decide.Chain(cards, byCost), Handlers: handlers})
	return eng, err
}

func command(handlers []weaver.Handler, byCost decide.Decider) {
	cli.Main(cli.App{Handlers: handlers, Deciders: map[string]decide.Decider{"cost": byCost}})
}

func routed(charge, chargeV2 func(context.Context, Payment) (string, error)) weaver.Config {
	cfg := weaver.Config{
		Handlers: []weaver.Handler{
			Charge.Handler(charge),
			Charge.Handler(chargeV2, weaver.HandlerName("canary"), weaver.CodeVersion(2)),
		},
		Router: decide.Rules{{Type: Charge.Name(), Metadata: map[string]string{"tenant": "t1"}, Handler: "canary"}},
	}
	return cfg
}

// postgres.md

func openPostgres(ctx context.Context) (*postgres.DB, error) {
	db, err := postgres.Open(ctx, "postgres://weaver@db.example/app") // was: sqlite.Open(ctx, "app.db")
	return db, err
}

// orders.md

func sellAgain(context.Context, order.ExecResult, string) error { return nil }

func buy(ctx context.Context, id string) (order.ExecResult, error) {
	return ordertask.Send(ctx, "buy", ordertask.Order(order.OrderRequest{
		OrderID: id, Instrument: "BTC-JPY", Side: order.Buy, Qty: "0.5", TimeInForce: order.GoodTillCancelled,
	}, order.Orders{}), ordertask.Undo(func(ctx context.Context, res order.ExecResult, key string) error {
		return sellAgain(ctx, res, key)
	}))
}

// privacy.md

func labelled(ctx context.Context, client *weaver.Client, in Payment) (*weaver.Handle[string], error) {
	h, err := Charge.Enqueue(ctx, client, in, weaver.Label("subject", "42"))
	return h, err
}

func sealed(db store.Store, handlers []weaver.Handler) (*weaver.Engine, error) {
	key, err := aesgcm.Open("weaver.keys") // made by `weaver codec key k1 >weaver.keys`
	if err != nil {
		return nil, err
	}
	eng, err := weaver.New(db, weaver.Config{Codec: key, Handlers: handlers})
	return eng, err
}

var _ = []any{newEngine, withDeciders, command, routed, labelled, sealed, buy, openPostgres}

// schedules.md

type reportInput struct{ Shop string }

var (
	Report = weaver.Define[reportInput, weaver.None]("acme.shop.report.v1")
	Poll   = weaver.Define[weaver.None, weaver.None]("acme.shop.poll.v1")
)

func scheduled(db store.Store, in reportInput) (*weaver.Engine, error) {
	eng, err := weaver.New(db, weaver.Config{
		Program: "shop", ProgramVersion: 12,
		Schedules: []weaver.Schedule{
			weaver.NewSchedule("nightly", Report.With(in), weaver.Cron("0 3 * * *", "Europe/Berlin")),
			weaver.NewSchedule("poll", Poll.With(weaver.None{}), weaver.Every(15*time.Second), weaver.Overlap(weaver.OverlapQueue)),
		},
	})
	return eng, err
}

func TestSchedulesGuide(t *testing.T) {
	if _, err := scheduled(memstore.New(), reportInput{}); err != nil {
		t.Fatal(err)
	}
}

// dashboard.md

func withDashboard(client *weaver.Client, authorize httpapi.Authorizer) (http.Handler, error) {
	api, err := httpapi.New(httpapi.Config{Client: client, Authorize: authorize})
	if err != nil {
		return nil, err
	}
	dash, err := dashboard.New(client, dashboard.Config{API: api, Title: "production"})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/weaver/", http.StripPrefix("/weaver", dash))
	return mux, nil
}

func TestDashboardGuide(t *testing.T) {
	client, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := withDashboard(client, httpapi.Open(httpapi.Principal{Name: "ann", Access: httpapi.Full}))
	if err != nil {
		t.Fatal(err)
	}
	page := httptest.NewRecorder()
	if h.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/weaver/", http.NoBody)); page.Code != http.StatusOK {
		t.Error(page.Code, page.Body)
	}
}

// limits.md

type (
	In  struct{ Page string }
	Out struct{}
)

var Send = weaver.Define[In, Out]("acme.mail.send.v1")

var Render = weaver.Define[In, Out]("acme.page.render.v1", weaver.FairBy("tenant"))

func rated(ctx context.Context, client *weaver.Client, inputs []In) (int, error) {
	handles, err := Send.EnqueueMany(ctx, client, inputs, weaver.RateLimit("partner", 10, time.Second, 5))
	return len(handles), err
}

func limited(ctx context.Context, client *weaver.Client) error {
	err := client.SetLimit(ctx, "queue:billing", weaver.Limit{Running: 5, Pending: 10_000}, weaver.By("ann"), weaver.Reason("month end"))
	return err
}

func TestLimitsGuide(t *testing.T) {
	client, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := rated(t.Context(), client, make([]In, 3)); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if err := limited(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if _, err := Render.Enqueue(t.Context(), client, In{}, weaver.Label("tenant", "acme")); err != nil {
		t.Fatal(err)
	}
}
