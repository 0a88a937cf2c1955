package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/sealorder"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/internal/mcpserver"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/order"
)

// ordersPart is what a process does for orders: it accepts them over HTTP, sends them, or both.
type ordersPart struct {
	cfg     order.Config
	adapter order.Adapter // nil: none is configured
	sends   bool          // it has the role orders
	metrics *httpapi.OrderMetrics

	store  order.Store
	worker *order.Worker // nil: it sends none
}

// ordersPartOf reads the variables of orders before anything is opened; nil: the process does
// nothing for them. sends says that it has the role orders. The http adapter refuses the
// addresses that http tasks are refused.
func ordersPartOf(sends bool, addresses *addressFlags) (*ordersPart, error) {
	cfg, err := orderConfig()
	enabled := strings.TrimSpace(os.Getenv("OUTBOX_ENABLED"))
	_, wrong := strconv.ParseBool(enabled)
	switch {
	case !sends && !cfg.Enabled && (enabled == "" || wrong == nil):
		return nil, nil // whatever the other variables are
	case err != nil:
		return nil, err
	case !cfg.Enabled:
		return nil, badInput("Set OUTBOX_ENABLED=true; docs/orders.md lists the variables.", "the role %s is for orders, and OUTBOX_ENABLED is not true", roleOrders)
	}
	o := &ordersPart{cfg: cfg, sends: sends, metrics: httpapi.NewOrderMetrics()}
	if sends || cfg.Adapter != "" {
		if o.adapter, err = cfg.NewAdapter(partnerClient(addresses)); err != nil {
			return nil, badInput("docs/orders.md lists the variables.", "%w", err)
		}
	}
	return o, nil
}

// partnerClient returns the client of the http adapter. It follows no redirect: the token is for
// BROKER_URL only.
func partnerClient(f *addressFlags) *http.Client {
	return &http.Client{
		Transport:     builtin.Transport(builtin.Config{NoPrivateNetwork: f.NoPrivateNetwork, NoMetadata: true, AllowNetworks: f.allowed}),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// open takes the orders of a store, and makes the worker that sends them.
func (o *ordersPart) open(s *session, client *weaver.Client, drain time.Duration, errs io.Writer) (err error) {
	if o == nil {
		return nil
	}
	if o.store, err = s.ordersOf(client); err != nil || !o.sends {
		return err
	}
	o.worker, err = order.NewWorker(order.WorkerConfig{
		Store: o.store, Namespace: s.flags.Namespace, Adapter: o.adapter, Config: o.cfg, Drain: drain,
		Logger: warnings(errs), Metrics: o.metrics,
	})
	if err != nil {
		return badInput("", "%w", err)
	}
	return nil
}

// routes are the routes that accept orders; nil: there are none.
func (o *ordersPart) routes() *httpapi.OrderConfig {
	if o == nil {
		return nil
	}
	cfg := &httpapi.OrderConfig{Store: o.store, Orders: o.cfg.Orders(), Webhooks: o.cfg.Webhooks(), RatePerMin: o.cfg.RatePerMin, Adapter: o.adapter, Metrics: o.metrics}
	if o.worker != nil {
		cfg.Wake = o.worker.Wake
	}
	return cfg
}

// greet says what is done for orders. api says that they are accepted over HTTP.
func (o *ordersPart) greet(api bool, say func(string, ...any)) {
	if o == nil {
		return
	}
	if api {
		say("orders are accepted at /do/order and /do/webhook, %s", o.limit())
	}
	if o.worker != nil {
		say("orders are sent by the adapter %s, %s at once", o.adapter.Name(), text.Plural(o.cfg.Concurrency, "order"))
	}
}

func (o *ordersPart) limit() string {
	if o.cfg.RatePerMin == 0 {
		return "without a limit of their rate"
	}
	return fmt.Sprintf("at most %d a minute of each client", o.cfg.RatePerMin)
}

// parts are what a process runs for orders.
func (o *ordersPart) parts() []part {
	if o == nil || o.worker == nil {
		return nil
	}
	return []part{{name: "orders", run: func(drain, now context.Context) error {
		defer context.AfterFunc(now, o.worker.StopNow)()
		return o.worker.Run(drain)
	}}}
}

// mcpOrders are the orders of a store for the tools of mcp. They ask the partner at the addresses
// that the flags allow.
func (s *session) mcpOrders(client *weaver.Client, addresses *addressFlags) mcpserver.Orders {
	st, ok := sealorder.Of(client.OpenStore())
	if !ok {
		return mcpserver.Orders{}
	}
	o := mcpserver.Orders{Store: st, Why: func(o *order.Order) string {
		in, _ := s.inner()
		in.printOrder(in.clock.Order(o, s.command))
		return in.out.String()
	}}
	if cfg, err := orderConfig(); err == nil && cfg.Adapter != "" {
		o.Ask = func(ctx context.Context, key string, by order.Audit) (order.Found, error) {
			return askPartner(ctx, &cfg, addresses, st, client.Namespace(), key, by)
		}
	}
	return o
}
