package otelweaver_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/otelweaver"
)

var (
	pay  = weaver.Define[int, string]("acme.shop.pay.v1", weaver.Queue("billing"), weaver.MaxAttempts(3))
	mail = weaver.Define[string, string]("acme.shop.mail.v1")
)

func mails(_ context.Context, text string) (string, error) { return text, nil }

// A trace continues from the enqueue through a retry, a sleep and a started task.
func TestTrace(t *testing.T) {
	t.Parallel()
	inBubble(t, func(fx *fixture) {
		var seen trace.SpanContext
		eng := fx.with(mail.Handler(mails), pay.Handler(func(ctx context.Context, n int) (string, error) {
			seen = trace.SpanContextFromContext(ctx)
			_, err := weaver.Step(ctx, "charge", func(ctx context.Context) (int, error) {
				if weaver.Current(ctx).AttemptNo == 1 {
					return 0, errBank
				}
				return n, nil
			})
			if err != nil {
				return "", err
			}
			if err := weaver.Sleep(ctx, "cool-down", 24*time.Hour); err != nil {
				return "", err
			}
			_, err = weaver.Start(ctx, "mail", mail, "paid")
			return "done", err
		}))
		ctx, root := fx.traces.Tracer("test").Start(fx.Context(), "request")
		h := enqueue(fx, ctx, eng, pay, 7)
		root.End()
		equal(fx, "output", result(fx, h), "done")

		id := h.ID().String()
		sent := fx.named("enqueue acme.shop.pay.v1", 1)[0]
		fx.wantAttrs(sent, "messaging.system", "weaver", "messaging.operation.type", "send", "messaging.destination.name", "billing", "weaver.task.id", id)
		equal(fx, "kind of the enqueue", sent.SpanKind, trace.SpanKindProducer)
		equal(fx, "parent of the enqueue", sent.Parent.SpanID(), root.SpanContext().SpanID())

		runs := fx.named("run acme.shop.pay.v1", 3)
		for i, want := range [][]string{{"failure", "retry", ""}, {"suspended", "", "sleep"}, {"success", "", ""}} {
			s := runs[i]
			equal(fx, "kind of the attempt", s.SpanKind, trace.SpanKindConsumer)
			equal(fx, "parent of the attempt", s.Parent.SpanID(), sent.SpanContext.SpanID())
			equal(fx, "trace of the attempt", s.SpanContext.TraceID(), root.SpanContext().TraceID())
			fx.wantAttrs(s, "weaver.outcome", want[0], "weaver.decision", want[1], "weaver.waiting", want[2],
				"weaver.task.id", id, "weaver.task.type", pay.Name(), "weaver.queue", "billing", "weaver.attempt", []string{"1", "2", "3"}[i],
				"weaver.namespace", "default", "messaging.operation.type", "process")
			links := linked(s)
			equal(fx, "link to the enqueue", links["enqueue"], sent.SpanContext.SpanID())
			if i > 0 {
				equal(fx, "link to the attempt before", links["previous attempt"], runs[i-1].SpanContext.SpanID())
			} else {
				equal(fx, "links of the first attempt", len(links), 1)
			}
		}
		equal(fx, "status of the failure", runs[0].Status.Code, codes.Error)
		contains(fx, runs[0].Status.Description, errBank.Error())
		fx.wantAttrs(runs[0], "error.type", "handler_error")
		equal(fx, "status of the suspension", runs[1].Status.Code, codes.Unset)
		equal(fx, "span in the handler's context", seen.SpanID(), runs[2].SpanContext.SpanID())

		steps := fx.named("step charge", 2)
		for i, s := range steps {
			equal(fx, "kind of the step", s.SpanKind, trace.SpanKindInternal)
			equal(fx, "parent of the step", s.Parent.SpanID(), runs[i].SpanContext.SpanID())
		}
		equal(fx, "status of the step that failed", steps[0].Status.Code, codes.Error)
		equal(fx, "status of the step", steps[1].Status.Code, codes.Unset)

		mailed := fx.named("run acme.shop.mail.v1", 1)[0]
		equal(fx, "parent of the started task", mailed.Parent.SpanID(), runs[2].SpanContext.SpanID())
	})
}

// Children of every kind get the context of the attempt that stores them.
func TestChildren(t *testing.T) {
	t.Parallel()
	inBubble(t, func(fx *fixture) {
		joined := weaver.Define[string, string]("acme.shop.split.v1")
		eng := fx.with(mail.Handler(mails), joined.Handler(func(ctx context.Context, how string) (string, error) {
			switch how {
			case "call":
				return weaver.Call(ctx, "c", mail, how)
			case "job":
				j := weaver.NewJob("letters", weaver.Budget{})
				j.Add("one", mail.With(how))
				_, err := weaver.StartJob(ctx, "j", j)
				return how, err
			}
			return how, weaver.Decompose(weaver.JoinComplete, mail.With(how))
		}))
		children := int64(1)
		for _, how := range []string{"call", "job", "decompose"} {
			fx.spans.Reset()
			equal(fx, how, result(fx, enqueue(fx, fx.Context(), eng, joined, how)), how)
			time.Sleep(time.Minute)
			parent := fx.named("run acme.shop.split.v1", map[string]int{"call": 2, "job": 1, "decompose": 1}[how])[0]
			child := fx.named("run acme.shop.mail.v1", 1)[0]
			equal(fx, how+": trace", child.SpanContext.TraceID(), parent.SpanContext.TraceID())
			want := parent.SpanContext.SpanID()
			equal(fx, how+": children enqueued", count(fx.collect()["weaver.task.enqueued"], "weaver.task.type", mail.Name()), children)
			children++
			if how == "job" {
				want = fx.named("step j", 1)[0].SpanContext.SpanID()
			}
			equal(fx, how+": parent", child.Parent.SpanID(), want)
		}
	})
}

// Another process continues the task: its attempt is linked to the previous one.
func TestOtherProcess(t *testing.T) {
	t.Parallel()
	inBubble(t, func(fx *fixture) {
		handler := pay.Handler(func(ctx context.Context, _ int) (string, error) { return "done", weaver.Sleep(ctx, "s", time.Hour) })
		client, err := weaver.NewClient(fx.store, weaver.ClientConfig{Plugins: []weaver.Plugin{otelweaver.New(fx.config())}, Logger: fx.logger()})
		if err != nil {
			fx.Fatal(err)
		}
		_, stop := fx.run(weaver.Config{Plugins: []weaver.Plugin{otelweaver.New(fx.config())}, Handlers: []weaver.Handler{handler}})
		member, err := baggage.NewMember("tenant", "t1")
		if err != nil {
			fx.Fatal(err)
		}
		bag, err := baggage.New(member)
		if err != nil {
			fx.Fatal(err)
		}
		h := enqueue(fx, baggage.ContextWithBaggage(fx.Context(), bag), client, pay, 1)
		time.Sleep(time.Minute)
		stop()
		sent, first := fx.named("enqueue acme.shop.pay.v1", 1)[0], fx.named("run acme.shop.pay.v1", 1)[0]
		equal(fx, "link to the enqueue", linked(first)["enqueue"], sent.SpanContext.SpanID())

		cfg := fx.config()
		cfg.NewTraces = true
		var tenant string
		fx.run(weaver.Config{Plugins: []weaver.Plugin{otelweaver.New(cfg)}, Handlers: []weaver.Handler{pay.Handler(func(ctx context.Context, _ int) (string, error) {
			tenant = baggage.FromContext(ctx).Member("tenant").Value()
			return "done", weaver.Sleep(ctx, "s", time.Hour)
		})}})
		equal(fx, "output", result(fx, h), "done")
		second := fx.named("run acme.shop.pay.v1", 2)[1]
		equal(fx, "link to the attempt of the other process", linked(second)["previous attempt"], first.SpanContext.SpanID())
		equal(fx, "link to the enqueue", linked(second)["enqueue"], sent.SpanContext.SpanID())
		equal(fx, "parent with NewTraces", second.Parent.IsValid(), false)
		equal(fx, "a trace of its own", second.SpanContext.TraceID() != sent.SpanContext.TraceID(), true)
		equal(fx, "baggage", tenant, "t1")
	})
}

// The span of an attempt has its outcome.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		handler func(ctx context.Context, n int) (string, error)
		opts    []weaver.EnqueueOption
		attrs   []string
		status  codes.Code
	}{
		{"failed", func(context.Context, int) (string, error) { return "", weaver.Permanent(errBank) }, nil, []string{"weaver.outcome", "failure", "weaver.decision", "mark_dead"}, codes.Error},
		{"panic", func(context.Context, int) (string, error) { panic("boom") }, []weaver.EnqueueOption{weaver.NoRetry()}, []string{"error.type", "panic", "weaver.outcome", "failure"}, codes.Error},
		{"step that panics", func(ctx context.Context, _ int) (string, error) {
			return "", weaver.Do(ctx, "s", func(context.Context) error { panic("boom") })
		}, []weaver.EnqueueOption{weaver.NoRetry()}, []string{"error.type", "panic"}, codes.Error},
		{"asks", func(ctx context.Context, _ int) (string, error) { return weaver.Ask[string](ctx, "q", "which?") }, nil, []string{"weaver.outcome", "blocked", "weaver.decision", "block"}, codes.Unset},
		{"deadline", func(ctx context.Context, _ int) (string, error) { <-ctx.Done(); return "", ctx.Err() }, []weaver.EnqueueOption{weaver.ExpireAfter(time.Second)}, []string{"weaver.outcome", "cancelled", "error.type", "deadline"}, codes.Unset},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(fx *fixture) {
				h := enqueue(fx, fx.Context(), fx.with(pay.Handler(tc.handler)), pay, 1, tc.opts...)
				if _, err := h.Wait(fx.Context()); err == nil {
					fx.Fatal("no error")
				}
				time.Sleep(time.Second)
				s := fx.named("run acme.shop.pay.v1", 1)[0]
				fx.wantAttrs(s, tc.attrs...)
				equal(fx, "status", s.Status.Code, tc.status)
			})
		})
	}
}

// Enqueuing several tasks creates one span, which has the error.
func TestEnqueueSpan(t *testing.T) {
	t.Parallel()
	inBubble(t, func(fx *fixture) {
		eng := fx.with(mail.Handler(mails), pay.Handler(func(context.Context, int) (string, error) { return "", nil }))
		if _, err := mail.EnqueueMany(fx.Context(), eng, []string{"a", "b"}); err != nil {
			fx.Fatal(err)
		}
		fx.wantAttrs(fx.named("enqueue acme.shop.mail.v1", 1)[0], "messaging.batch.message_count", "2", "weaver.queue", "default")
		if _, err := eng.EnqueueTasks(fx.Context(), mail.With("a"), pay.With(1)); err != nil {
			fx.Fatal(err)
		}
		fx.wantAttrs(fx.named("enqueue", 1)[0], "messaging.batch.message_count", "2", "weaver.queue", "", "weaver.task.type", "")
		fx.spans.Reset()
		if _, err := mail.Enqueue(fx.Context(), eng, "a", weaver.Priority(77)); !errors.Is(err, weaver.ErrInvalidOption) {
			fx.Fatalf("the error is %v", err)
		}
		equal(fx, "status", fx.named("enqueue acme.shop.mail.v1", 1)[0].Status.Code, codes.Error)
	})
}
