package weaver_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestRetry(t *testing.T) {
	typ := weaver.Define[string, string]("engine.retry.run.v1")
	errNo := errors.New("no")

	scene(t, "backs off exponentially, and the decisions say why", func(w *world) {
		var began []time.Time
		w.run(typ.Handler(func(context.Context, string) (string, error) {
			began = append(began, time.Now())
			return "", errNo
		}))
		h := enqueue(w, typ, "")
		te := failure(w, h)
		equal(w, "state", te.State, weaver.StateFailed)
		equal(w, "attempts", te.Attempts, task.DefaultMaxAttempts)
		for i, want := range []time.Duration{2, 4, 8, 16} {
			near(w, fmt.Sprintf("pause %d", i+1), began[i+1].Sub(began[i]), want*time.Second)
		}
		hist := w.history(h.ID())
		equal(w, "decisions", len(hist.Decisions), 5)
		for i, d := range hist.Decisions {
			if i == 4 {
				equal(w, "the last decision", d.Kind, task.DecideMarkDead)
				wantError(w, errors.New(d.Reason.Text), nil, "attempt 5 of 5 failed", "no attempts are left")
				continue
			}
			equal(w, "a decision", d.Kind, task.DecideRetry)
			wantError(w, errors.New(d.Reason.Text), nil, fmt.Sprintf("attempt %d of 5 failed", i+1), "by exponential backoff")
			equal(w, "the next attempt as announced", began[i+1].Sub(d.NextReadyAt).Abs() < time.Millisecond, true)
			equal(w, "policy", d.Reason.Policy, "default")
			equal(w, "error kind in the evidence", d.Reason.Evidence["error_kind"], any("handler_error"))
		}
	})

	scene(t, "caps the pause", func(w *world) {
		capped := weaver.Define[string, string]("engine.retry.capped.v1", weaver.Backoff(time.Minute), weaver.BackoffMax(90*time.Second), weaver.MaxAttempts(4))
		var began []time.Time
		w.run(capped.Handler(func(context.Context, string) (string, error) {
			began = append(began, time.Now())
			return "", errNo
		}))
		fails(w, enqueue(w, capped, ""))
		for i, want := range []time.Duration{time.Minute, 90 * time.Second, 90 * time.Second} {
			near(w, "pause", began[i+1].Sub(began[i]), want)
		}
	})

	scene(t, "Permanent fails at once", func(w *world) {
		w.run(typ.Handler(func(context.Context, string) (string, error) {
			return "", fmt.Errorf("charge: %w", weaver.Permanent(errNo))
		}))
		h := enqueue(w, typ, "")
		te := failure(w, h)
		equal(w, "attempts", te.Attempts, 1)
		equal(w, "message", te.Message, "charge: no")
		wantError(w, errors.New(w.history(h.ID()).Decisions[0].Reason.Text), nil, "permanent")
	})

	scene(t, "RetryAfter chooses the pause and counts", func(w *world) {
		for _, pause := range []time.Duration{time.Hour, 0} {
			var began []time.Time
			e := w.start(w.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(context.Context, string) (string, error) {
				if began = append(began, time.Now()); len(began) == 1 {
					return "", weaver.RetryAfter(pause, errNo)
				}
				return "ok", nil
			})}})
			h := enqueue(w, typ, "")
			equal(w, "output", result(w, h), "ok")
			equal(w, "pause", began[1].Sub(began[0]).Round(time.Millisecond), pause)
			equal(w, "attempts that count", w.get(h.ID()).AttemptCount, 2)
			wantError(w, errors.New(w.history(h.ID()).Decisions[0].Reason.Text), nil, "as the handler asked")
			w.must(e.stop())
		}
	})

	scene(t, "a nil error is no failure", func(w *world) {
		if weaver.Permanent(nil) != nil {
			w.Error("Permanent(nil) is an error")
		}
		wantError(w, weaver.RetryAfter(time.Second, nil), nil, "asked to run again")
	})

	scene(t, "an attempt that would begin after the deadline is not waited for", func(w *world) {
		w.run(typ.Handler(func(context.Context, string) (string, error) { return "", weaver.RetryAfter(time.Hour, errNo) }))
		h := enqueue(w, typ, "", weaver.ExpireAfter(time.Minute))
		te := failure(w, h)
		equal(w, "state", te.State, weaver.StateFailed)
		wantError(w, errors.New(w.history(h.ID()).Decisions[0].Reason.Text), nil, "after the deadline")
	})

	scene(t, "an error with any text can be kept", func(w *world) {
		texts := map[string]string{
			"NUL":      "a\x00b",
			"no UTF-8": "a\xff\xfeb",
			"long":     strings.Repeat("é", 1<<20),
		}
		w.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			err := errors.New(texts[in])
			return weaver.Step(ctx, "step", func(ctx context.Context) (string, error) {
				return "", weaver.Permanent(errors.Join(err, weaver.Progress(ctx, 1, 2, texts[in])))
			})
		}))
		for in := range texts {
			h := enqueue(w, typ, in)
			te := failure(w, h)
			if in == "long" {
				wantError(w, te, nil, "é", "bytes in all)")
			}
			for what, got := range map[string]string{"error": te.Message, "progress": w.get(h.ID()).Progress.Message, "step": w.history(h.ID()).Steps[0].Error.Message} {
				if !utf8.ValidString(got) || strings.Contains(got, "\x00") || len(got) > 20<<10 {
					w.Errorf("%s of %q: %d bytes, %.20q…", what, in, len(got), got)
				}
			}
		}
	})

	scene(t, "a handler's failure keeps its error", func(w *world) {
		w.run(typ.Handler(func(context.Context, string) (string, error) { return "", fmt.Errorf("card %d: %w", 7, errNo) }))
		h := enqueue(w, typ, "")
		fails(w, h)
		for _, a := range w.history(h.ID()).Attempts {
			equal(w, "outcome", a.Outcome, task.OutcomeFailure)
			equal(w, "error", *a.Error, task.Error{Kind: task.KindHandler, Message: "card 7: no"})
		}
	})
}

func TestPanics(t *testing.T) {
	typ := weaver.Define[string, string]("engine.panics.run.v1", weaver.MaxAttempts(2))
	for name, c := range map[string]struct {
		handler func(ctx context.Context) (string, error)
		kind    task.ErrorKind
		words   []string
		step    string
	}{
		"of a handler": {func(context.Context) (string, error) { panic("boom") }, task.KindPanic, []string{"panic: boom"}, ""},
		"of a step": {func(ctx context.Context) (string, error) {
			return weaver.Step(ctx, "blow", func(context.Context) (string, error) { panic(errors.New("boom")) })
		}, task.KindPanic, []string{`step "blow"`, "panic: boom"}, "blow"},
		"that ends the goroutine": {func(context.Context) (string, error) {
			runtime.Goexit()
			return "", nil
		}, task.KindHandler, []string{"runtime.Goexit", "instead of returning"}, ""},
		"that ends the goroutine of a step": {func(ctx context.Context) (string, error) {
			return weaver.Step(ctx, "leave", func(context.Context) (string, error) {
				runtime.Goexit()
				return "", nil
			})
		}, task.KindHandler, []string{"runtime.Goexit"}, ""},
	} {
		scene(t, name, func(w *world) {
			attempts := 0
			w.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
				if in == "fine" {
					return in, nil
				}
				attempts++
				return c.handler(ctx)
			}))
			h := enqueue(w, typ, "")
			te := failure(w, h)
			equal(w, "kind", te.Kind, c.kind)
			equal(w, "failed step", te.FailedStep, c.step)
			equal(w, "attempts", attempts, 2)
			wantError(w, te, nil, c.words...)
			if stack := w.get(h.ID()).Error.Stack; c.kind == task.KindPanic && !strings.Contains(stack, "retry_test.go") {
				w.Errorf("the stack does not name the place:\n%s", stack)
			}
			equal(w, "the worker goes on", result(w, enqueue(w, typ, "fine")), "fine")
		})
	}
}

func TestDecider(t *testing.T) {
	typ := weaver.Define[string, string]("engine.decider.run.v1", weaver.MaxAttempts(2))
	no := typ.Handler(func(context.Context, string) (string, error) { return "", weaver.Permanent(errors.New("no")) })
	decide1 := func(dec decide.Decision) decide.Decider {
		return decide.Func(func(in decide.Input) decide.Decision {
			if in.Task.AttemptCount > 0 {
				return decide.Decision{}
			}
			dec.Reason.Policy = "mine"
			return dec
		})
	}
	engineWith := func(w *world, d weaver.Decider) {
		w.runConfig(w.store, weaver.Config{Decider: d, Handlers: []weaver.Handler{no}})
	}

	scene(t, "may retry what the handler gave up", func(w *world) {
		engineWith(w, decide1(decide.Decision{Kind: task.DecideRetry, Delay: time.Hour}))
		began := time.Now()
		h := enqueue(w, typ, "")
		fails(w, h)
		near(w, "the pause", time.Since(began), time.Hour)
		hist := w.history(h.ID())
		equal(w, "who decided first", hist.Decisions[0].Reason.Policy, "mine")
		equal(w, "who decided when it had no opinion", hist.Decisions[1].Reason.Policy, "default")
		equal(w, "trouble in the log", len(w.log.lines(w, "the decider failed")), 0)
	})
	scene(t, "may block", func(w *world) {
		engineWith(w, decide1(decide.Decision{Kind: task.DecideBlock}))
		wantError(w, blocked(w, enqueue(w, typ, "")), nil, "no")
	})
	scene(t, "must give evidence that can be kept", func(w *world) {
		engineWith(w, decide1(decide.Decision{Kind: task.DecideRetry, Reason: task.Reason{Evidence: map[string]any{"load": math.NaN()}}}))
		h := enqueue(w, typ, "")
		fails(w, h)
		wantError(w, errors.New(w.history(h.ID()).Decisions[0].Reason.Text), nil, "evidence that is not JSON", "the default decided")
	})
	scene(t, "may succeed, with an output or without", func(w *world) {
		engineWith(w, decide.Func(func(in decide.Input) decide.Decision {
			return decide.Decision{Kind: task.DecideSucceed, Output: json.RawMessage(in.Task.Metadata["output"])}
		}))
		equal(w, "the output", result(w, enqueue(w, typ, "", weaver.Metadata("output", `"good enough"`))), "good enough")
		h := enqueue(w, typ, "", weaver.Metadata("output", ""))
		equal(w, "no output", result(w, h), "")
		got, err := typ.Get(w.Context(), w.client, h.ID())
		w.must(err)
		equal(w, "no output, read", got.Output, "")
	})
	for name, d := range map[string]decide.Decider{
		"panicked":                  decide.Func(func(decide.Input) decide.Decision { panic("boom") }),
		"which cannot be done here": decide.Func(func(decide.Input) decide.Decision { return decide.Decision{Kind: task.DecideDecompose} }),
		"an output that is not JSON": decide.Func(func(decide.Input) decide.Decision {
			return decide.Decision{Kind: task.DecideSucceed, Output: json.RawMessage(`{`)}
		}),
		"over the inline limit": decide.Func(func(decide.Input) decide.Decision {
			return decide.Decision{Kind: task.DecideSucceed, Output: json.RawMessage(`"` + strings.Repeat("x", weaver.DefaultInlineLimit) + `"`)}
		}),
	} {
		scene(t, "is overruled: "+name, func(w *world) {
			engineWith(w, d)
			h := enqueue(w, typ, "")
			fails(w, h)
			reason := w.history(h.ID()).Decisions[0].Reason
			wantError(w, errors.New(reason.Text), nil, name, "the default decided", "permanent")
			equal(w, "lines in the log", len(w.log.lines(w, "the decider failed")), 1)
		})
	}
}

func TestErrorsOfTheEngineItself(t *testing.T) {
	typ := weaver.Define[string, string]("engine.internal.run.v1", weaver.NoRetry())
	scene(t, "are retried without the decider and without counting, ten times", func(w *world) {
		f := newFaults(w)
		f.fail("StepTx", store.ErrFull)
		attempts := 0
		cfg := weaver.Config{
			Lease:   3 * time.Second,
			Decider: decide.Func(func(decide.Input) decide.Decision { w.Error("the decider was asked"); return decide.Decision{} }),
			Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				attempts++
				return weaver.StepTx(ctx, "save", func(context.Context, *sql.Tx) (string, error) { return "", nil })
			})},
		}
		w.runConfig(f.store, cfg)
		h := enqueue(w, typ, "")
		te := failure(w, h)
		equal(w, "kind", te.Kind, task.KindInternal)
		equal(w, "attempts", attempts, 10)
		equal(w, "attempts that count", te.Attempts, 0)
		wantError(w, te, nil, "gave up after 10 errors of the engine in a row", "no space is left")
		equal(w, "decisions", len(w.history(h.ID()).Decisions), 0)
	})
}

func TestRouter(t *testing.T) {
	old := weaver.Define[string, string]("engine.router.old.v1")
	scene(t, "chooses the handler", func(w *world) {
		now := weaver.Define[string, string]("engine.router.now.v1")
		w.runConfig(w.store, weaver.Config{
			Router: routerFunc(func(t task.Task) string { return now.Name() }),
			Handlers: []weaver.Handler{
				old.Handler(func(context.Context, string) (string, error) { return "old", nil }),
				now.Handler(func(context.Context, string) (string, error) { return "now", nil }, weaver.CodeVersion(4)),
			},
		})
		h := enqueue(w, old, "")
		equal(w, "output", result(w, h), "now")
		equal(w, "code version of the attempt", w.history(h.ID()).Attempts[0].CodeVersion, 4)
	})
	for name, route := range map[string]routerFunc{
		"the router panicked: boom":      func(task.Task) string { panic("boom") },
		`chose "a.b.c.v1" for a task of`: func(task.Task) string { return "a.b.c.v1" },
	} {
		scene(t, "its mistakes are the engine's: "+name, func(w *world) {
			w.runConfig(w.store, weaver.Config{Router: route, Handlers: []weaver.Handler{
				old.Handler(func(context.Context, string) (string, error) { return "old", nil }),
			}})
			te := failure(w, enqueue(w, old, ""))
			equal(w, "kind", te.Kind, task.KindInternal)
			wantError(w, te, nil, name)
		})
	}
}

type routerFunc func(task.Task) string

// Route implements decide.Router.
func (f routerFunc) Route(t task.Task) string { return f(t) }
