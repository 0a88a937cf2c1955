//go:build !js

package httpapi

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
)

const (
	// metricsFor is the time for which a read of the store is reused: frequent or concurrent
	// scrapes do not load it.
	metricsFor = 5 * time.Second
	// metricsLimit bounds the wait for a read.
	metricsLimit = 10 * time.Second
	// maxMetricQueues limits the queues with their own series.
	maxMetricQueues = 500
	// otherLabel is the label of all other queues.
	otherLabel = "(other)"
)

// StoreMetrics holds metrics of the contents of a store, for all processes that use it:
//
//   - weaver_tasks{state,queue}: tasks, each in one series. Ready and running tasks are
//     split by queue; the others have the queue "". A count stops at 10,000.
//   - weaver_dispatch_oldest_seconds{queue}: time for which the first due task has been due;
//     0 without a due task.
//   - weaver_workers{state}: workers that are idle, running, silent or dead.
//   - weaver_worker_troubles{task_type}: workers that cannot run tasks of the type at the
//     moment; no series without such workers.
//   - weaver_chores: unfinished deferred work of verbs, such as the cancel of a large job.
//   - with CountHints: weaver_hints_unsent, weaver_hints_unsent_oldest_seconds,
//     weaver_hints_refused: due tasks whose hint is to be sent now, the time for which the first
//     of them has been, and due tasks whose hint the transport refused for good. They are of the
//     first 256 due tasks of each lane.
//   - weaver_store_up: 1 if the store could be read; if it is 0 the others are missing.
//
// They are read once for each scrape, but at most every 5 seconds. Queues after the first 500 are
// "(other)". One process per store is enough.
//
// Metrics of two namespaces in one registry need different labels: prometheus.WrapCollectorWith.
type StoreMetrics struct {
	client *weaver.Client
	log    *slog.Logger
	hints  bool

	mu   sync.Mutex
	at   time.Time
	last store.Overview
	err  error
}

// NewStoreMetrics returns metrics of a client's store and namespace. log receives read failures;
// nil is slog.Default().
func NewStoreMetrics(client *weaver.Client, log *slog.Logger) *StoreMetrics {
	if log == nil {
		log = slog.Default()
	}
	return &StoreMetrics{client: client, log: log}
}

// CountHints adds the metrics of hints, for stores with a delivery transport. Call it before the
// first use.
func (m *StoreMetrics) CountHints() { m.hints = true }

var (
	descTasks   = prometheus.NewDesc("weaver_tasks", "Tasks by state; ready and running tasks also by queue. Each series stops at 10000.", []string{"state", "queue"}, nil)
	descOldest  = prometheus.NewDesc("weaver_dispatch_oldest_seconds", "Time for which the first due task of a queue has been due, in seconds.", []string{"queue"}, nil)
	descWorkers = prometheus.NewDesc("weaver_workers", "Workers by state.", []string{"state"}, nil)
	descTrouble = prometheus.NewDesc("weaver_worker_troubles", "Workers that cannot run tasks of a type at the moment.", []string{"task_type"}, nil)
	descChores  = prometheus.NewDesc("weaver_chores", "Unfinished deferred work of verbs.", nil, nil)
	descUnsent  = prometheus.NewDesc("weaver_hints_unsent", "Due tasks whose hint is to be sent now.", nil, nil)
	descWaiting = prometheus.NewDesc("weaver_hints_unsent_oldest_seconds", "Time for which the first unsent hint has been to be sent, in seconds.", nil, nil)
	descRefused = prometheus.NewDesc("weaver_hints_refused", "Due tasks whose hint the transport refused for good.", nil, nil)
	descUp      = prometheus.NewDesc("weaver_store_up", "Whether the store could be read.", nil, nil)
)

// Describe implements prometheus.Collector.
func (m *StoreMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descTasks, descOldest, descWorkers, descTrouble, descChores, descUp} {
		ch <- d
	}
	if m.hints {
		ch <- descUnsent
		ch <- descWaiting
		ch <- descRefused
	}
}

// Collect implements prometheus.Collector.
func (m *StoreMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	o, err := m.read()
	if err != nil {
		gauge(descUp, 0)
		return
	}
	gauge(descUp, 1)
	gauge(descChores, float64(o.Counts.Chores.N))
	if m.hints {
		waiting := time.Duration(0)
		if !o.Hints.Since.IsZero() {
			waiting = o.At.Sub(o.Hints.Since)
		}
		gauge(descUnsent, float64(o.Hints.Unsent.N))
		gauge(descWaiting, waiting.Seconds())
		gauge(descRefused, float64(o.Hints.Refused.N))
	}
	for state, n := range o.Counts.States {
		if state != weaver.StateReady && state != weaver.StateRunning {
			gauge(descTasks, float64(n.N), string(state), "")
		}
	}
	for name, q := range byQueue(&o) {
		gauge(descTasks, float64(q.ready), string(weaver.StateReady), name)
		gauge(descTasks, float64(q.running), string(weaver.StateRunning), name)
		gauge(descOldest, q.oldest.Seconds(), name)
	}
	workers := map[string]int{"idle": 0, "running": 0, "silent": 0, "dead": 0}
	troubles := make(map[string]int)
	for i := range o.Workers {
		w := &o.Workers[i]
		workers[workerState(w)]++
		if w.InTrouble() {
			for _, tr := range w.Troubles {
				troubles[tr.TaskType]++
			}
		}
	}
	for name, n := range troubles {
		gauge(descTrouble, float64(n), name)
	}
	for state, n := range workers {
		gauge(descWorkers, float64(n), state)
	}
}

// queueMetrics holds the metrics of a queue.
type queueMetrics struct {
	ready, running int
	oldest         time.Duration
}

// byQueue returns the metrics of the queues. The due tasks of a paused queue are not ready.
func byQueue(o *store.Overview) map[string]queueMetrics {
	all := make(map[string]queueMetrics)
	for i := range o.Queues {
		q := &o.Queues[i]
		if q.Type != "" {
			continue // of a paused task type: its tasks are in queues
		}
		name := q.Name
		if len(all) >= maxMetricQueues {
			name = otherLabel
		}
		sum := all[name]
		if !q.Paused {
			sum.ready += q.Due.N
		}
		sum.running += q.Running.N
		if q.Due.N > 0 && !q.OldestDue.IsZero() {
			sum.oldest = max(sum.oldest, o.At.Sub(q.OldestDue))
		}
		all[name] = sum
	}
	return all
}

func workerState(w *store.WorkerStatus) string {
	switch {
	case w.Dead:
		return "dead"
	case w.Silent:
		return "silent"
	case w.Running.N > 0:
		return "running"
	}
	return "idle"
}

// read returns the contents of the store, possibly those of a recent read.
func (m *StoreMetrics) read() (store.Overview, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.at.IsZero() && time.Since(m.at) < metricsFor {
		return m.last, m.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), metricsLimit)
	defer cancel()
	parts := store.OverviewCounts | store.OverviewQueues | store.OverviewWorkers
	if m.hints {
		parts |= store.OverviewHints
	}
	m.last, m.err = m.client.Overview(ctx, store.OverviewRequest{Parts: parts})
	if m.at = time.Now(); m.err != nil {
		m.log.Warn("read the store for its metrics", "error", m.err)
	}
	return m.last, m.err
}
