package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

func TestPayloadsOverTheLimit(t *testing.T) {
	text := weaver.Define[string, string]("invalid.large.text.v1")
	large := strings.Repeat("x", weaver.DefaultInlineLimit)

	subtest(t, "an input is refused", func(fx *fixture) {
		_, err := text.Enqueue(fx.Context(), fx.client, large)
		wantError(fx, err, weaver.ErrTooLarge, text.Name(), "65538 bytes", "65536", "InlineLimit", "reference")
		list, _, err := fx.client.List(fx.Context(), weaver.Filter{})
		fx.must(err)
		equal(fx, "stored tasks", len(list), 0)
		fits := large[:weaver.DefaultInlineLimit-2]
		enqueue(fx, text, fits)
	})

	for name, handler := range map[string]func(context.Context, string) (string, error){
		"an output fails the task":    func(context.Context, string) (string, error) { return large, nil },
		"a step value fails the task": func(ctx context.Context, _ string) (string, error) { return weaver.Step(ctx, "big", largeValue(large)) },
		"a step value that is ignored": func(ctx context.Context, _ string) (string, error) {
			_, _ = weaver.Step(ctx, "big", largeValue(large))
			return "", nil
		},
		"a step value with tries left": func(ctx context.Context, _ string) (string, error) {
			return weaver.Step(ctx, "big", largeValue(large), weaver.StepRetry(5), weaver.RecordError())
		},
	} {
		subtest(t, name, func(fx *fixture) {
			fx.run(text.Handler(handler))
			h := enqueue(fx, text, "")
			te := failure(fx, h)
			equal(fx, "kind", te.Kind, task.KindValidation)
			equal(fx, "attempts", te.Attempts, 1)
			what := "output"
			if strings.Contains(name, "step") {
				what = "the value"
				equal(fx, "failed step", te.FailedStep, "big")
			}
			wantError(fx, te, nil, what, "65538 bytes", "65536", "Config.InlineLimit")
			for _, s := range fx.history(h.ID()).Steps {
				equal(fx, "state of the step", s.State, task.StepFailed)
			}
		})
	}

	subtest(t, "an unblock input is refused", func(fx *fixture) {
		err := fx.client.Unblock(fx.Context(), weaver.TaskID{1}, large)
		wantError(fx, err, weaver.ErrTooLarge, "unblock input", "InlineLimit")
	})
	subtest(t, "a raised limit takes it", func(fx *fixture) {
		client, err := weaver.NewClient(fx.store, weaver.ClientConfig{InlineLimit: 1 << 20})
		fx.must(err)
		h, err := text.Enqueue(fx.Context(), client, large)
		fx.must(err)
		fx.runConfig(fx.store, weaver.Config{InlineLimit: 1 << 20, Handlers: []weaver.Handler{
			text.Handler(func(_ context.Context, in string) (string, error) { return in, nil }),
		}})
		equal(fx, "length of the output", len(result(fx, h)), len(large))
	})
}

func largeValue(s string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return s, nil }
}

func TestJSONThatCannotBeStored(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, c := range map[string]struct {
		raw   string
		words []string
	}{
		"NUL":                     {`{"user":{"name":"a\u0000b"}}`, []string{"$.user.name", "NUL"}},
		"NUL in a key":            {`{"user":{"a\u0000b":1}}`, []string{"$.user", "NUL"}},
		"a lone high surrogate":   {`{"list":["ok","x\ud800y"]}`, []string{"$.list[1]", "lone surrogate"}},
		"a lone low surrogate":    {`["\udc00"]`, []string{"$[0]", "lone surrogate"}},
		"two high surrogates":     {`["\ud800\ud800"]`, []string{"$[0]", "lone surrogate"}},
		"duplicate keys":          {`{"a":{"b":1,"c":2,"b":3}}`, []string{"$.a.b", "the key stands twice"}},
		"duplicate keys, escaped": {`{"b":1,"\u0062":3}`, []string{"$.b", "the key stands twice"}},
		"too deep":                {deep(1001), []string{"$[0][0]", "deeper than 1000"}},
		"no JSON":                 {`{"a":`, []string{"$.a", "not JSON"}},
		"empty":                   {``, []string{"$", "not JSON"}},
		"two values":              {`{"a":1} {"b":2}`, []string{"something follows"}},
		"a bracket too many":      {`{"a":1,"b":2}}`, []string{"something follows"}},
		"bytes that are no UTF-8": {"\"a\xffb\"", []string{"UTF-8"}},
	} {
		subtest(t, name, func(fx *fixture) {
			_, err := fx.client.EnqueueTasks(fx.Context(), weaver.NewDraft("invalid.json.raw.v1", json.RawMessage(c.raw)))
			wantError(fx, err, weaver.ErrInvalidInput, append(c.words, "invalid.json.raw.v1")...)
			typ := weaver.Define[json.RawMessage, json.RawMessage]("invalid.json.raw.v1")
			if _, err = typ.Enqueue(fx.Context(), fx.client, json.RawMessage(c.raw)); c.raw != "" {
				wantError(fx, err, weaver.ErrInvalidInput, typ.Name())
			}
		})
	}
	subtest(t, "JSON that can be stored is stored unchanged", func(fx *fixture) {
		raw := `{"pair":"\ud83d\ude00","big":12345678901234567890.000100,"deep":` + deep(999) + `,"text":"\\u0000"}`
		got, err := fx.client.EnqueueTasks(fx.Context(), weaver.NewDraft("invalid.json.raw.v1", json.RawMessage(raw)))
		fx.must(err)
		equal(fx, "the stored input", string(fx.get(got[0].ID).Input), raw)
	})
	subtest(t, "a NUL in an output or a step value", func(fx *fixture) {
		typ := weaver.Define[bool, string]("invalid.json.out.v1")
		fx.run(typ.Handler(func(ctx context.Context, step bool) (string, error) {
			if !step {
				return "a\x00b", nil
			}
			return weaver.Step(ctx, "fetch", func(context.Context) (string, error) { return "a\x00b", nil })
		}))
		for _, step := range []bool{false, true} {
			te := failure(fx, enqueue(fx, typ, step))
			equal(fx, "kind", te.Kind, task.KindValidation)
			equal(fx, "attempts", te.Attempts, 1)
			wantError(fx, te, nil, "cannot be stored", "$: contains a NUL")
		}
	})
}

// The check for duplicate keys uses one map for many objects: keys of an earlier
// object must not count.
func TestDuplicateKeysAreCheckedPerObject(t *testing.T) {
	many := func(from int) string {
		var keys []string
		for i := range 40 {
			keys = append(keys, fmt.Sprintf(`"k%d":%d`, from+i, i))
		}
		return "{" + strings.Join(keys, ",") + "}"
	}
	for raw, path := range map[string]string{
		`[{"a":1},{"a":2},{"b":{"a":3}},{"b":{"a":4},"a":[]}]`: "",
		`[{"a":1,"b":2},{"b":1,"a":2}]`:                        "",
		"[" + many(0) + "," + many(20) + "," + many(0) + "]":   "",
		`{"":0}`:                           "",
		`[{"":0},{"":1,"":2}]`:             "$[1].",
		`[[],{"a":1},{"a":1,"b":2,"a":3}]`: "$[2].a",
		`{"a":{"b":1},"c":{"b":1},"a":0}`:  "$.a",
	} {
		subtest(t, fmt.Sprintf("%.30s", raw), func(fx *fixture) {
			_, err := fx.client.EnqueueTasks(fx.Context(), weaver.NewDraft("invalid.json.keys.v1", json.RawMessage(raw)))
			if path == "" {
				fx.must(err)
				return
			}
			wantError(fx, err, weaver.ErrInvalidInput, path+": the key stands twice")
		})
	}
}

func TestUndecodable(t *testing.T) {
	type v1 struct{ Name string }
	type v2 struct{ Name int }
	in1 := weaver.Define[v1, string]("engine.decode.run.v1", weaver.MaxAttempts(2))
	in2 := weaver.Define[v2, string](in1.Name(), weaver.MaxAttempts(2))

	subtest(t, "an input blocks the task and costs no attempt", func(fx *fixture) {
		e := fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{in2.Handler(func(context.Context, v2) (string, error) {
			fx.Error("the handler ran")
			return "", nil
		})}})
		h := enqueue(fx, in1, v1{"ann"})
		wantError(fx, blocked(fx, h), nil, "does not decode", "v2")
		got := fx.get(h.ID())
		equal(fx, "kind", got.Error.Kind, task.KindDecode)
		equal(fx, "attempts that count", got.AttemptCount, 0)
		fx.wantOutcomes(h.ID(), task.OutcomeDecodeFailed)
		fx.must(e.stop())

		// The program was fixed.
		fx.run(in1.Handler(func(_ context.Context, in v1) (string, error) { return in.Name, nil }))
		fx.must(fx.client.Unblock(fx.Context(), h.ID(), nil))
		equal(fx, "output", result(fx, h), "ann")
	})

	subtest(t, "a recorded step value blocks the task and is never run again", func(fx *fixture) {
		ran := 0
		fetch := func(ctx context.Context) (string, error) {
			u, err := weaver.Step(ctx, "fetch", func(context.Context) (v1, error) { ran++; return v1{"ann"}, nil })
			return u.Name, err
		}
		e := fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{in1.Handler(func(ctx context.Context, _ v1) (string, error) {
			if _, err := fetch(ctx); err != nil {
				return "", err
			}
			return "", weaver.RetryAfter(time.Hour, errors.New("later"))
		})}})
		h := enqueue(fx, in1, v1{})
		synctest.Wait()
		fx.must(e.stop())

		e = fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{in1.Handler(func(ctx context.Context, _ v1) (string, error) {
			_, err := weaver.Step(ctx, "fetch", func(context.Context) (v2, error) {
				fx.Error("the recorded step ran again")
				return v2{}, nil
			})
			if err == nil {
				fx.Error("no error for a value of another shape")
			}
			return "swallowed", nil
		})}})
		time.Sleep(2 * time.Hour)
		wantError(fx, blocked(fx, h), nil, `step "fetch"`, "no longer decodes", "new name", "bring the old type back")
		got := fx.get(h.ID())
		equal(fx, "kind", got.Error.Kind, task.KindDecode)
		equal(fx, "step", got.Error.Step, "fetch")
		fx.must(e.stop())

		fx.run(in1.Handler(func(ctx context.Context, _ v1) (string, error) { return fetch(ctx) }))
		fx.must(fx.client.Unblock(fx.Context(), h.ID(), nil))
		equal(fx, "output with the old type", result(fx, h), "ann")
		equal(fx, "runs of the step", ran, 1)
	})
}
