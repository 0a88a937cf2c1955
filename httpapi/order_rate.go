package httpapi

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/goweaver/weaver/order"
)

const (
	rateWindow  = time.Minute
	rateClients = 10_000 // that are counted at a time
)

// orderDesk holds the state shared by the routes of orders.
type orderDesk struct {
	store    order.Store
	profiles []order.Profile
	adapter  order.Adapter // nil: nobody is asked
	rate     rate
	metrics  order.Metrics // nil: none
	tracer   order.Tracer
}

func newOrderDesk(cfg *OrderConfig) *orderDesk {
	d := &orderDesk{tracer: untraced{}}
	if cfg == nil {
		return d
	}
	d.rate = rate{most: cfg.RatePerMin, clients: make(map[string]spent)}
	d.store, d.adapter, d.metrics = cfg.Store, cfg.Adapter, cfg.Metrics
	for _, p := range []order.Profile{cfg.Orders, cfg.Webhooks} {
		if p != nil {
			d.profiles = append(d.profiles, p)
		}
	}
	if cfg.Tracer != nil {
		d.tracer = cfg.Tracer
	}
	return d
}

func (d *orderDesk) count(name string, labels ...string) {
	if d.metrics != nil {
		d.metrics.Count(name, 1, labels...)
	}
}

// observe notes how long a phase of a request took.
func (d *orderDesk) observe(phase string, since time.Time) {
	if d.metrics != nil {
		d.metrics.Observe(order.MetricDoOrder, float64(time.Since(since))/float64(time.Millisecond), "phase", phase)
	}
}

// untraced is a Tracer without spans.
type untraced struct{}

// Start implements order.Tracer.
func (untraced) Start(ctx context.Context, _ string, _ ...string) (context.Context, func(error)) {
	return ctx, func(error) {}
}

// rate bounds the requests of each client in a minute. The minute before counts by the part of
// it that lies less than a minute back, so that no minute has more than most requests.
type rate struct {
	most int // 0: no limit

	mu      sync.Mutex
	clients map[string]spent
}

// spent are the requests of a client in its minute and in the one before.
type spent struct {
	since    time.Time
	now, ago int
}

// take counts a request of a client. It returns the seconds to wait if that is over the limit.
func (r *rate) take(client string, at time.Time) (retry int) {
	if r.most <= 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, known := r.clients[client]
	if !known {
		r.makeRoom(at)
	}
	switch gone := at.Sub(s.since); {
	case gone >= 2*rateWindow:
		s = spent{since: at}
	case gone >= rateWindow:
		s = spent{since: s.since.Add(rateWindow), ago: s.now}
	}
	part := float64(at.Sub(s.since)) / float64(rateWindow)
	if free := float64(r.most - s.now - 1); free < float64(s.ago)*(1-part) {
		r.clients[client] = s
		until := 1 - part + 1/float64(r.most) // a moment of the next minute
		if free >= 0 {
			until = 1 - free/float64(s.ago) - part
		}
		return max(1, int(math.Ceil(until*rateWindow.Seconds())))
	}
	s.now++
	r.clients[client] = s
	return 0
}

// makeRoom forgets clients when there are too many: those whose minutes are over, else any.
func (r *rate) makeRoom(at time.Time) {
	if len(r.clients) < rateClients {
		return
	}
	for name, s := range r.clients {
		if at.Sub(s.since) >= 2*rateWindow {
			delete(r.clients, name)
		}
	}
	for name := range r.clients {
		if len(r.clients) < rateClients*9/10 {
			return
		}
		delete(r.clients, name)
	}
}
