package otelweaver

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// onEvent ends the spans of attempts and counts the attempts. It runs on the goroutine of the attempt; the engine
// recovers from panics.
func (p *Plugin) onEvent(ev event.Event) {
	end, ended := event.EndingOf(ev)
	switch {
	case !ended:
	case end.Outcome == task.OutcomeLeaseLost:
		p.lost(ev.Head(), end)
	default:
		p.ended(ev.Head(), end)
	}
}

// lost ends an attempt whose lease is lost. Both the worker and the process that took the lease away emit the event;
// only the event of the latter, which has the state of the task, is counted.
func (p *Plugin) lost(h event.Header, end event.Ending) {
	queue := p.endSpan(h, end)
	if end.State == "" {
		return
	}
	p.leases.Add(context.Background(), 1, p.attributes(labels{typ: h.TaskType, queue: queue}))
	p.finished.Add(context.Background(), 1, p.attributes(labels{h.TaskType, queue, end.Outcome}))
}

// ended ends the span of an attempt and counts it.
func (p *Plugin) ended(h event.Header, end event.Ending) {
	queue := p.endSpan(h, end)
	ctx := context.Background()
	if !p.finished.Enabled(ctx) && !p.duration.Enabled(ctx) {
		return
	}
	with := p.attributes(labels{h.TaskType, queue, end.Outcome})
	p.finished.Add(ctx, 1, with)
	p.duration.Record(ctx, end.Duration.Seconds(), with)
}

// endSpan returns the queue of the attempt, or "" if its handler was not called here.
func (p *Plugin) endSpan(h event.Header, end event.Ending) (queue string) {
	found, ok := p.attempts.LoadAndDelete(attemptKey{h.TaskID, h.AttemptNo})
	if !ok {
		return ""
	}
	a := found.(*attempt)
	span := a.span
	defer span.End()
	if !span.IsRecording() {
		return a.queue
	}
	attrs := []attribute.KeyValue{keyOutcome.String(string(end.Outcome))}
	if end.Decision != "" {
		attrs = append(attrs, keyDecision.String(string(end.Decision)))
	}
	if end.Waiting != task.WaitNone {
		attrs = append(attrs, keyWaiting.String(string(end.Waiting)))
	}
	span.SetAttributes(attrs...)
	if e := end.Error; e != nil {
		failed(span, end.Outcome, e)
	}
	return a.queue
}

// failed records the error of an attempt. A cancel and a question to a person are not errors: they leave the status
// unset.
func failed(span trace.Span, outcome task.Outcome, e *task.Error) {
	span.SetAttributes(keyErrorType.String(string(e.Kind)))
	if outcome == task.OutcomeCancelled || e.Ask != "" {
		return
	}
	var opts []trace.EventOption
	if e.Stack != "" {
		opts = append(opts, trace.WithAttributes(attribute.String("exception.stacktrace", e.Stack)))
	}
	span.RecordError(errors.New(e.Message), opts...)
	span.SetStatus(codes.Error, e.Message)
}

// orphanAge is the maximum time to keep an attempt that may never end. Its handler never returned, or the engine gave
// up on a store that could not be written.
const orphanAge = 24 * time.Hour

// orphans limits the rate of searches for orphaned attempts.
type orphans struct {
	mu     sync.Mutex
	looked time.Time
}

// keep records an attempt and occasionally ends the spans of those that are too old.
func (p *Plugin) keep(key attemptKey, a *attempt) {
	p.attempts.Store(key, a)
	o := &p.orphans
	o.mu.Lock()
	due := a.begun.Sub(o.looked) > orphanAge/24
	if due {
		o.looked = a.begun
	}
	o.mu.Unlock()
	if !due {
		return
	}
	p.attempts.Range(func(k, v any) bool {
		if old := v.(*attempt); a.begun.Sub(old.begun) > orphanAge {
			if _, mine := p.attempts.LoadAndDelete(k); mine {
				old.span.SetStatus(codes.Error, "the end of the attempt is not known")
				old.span.End()
			}
		}
		return true
	})
}
