package otelweaver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// instruments are the metrics of tasks.
type instruments struct {
	enqueued metric.Int64Counter
	finished metric.Int64Counter
	leases   metric.Int64Counter
	duration metric.Float64Histogram
	wait     metric.Float64Histogram
}

// buckets are the histogram bounds of durations, in seconds: from a millisecond to an hour.
var buckets = []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}

func newInstruments(m metric.Meter) (in instruments, err error) {
	var errs [5]error
	in.enqueued, errs[0] = m.Int64Counter("weaver.task.enqueued", metric.WithUnit("{task}"),
		metric.WithDescription("Tasks that were stored: enqueued, submitted in jobs, or by handlers."))
	in.finished, errs[1] = m.Int64Counter("weaver.attempt.finished", metric.WithUnit("{attempt}"),
		metric.WithDescription("Attempts that ended, by outcome."))
	in.leases, errs[2] = m.Int64Counter("weaver.lease.lost", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that this process took from workers that died or fell silent."))
	in.duration, errs[3] = m.Float64Histogram("weaver.attempt.duration", metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(buckets...),
		metric.WithDescription("How long attempts ran."))
	in.wait, errs[4] = m.Float64Histogram("weaver.task.wait", metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(buckets...),
		metric.WithDescription("How long tasks that were due waited for a worker."))
	if err := errors.Join(errs[:]...); err != nil {
		return in, fmt.Errorf("make the instruments: %w", err)
	}
	return in, nil
}

// labels are the attributes of a measurement; empty ones are omitted.
type labels struct {
	typ, queue string
	outcome    task.Outcome
}

// attributes returns the cached option for labels: sorting a set costs more than counting. The cache has one entry
// per series of the metrics.
func (p *Plugin) attributes(l labels) metric.MeasurementOption {
	if known, ok := p.options.Load(l); ok {
		return known.(metric.MeasurementOption)
	}
	attrs := make([]attribute.KeyValue, 0, 3)
	attrs = append(attrs, keyType.String(l.typ))
	if l.queue != "" {
		attrs = append(attrs, keyQueue.String(l.queue))
	}
	if l.outcome != "" {
		attrs = append(attrs, keyOutcome.String(string(l.outcome)))
	}
	made := metric.WithAttributeSet(attribute.NewSet(attrs...))
	p.options.Store(l, made)
	return made
}

// onStored counts a new task.
func (p *Plugin) onStored(ctx context.Context, typ, queue string) {
	if p.enqueued.Enabled(ctx) {
		p.enqueued.Add(ctx, 1, p.attributes(labels{typ: typ, queue: queue}))
	}
}

// countsFor is the time for which queue counts are reused without a call of the store, so that frequent readers cost
// it nothing.
const countsFor = 10 * time.Second

// ObserveQueues registers the gauge weaver.queue.depth: the number of due tasks and of later tasks in each queue, as
// counted by client.Queues. It counts at most every 10 seconds. One process per store is enough. stop unregisters it.
func (p *Plugin) ObserveQueues(client *weaver.Client) (stop func() error, err error) {
	if client == nil {
		return nil, errors.New("observe the queues: the client is nil")
	}
	if p.problem != nil {
		return nil, fmt.Errorf("observe the queues: %w", p.problem)
	}
	gauge, err := p.meter.Int64ObservableGauge("weaver.queue.depth", metric.WithUnit("{task}"),
		metric.WithDescription("Tasks that wait in a queue: due, or due later; up to 10,000."))
	if err != nil {
		return nil, fmt.Errorf("observe the queues: %w", err)
	}
	counts := &queueCounts{client: client}
	reg, err := p.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		queues, err := counts.get(ctx)
		if err != nil {
			return err
		}
		for _, q := range queues {
			if q.Type == "" {
				o.ObserveInt64(gauge, int64(q.Due.N), metric.WithAttributes(keyNamespace.String(client.Namespace()), keyQueue.String(q.Name), keyDue.String("now")))
				o.ObserveInt64(gauge, int64(q.Later.N), metric.WithAttributes(keyNamespace.String(client.Namespace()), keyQueue.String(q.Name), keyDue.String("later")))
			}
		}
		return nil
	}, gauge)
	if err != nil {
		return nil, fmt.Errorf("observe the queues: %w", err)
	}
	return reg.Unregister, nil
}

// keyDue is the attribute that tells whether the counted tasks are due now or later.
const keyDue = attribute.Key("weaver.due")

// queueCounts caches the last counts.
type queueCounts struct {
	client *weaver.Client
	mu     sync.Mutex
	at     time.Time
	queues []store.Queue
}

func (c *queueCounts) get(ctx context.Context) ([]store.Queue, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() && time.Since(c.at) < countsFor {
		return c.queues, nil
	}
	queues, err := c.client.Queues(ctx)
	if err == nil {
		c.queues, c.at = queues, time.Now()
	}
	return queues, err
}
