package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// The tests of this file are about the reader of an error: each mistake is
// told by a sentinel, names the thing, and says what to do.

func TestDefineRefusesBadNames(t *testing.T) {
	for name, c := range map[string]struct {
		define func()
		words  []string
	}{
		"one part":       {func() { weaver.Define[int, int]("sync-users") }, []string{`"sync-users"`, "owner.domain.action.vN", "acme.billing.charge.v1"}},
		"no version":     {func() { weaver.Define[int, int]("acme.billing.charge") }, []string{"acme.billing.charge", "v1"}},
		"upper case":     {func() { weaver.Define[int, int]("Acme.billing.charge.v1") }, []string{"Acme", "a-z"}},
		"too long":       {func() { weaver.Define[int, int]("a.b." + strings.Repeat("c", 255) + ".v1") }, []string{"262 bytes", "255"}},
		"empty":          {func() { weaver.Define[int, int]("") }, []string{`""`, "acme.billing.charge.v1"}},
		"a bad option":   {func() { weaver.Define[int, int]("a.b.c.v1", weaver.MaxAttempts(0)) }, []string{"a.b.c.v1", "MaxAttempts(0)", "at least 1"}},
		"two bad ones":   {func() { weaver.Define[int, int]("a.b.c.v1", weaver.Backoff(-1), weaver.Priority(10)) }, []string{"Backoff", "Priority(10)", "1 (first)"}},
		"a bad label":    {func() { weaver.Define[int, int]("a.b.c.v1", weaver.Label("", "x")) }, []string{"Label", "empty"}},
		"a NUL":          {func() { weaver.Define[int, int]("a.b.c.v1", weaver.Label("k", "a\x00b")) }, []string{"Label", "NUL"}},
		"a bad timeout":  {func() { weaver.Define[int, int]("a.b.c.v1", weaver.Timeout(-time.Second)) }, []string{"Timeout(-1s)", "0 for none"}},
		"a bad schema":   {func() { weaver.Define[int, int]("a.b.c.v1", weaver.SchemaVersion(0)) }, []string{"SchemaVersion(0)"}},
		"a bad deadline": {func() { weaver.Define[int, int]("a.b.c.v1", weaver.ExpireAfter(0)) }, []string{"ExpireAfter(0s)", "positive"}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				text, ok := recover().(string)
				if !ok {
					t.Fatal("Define did not panic with a text")
				}
				wantError(t, errors.New(text), nil, append(c.words, "weaver.Define")...)
			}()
			c.define()
		})
	}
}

func TestNewReportsEveryProblemAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		twice := weaver.Define[int, int]("mistakes.new.twice.v1")
		missing := weaver.Define[int, int]("mistakes.new.missing.v1")
		unhandled := weaver.Define[int, int]("mistakes.new.nil.v1")
		wrong := weaver.Define[int, int]("mistakes.new.wrong.v1")
		run := func(_ context.Context, n int) (int, error) { return n, nil }
		_, err := weaver.New(w.store, weaver.Config{
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
		wantError(w, err, weaver.ErrConfig,
			"mistakes.new.twice.v1 has two handlers", "register each task type once",
			"mistakes.new.missing.v1 is expected but has no handler", "add it to Config.Handlers",
			"the handler of mistakes.new.nil.v1 is nil",
			"VerifySuccess of mistakes.new.wrong.v1", "string", "int",
			"Handlers[3] is empty", "Expect[2] is nil", "Concurrency is negative", "Lease is 1ms: want at least 1s",
			`Queues["billing"] is 0`, "CrashBudget is -2", "Middleware[0] is nil", "InlineLimit is -1", "Namespace")
		if got := strings.Count(err.Error(), weaver.ErrConfig.Error()); got != 1 {
			w.Errorf("the error says %d times that the configuration is invalid: %v", got, err)
		}
		_, err = weaver.New(nil, weaver.Config{})
		wantError(w, err, weaver.ErrConfig, "the store is nil")
		_, err = weaver.NewClient(nil, weaver.ClientConfig{})
		wantError(w, err, weaver.ErrConfig, "the store is nil")
	})
}

func TestPayloadsOverTheLimit(t *testing.T) {
	text := weaver.Define[string, string]("mistakes.large.text.v1")
	large := strings.Repeat("x", weaver.DefaultInlineLimit)

	scene(t, "an input is refused", func(w *world) {
		_, err := text.Enqueue(w.Context(), w.client, large)
		wantError(w, err, weaver.ErrTooLarge, text.Name(), "65538 bytes", "65536", "InlineLimit", "reference")
		list, _, err := w.client.List(w.Context(), weaver.Filter{})
		w.must(err)
		equal(w, "stored tasks", len(list), 0)
		fits := large[:weaver.DefaultInlineLimit-2]
		enqueue(w, text, fits)
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
		scene(t, name, func(w *world) {
			w.run(text.Handler(handler))
			h := enqueue(w, text, "")
			te := failure(w, h)
			equal(w, "kind", te.Kind, task.KindValidation)
			equal(w, "attempts", te.Attempts, 1)
			what := "output"
			if strings.Contains(name, "step") {
				what = "step value"
				equal(w, "failed step", te.FailedStep, "big")
			}
			wantError(w, te, nil, what, "65538 bytes", "65536", "Config.InlineLimit")
			for _, s := range w.history(h.ID()).Steps {
				equal(w, "state of the step", s.State, task.StepFailed)
			}
		})
	}

	scene(t, "an unblock input is refused", func(w *world) {
		err := w.client.Unblock(w.Context(), weaver.TaskID{1}, large)
		wantError(w, err, weaver.ErrTooLarge, "unblock input", "InlineLimit")
	})
	scene(t, "a raised limit takes it", func(w *world) {
		client, err := weaver.NewClient(w.store, weaver.ClientConfig{InlineLimit: 1 << 20})
		w.must(err)
		h, err := text.Enqueue(w.Context(), client, large)
		w.must(err)
		w.runConfig(w.store, weaver.Config{InlineLimit: 1 << 20, Handlers: []weaver.Handler{
			text.Handler(func(_ context.Context, in string) (string, error) { return in, nil }),
		}})
		equal(w, "length of the output", len(result(w, h)), len(large))
	})
}

func largeValue(s string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return s, nil }
}

func TestMisuseInHandlersFailsTheTask(t *testing.T) {
	typ := weaver.Define[string, string]("mistakes.handler.run.v1")
	nothing := func(context.Context) error { return nil }
	for name, c := range map[string]struct {
		handler  func(ctx context.Context) error
		sentinel error
		words    []string
	}{
		"a step name used twice": {func(ctx context.Context) error {
			if err := weaver.Do(ctx, "save", nothing); err != nil {
				return err
			}
			return weaver.Do(ctx, "save", nothing)
		}, weaver.ErrDuplicateStep, []string{`step "save"`, "must be unique"}},
		"a sleep with a step's name": {func(ctx context.Context) error {
			if err := weaver.Do(ctx, "pause", nothing); err != nil {
				return err
			}
			return weaver.Sleep(ctx, "pause", time.Hour)
		}, weaver.ErrDuplicateStep, []string{`step "pause"`}},
		"a nested step": {func(ctx context.Context) error {
			return weaver.Do(ctx, "outer", func(ctx context.Context) error { return weaver.Do(ctx, "inner", nothing) })
		}, weaver.ErrNestedStep, []string{`step "inner" inside step "outer"`, "return from the outer one first"}},
		"a nested sleep": {func(ctx context.Context) error {
			return weaver.Do(ctx, "outer", func(ctx context.Context) error { return weaver.Sleep(ctx, "inner", time.Hour) })
		}, weaver.ErrNestedStep, []string{`step "inner" inside step "outer"`}},
		"a foreign context": {func(context.Context) error {
			return weaver.Do(context.Background(), "save", nothing)
		}, weaver.ErrNoTask, []string{`step "save"`, "pass the context that the handler was given"}},
		"a foreign context for Sleep": {func(context.Context) error {
			return weaver.Sleep(context.Background(), "pause", time.Hour)
		}, weaver.ErrNoTask, []string{`sleep "pause"`}},
		"a foreign context for Start": {func(context.Context) error {
			_, err := weaver.Start(context.Background(), "mail", typ, "")
			return err
		}, weaver.ErrNoTask, []string{`start "mail"`}},
		"a foreign context for Progress": {func(context.Context) error {
			return weaver.Progress(context.Background(), 1, 2)
		}, weaver.ErrNoTask, nil},
		"a step without a name": {func(ctx context.Context) error { return weaver.Do(ctx, "", nothing) }, nil, []string{"a step needs a name"}},
		"a step name too long":  {func(ctx context.Context) error { return weaver.Do(ctx, strings.Repeat("n", 256), nothing) }, nil, []string{"256 bytes", "255"}},
		"a step name with NUL":  {func(ctx context.Context) error { return weaver.Do(ctx, "a\x00b", nothing) }, nil, []string{"NUL"}},
		"a value that is no JSON": {func(ctx context.Context) error {
			_, err := weaver.Step(ctx, "open", func(context.Context) (chan int, error) { return make(chan int), nil })
			return err
		}, nil, []string{"value of step open", "cannot be stored", "chan int"}},
		"a started task that is invalid": {func(ctx context.Context) error {
			_, err := weaver.Start(ctx, "charge", weaver.Define[order, order]("mistakes.handler.charge.v1"), order{Total: -1})
			return err
		}, weaver.ErrInvalidInput, []string{`start "charge"`, "Total is -1"}},
		"InStepTx outside of StepTx": {func(ctx context.Context) error {
			_, err := typ.Enqueue(ctx, weaver.InStepTx(ctx), "")
			return err
		}, weaver.ErrNoTask, []string{"InStepTx outside a StepTx"}},
		"an output of a need that is none": {func(ctx context.Context) error {
			_, err := typ.Output(ctx, "extract")
			return weaver.Permanent(err)
		}, weaver.ErrNoSuchNeed, []string{`"extract"`, "it needs []"}},
	} {
		scene(t, name, func(w *world) {
			var got error
			w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
				got = c.handler(ctx)
				return "", got
			}))
			te := failure(w, enqueue(w, typ, ""))
			wantError(w, got, c.sentinel, c.words...)
			wantError(w, te, nil, c.words...)
			equal(w, "attempts", te.Attempts, 1)
			equal(w, "state", te.State, weaver.StateFailed)
		})
	}

	scene(t, "is final for steps on record, too", func(w *world) {
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			recorded := func() error { return weaver.Do(ctx, "recorded", nothing) }
			if weaver.Current(ctx).AttemptNo == 1 {
				return "", errors.Join(recorded(), errors.New("again"))
			}
			mistake := errors.Join(weaver.Do(ctx, "twice", nothing), weaver.Do(ctx, "twice", nothing))
			wantError(w, mistake, weaver.ErrDuplicateStep)
			wantError(w, recorded(), weaver.ErrDuplicateStep, `"twice"`)
			return "swallowed", nil
		}))
		wantError(w, failure(w, enqueue(w, typ, "")), nil, `"twice"`)
	})

	scene(t, "a goroutine that outlives its handler", func(w *world) {
		returned := make(chan struct{})
		late := make(chan error, 4)
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			go func() {
				<-returned
				late <- weaver.Do(ctx, "late", func(context.Context) error { w.Error("the late step ran"); return nil })
				late <- weaver.Sleep(ctx, "late sleep", time.Hour)
				_, err := weaver.Start(ctx, "late start", typ, "")
				late <- err
				late <- weaver.Progress(ctx, 1, 2)
			}()
			return "done", nil
		}))
		h := enqueue(w, typ, "")
		equal(w, "output", result(w, h), "done")
		close(returned)
		for range 4 {
			wantError(w, <-late, weaver.ErrAttemptOver, "outlived its handler", "wait for it before returning")
		}
		w.wantState(h.ID(), weaver.StateSucceeded)
	})

	scene(t, "a step that ends after its handler is not recorded", func(w *world) {
		returned := make(chan struct{})
		late := make(chan error, 1)
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			go func() {
				late <- weaver.Do(ctx, "slow", func(context.Context) error { <-returned; return nil })
			}()
			time.Sleep(time.Second)
			return "done", nil
		}))
		h := enqueue(w, typ, "")
		result(w, h)
		close(returned)
		wantError(w, <-late, weaver.ErrAttemptOver)
		equal(w, "recorded steps", len(w.history(h.ID()).Steps), 0)
	})
}

func TestJSONThatCannotBeKept(t *testing.T) {
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
		scene(t, name, func(w *world) {
			_, err := w.client.EnqueueTasks(w.Context(), weaver.NewDraft("mistakes.json.raw.v1", json.RawMessage(c.raw)))
			wantError(w, err, weaver.ErrInvalidInput, append(c.words, "mistakes.json.raw.v1")...)
			typ := weaver.Define[json.RawMessage, json.RawMessage]("mistakes.json.raw.v1")
			if _, err = typ.Enqueue(w.Context(), w.client, json.RawMessage(c.raw)); c.raw != "" {
				wantError(w, err, weaver.ErrInvalidInput, typ.Name())
			}
		})
	}
	scene(t, "what can be kept is kept as it is", func(w *world) {
		raw := `{"pair":"\ud83d\ude00","big":12345678901234567890.000100,"deep":` + deep(999) + `,"text":"\\u0000"}`
		got, err := w.client.EnqueueTasks(w.Context(), weaver.NewDraft("mistakes.json.raw.v1", json.RawMessage(raw)))
		w.must(err)
		equal(w, "the stored input", string(w.get(got[0].ID).Input), raw)
	})
	scene(t, "a NUL in an output or a step value", func(w *world) {
		typ := weaver.Define[bool, string]("mistakes.json.out.v1")
		w.run(typ.Handler(func(ctx context.Context, step bool) (string, error) {
			if !step {
				return "a\x00b", nil
			}
			return weaver.Step(ctx, "fetch", func(context.Context) (string, error) { return "a\x00b", nil })
		}))
		for _, step := range []bool{false, true} {
			te := failure(w, enqueue(w, typ, step))
			equal(w, "kind", te.Kind, task.KindValidation)
			equal(w, "attempts", te.Attempts, 1)
			wantError(w, te, nil, "cannot be stored", "$: contains a NUL")
		}
	})
}
