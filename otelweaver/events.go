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

// end is what became of an attempt.
type end struct {
	outcome  task.Outcome
	decision task.DecisionKind
	waiting  task.Waiting
	err      *task.Error
	duration time.Duration
}

// onEvent ends the spans of attempts and counts them. It is called on the goroutine of
// the attempt; a panic is caught by the engine.
func (p *Plugin) onEvent(ev event.Event) {
	switch e := ev.(type) {
	case event.TaskSucceeded:
		p.ended(e.Header, end{outcome: task.OutcomeSuccess, duration: e.Duration})
	case event.TaskFailed:
		p.ended(e.Header, end{outcome: task.OutcomeFailure, decision: task.DecideMarkDead, err: &e.Error, duration: e.Duration})
	case event.TaskRetrying:
		p.ended(e.Header, end{outcome: task.OutcomeFailure, decision: task.DecideRetry, err: &e.Error, duration: e.Duration})
	case event.TaskBlocked:
		p.ended(e.Header, end{outcome: task.OutcomeBlocked, decision: task.DecideBlock, err: &e.Error, duration: e.Duration})
	case event.TaskSuspended:
		p.suspended(e)
	case event.TaskUndoing:
		what := end{outcome: task.OutcomeFailure, waiting: task.WaitUndo, err: &e.Error, duration: e.Duration}
		if e.EndsAs == task.Cancelled {
			what.outcome = task.OutcomeCancelled
		}
		p.ended(e.Header, what)
	case event.TaskCancelled:
		p.ended(e.Header, end{outcome: task.OutcomeCancelled, err: &e.Error, duration: e.Duration})
	case event.TaskReleased:
		p.ended(e.Header, end{outcome: task.OutcomeReleased, err: e.Error, duration: e.Duration})
	case event.TaskLeaseLost:
		p.lost(e)
	}
}

// suspended ends an attempt that waits. One that failed waits by decision.
func (p *Plugin) suspended(e event.TaskSuspended) {
	what := end{outcome: task.OutcomeSuspended, waiting: e.Waiting, err: e.Error, duration: e.Duration}
	switch {
	case e.Error != nil && e.Waiting == task.WaitUndo:
		what.outcome = task.OutcomeUndoFailed
	case e.Error != nil:
		what.outcome = task.OutcomeFailure
		switch what.decision = task.DecideDecompose; e.Waiting {
		case task.WaitDeps:
			what.decision = task.DecideAddDependency
		case task.WaitRepair:
			what.decision = task.DecideRepair
		}
	}
	p.ended(e.Header, what)
}

// lost ends an attempt whose lease is gone. The worker that had it and the process that
// took it away both say so; what the second says is counted.
func (p *Plugin) lost(e event.TaskLeaseLost) {
	what := end{outcome: task.OutcomeLeaseLost, err: &task.Error{Kind: task.KindLeaseExpired, Message: "the lease was lost"}, duration: e.Duration}
	if e.State == "" {
		p.endSpan(e.Header, what)
		return
	}
	queue := p.endSpan(e.Header, what)
	p.leases.Add(context.Background(), 1, p.attributes(labels{typ: e.TaskType, queue: queue}))
	p.finished.Add(context.Background(), 1, p.attributes(labels{e.TaskType, queue, what.outcome}))
}

// ended ends the span of an attempt and counts it.
func (p *Plugin) ended(h event.Header, what end) {
	queue := p.endSpan(h, what)
	ctx := context.Background()
	if !p.finished.Enabled(ctx) && !p.duration.Enabled(ctx) {
		return
	}
	with := p.attributes(labels{h.TaskType, queue, what.outcome})
	p.finished.Add(ctx, 1, with)
	p.duration.Record(ctx, what.duration.Seconds(), with)
}

// endSpan returns the queue of the attempt, "" if its handler was not called here.
func (p *Plugin) endSpan(h event.Header, what end) (queue string) {
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
	attrs := []attribute.KeyValue{keyOutcome.String(string(what.outcome))}
	if what.decision != "" {
		attrs = append(attrs, keyDecision.String(string(what.decision)))
	}
	if what.waiting != task.WaitNone {
		attrs = append(attrs, keyWaiting.String(string(what.waiting)))
	}
	span.SetAttributes(attrs...)
	if e := what.err; e != nil {
		failed(span, what.outcome, e)
	}
	return a.queue
}

// failed records the error of an attempt. A cancel, and a question to a person, are
// none: they leave the status unset.
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

// orphanAge is how long an attempt may be kept that may have no end: its handler never
// returned, or the store could not be written until the engine gave up.
const orphanAge = 24 * time.Hour

// orphans limits how often they are looked for.
type orphans struct {
	mu     sync.Mutex
	looked time.Time
}

// keep notes an attempt, and now and then ends the spans of those that are too old.
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
