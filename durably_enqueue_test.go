package weaver_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

func durablyEnqueue(t *testing.T) {
	typ := weaver.Define[string, string]("durably.enqueue.run.v1")
	echo := typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil })

	scene(t, "11 enqueue makes a pending task durable and does not wait", func(w *world) {
		began := time.Now()
		h := enqueue(w, typ, "later", weaver.Delay(time.Hour))
		equal(w, "time that passed", time.Since(began), 0)
		if h.ID().IsZero() {
			w.Error("the handle has no id")
		}
		// Another client sees it: it is in the store, not in the first one.
		other, err := w.newClient().Get(w.Context(), h.ID())
		w.must(err)
		equal(w, "state", other.State, weaver.StatePending)
		equal(w, "waiting for", other.Waiting, task.WaitDelay)

		now := enqueue(w, typ, "now")
		got, err := now.Get(w.Context())
		w.must(err)
		equal(w, "state of a task that is due", got.State, weaver.StateReady)
		equal(w, "attempts", got.AttemptNo, 0)
	})

	scene(t, "12 an idempotency key returns the existing task, whatever the input and the state", func(w *world) {
		key := weaver.IdempotencyKey("evt-1")
		first := enqueue(w, typ, "first", key)
		again := enqueue(w, typ, "another input", key)
		equal(w, "disposition of the first", first.Disposition(), weaver.DispositionCreated)
		equal(w, "disposition of the second", again.Disposition(), weaver.DispositionExisting)
		equal(w, "id of the second", again.ID(), first.ID())

		w.idle(echo)
		done := enqueue(w, typ, "when it is done", key)
		equal(w, "disposition when it is done", done.Disposition(), weaver.DispositionExisting)
		equal(w, "its output", result(w, done), "first")

		other := weaver.Define[string, string]("durably.enqueue.other.v1")
		equal(w, "disposition under another type", enqueue(w, other, "", key).Disposition(), weaver.DispositionCreated)
	})

	scene(t, "13 deleting the task frees the key", func(w *world) {
		key := weaver.IdempotencyKey("evt-1")
		first := enqueue(w, typ, "first", key)
		wantError(w, w.client.Delete(w.Context(), first.ID()), weaver.ErrState, first.ID().String(), "ready")
		w.idle(echo)
		w.must(w.client.Delete(w.Context(), first.ID()))
		_, err := w.client.Get(w.Context(), first.ID())
		wantError(w, err, weaver.ErrNotFound, first.ID().String())
		second := enqueue(w, typ, "second", key)
		equal(w, "disposition", second.Disposition(), weaver.DispositionCreated)
		if second.ID() == first.ID() {
			w.Error("the deleted task came back")
		}
	})

	scene(t, "14 a concurrency key lets later tasks wait, never drops them", func(w *world) {
		g := newGate()
		w.run(typ.Handler(func(ctx context.Context, in string) (string, error) { return in, g.pass(ctx) }))
		var hs []*weaver.Handle[string]
		for i := range 3 {
			hs = append(hs, enqueue(w, typ, fmt.Sprint(i), weaver.ConcurrencyKey("org_123")))
			time.Sleep(time.Second)
		}
		for i, h := range hs {
			<-g.in
			for _, later := range hs[i+1:] {
				got := w.get(later.ID())
				equal(w, "state of a later one", got.State, weaver.StatePending)
				equal(w, "it waits for", got.Waiting, task.WaitConcurrency)
			}
			g.open()
			equal(w, "output", result(w, h), fmt.Sprint(i))
		}
	})

	scene(t, "15 both keys are independent", func(w *world) {
		both := func(event string) []weaver.EnqueueOption {
			return []weaver.EnqueueOption{weaver.IdempotencyKey(event), weaver.ConcurrencyKey("org_123")}
		}
		a := enqueue(w, typ, "a", both("evt-1")...)
		b := enqueue(w, typ, "b", both("evt-2")...)
		again := enqueue(w, typ, "c", both("evt-1")...)
		equal(w, "another event on the same org", b.Disposition(), weaver.DispositionCreated)
		equal(w, "the same event again", again.ID(), a.ID())
		w.idle(echo)
		equal(w, "a", result(w, a), "a")
		equal(w, "b", result(w, b), "b")
	})

	scene(t, "16 many at once are one transaction, validated before anything is written", func(w *world) {
		charge := weaver.Define[order, order]("durably.enqueue.charge.v1")
		_, err := w.client.EnqueueTasks(w.Context(),
			typ.With("fine"), charge.With(order{Total: -1}), charge.With(order{}), charge.With(order{Total: -2}))
		wantError(w, err, weaver.ErrInvalidInput, "nothing was stored", "draft 1", "Total is -1", "draft 3", "Total is -2")
		_, err = charge.EnqueueMany(w.Context(), w.client, []order{{Total: 1}, {Total: -3}})
		wantError(w, err, weaver.ErrInvalidInput, "input 1", "Total is -3")
		list, _, err := w.client.List(w.Context(), weaver.Filter{})
		w.must(err)
		equal(w, "stored after two refusals", len(list), 0)

		f := newFaults(w)
		through, err := weaver.NewClient(f.store, weaver.ClientConfig{})
		w.must(err)
		got, err := through.EnqueueTasks(w.Context(),
			typ.With("x", weaver.IdempotencyKey("1")), typ.With("y", weaver.IdempotencyKey("2")), typ.With("z", weaver.IdempotencyKey("1")))
		w.must(err)
		equal(w, "calls of the store", f.count("Enqueue"), 1)
		equal(w, "a key twice in one call names the first", got[2].ID, got[0].ID)
		equal(w, "its disposition", got[2].Disposition, weaver.DispositionExisting)
	})
}

func durablyStates(t *testing.T) {
	typ := weaver.Define[string, string]("durably.states.run.v1", weaver.NoRetry())

	scene(t, "17 pending, running, succeeded or failed, and a finished task never runs by itself", func(w *world) {
		g := newGate()
		ran := 0
		w.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			ran++
			if err := g.pass(ctx); err != nil {
				return "", err
			}
			if in == "bad" {
				return "", fmt.Errorf("no")
			}
			return in, nil
		}))
		good, bad := enqueue(w, typ, "good", weaver.Delay(time.Minute)), enqueue(w, typ, "bad", weaver.Delay(time.Hour))
		w.wantState(good.ID(), weaver.StatePending)
		<-g.in
		w.wantState(good.ID(), weaver.StateRunning)
		g.open()
		result(w, good)
		w.wantState(good.ID(), weaver.StateSucceeded)
		<-g.in
		g.open()
		fails(w, bad)
		w.wantState(bad.ID(), weaver.StateFailed)

		time.Sleep(30 * 24 * time.Hour)
		equal(w, "runs after a month", ran, 2)
	})

	scene(t, "18 Retry works from failed only, and skips finished steps", func(w *world) {
		fetched, broken := 0, true
		handler := typ.Handler(func(ctx context.Context, in string) (string, error) {
			value, err := weaver.Step(ctx, "fetch", func(context.Context) (string, error) { fetched++; return in + "!", nil })
			if err != nil {
				return "", err
			}
			return value, weaver.Do(ctx, "save", func(context.Context) error {
				if broken {
					return fmt.Errorf("disk full")
				}
				return nil
			})
		})
		h := enqueue(w, typ, "x")
		wantError(w, w.client.Retry(w.Context(), h.ID()), weaver.ErrState, h.ID().String(), "ready")
		w.idle(handler)
		fails(w, h)
		broken = false
		w.must(w.client.Retry(w.Context(), h.ID(), weaver.By("ops"), weaver.Reason("disk replaced")))
		w.wantState(h.ID(), weaver.StateReady)
		w.idle(handler)
		equal(w, "output", result(w, h), "x!")
		equal(w, "runs of the finished step", fetched, 1)
		wantError(w, w.client.Retry(w.Context(), h.ID()), weaver.ErrState, "succeeded")

		hist := w.history(h.ID())
		equal(w, "attempts in the history", len(hist.Attempts), 2)
		if len(hist.Audit) != 1 || hist.Audit[0].Verb != "retry" || hist.Audit[0].Actor != "ops" || hist.Audit[0].Reason != "disk replaced" {
			w.Errorf("audit: %+v", hist.Audit)
		}
	})

	scene(t, "19 get by id, absent is not found", func(w *world) {
		h := enqueue(w, typ, "x")
		got, err := typ.Get(w.Context(), w.client, h.ID())
		w.must(err)
		equal(w, "input", got.Input, "x")
		absent := weaver.TaskID{1, 2, 3}
		_, err = typ.Get(w.Context(), w.client, absent)
		wantError(w, err, weaver.ErrNotFound, absent.String(), `namespace "default"`)
		elsewhere, err := weaver.NewClient(w.store, weaver.ClientConfig{Namespace: "acme-dev"})
		w.must(err)
		_, err = elsewhere.Get(w.Context(), h.ID())
		wantError(w, err, weaver.ErrNotFound, `namespace "acme-dev"`)
	})

	scene(t, "20 list by state, type and labels, newest first, with limit and cursor", func(w *world) {
		other := weaver.Define[int, int]("durably.states.other.v1")
		for i := range 7 {
			enqueue(w, other, i, weaver.Label("n", fmt.Sprint(i%2)))
		}
		h := enqueue(w, typ, "x")
		w.idle(typ.Handler(func(context.Context, string) (string, error) { return "", fmt.Errorf("no") }))
		fails(w, h)
		enqueue(w, other, 7, weaver.Delay(time.Hour))

		for name, c := range map[string]struct {
			f    weaver.Filter
			want int
		}{
			"everything":          {weaver.Filter{}, 9},
			"failed":              {weaver.Filter{States: []weaver.State{weaver.StateFailed}}, 1},
			"pending":             {weaver.Filter{States: []weaver.State{weaver.StatePending}}, 1},
			"ready":               {weaver.Filter{States: []weaver.State{weaver.StateReady}}, 7},
			"failed or pending":   {weaver.Filter{States: []weaver.State{weaver.StateFailed, weaver.StatePending}}, 2},
			"a type":              {weaver.Filter{Types: []string{typ.Name()}}, 1},
			"a label":             {weaver.Filter{Labels: map[string]string{"n": "1"}}, 3},
			"a label and a state": {weaver.Filter{Labels: map[string]string{"n": "1"}, States: []weaver.State{weaver.StateFailed}}, 0},
		} {
			list, _, err := w.client.List(w.Context(), c.f)
			w.must(err)
			equal(w, name, len(list), c.want)
		}

		f, seen := weaver.Filter{Limit: 3}, []int(nil)
		for pages := 1; ; pages++ {
			page, next, err := other.List(w.Context(), w.client, f)
			w.must(err)
			for _, got := range page {
				seen = append(seen, got.Input)
			}
			if next == "" {
				equal(w, "pages of 3", pages, 3)
				break
			}
			f.After = next
		}
		equal(w, "newest first over all pages", fmt.Sprint(seen), "[7 6 5 4 3 2 1 0]")
	})

	scene(t, "21 list across all types with untyped output", func(w *world) {
		number := weaver.Define[int, int]("durably.states.number.v1")
		a, b := enqueue(w, typ, "x"), enqueue(w, number, 41)
		w.idle(typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil }),
			number.Handler(func(_ context.Context, n int) (int, error) { return n + 1, nil }))
		list, _, err := w.client.List(w.Context(), weaver.Filter{})
		w.must(err)
		equal(w, "length", len(list), 2)
		equal(w, "the newest", list[0].ID, b.ID())
		equal(w, "its output", string(list[0].Output), "42")
		equal(w, "the other", list[1].ID, a.ID())
		equal(w, "its type", list[1].Type, typ.Name())
		equal(w, "its output", string(list[1].Output), `"x"`)
	})
}
