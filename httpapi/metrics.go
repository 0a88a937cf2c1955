//go:build !js

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// Metrics holds metrics of the engines of this process, as a plug-in:
//
//	metrics := httpapi.NewMetrics()
//	eng, err := weaver.New(db, weaver.Config{Plugins: []weaver.Plugin{metrics}, …})
//	registry.MustRegister(metrics, httpapi.NewStoreMetrics(eng.Client, nil))
//	api, err := httpapi.New(httpapi.Config{Client: eng.Client, Metrics: registry, …})
//
// The metrics are:
//
//   - weaver_attempts_total{type,outcome,error_kind}: attempts that ended here, and those
//     of other workers whose leases this process took over (lease_lost).
//   - weaver_undos_total{type,result}: undo phases that attempts here began ("began"), failed
//     tries in them that are retried ("failed"), and phases that were given up ("given_up").
//   - weaver_attempt_seconds: duration of attempts.
//   - weaver_claim_latency_seconds: time for which tasks were due before they began.
//   - weaver_steps_total: runs of step functions, counting each try.
//   - weaver_leases_lost_total{why}: leases that this process took over ("taken", or
//     "crash" if that counts against the crash budget), and leases of its own attempts that
//     were lost when these ended ("dropped").
//   - weaver_store_op_seconds{op}: the engine's calls of the store; see
//     weaver.Setup.OnStoreCall. claim_or_wait is omitted: mostly it waits for work.
//   - weaver_hints_pushed_total{result}: hints that the publisher here pushed to the delivery
//     transport: "taken", "failed" (pushed again later) or "refused" for good.
//   - weaver_hints_popped_total, weaver_hints_useless_total: hints received from the transport,
//     and those of them whose task could not be claimed here.
//
// The label type has the task types with a handler in the engines, and "(other)".
type Metrics struct {
	attempts *prometheus.CounterVec
	undos    *prometheus.CounterVec
	lost     *prometheus.CounterVec
	steps    prometheus.Counter
	ran      prometheus.Histogram
	latency  prometheus.Histogram
	ops      *prometheus.HistogramVec

	mu    sync.RWMutex
	types map[string]bool // with a handler

	engines map[*weaver.Engine]bool
}

// NewMetrics returns empty metrics of engines.
func NewMetrics() *Metrics {
	seconds := []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
	m := &Metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weaver_attempts_total", Help: "Attempts that ended."}, []string{"type", "outcome", "error_kind"}),
		undos:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weaver_undos_total", Help: "Undo phases that began, failed tries in them, and those that were given up."}, []string{"type", "result"}),
		lost:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weaver_leases_lost_total", Help: "Leases that were taken over or lost."}, []string{"why"}),
		steps:    prometheus.NewCounter(prometheus.CounterOpts{Name: "weaver_steps_total", Help: "Runs of step functions."}),
		ran:      prometheus.NewHistogram(prometheus.HistogramOpts{Name: "weaver_attempt_seconds", Help: "Duration of attempts in seconds.", Buckets: seconds}),
		latency:  prometheus.NewHistogram(prometheus.HistogramOpts{Name: "weaver_claim_latency_seconds", Help: "Time for which tasks were due before they began, in seconds.", Buckets: seconds}),
		ops: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weaver_store_op_seconds", Help: "Duration of the engine's calls of the store in seconds.",
			Buckets: []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
		}, []string{"op"}),
		types: make(map[string]bool), engines: make(map[*weaver.Engine]bool),
	}
	for _, why := range []string{lostTaken, lostCrash, lostDropped} {
		m.lost.WithLabelValues(why)
	}
	return m
}

// waitingOp is the store call whose duration depends on the engine's idle time and not on the
// store.
const waitingOp = "claim_or_wait"

// Reasons for lost leases.
const (
	lostTaken   = "taken"
	lostCrash   = "crash"
	lostDropped = "dropped"
)

// Results of undos.
const (
	undoBegan   = "began"
	undoFailed  = "failed"
	undoGivenUp = "given_up"
)

// Install implements weaver.Plugin.
func (m *Metrics) Install(s *weaver.Setup) error {
	if m == nil || m.types == nil {
		return errors.New("the metrics are empty: make them with NewMetrics")
	}
	s.OnStart(m.start)
	s.OnAttempt(m.onEvent)
	s.OnStoreCall(func(op string, took time.Duration, _ error) {
		if op != waitingOp {
			m.ops.WithLabelValues(op).Observe(took.Seconds())
		}
	})
	s.WrapHandler(func(next weaver.HandlerFunc) weaver.HandlerFunc {
		return func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
			m.latency.Observe(weaver.Current(ctx).Waited.Seconds())
			return next(ctx, input)
		}
	})
	s.WrapStep(func(next weaver.StepFunc) weaver.StepFunc {
		return func(ctx context.Context, name string) (json.RawMessage, error) {
			m.steps.Inc()
			return next(ctx, name)
		}
	})
	return nil
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.attempts, m.undos, m.lost, m.steps, m.ran, m.latency, m.ops}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(ch)
	}
	ch <- descPushed
	ch <- descPopped
	ch <- descUseless
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(ch)
	}
	m.collectHints(ch)
}

var (
	descPushed  = prometheus.NewDesc("weaver_hints_pushed_total", "Hints that the publisher pushed to the delivery transport.", []string{"result"}, nil)
	descPopped  = prometheus.NewDesc("weaver_hints_popped_total", "Hints received from the delivery transport.", nil, nil)
	descUseless = prometheus.NewDesc("weaver_hints_useless_total", "Received hints whose task could not be claimed here.", nil, nil)
)

// collectHints writes the sums over the engines.
func (m *Metrics) collectHints(ch chan<- prometheus.Metric) {
	var sum weaver.HintCounts
	m.mu.RLock()
	for e := range m.engines {
		h := e.Hints()
		sum.Pushed, sum.Failed, sum.Refused = sum.Pushed+h.Pushed, sum.Failed+h.Failed, sum.Refused+h.Refused
		sum.Popped, sum.Useless = sum.Popped+h.Popped, sum.Useless+h.Useless
	}
	m.mu.RUnlock()
	counter := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	counter(descPushed, sum.Pushed, "taken")
	counter(descPushed, sum.Failed, "failed")
	counter(descPushed, sum.Refused, "refused")
	counter(descPopped, sum.Popped)
	counter(descUseless, sum.Useless)
}

// start learns the task types of an engine before it claims tasks.
func (m *Metrics) start(_ context.Context, e *weaver.Engine) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.engines[e] = true
	for _, t := range e.Handlers() {
		m.types[t.Name()] = true
	}
	return nil
}

// typeLabel returns the type, or "(other)" if no engine has a handler for it.
func (m *Metrics) typeLabel(name string) string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.types[name] {
		return name
	}
	return otherLabel
}

var errorKinds = task.ErrorKinds()

// onEvent counts the end of an attempt.
func (m *Metrics) onEvent(ev event.Event) {
	end, ended := event.EndingOf(ev)
	if !ended {
		return
	}
	h := ev.Head()
	switch {
	case end.Outcome == task.OutcomeLeaseLost:
		m.leaseLost(h, &end)
		return
	case end.Outcome == task.OutcomeUndoFailed:
		m.undo(h, undoFailed)
	case end.State == task.Failed && end.Kind() == task.KindUndoFailed:
		m.undo(h, undoGivenUp)
	case end.State == task.Pending && end.Waiting == task.WaitUndo && end.Outcome != task.OutcomeSuspended:
		m.undo(h, undoBegan)
	}
	m.ended(h, end.Outcome, end.Error, end.Duration)
}

func (m *Metrics) undo(h event.Header, result string) {
	m.undos.WithLabelValues(m.typeLabel(h.TaskType), result).Inc()
}

func (m *Metrics) ended(h event.Header, outcome task.Outcome, err *task.Error, took time.Duration) {
	kind := ""
	if err != nil {
		if kind = string(err.Kind); !slices.Contains(errorKinds, err.Kind) {
			kind = otherLabel
		}
	}
	m.attempts.WithLabelValues(m.typeLabel(h.TaskType), string(outcome), kind).Inc()
	m.ran.Observe(took.Seconds())
}

// leaseLost counts a lost lease. Both the worker that had the lease and the process that took it
// report it; the attempt is counted once, with the data of the latter.
func (m *Metrics) leaseLost(h event.Header, end *event.Ending) {
	why := lostTaken
	switch {
	case end.State == "":
		m.lost.WithLabelValues(lostDropped).Inc()
		return
	case end.Crash:
		why = lostCrash
	}
	m.lost.WithLabelValues(why).Inc()
	m.attempts.WithLabelValues(m.typeLabel(h.TaskType), string(end.Outcome), string(end.Kind())).Inc()
}

// storeMetrics returns the default source of GET /metrics.
func storeMetrics(cfg *Config) Gatherer {
	r := prometheus.NewRegistry()
	r.MustRegister(NewStoreMetrics(cfg.Client, cfg.Logger))
	return r
}

// metrics writes GET /metrics in the text format of Prometheus.
func (c *call) metrics() error {
	got, err := c.api.cfg.Metrics.Gather()
	if err != nil {
		return fmt.Errorf("gather the metrics: %w", err)
	}
	r := c.r.Clone(c.r.Context())
	r.Header.Set("Accept", "text/plain") // the format in the document
	promhttp.HandlerFor(prometheus.GathererFunc(given(got)), promhttp.HandlerOpts{DisableCompression: true}).ServeHTTP(c.w, r)
	return nil
}

// Gatherer gathers metrics, as a registry of Prometheus does.
type Gatherer = prometheus.Gatherer

func given[T any](v T) func() (T, error) { return func() (T, error) { return v, nil } }
