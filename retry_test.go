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

	subtest(t, "backs off exponentially, and the decisions say why", func(fx *fixture) {
		var began []time.Time
		fx.run(typ.Handler(func(context.Context, string) (string, error) {
			began = append(began, time.Now())
			return "", errNo
		}))
		h := enqueue(fx, typ, "")
		te := failure(fx, h)
		equal(fx, "state", te.State, weaver.StateFailed)
		equal(fx, "attempts", te.Attempts, task.DefaultMaxAttempts)
		for i, want := range []time.Duration{2, 4, 8, 16} {
			near(fx, fmt.Sprintf("pause %d", i+1), began[i+1].Sub(began[i]), want*time.Second)
		}
		hist := fx.history(h.ID())
		equal(fx, "decisions", len(hist.Decisions), 5)
		for i, d := range hist.Decisions {
			if i == 4 {
				equal(fx, "the last decision", d.Kind, task.DecideMarkDead)
				wantError(fx, errors.New(d.Reason.Text), nil, "attempt 5 of 5 failed", "no attempts are left")
				continue
			}
			equal(fx, "a decision", d.Kind, task.DecideRetry)
			wantError(fx, errors.New(d.Reason.Text), nil, fmt.Sprintf("attempt %d of 5 failed", i+1), "by exponential backoff")
			equal(fx, "the next attempt as announced", began[i+1].Sub(d.NextReadyAt).Abs() < time.Millisecond, true)
			equal(fx, "policy", d.Reason.Policy, "default")
			equal(fx, "error kind in the evidence", d.Reason.Evidence["error_kind"], any("handler_error"))
		}
	})

	subtest(t, "caps the pause", func(fx *fixture) {
		capped := weaver.Define[string, string]("engine.retry.capped.v1", weaver.Backoff(time.Minute), weaver.BackoffMax(90*time.Second), weaver.MaxAttempts(4))
		var began []time.Time
		fx.run(capped.Handler(func(context.Context, string) (string, error) {
			began = append(began, time.Now())
			return "", errNo
		}))
		fails(fx, enqueue(fx, capped, ""))
		for i, want := range []time.Duration{time.Minute, 90 * time.Second, 90 * time.Second} {
			near(fx, "pause", began[i+1].Sub(began[i]), want)
		}
	})

	subtest(t, "Permanent fails at once", func(fx *fixture) {
		fx.run(typ.Handler(func(context.Context, string) (string, error) {
			return "", fmt.Errorf("charge: %w", weaver.Permanent(errNo))
		}))
		h := enqueue(fx, typ, "")
		te := failure(fx, h)
		equal(fx, "attempts", te.Attempts, 1)
		equal(fx, "message", te.Message, "charge: no")
		wantError(fx, errors.New(fx.history(h.ID()).Decisions[0].Reason.Text), nil, "permanent")
	})

	subtest(t, "RetryAfter chooses the pause and counts", func(fx *fixture) {
		for _, pause := range []time.Duration{time.Hour, 0} {
			var began []time.Time
			e := fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(context.Context, string) (string, error) {
				if began = append(began, time.Now()); len(began) == 1 {
					return "", weaver.RetryAfter(pause, errNo)
				}
				return "ok", nil
			})}})
			h := enqueue(fx, typ, "")
			equal(fx, "output", result(fx, h), "ok")
			equal(fx, "pause", began[1].Sub(began[0]).Round(time.Millisecond), pause)
			equal(fx, "attempts that count", fx.get(h.ID()).AttemptCount, 2)
			wantError(fx, errors.New(fx.history(h.ID()).Decisions[0].Reason.Text), nil, "as the handler asked")
			fx.must(e.stop())
		}
	})

	subtest(t, "a nil error is no failure", func(fx *fixture) {
		if weaver.Permanent(nil) != nil {
			fx.Error("Permanent(nil) is an error")
		}
		wantError(fx, weaver.RetryAfter(time.Second, nil), nil, "asked to run again")
	})

	subtest(t, "an attempt that would begin after the deadline is not waited for", func(fx *fixture) {
		fx.run(typ.Handler(func(context.Context, string) (string, error) { return "", weaver.RetryAfter(time.Hour, errNo) }))
		h := enqueue(fx, typ, "", weaver.ExpireAfter(time.Minute))
		te := failure(fx, h)
		equal(fx, "state", te.State, weaver.StateFailed)
		wantError(fx, errors.New(fx.history(h.ID()).Decisions[0].Reason.Text), nil, "after the deadline")
	})

	subtest(t, "an error with any text can be stored", func(fx *fixture) {
		texts := map[string]string{
			"NUL":      "a\x00b",
			"no UTF-8": "a\xff\xfeb",
			"long":     strings.Repeat("é", 1<<20),
		}
		fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			err := errors.New(texts[in])
			return weaver.Step(ctx, "step", func(ctx context.Context) (string, error) {
				return "", weaver.Permanent(errors.Join(err, weaver.Progress(ctx, 1, 2, texts[in])))
			})
		}))
		for in := range texts {
			h := enqueue(fx, typ, in)
			te := failure(fx, h)
			if in == "long" {
				wantError(fx, te, nil, "é", "bytes in all)")
			}
			for what, got := range map[string]string{"error": te.Message, "progress": fx.get(h.ID()).Progress.Message, "step": fx.history(h.ID()).Steps[0].Error.Message} {
				if !utf8.ValidString(got) || strings.Contains(got, "\x00") || len(got) > 20<<10 {
					fx.Errorf("%s of %q: %d bytes, %.20q…", what, in, len(got), got)
				}
			}
		}
	})

	subtest(t, "a handler's failure keeps its error", func(fx *fixture) {
		fx.run(typ.Handler(func(context.Context, string) (string, error) { return "", fmt.Errorf("card %d: %w", 7, errNo) }))
		h := enqueue(fx, typ, "")
		fails(fx, h)
		for _, a := range fx.history(h.ID()).Attempts {
			equal(fx, "outcome", a.Outcome, task.OutcomeFailure)
			equal(fx, "error", *a.Error, task.Error{Kind: task.KindHandler, Message: "card 7: no"})
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
		subtest(t, name, func(fx *fixture) {
			attempts := 0
			fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
				if in == "fine" {
					return in, nil
				}
				attempts++
				return c.handler(ctx)
			}))
			h := enqueue(fx, typ, "")
			te := failure(fx, h)
			equal(fx, "kind", te.Kind, c.kind)
			equal(fx, "failed step", te.FailedStep, c.step)
			equal(fx, "attempts", attempts, 2)
			wantError(fx, te, nil, c.words...)
			if stack := fx.get(h.ID()).Error.Stack; c.kind == task.KindPanic && !strings.Contains(stack, "retry_test.go") {
				fx.Errorf("the stack does not name the place:\n%s", stack)
			}
			equal(fx, "the worker goes on", result(fx, enqueue(fx, typ, "fine")), "fine")
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
	engineWith := func(fx *fixture, d decide.Decider) {
		fx.runConfig(fx.store, weaver.Config{Decider: d, Handlers: []weaver.Handler{no}})
	}

	subtest(t, "may retry what the handler gave up", func(fx *fixture) {
		engineWith(fx, decide1(decide.Decision{Kind: task.DecideRetry, Delay: time.Hour}))
		began := time.Now()
		h := enqueue(fx, typ, "")
		fails(fx, h)
		near(fx, "the pause", time.Since(began), time.Hour)
		hist := fx.history(h.ID())
		equal(fx, "who decided first", hist.Decisions[0].Reason.Policy, "mine")
		equal(fx, "who decided when it had no opinion", hist.Decisions[1].Reason.Policy, "default")
		equal(fx, "failures in the log", len(fx.log.lines(fx, "the decider failed")), 0)
	})
	subtest(t, "may block", func(fx *fixture) {
		engineWith(fx, decide1(decide.Decision{Kind: task.DecideBlock}))
		wantError(fx, blocked(fx, enqueue(fx, typ, "")), nil, "no")
	})
	subtest(t, "must give evidence that can be stored", func(fx *fixture) {
		engineWith(fx, decide1(decide.Decision{Kind: task.DecideRetry, Reason: task.Reason{Evidence: map[string]any{"load": math.NaN()}}}))
		h := enqueue(fx, typ, "")
		fails(fx, h)
		wantError(fx, errors.New(fx.history(h.ID()).Decisions[0].Reason.Text), nil, "evidence that is not JSON", "the default decided")
	})
	subtest(t, "may succeed, with an output or without", func(fx *fixture) {
		engineWith(fx, decide.Func(func(in decide.Input) decide.Decision {
			return decide.Decision{Kind: task.DecideSucceed, Output: json.RawMessage(in.Task.Metadata["output"])}
		}))
		equal(fx, "the output", result(fx, enqueue(fx, typ, "", weaver.Metadata("output", `"good enough"`))), "good enough")
		h := enqueue(fx, typ, "", weaver.Metadata("output", ""))
		equal(fx, "no output", result(fx, h), "")
		got, err := typ.Get(fx.Context(), fx.client, h.ID())
		fx.must(err)
		equal(fx, "no output, read", got.Output, "")
	})
	for name, d := range map[string]decide.Decider{
		"panicked":                  decide.Func(func(decide.Input) decide.Decision { panic("boom") }),
		"which cannot be done here": decide.Func(func(decide.Input) decide.Decision { return decide.Decision{Kind: task.DecideRepair} }),
		"an output that is not JSON": decide.Func(func(decide.Input) decide.Decision {
			return decide.Decision{Kind: task.DecideSucceed, Output: json.RawMessage(`{`)}
		}),
		"over the inline limit": decide.Func(func(decide.Input) decide.Decision {
			return decide.Decision{Kind: task.DecideSucceed, Output: json.RawMessage(`"` + strings.Repeat("x", weaver.DefaultInlineLimit) + `"`)}
		}),
	} {
		subtest(t, "is replaced by the rules: "+name, func(fx *fixture) {
			engineWith(fx, d)
			h := enqueue(fx, typ, "")
			fails(fx, h)
			reason := fx.history(h.ID()).Decisions[0].Reason
			wantError(fx, errors.New(reason.Text), nil, name, "the default decided", "permanent")
			equal(fx, "lines in the log", len(fx.log.lines(fx, "the decider failed")), 1)
		})
	}
}

func TestErrorsOfTheEngineItself(t *testing.T) {
	typ := weaver.Define[string, string]("engine.internal.run.v1", weaver.NoRetry())
	subtest(t, "are retried without the decider and without counting, ten times", func(fx *fixture) {
		f := newFaults(fx)
		f.fail("StepTx", store.ErrFull)
		attempts := 0
		cfg := weaver.Config{
			Lease:   3 * time.Second,
			Decider: decide.Func(func(decide.Input) decide.Decision { fx.Error("the decider was asked"); return decide.Decision{} }),
			Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				attempts++
				return weaver.StepTx(ctx, "save", func(context.Context, *sql.Tx) (string, error) { return "", nil })
			})},
		}
		fx.runConfig(f.store, cfg)
		h := enqueue(fx, typ, "")
		te := failure(fx, h)
		equal(fx, "kind", te.Kind, task.KindInternal)
		equal(fx, "attempts", attempts, 10)
		equal(fx, "attempts that count", te.Attempts, 0)
		wantError(fx, te, nil, "gave up after 10 errors of the engine in a row", "no space is left")
		equal(fx, "decisions", len(fx.history(h.ID()).Decisions), 0)
	})
}

var transient = weaver.Define[weaver.None, int]("acme.transient.run.v1")

// A transient store error returned by a handler does not count as its failure: it is retried without a
// decision and costs no attempt, unless the handler classifies it itself.
func TestTransientStoreErrors(t *testing.T) {
	once := 0
	fails := map[string]func(ctx context.Context) error{
		"from the handler": func(context.Context) error { return fmt.Errorf("read a total: %w", store.ErrUnavailable) },
		"from a step": func(ctx context.Context) error {
			return weaver.Do(ctx, "s", func(context.Context) error { return fmt.Errorf("lock: %w", store.ErrBusy) })
		},
		"from a step that is tried again": func(ctx context.Context) error {
			return weaver.Do(ctx, "s", func(context.Context) error { return store.ErrFull }, weaver.StepRetry(3), weaver.RecordError())
		},
		"from a step's transaction": func(ctx context.Context) error {
			_, err := weaver.StepTx(ctx, "s", func(context.Context, *sql.Tx) (int, error) { return 0, store.ErrUnknown })
			return err
		},
	}
	for name, fail := range fails {
		sqlSubtest(t, name, func(fx *fixture) {
			once = 0
			h := transient.Handler(func(ctx context.Context, _ weaver.None) (int, error) {
				if once++; once <= 3 {
					return 0, fail(ctx)
				}
				return once, nil
			})
			hd := enqueue(fx, transient, weaver.None{}, weaver.MaxAttempts(1))
			fx.run(h)
			result(fx, hd)
			hist := fx.history(hd.ID())
			if n := len(hist.Attempts); n != 4 || len(hist.Decisions) != 0 || hist.Task.AttemptCount != 1 {
				fx.Fatalf("%d attempts of which %d counted, %d decisions; want 4, 1, 0", n, hist.Task.AttemptCount, len(hist.Decisions))
			}
			for _, a := range hist.Attempts[:3] {
				if a.Error == nil || a.Error.Kind != task.KindInternal {
					fx.Errorf("attempt %d ended with %v, want an internal error", a.No, a.Error)
				}
			}
			for _, s := range hist.Steps {
				fx.Errorf("step %q is recorded as %s: %v", s.Name, s.State, s.Error)
			}
		})
	}
	subtest(t, "classified by the handler", func(fx *fixture) {
		h := transient.Handler(func(context.Context, weaver.None) (int, error) { return 0, weaver.Permanent(store.ErrUnavailable) })
		hd := enqueue(fx, transient, weaver.None{})
		fx.run(h)
		if te := failure(fx, hd); te.Kind != task.KindHandler {
			fx.Errorf("the task ended with %v, want failed at once, as the handler said", te)
		}
	})
}
