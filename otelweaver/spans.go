package otelweaver

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/goweaver/weaver"
)

// readLimit is the maximum time that an attempt waits for the span of the previous one.
const readLimit = time.Second

// Attributes. The messaging ones follow the semantic conventions.
const (
	keyNamespace = attribute.Key("weaver.namespace")
	keyTask      = attribute.Key("weaver.task.id")
	keyType      = attribute.Key("weaver.task.type")
	keyQueue     = attribute.Key("weaver.queue")
	keyJob       = attribute.Key("weaver.job.id")
	keyNode      = attribute.Key("weaver.node")
	keyAttempt   = attribute.Key("weaver.attempt")
	keyStep      = attribute.Key("weaver.step")
	keyOutcome   = attribute.Key("weaver.outcome")
	keyDecision  = attribute.Key("weaver.decision")
	keyWaiting   = attribute.Key("weaver.waiting")
	keyErrorType = attribute.Key("error.type")
	keyLink      = attribute.Key("weaver.link")

	keySystem        = attribute.Key("messaging.system")
	keyOperation     = attribute.Key("messaging.operation.name")
	keyOperationType = attribute.Key("messaging.operation.type")
	keyDestination   = attribute.Key("messaging.destination.name")
	keyMessage       = attribute.Key("messaging.message.id")
	keyBatch         = attribute.Key("messaging.batch.message_count")
)

var system = keySystem.String("weaver")

// wrapEnqueue creates the spans of enqueues.
func (p *Plugin) wrapEnqueue(next weaver.EnqueueFunc) weaver.EnqueueFunc {
	return func(ctx context.Context, drafts ...weaver.Draft) ([]weaver.Enqueued, error) {
		var span trace.Span
		inner := ctx
		p.guard("enqueue", func() {
			typ, queue := common(drafts)
			name := "enqueue"
			if typ != "" {
				name += " " + typ
			}
			inner, span = p.start(ctx, name, trace.SpanKindProducer, func() []attribute.KeyValue {
				return describe(typ, queue, len(drafts))
			})
		})
		got, err := next(inner, drafts...)
		p.guard("enqueue", func() {
			if span != nil {
				defer span.End()
				if len(got) == 1 {
					id := got[0].ID.String()
					span.SetAttributes(keyMessage.String(id), keyTask.String(id))
				}
				if err != nil {
					fail(ctx, span, err)
				}
			}
		})
		return got, err
	}
}

// common returns the type and queue of the drafts, each "" if they differ.
func common(drafts []weaver.Draft) (typ, queue string) {
	for i, d := range drafts {
		if i == 0 {
			typ, queue = d.Type(), d.Queue()
		}
		if d.Type() != typ {
			typ = ""
		}
		if d.Queue() != queue {
			queue = ""
		}
	}
	return typ, queue
}

func describe(typ, queue string, n int) []attribute.KeyValue {
	attrs := []attribute.KeyValue{system, keyOperation.String("enqueue"), keyOperationType.String("send")}
	if typ != "" {
		attrs = append(attrs, keyType.String(typ))
	}
	if queue != "" {
		attrs = append(attrs, keyQueue.String(queue), keyDestination.String(queue))
	}
	if n > 1 {
		attrs = append(attrs, keyBatch.Int(n))
	}
	return attrs
}

// start begins a span. Samplers see its attributes. Without an SDK the attributes are not created; the first span
// after an SDK is set up gets them just after its start.
func (p *Plugin) start(ctx context.Context, name string, kind trace.SpanKind, attrs func() []attribute.KeyValue, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	parent := trace.SpanContextFromContext(ctx)
	opts = append(opts, trace.WithSpanKind(kind))
	late := p.idle.Load()
	if !late {
		opts = append(opts, trace.WithAttributes(attrs()...))
	}
	ctx, span := p.tracer.Start(ctx, name, opts...)
	idle := !span.IsRecording() && (!span.SpanContext().IsValid() || span.SpanContext().SpanID() == parent.SpanID())
	if idle != late {
		p.idle.Store(idle)
	}
	if late && span.IsRecording() {
		span.SetAttributes(attrs()...)
	}
	return ctx, span
}

// attemptKey identifies an attempt within this process.
type attemptKey struct {
	task weaver.TaskID
	no   int
}

// attempt is an attempt that has not ended.
type attempt struct {
	span  trace.Span
	queue string
	begun time.Time
}

// wrapHandler creates the spans of attempts. onEvent ends them, because the outcome is known only when it is durable.
func (p *Plugin) wrapHandler(next weaver.HandlerFunc) weaver.HandlerFunc {
	return func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		inner := ctx
		p.guard("handler", func() { inner = p.begin(ctx) })
		return next(inner, input)
	}
}

func (p *Plugin) begin(ctx context.Context) context.Context {
	cur := weaver.Current(ctx)
	if p.wait.Enabled(ctx) {
		p.wait.Record(ctx, cur.Waited.Seconds(), p.attributes(labels{typ: cur.Type, queue: cur.Queue}))
	}
	ctx = p.extract(ctx, cur.Metadata)
	enqueued := trace.SpanContextFromContext(ctx)
	var opts []trace.SpanStartOption
	if enqueued.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: enqueued, Attributes: []attribute.KeyValue{keyLink.String("enqueue")}}))
	}
	if p.newTraces {
		opts = append(opts, trace.WithNewRoot())
	}
	ctx, span := p.start(ctx, "run "+cur.Type, trace.SpanKindConsumer, func() []attribute.KeyValue {
		id := cur.TaskID.String()
		attrs := []attribute.KeyValue{
			system, keyOperation.String("run"), keyOperationType.String("process"), keyDestination.String(cur.Queue), keyMessage.String(id),
			keyNamespace.String(cur.Namespace), keyTask.String(id), keyType.String(cur.Type), keyQueue.String(cur.Queue), keyAttempt.Int(cur.AttemptNo),
		}
		if !cur.JobID.IsZero() {
			attrs = append(attrs, keyJob.String(cur.JobID.String()), keyNode.String(cur.Node))
		}
		return attrs
	}, opts...)
	if span.IsRecording() || p.finished.Enabled(ctx) {
		p.keep(attemptKey{cur.TaskID, cur.AttemptNo}, &attempt{span: span, queue: cur.Queue, begun: time.Now()})
	}
	if span.IsRecording() {
		p.connectAttempts(ctx, span, cur)
	}
	return ctx
}

// connectAttempts links the attempt to the previous one and enables the next one to do so.
func (p *Plugin) connectAttempts(ctx context.Context, span trace.Span, cur weaver.CurrentInfo) {
	p.note(ctx)
	if cur.AttemptNo == 1 {
		return
	}
	last, err := p.before(ctx)
	if err != nil {
		p.log.Warn("otelweaver: the attempt has no link to the one before", "task_id", cur.TaskID, "error", err)
	}
	if last.IsValid() {
		span.AddLink(trace.Link{SpanContext: last, Attributes: []attribute.KeyValue{keyLink.String("previous attempt")}})
	}
}

// wrapStep creates the spans of steps, one for each try.
func (p *Plugin) wrapStep(next weaver.StepFunc) weaver.StepFunc {
	return func(ctx context.Context, name string) (value json.RawMessage, err error) {
		var span trace.Span
		inner := ctx
		p.guard("step", func() {
			inner, span = p.start(ctx, "step "+name, trace.SpanKindInternal, func() []attribute.KeyValue {
				cur := weaver.Current(ctx)
				return []attribute.KeyValue{keyStep.String(name), keyTask.String(cur.TaskID.String()), keyType.String(cur.Type), keyAttempt.Int(cur.AttemptNo)}
			})
		})
		if span == nil {
			return next(ctx, name)
		}
		err = errPanicked
		defer func() {
			p.guard("step", func() {
				defer span.End()
				if err != nil && !weaver.Suspended(err) {
					fail(ctx, span, err)
				}
			})
		}()
		return next(inner, name)
	}
}

var errPanicked = errors.New("the function of the step panicked or ended its goroutine")

// fail sets the status of a span to an error, masked as in the store inside handlers.
func fail(ctx context.Context, span trace.Span, err error) {
	if text := weaver.RedactText(ctx, err.Error()); text != err.Error() {
		err = errors.New(text)
	}
	span.RecordError(err)
	span.SetStatus(codes.Error, err.Error())
}
