package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

type order struct {
	ID    int
	Total int
}

// Validate implements the check of inputs and outputs.
func (o order) Validate() error {
	if o.Total < 0 {
		return fmt.Errorf("Total is %d: want 0 or more", o.Total)
	}
	return nil
}

type receipt struct{ Text string }

// Validate implements the check of inputs and outputs.
func (r *receipt) Validate() error {
	if r.Text == "" {
		return errors.New("Text is empty")
	}
	return nil
}

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

func TestType(t *testing.T) {
	charge := weaver.Define[order, receipt]("acme.billing.charge.v1")
	handle := charge.Handler(func(_ context.Context, o order) (receipt, error) {
		return receipt{Text: fmt.Sprintf("order %d: %d", o.ID, o.Total)}, nil
	})

	subtest(t, "a definition enqueues, waits, enqueues many, gets and lists", func(fx *fixture) {
		fx.run(handle)
		h := enqueue(fx, charge, order{ID: 1, Total: 10})
		equal(fx, "the handle's output", result(fx, h).Text, "order 1: 10")

		out, err := charge.EnqueueAndWait(fx.Context(), fx.client, order{ID: 2, Total: 20})
		fx.must(err)
		equal(fx, "EnqueueAndWait", out.Text, "order 2: 20")

		many, err := charge.EnqueueMany(fx.Context(), fx.client, []order{{ID: 3}, {ID: 4}})
		fx.must(err)
		equal(fx, "the last of many", result(fx, many[1]).Text, "order 4: 0")

		got, err := charge.Get(fx.Context(), fx.client, h.ID())
		fx.must(err)
		equal(fx, "typed input", got.Input, order{ID: 1, Total: 10})
		equal(fx, "typed output", got.Output.Text, "order 1: 10")

		list, next, err := charge.List(fx.Context(), fx.client, weaver.Filter{})
		fx.must(err)
		equal(fx, "length of the list", len(list), 4)
		equal(fx, "cursor at the end", next, "")
		equal(fx, "newest first", list[0].Input.ID, 4)
	})

	subtest(t, "the input is validated at enqueue and nothing is stored", func(fx *fixture) {
		_, err := charge.Enqueue(fx.Context(), fx.client, order{ID: 1, Total: -5})
		wantError(fx, err, weaver.ErrInvalidInput, "acme.billing.charge.v1", "Total is -5", "want 0 or more")
		list, _, err := fx.client.List(fx.Context(), weaver.Filter{})
		fx.must(err)
		equal(fx, "stored tasks", len(list), 0)
	})

	subtest(t, "the output is validated at completion, and the error kept", func(fx *fixture) {
		fx.run(charge.Handler(func(context.Context, order) (receipt, error) { return receipt{}, nil }))
		h := enqueue(fx, charge, order{ID: 1})
		te := failure(fx, h)
		equal(fx, "state", te.State, weaver.StateFailed)
		equal(fx, "kind", te.Kind, task.KindValidation)
		wantError(fx, te, nil, "output", "Text is empty")
		kept := fx.get(h.ID())
		equal(fx, "attempts: the same code would fail again", kept.AttemptCount, 1)
		if kept.Error == nil || kept.Error.Kind != task.KindValidation {
			fx.Errorf("the stored error is %+v", kept.Error)
		}
	})

	subtest(t, "the same task code runs on every store", func(fx *fixture) {
		// Environments differ by their store only; the handler does not depend on it.
		// internal/archtest checks that the code builds for the browser.
		for _, s := range everyStore(fx) {
			other := newFixture(fx.T, s)
			other.run(handle)
			equal(fx, "output", result(other, enqueue(other, charge, order{ID: 7, Total: 70})).Text, "order 7: 70")
		}
	})
}

// pointed and valued validate themselves, by either kind of receiver.
type pointed struct{ N int }

func (p *pointed) Validate() error { return mustBePositive(p.N) }

type valued struct{ N int }

func (v valued) Validate() error { return mustBePositive(v.N) }

func mustBePositive(n int) error {
	if n <= 0 {
		return fmt.Errorf("N is %d", n)
	}
	return nil
}

func TestValidateWithAnyReceiver(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		checkValidate(fx, "pointed", pointed{}, pointed{1})
		checkValidate(fx, "pointer", &pointed{}, &pointed{1})
		checkValidate(fx, "valued", valued{}, valued{1})
		checkValidate(fx, "valuer", &valued{}, &valued{1})
		checkValidate[any](fx, "iface", valued{}, valued{1})
	})
}

// checkValidate sends a bad and a good value both ways.
func checkValidate[T any](fx *fixture, name string, bad, good T) {
	fx.Helper()
	in := weaver.Define[T, int]("engine.validate." + name + ".v1")
	_, err := in.Enqueue(fx.Context(), fx.client, bad)
	wantError(fx, err, weaver.ErrInvalidInput, in.Name(), "N is 0")
	enqueue(fx, in, good)

	out := weaver.Define[int, T]("engine.validate." + name + "_out.v1")
	e := fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{out.Handler(func(_ context.Context, n int) (T, error) {
		if n == 0 {
			return bad, nil
		}
		return good, nil
	})}})
	te := failure(fx, enqueue(fx, out, 0))
	equal(fx, "kind for "+name, te.Kind, task.KindValidation)
	result(fx, enqueue(fx, out, 1))
	fx.must(e.stop())
}
