package weaver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestEnqueue(t *testing.T) {
	typ := weaver.Define[string, string]("engine.enqueue.run.v1")
	echo := typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil })

	subtest(t, "enqueue makes a pending task durable and does not wait", func(fx *fixture) {
		began := time.Now()
		h := enqueue(fx, typ, "later", weaver.Delay(time.Hour))
		equal(fx, "time that passed", time.Since(began), 0)
		if h.ID().IsZero() {
			fx.Error("the handle has no id")
		}
		// Another client reads it: it is stored, not only held by the first client.
		other, err := fx.newClient().Get(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "state", other.State, weaver.StatePending)
		equal(fx, "waiting for", other.Waiting, task.WaitDelay)

		now := enqueue(fx, typ, "now")
		got, err := now.Get(fx.Context())
		fx.must(err)
		equal(fx, "state of a task that is due", got.State, weaver.StateReady)
		equal(fx, "attempts", got.AttemptNo, 0)
	})

	subtest(t, "an idempotency key returns the existing task, whatever the input and the state", func(fx *fixture) {
		key := weaver.IdempotencyKey("evt-1")
		first := enqueue(fx, typ, "first", key)
		again := enqueue(fx, typ, "another input", key)
		equal(fx, "disposition of the first", first.Disposition(), store.DispositionCreated)
		equal(fx, "disposition of the second", again.Disposition(), store.DispositionExisting)
		equal(fx, "id of the second", again.ID(), first.ID())

		fx.idle(echo)
		done := enqueue(fx, typ, "when it is done", key)
		equal(fx, "disposition when it is done", done.Disposition(), store.DispositionExisting)
		equal(fx, "its output", result(fx, done), "first")

		other := weaver.Define[string, string]("engine.enqueue.other.v1")
		equal(fx, "disposition under another type", enqueue(fx, other, "", key).Disposition(), store.DispositionCreated)
	})

	subtest(t, "deleting the task frees the key", func(fx *fixture) {
		key := weaver.IdempotencyKey("evt-1")
		first := enqueue(fx, typ, "first", key)
		wantError(fx, fx.client.Delete(fx.Context(), first.ID()), weaver.ErrState, first.ID().String(), "ready")
		fx.idle(echo)
		fx.must(fx.client.Delete(fx.Context(), first.ID()))
		_, err := fx.client.Get(fx.Context(), first.ID())
		wantError(fx, err, weaver.ErrNotFound, first.ID().String())
		second := enqueue(fx, typ, "second", key)
		equal(fx, "disposition", second.Disposition(), store.DispositionCreated)
		if second.ID() == first.ID() {
			fx.Error("the deleted task came back")
		}
	})

	subtest(t, "a concurrency key lets later tasks wait, never drops them", func(fx *fixture) {
		g := newGate()
		fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) { return in, g.pass(ctx) }))
		var hs []*weaver.Handle[string]
		for i := range 3 {
			hs = append(hs, enqueue(fx, typ, fmt.Sprint(i), weaver.ConcurrencyKey("org_123")))
			time.Sleep(time.Second)
		}
		for i, h := range hs {
			<-g.in
			for _, later := range hs[i+1:] {
				got := fx.get(later.ID())
				equal(fx, "state of a later one", got.State, weaver.StatePending)
				equal(fx, "it waits for", got.Waiting, task.WaitConcurrency)
			}
			g.open()
			equal(fx, "output", result(fx, h), fmt.Sprint(i))
		}
	})

	subtest(t, "both keys are independent", func(fx *fixture) {
		both := func(event string) []weaver.EnqueueOption {
			return []weaver.EnqueueOption{weaver.IdempotencyKey(event), weaver.ConcurrencyKey("org_123")}
		}
		a := enqueue(fx, typ, "a", both("evt-1")...)
		b := enqueue(fx, typ, "b", both("evt-2")...)
		again := enqueue(fx, typ, "c", both("evt-1")...)
		equal(fx, "another event on the same org", b.Disposition(), store.DispositionCreated)
		equal(fx, "the same event again", again.ID(), a.ID())
		fx.idle(echo)
		equal(fx, "a", result(fx, a), "a")
		equal(fx, "b", result(fx, b), "b")
	})

	subtest(t, "many at once are one transaction, validated before anything is written", func(fx *fixture) {
		charge := weaver.Define[order, order]("engine.enqueue.charge.v1")
		_, err := fx.client.EnqueueTasks(fx.Context(),
			typ.With("fine"), charge.With(order{Total: -1}), charge.With(order{}), charge.With(order{Total: -2}))
		wantError(fx, err, weaver.ErrInvalidInput, "nothing was stored", "draft 1", "Total is -1", "draft 3", "Total is -2")
		_, err = charge.EnqueueMany(fx.Context(), fx.client, []order{{Total: 1}, {Total: -3}})
		wantError(fx, err, weaver.ErrInvalidInput, "input 1", "Total is -3")
		list, _, err := fx.client.List(fx.Context(), weaver.Filter{})
		fx.must(err)
		equal(fx, "stored after two refusals", len(list), 0)

		f := newFaults(fx)
		through, err := weaver.NewClient(f.store, weaver.ClientConfig{})
		fx.must(err)
		got, err := through.EnqueueTasks(fx.Context(),
			typ.With("x", weaver.IdempotencyKey("1")), typ.With("y", weaver.IdempotencyKey("2")), typ.With("z", weaver.IdempotencyKey("1")))
		fx.must(err)
		equal(fx, "calls of the store", f.count("Enqueue"), 1)
		equal(fx, "a key twice in one call names the first", got[2].ID, got[0].ID)
		equal(fx, "its disposition", got[2].Disposition, store.DispositionExisting)
	})
}

func TestEnqueueMany_PerItem(t *testing.T) {
	typ := weaver.Define[string, string]("engine.enqueue.each.v1")
	inBubble(t, func(fx *fixture) {
		keyed := weaver.PerItem(func(i int) []weaver.EnqueueOption {
			return []weaver.EnqueueOption{weaver.IdempotencyKey(fmt.Sprint("evt-", i)), weaver.Priority(i + 1)}
		})
		for _, want := range []store.Disposition{store.DispositionCreated, store.DispositionExisting} {
			hs, err := typ.EnqueueMany(fx.Context(), fx.client, []string{"a", "b"}, weaver.Priority(9), weaver.Label("k", "v"), keyed)
			fx.must(err)
			for i, h := range hs {
				info := fx.get(h.ID())
				equal(fx, "what each has", fmt.Sprint(h.Disposition(), info.Priority, info.Labels), fmt.Sprint(want, i+1, map[string]string{"k": "v"}))
			}
		}
		_, err := typ.Enqueue(fx.Context(), fx.client, "a", keyed)
		wantError(fx, err, weaver.ErrInvalidOption, "only EnqueueMany takes it")
		_, err = typ.EnqueueMany(fx.Context(), fx.client, []string{"a"}, weaver.PerItem(func(int) []weaver.EnqueueOption { return []weaver.EnqueueOption{weaver.Priority(-1)} }))
		wantError(fx, err, weaver.ErrInvalidOption, "input 0")
	})
}

func TestEnqueueRefusesInvalidArguments(t *testing.T) {
	typ := weaver.Define[string, string]("invalid.enqueue.run.v1")
	inBubble(t, func(fx *fixture) {
		_, err := typ.EnqueueMany(fx.Context(), fx.client, []string{"a", "b"}, weaver.IdempotencyKey("evt-1"))
		wantError(fx, err, weaver.ErrInvalidOption, "IdempotencyKey in EnqueueMany", typ.Name(), "with PerItem", "use EnqueueTasks")

		for name, opt := range map[string]weaver.EnqueueOption{
			"Delay(-1s)":            weaver.Delay(-time.Second),
			"IdempotencyKey":        weaver.IdempotencyKey(""),
			`ConcurrencyKey("k"`:    weaver.ConcurrencyKey("k", 0),
			"Priority(0)":           weaver.Priority(0),
			"Queue: the name is":    weaver.Queue(""),
			"Metadata key contains": weaver.Metadata("key", "\x00"),
			"is not UTF-8":          weaver.Label("key", "\xff"),
			"longer texts into":     weaver.Label("key", strings.Repeat("x", 256)),
		} {
			// Metadata names the key of the value.
			if name == "Metadata key contains" {
				name = "Metadata key"
			}
			_, err := typ.Enqueue(fx.Context(), fx.client, "x", opt)
			wantError(fx, err, weaver.ErrInvalidOption, typ.Name(), name)
		}
		_, err = fx.client.EnqueueTasks(fx.Context(), weaver.Draft{})
		wantError(fx, err, weaver.ErrInvalidInput, "the draft is empty", "With")
		_, err = fx.client.EnqueueTasks(fx.Context(), weaver.NewDraft("sync-users", []byte(`1`)))
		wantError(fx, err, weaver.ErrInvalidInput, `"sync-users"`, "acme.billing.charge.v1")

		list, _, err := fx.client.List(fx.Context(), weaver.Filter{})
		fx.must(err)
		equal(fx, "stored tasks", len(list), 0)
	})
}

func TestBareEnqueueInHandler(t *testing.T) {
	parent := weaver.Define[string, string]("engine.bare.parent.v1")
	child := weaver.Define[string, string]("engine.bare.child.v1")
	const warning = "enqueued in a handler without an idempotency key: every attempt enqueues again; use weaver.Start, or an IdempotencyKey"
	subtest(t, "is warned about, once per type", func(fx *fixture) {
		fx.run(parent.Handler(func(ctx context.Context, in string) (string, error) {
			for range 2 {
				if _, err := child.Enqueue(ctx, fx.client, in); err != nil {
					return "", err
				}
			}
			_, err := child.Enqueue(ctx, fx.client, in, weaver.IdempotencyKey(weaver.Current(ctx).StepKey("child")))
			return in, err
		}))
		h := enqueue(fx, parent, "x")
		result(fx, h)
		result(fx, enqueue(fx, parent, "y"))
		lines := fx.log.lines(fx, warning)
		if len(lines) != 1 {
			fx.Fatalf("%d warnings, want 1", len(lines))
		}
		equal(fx, "task type", lines[0]["task_type"], any(child.Name()))
		equal(fx, "handler", lines[0]["handler"], any(parent.Name()))
		equal(fx, "task", lines[0]["task_id"], any(h.ID().String()))
	})
	subtest(t, "with a key, or outside, is fine", func(fx *fixture) {
		fx.run(parent.Handler(func(ctx context.Context, in string) (string, error) {
			_, err := child.Enqueue(ctx, fx.client, in, weaver.IdempotencyKey("k"))
			return in, err
		}))
		result(fx, enqueue(fx, parent, "x"))
		equal(fx, "warnings", len(fx.log.lines(fx, warning)), 0)
	})
}
