package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/task"
)

func TestVerifySuccess(t *testing.T) {
	typ := weaver.Define[string, order]("engine.verify.run.v1", weaver.MaxAttempts(3))
	subtest(t, "is not asked about a suspended attempt", func(fx *fixture) {
		var verified []int
		fx.run(typ.Handler(func(ctx context.Context, _ string) (order, error) {
			if weaver.Sleep(ctx, "nap", time.Hour) != nil {
				return order{ID: 1}, nil // swallowed
			}
			return order{ID: 2}, nil
		}, weaver.VerifySuccess(func(_ context.Context, o order) error { verified = append(verified, o.ID); return nil })))
		equal(fx, "output", result(fx, enqueue(fx, typ, "")).ID, 2)
		equal(fx, "verified", fmt.Sprint(verified), "[2]")
	})
	subtest(t, "turns a success into a failure, which is decided", func(fx *fixture) {
		attempts := 0
		fx.run(typ.Handler(func(context.Context, string) (order, error) {
			attempts++
			return order{ID: attempts}, nil
		}, weaver.VerifySuccess(func(_ context.Context, o order) error {
			if o.ID < 3 {
				return fmt.Errorf("order %d is not settled", o.ID)
			}
			return nil
		})))
		h := enqueue(fx, typ, "")
		equal(fx, "output", result(fx, h).ID, 3)
		fx.wantOutcomes(h.ID(), task.OutcomeFailure, task.OutcomeFailure, task.OutcomeSuccess)
		first := fx.history(h.ID()).Attempts[0].Error
		equal(fx, "the first error", first.Message, "verify the output: order 1 is not settled")
	})
}

func TestRouter(t *testing.T) {
	old := weaver.Define[string, string]("engine.router.old.v1")
	subtest(t, "chooses the handler", func(fx *fixture) {
		now := weaver.Define[string, string]("engine.router.now.v1")
		fx.runConfig(fx.store, weaver.Config{
			Router: decide.RouteFunc(func(t task.Task) decide.Route { return decide.Route{Type: now.Name(), Reason: "it moved"} }),
			Handlers: []weaver.Handler{
				old.Handler(func(context.Context, string) (string, error) { return "old", nil }),
				now.Handler(func(context.Context, string) (string, error) { return "now", nil }, weaver.CodeVersion(4)),
			},
		})
		h := enqueue(fx, old, "")
		equal(fx, "output", result(fx, h), "now")
		a := fx.history(h.ID()).Attempts[0]
		equal(fx, "code version of the attempt", a.CodeVersion, 4)
		equal(fx, "its handler", a.Handler, now.Name())
		equal(fx, "why", a.RouteReason, "it moved")
	})
	subtest(t, "chooses among the handlers of a type, by metadata", func(fx *fixture) {
		fx.runConfig(fx.store, weaver.Config{
			Router: decide.Rules{{Type: old.Name(), Metadata: map[string]string{"tenant": "t1"}, Handler: "canary"}},
			Handlers: []weaver.Handler{
				old.Handler(func(context.Context, string) (string, error) { return "stable", nil }),
				old.Handler(func(ctx context.Context, _ string) (string, error) {
					if weaver.Current(ctx).AttemptNo == 1 {
						return "", errors.New("not yet")
					}
					return "canary", nil
				}, weaver.HandlerName("canary"), weaver.CodeVersion(2)),
			},
		})
		stable, canary := enqueue(fx, old, ""), enqueue(fx, old, "", weaver.Metadata("tenant", "t1"))
		equal(fx, "output", result(fx, stable), "stable")
		equal(fx, "output", result(fx, canary), "canary")
		a := fx.history(stable.ID()).Attempts[0]
		equal(fx, "of the one without a name", a.Handler+a.RouteReason, "")
		for _, a := range fx.history(canary.ID()).Attempts {
			equal(fx, "handler", a.Handler, "canary")
			equal(fx, "why", a.RouteReason, "rule 1: type "+old.Name()+", metadata tenant=t1")
			equal(fx, "code version", a.CodeVersion, 2)
		}
	})
	subtest(t, "New reports names that clash", func(fx *fixture) {
		run := func(context.Context, string) (string, error) { return "", nil }
		h := func(opts ...weaver.HandlerOption) weaver.Handler { return old.Handler(run, opts...) }
		for want, hs := range map[string][]weaver.Handler{
			"has two handlers: register each task type once": {h(), h()},
			`has two handlers of the name "a"`:               {h(), h(weaver.HandlerName("a")), h(weaver.HandlerName("a"))},
			"has only handlers with names":                   {h(weaver.HandlerName("a"))},
			"HandlerName: the name is empty":                 {h(weaver.HandlerName(""))},
		} {
			_, err := weaver.New(fx.store, weaver.Config{Handlers: hs})
			wantError(fx, err, weaver.ErrConfig, want)
		}
	})
	for name, route := range map[string]decide.RouteFunc{
		"the router panicked: boom":                   func(task.Task) decide.Route { panic("boom") },
		`chose "a.b.c.v1" for a task of`:              func(task.Task) decide.Route { return decide.Route{Type: "a.b.c.v1"} },
		`chose the handler "canary" of ` + old.Name(): func(task.Task) decide.Route { return decide.Route{Handler: "canary"} },
	} {
		subtest(t, "its mistakes are the engine's: "+name, func(fx *fixture) {
			fx.runConfig(fx.store, weaver.Config{Router: route, Handlers: []weaver.Handler{
				old.Handler(func(context.Context, string) (string, error) { return "old", nil }),
			}})
			te := failure(fx, enqueue(fx, old, ""))
			equal(fx, "kind", te.Kind, task.KindInternal)
			wantError(fx, te, nil, name)
		})
	}
}

func TestLog(t *testing.T) {
	typ := weaver.Define[int, int]("engine.handler.run.v1")

	subtest(t, "a log line says which task and step it belongs to", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, n int) (int, error) {
			weaver.Log(ctx).Info("begins", "count", 3)
			return weaver.Step(ctx, "fetch", func(ctx context.Context) (int, error) {
				weaver.Log(ctx).Warn("slow")
				weaver.Log(ctx).With("try", 2).Error("broken", "error", errors.New("no"))
				return n, nil
			})
		}))
		h := enqueue(fx, typ, 1)
		result(fx, h)
		for message, want := range map[string]map[string]any{
			"begins": {"level": "INFO", "step": nil, "count": 3.0},
			"slow":   {"level": "WARN", "step": "fetch"},
			"broken": {"level": "ERROR", "step": "fetch", "try": 2.0, "error": "no"},
		} {
			lines := fx.log.lines(fx, message)
			if len(lines) != 1 {
				fx.Errorf("%d lines %q, want 1", len(lines), message)
				continue
			}
			want["task_id"], want["task_type"], want["attempt_no"] = h.ID().String(), typ.Name(), 1.0
			for key, value := range want {
				equal(fx, fmt.Sprintf("%s of line %q", key, message), lines[0][key], value)
			}
		}
	})
}

func TestCurrent(t *testing.T) {
	typ := weaver.Define[int, int]("engine.handler.run.v1")

	subtest(t, "handlers read the attempt number and the step's idempotency key", func(fx *fixture) {
		var seen []weaver.CurrentInfo
		fx.run(typ.Handler(func(ctx context.Context, n int) (int, error) {
			cur := weaver.Current(ctx)
			seen = append(seen, cur)
			if len(seen) < 3 {
				return 0, errors.New("again")
			}
			return n, nil
		}, weaver.CodeVersion(7)))
		h := enqueue(fx, typ, 1, weaver.Metadata("tenant", "t1"))
		result(fx, h)
		for i, cur := range seen {
			equal(fx, "attempt number", cur.AttemptNo, i+1)
			equal(fx, "attempts that counted before", cur.AttemptCount, i)
			equal(fx, "task id", cur.TaskID, h.ID())
			equal(fx, "tenant", cur.Metadata["tenant"], "t1")
			equal(fx, "code version of the first attempt", cur.StartedVersion, 7)
			equal(fx, "step key", cur.StepKey("pay"), seen[0].StepKey("pay"))
			if i > 0 && cur.Epoch <= seen[i-1].Epoch {
				fx.Errorf("epoch %d after %d: it must rise", cur.Epoch, seen[i-1].Epoch)
			}
		}
		if seen[0].StepKey("pay") == seen[0].StepKey("ship") {
			fx.Error("two steps have one key")
		}
		equal(fx, "the type", seen[0].Type, typ.Name())
		equal(fx, "outside of a handler", weaver.Current(fx.Context()).TaskID.IsZero(), true)
	})
}
