package weaver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

func TestNewReportsEveryProblemAtOnce(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		twice := weaver.Define[int, int]("invalid.new.twice.v1")
		missing := weaver.Define[int, int]("invalid.new.missing.v1")
		unhandled := weaver.Define[int, int]("invalid.new.nil.v1")
		wrong := weaver.Define[int, int]("invalid.new.wrong.v1")
		run := func(_ context.Context, n int) (int, error) { return n, nil }
		_, err := weaver.New(fx.store, weaver.Config{
			Handlers: []weaver.Handler{
				twice.Handler(run), twice.Handler(run), unhandled.Handler(nil),
				{},
				wrong.Handler(run, weaver.VerifySuccess(func(context.Context, string) error { return nil })),
			},
			Expect:      []weaver.AnyType{twice, missing, nil},
			Concurrency: -1,
			Lease:       time.Millisecond,
			Queues:      map[string]int{"billing": 0},
			CrashBudget: -2,
			Middleware:  []func(weaver.HandlerFunc) weaver.HandlerFunc{nil},
			InlineLimit: -1,
			Namespace:   "a\x00b",
		})
		wantError(fx, err, weaver.ErrConfig,
			"invalid.new.twice.v1 has two handlers", "register each task type once",
			"invalid.new.missing.v1 is expected but has no handler", "add it to Config.Handlers",
			"the handler of invalid.new.nil.v1 is nil",
			"VerifySuccess of invalid.new.wrong.v1", "string", "int",
			"Handlers[3] is empty", "Expect[2] is nil", "Concurrency is negative", "Lease is 1ms: want at least 1s",
			`Queues["billing"] is 0`, "CrashBudget is -2", "Middleware[0] is nil", "InlineLimit is -1", "Namespace")
		if got := strings.Count(err.Error(), weaver.ErrConfig.Error()); got != 1 {
			fx.Errorf("the error says %d times that the configuration is invalid: %v", got, err)
		}
		_, err = weaver.New(nil, weaver.Config{})
		wantError(fx, err, weaver.ErrConfig, "the store is nil")
		_, err = weaver.NewClient(nil, weaver.ClientConfig{})
		wantError(fx, err, weaver.ErrConfig, "the store is nil")
	})
}

func TestNewRefusesInvalidQueuesAndMiddleware(t *testing.T) {
	typ := weaver.Define[int, int]("invalid.new.wrapped.v1")
	run := typ.Handler(func(_ context.Context, n int) (int, error) { return n, nil })
	same := func(next weaver.HandlerFunc) weaver.HandlerFunc { return next }
	none := func(weaver.HandlerFunc) weaver.HandlerFunc { return nil }
	for name, c := range map[string]struct {
		cfg   weaver.Config
		words []string
	}{
		"a queue without a name":       {weaver.Config{Queues: map[string]int{"": 1}}, []string{"Queues", "the name is empty"}},
		"a queue with a NUL":           {weaver.Config{Queues: map[string]int{"a\x00": 1}}, []string{"Queues", "NUL"}},
		"a queue that is long":         {weaver.Config{Queues: map[string]int{strings.Repeat("q", 256): 1}}, []string{"Queues", "256 bytes"}},
		"statistics kept for a minute": {weaver.Config{KeepStats: time.Minute}, []string{"KeepStats is 1m0s: want at least 1h, 0 for the default, 90 days, or Forever"}},
		"middleware that returns nil": {
			weaver.Config{Handlers: []weaver.Handler{run}, Middleware: []func(weaver.HandlerFunc) weaver.HandlerFunc{same, none, same}},
			[]string{"Middleware[1] returned nil", typ.Name(), "return the handler itself"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := weaver.New(memstore.New(), c.cfg)
			wantError(t, err, weaver.ErrConfig, c.words...)
		})
	}
}

func TestMiddleware(t *testing.T) {
	typ := weaver.Define[string, string]("engine.middleware.run.v1")
	subtest(t, "wraps every handler, the first outermost", func(fx *fixture) {
		var trace []string
		named := func(name string) func(weaver.HandlerFunc) weaver.HandlerFunc {
			return func(next weaver.HandlerFunc) weaver.HandlerFunc {
				return func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
					trace = append(trace, name+" in "+string(input))
					out, err := next(ctx, input)
					trace = append(trace, name+" out "+string(out))
					return out, err
				}
			}
		}
		fx.runConfig(fx.store, weaver.Config{
			Middleware: []func(weaver.HandlerFunc) weaver.HandlerFunc{named("outer"), named("inner")},
			Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
				trace = append(trace, "handler of "+weaver.Current(ctx).Type)
				return in + "!", nil
			})},
		})
		result(fx, enqueue(fx, typ, "x"))
		want := []string{`outer in "x"`, `inner in "x"`, "handler of engine.middleware.run.v1", `inner out "x!"`, `outer out "x!"`}
		if !slices.Equal(trace, want) {
			fx.Errorf("trace:\n got %q\nwant %q", trace, want)
		}
	})
}

func TestMiddlewareThatAnswersItself(t *testing.T) {
	typ := weaver.Define[string, string]("engine.middleware.own.v1", weaver.NoRetry())
	subtest(t, "must return JSON, or nothing", func(fx *fixture) {
		fx.runConfig(fx.store, weaver.Config{
			Middleware: []func(weaver.HandlerFunc) weaver.HandlerFunc{func(weaver.HandlerFunc) weaver.HandlerFunc {
				return func(_ context.Context, input json.RawMessage) (json.RawMessage, error) {
					var out string
					err := json.Unmarshal(input, &out)
					return json.RawMessage(out), err
				}
			}},
			Handlers: []weaver.Handler{typ.Handler(func(context.Context, string) (string, error) {
				fx.Error("the handler ran")
				return "", nil
			})},
		})
		equal(fx, "its own output", result(fx, enqueue(fx, typ, `"mine"`)), "mine")
		equal(fx, "no output", result(fx, enqueue(fx, typ, "")), "")
		te := failure(fx, enqueue(fx, typ, `{"a":`))
		equal(fx, "kind", te.Kind, task.KindValidation)
		wantError(fx, te, nil, "Middleware", "cannot be stored", "$.a")
	})
}

func TestRunReturnsTheErrorOfARole(t *testing.T) {
	typ := weaver.Define[string, string]("engine.run.errors.v1", weaver.NoRetry())
	echo := typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil })

	subtest(t, "of Ready, before any role begins", func(fx *fixture) {
		s := newFaults(fx)
		s.fail("Ready", fmt.Errorf("look at the schema: %w", store.ErrNewerSchema))
		h := enqueue(fx, typ, "x")
		ctx, cancel := context.WithTimeout(fx.Context(), time.Minute)
		defer cancel()
		wantError(fx, fx.newEngine(s.store, weaver.Config{Handlers: []weaver.Handler{echo}}).Run(ctx), store.ErrNewerSchema, "look at the schema")
		equal(fx, "workers that joined", s.count("Join"), 0)
		fx.wantState(h.ID(), weaver.StateReady)
	})

	// Without its heartbeat an engine must stop claiming, and Run returns the reason.
	subtest(t, "of the heartbeat, which ends the other roles", func(fx *fixture) {
		s := newFaults(fx)
		s.hooks.Heartbeat = func(context.Context, store.HeartbeatRequest, func() ([]store.Beat, error)) ([]store.Beat, error) {
			panic("a bug of the store")
		}
		e := fx.start(s.store, weaver.Config{DrainTimeout: time.Second, Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "", ctx.Err() }),
		}})
		h := enqueue(fx, typ, "x")
		select {
		case <-e.ended:
		case <-time.After(10 * store.DefaultLease):
			fx.Error("Run goes on without a heartbeat")
		}
		wantError(fx, e.stop(), nil, "heartbeat", "a bug of the store")
		fx.wantState(h.ID(), weaver.StateReady)
	})
}

// A Run that is stopped before it begins returns no error.
func TestRunStoppedBeforeItBegan(t *testing.T) {
	typ := weaver.Define[string, string]("engine.stopped.run.v1")
	h := typ.Handler(func(context.Context, string) (string, error) { return "", nil })
	subtest(t, "before the first look at the store", func(fx *fixture) {
		ctx, cancel := context.WithCancel(fx.Context())
		cancel()
		if err := fx.newEngine(fx.store, weaver.Config{Handlers: []weaver.Handler{h}}).Run(ctx); err != nil {
			fx.Errorf("Run: %v, want nil", err)
		}
	})
	subtest(t, "while it joins", func(fx *fixture) {
		ctx, cancel := context.WithCancel(fx.Context())
		f := newFaults(fx)
		f.set(nil, func(call string) error { // the store executed the call
			if call != "Join" {
				return nil
			}
			cancel()
			return context.Canceled
		})
		if err := fx.newEngine(f.store, weaver.Config{Handlers: []weaver.Handler{h}}).Run(ctx); err != nil {
			fx.Errorf("Run: %v, want nil", err)
		}
		if f.count("Join") != 1 || f.count("Leave") != 1 {
			fx.Errorf("it joined %d times and left %d times, want once each", f.count("Join"), f.count("Leave"))
		}
	})
}
