package order

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/goweaver/weaver/internal/batch"
	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/internal/rules"
)

// WorkerConfig describes a Worker.
type WorkerConfig struct {
	Store     Store
	Namespace string  // "default" unless set
	Adapter   Adapter // that sends; a Reconciler is used if it is one
	Config    Config  // DefaultConfig where fields are zero
	// Drain is the time that a stopping worker waits for running sends; 10 s unless set.
	Drain time.Duration
	// BreakerOpen is the time that the circuit breaker stays open; 1 minute unless set.
	BreakerOpen time.Duration
	Logger      *slog.Logger // optional
	Metrics     Metrics      // optional
	Tracer      Tracer       // optional
}

// Worker sends orders. Any number of workers may run on one store.
type Worker struct {
	cfg   WorkerConfig
	id    string
	name  string
	rec   Reconciler // nil if the adapter cannot reconcile
	brk   breaker
	sends *batch.Queue[*sendOp]
	ends  *batch.Queue[*endOp]
	wake  chan struct{}
	news  chan struct{} // the breaker's state is to be announced now

	mu    sync.Mutex
	held  map[string]*holding // claimed rows, by key
	queue []*holding          // of these, those that wait for a slot
	busy  int                 // sends that run
	stop  func()              // of StopNow; nil without a Run

	down   bool   // the store failed at the last look; of the main loop
	paused string // why nothing is sent, as it was logged; of the main loop
	said   Sender // as announced; of join, then of announce
}

// holding is a claimed row. The worker relies on its lease until trusted.
type holding struct {
	row     Row
	trusted time.Time
	sent    bool // the partner may get it from now on
}

// NewWorker returns a worker. It does nothing until Run.
func NewWorker(cfg WorkerConfig) (*Worker, error) {
	if cfg.Store == nil {
		return nil, errors.New("order.NewWorker: Store is nil: this store keeps no orders")
	}
	if cfg.Adapter == nil {
		return nil, errors.New("order.NewWorker: Adapter is nil")
	}
	d := DefaultConfig()
	c := &cfg.Config
	if c.Concurrency <= 0 {
		c.Concurrency = d.Concurrency
	}
	if c.Batch <= 0 {
		c.Batch = d.Batch
	}
	if c.PollInterval <= 0 {
		c.PollInterval = d.PollInterval
	}
	if c.Lease <= 0 {
		c.Lease = d.Lease
	}
	if c.MaxAttempts <= 0 {
		c.MaxAttempts = d.MaxAttempts
	}
	if len(c.Backoff) == 0 {
		c.Backoff = d.Backoff
	}
	if cfg.Namespace == "" {
		cfg.Namespace = "default"
	}
	if cfg.Drain <= 0 {
		cfg.Drain = 10 * time.Second
	}
	if cfg.BreakerOpen <= 0 {
		cfg.BreakerOpen = breakerOpen
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if cfg.Metrics == nil {
		cfg.Metrics = noMetrics{}
	}
	if cfg.Tracer == nil {
		cfg.Tracer = noTracer{}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	w := &Worker{cfg: cfg, id: rand.Text(), name: fmt.Sprintf("%s:%d/orders", host, os.Getpid()), wake: make(chan struct{}, 1), news: make(chan struct{}, 1), held: make(map[string]*holding)}
	w.rec, _ = cfg.Adapter.(Reconciler)
	w.brk.open = cfg.BreakerOpen
	w.sends = batch.New(256, w.commitSends)
	w.ends = batch.New(256, w.commitEnds)
	return w, nil
}

// Wake has the worker look for due orders now.
func (w *Worker) Wake() { signal(w.wake) }

// Run sends orders until ctx ends. Then it claims no more, waits for sends that run, at most for
// Drain, and gives back all other orders. The error is that of joining the store.
func (w *Worker) Run(ctx context.Context) error { return w.run(ctx, false) }

// RunUntilIdle sends orders until no order is due.
func (w *Worker) RunUntilIdle(ctx context.Context) error { return w.run(ctx, true) }

func (w *Worker) run(ctx context.Context, untilIdle bool) error {
	if err := w.join(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("order worker: join the store: %w", err)
	}
	ctx, now, end := w.until(ctx)
	defer end()
	// Sends and settlements go on after ctx has ended.
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g := group.New(inner)
	g.Go("order heartbeat", func(ctx context.Context) error { w.beat(ctx); return nil })
	g.Go("order announce", func(ctx context.Context) error { w.announce(ctx); return nil })
	g.Go("order reclaim", func(ctx context.Context) error { w.reclaim(ctx); return nil })
	var running sync.WaitGroup
	w.loop(ctx, untilIdle, func(h *holding) {
		running.Add(1)
		g.Go("order send", func(work context.Context) error {
			defer running.Done()
			for ; h != nil; h = w.freed(ctx, h) {
				w.process(work, h)
			}
			return nil
		})
	})
	drained := make(chan struct{})
	g.Go("order drain", func(context.Context) error { running.Wait(); close(drained); return nil })
	limit := time.NewTimer(w.cfg.Drain)
	defer limit.Stop()
	select {
	case <-drained:
	case <-now:
	case <-limit.C:
		w.cfg.Logger.Warn("order worker: sends still run after the drain time", "drain", w.cfg.Drain)
	}
	kept := w.giveBack(inner, true)
	stop()
	err := g.Wait()
	if kept != nil {
		return nil // its row stays: others take the leases when this process has ended
	}
	left, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	if lerr := w.cfg.Store.LeaveOrders(left, w.cfg.Namespace, w.id); lerr != nil && err == nil && ctx.Err() == nil {
		err = lerr
	}
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return err
}

func (w *Worker) join(ctx context.Context) error {
	now := w.brk.state(w.cfg.Adapter.Name(), time.Now())
	err := w.cfg.Store.JoinOrders(ctx, w.cfg.Namespace, WorkerInfo{ID: w.id, Name: w.name, Lease: w.cfg.Config.Lease, Sender: now})
	if err == nil {
		w.said = now
	}
	return err
}

// loop claims rows into free slots and starts their sends.
func (w *Worker) loop(ctx context.Context, untilIdle bool, start func(*holding)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		wait, idle := w.step(ctx, start)
		if idle && untilIdle {
			return
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-timer.C:
		}
	}
}

// step starts sends and claims once. It returns the time to wait, unless woken, and whether
// nothing is due or runs.
func (w *Worker) step(ctx context.Context, start func(*holding)) (wait time.Duration, idle bool) {
	poll := w.cfg.Config.PollInterval
	if pause, why := w.brk.wait(time.Now()); pause > 0 {
		if w.paused != why {
			w.paused = why
			w.cfg.Logger.Warn("order worker: nothing is sent for now", "for", pause.Round(time.Second), "reason", why)
		}
		_ = w.giveBack(context.WithoutCancel(ctx), false) // logged; their leases end
		w.mu.Lock()
		defer w.mu.Unlock()
		return min(pause, max(poll, time.Second)), w.busy == 0
	}
	w.paused = ""
	w.startQueued(start)
	w.mu.Lock()
	room := 0
	if len(w.queue) < w.cfg.Config.Concurrency {
		room = w.cfg.Config.Batch
	}
	busy := w.busy
	w.mu.Unlock()
	if room == 0 {
		return poll, false
	}
	began := time.Now()
	got, err := w.cfg.Store.ClaimOrders(ctx, w.cfg.Namespace, ClaimRequest{
		Worker: w.id, Lease: w.cfg.Config.Lease, Limit: room, MaxAttempts: w.cfg.Config.MaxAttempts,
	})
	if err != nil {
		w.storeFailed(ctx, "claim", err)
		return max(poll, time.Second), false
	}
	w.down = false
	w.cfg.Metrics.Observe(MetricLatency, ms(time.Since(began)), "phase", "claim")
	if got.Settled > 0 {
		w.cfg.Metrics.Count(MetricProcessed, got.Settled, "outcome", "without_send")
	}
	if len(got.Claimed) == 0 {
		if got.Next >= 0 {
			poll = min(poll, max(got.Next, time.Millisecond))
		}
		return poll, busy == 0 && (got.Next < 0 || got.Next > 0)
	}
	w.cfg.Metrics.Count(MetricClaimed, len(got.Claimed))
	w.mu.Lock()
	for i := range got.Claimed {
		// Counted from before the call: the store's lease ends later.
		h := &holding{row: got.Claimed[i], trusted: began.Add(w.clock().Validity())}
		w.held[h.row.Key] = h
		w.queue = append(w.queue, h)
	}
	w.mu.Unlock()
	w.startQueued(start)
	return 0, false
}

func (w *Worker) clock() rules.LeaseClock { return rules.LeaseClock(w.cfg.Config.Lease) }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (w *Worker) storeFailed(ctx context.Context, what string, err error) {
	if ctx.Err() == nil && !w.down {
		w.down = true
		w.cfg.Logger.Error("order worker: the store failed; trying again", "call", what, "error", err)
	}
}

func (w *Worker) startQueued(start func(*holding)) {
	for {
		w.mu.Lock()
		// A send that pauses the adapter does so before its slot is free.
		if pause, _ := w.brk.wait(time.Now()); pause > 0 || w.busy >= w.cfg.Config.Concurrency || len(w.queue) == 0 {
			w.mu.Unlock()
			return
		}
		h := w.queue[0]
		w.queue = w.queue[1:]
		w.busy++
		w.mu.Unlock()
		start(h)
	}
}

// freed ends the work on a row and returns the next one for its slot, so that no slot waits for
// a claim that is under way; nil: the slot is free.
func (w *Worker) freed(ctx context.Context, h *holding) (next *holding) {
	defer w.Wake()
	pause, _ := w.brk.wait(time.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[h.row.Key] == h {
		delete(w.held, h.row.Key)
	}
	if len(w.queue) > 0 && pause <= 0 && ctx.Err() == nil {
		next, w.queue = w.queue[0], w.queue[1:]
		return next
	}
	w.busy--
	return nil
}

func (h *holding) lease() Lease { return Lease{Key: h.row.Key, Token: h.row.Token} }

// beat renews the leases of all claimed rows, also of those that wait for a slot, every half
// of a lease (60 of 120 s), and counts as a sign of life.
func (w *Worker) beat(ctx context.Context) {
	every := w.clock().OrderHeartbeat()
	wait := every
	for sleep(ctx, wait) {
		w.mu.Lock()
		list := make([]*holding, 0, len(w.held))
		leases := make([]Lease, 0, len(w.held))
		for _, h := range w.held {
			list, leases = append(list, h), append(leases, h.lease())
		}
		w.mu.Unlock()
		began := time.Now()
		call, cancel := context.WithTimeout(ctx, every)
		lost, err := w.cfg.Store.RenewOrders(call, w.cfg.Namespace, w.id, w.cfg.Config.Lease, leases...)
		cancel()
		if err != nil {
			wait = w.clock().HeartbeatAgain()
			continue
		}
		wait = every
		w.mu.Lock()
		for i, h := range list {
			if !lost[i] {
				h.trusted = began.Add(w.clock().Validity())
			}
		}
		w.mu.Unlock()
	}
}

// pruneEvery is the interval at which a worker removes settled orders after their retention.
const pruneEvery = 10 * time.Minute

// reclaim takes leases of dead workers back, and keeps house.
func (w *Worker) reclaim(ctx context.Context) {
	every := w.clock().Reap()
	pruned := time.Now()
	for wait := time.Duration(0); sleep(ctx, wait); {
		wait = min(every, 5*time.Second)
		got, err := w.cfg.Store.ReclaimOrders(ctx, w.cfg.Namespace, w.id, w.cfg.Config.Lease)
		if err != nil {
			continue
		}
		if got.Expired > 0 {
			w.cfg.Metrics.Count(MetricLeaseExpired, got.Expired)
			w.cfg.Logger.Info("order worker: took leases back", "orders", got.Expired, "counted", got.Counted)
			w.Wake()
		}
		if got.Next > 0 {
			wait = min(wait, got.Next+time.Millisecond)
		}
		for more := time.Since(pruned) > pruneEvery; more; {
			ack, err := w.cfg.Store.OperateOrder(ctx, w.cfg.Namespace, Prune{})
			if more = err == nil && ack.More; !more {
				pruned = time.Now()
			}
		}
	}
}

// sleep waits and reports whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
