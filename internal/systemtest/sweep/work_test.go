package sweep_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// sweepWork are scenes of plain tasks.
var sweepWork = []sweepScene{
	{
		name:     "one task",
		onFile:   true,
		handlers: runs(sweepA, echo),
		play: func(w *sweepWorld) {
			succeeds(w, sweepEnqueue(w, sweepA, "x"), "x")
		},
	},
	{
		name: "many tasks",
		handlers: runs(sweepN, func(_ context.Context, _ *sweepWorld, n int) (int, error) {
			return 2 * n, nil
		}),
		play: func(w *sweepWorld) {
			hs, err := sweepN.EnqueueMany(w.ctx, w.client, []int{1, 2, 3, 4, 5, 6, 7})
			w.must(err)
			for i, h := range hs {
				succeeds(w, h, 2*(i+1))
			}
		},
	},
	{
		name:     "idempotency keys",
		handlers: runs(sweepA, echo),
		play: func(w *sweepWorld) {
			one := sweepEnqueue(w, sweepA, "first", weaver.IdempotencyKey("k"))
			two := sweepEnqueue(w, sweepA, "second", weaver.IdempotencyKey("k"))
			got, err := w.client.EnqueueTasks(w.ctx,
				sweepA.With("third", weaver.IdempotencyKey("k")),
				sweepA.With("other", weaver.IdempotencyKey("l")),
				sweepA.With("more", weaver.IdempotencyKey("l")))
			w.must(err)
			if two.ID() != one.ID() || got[0].ID != one.ID() || got[2].ID != got[1].ID || two.Disposition() != weaver.DispositionExisting {
				w.wrong("a key named two tasks: %s, %s (%s), %v", one.ID(), two.ID(), two.Disposition(), got)
			}
			succeeds(w, one, "first")
			_, err = w.client.Wait(w.ctx, got[1].ID)
			w.must(err)
		},
	},
	{
		name: "retries by the Decider",
		handlers: runs(sweepN, func(ctx context.Context, _ *sweepWorld, n int) (int, error) {
			if weaver.Current(ctx).AttemptCount < n {
				return 0, fmt.Errorf("not yet, after %d", weaver.Current(ctx).AttemptCount)
			}
			return n, nil
		}),
		play: func(w *sweepWorld) {
			h := sweepEnqueue(w, sweepN, 2)
			gone := sweepEnqueue(w, sweepN, 1, weaver.Metadata("must", "fail"))
			succeeds(w, h, 2)
			succeeds(w, gone, 1)
		},
	},
	{
		name: "failures of every kind",
		handlers: runs(sweepA, func(ctx context.Context, _ *sweepWorld, in string) (string, error) {
			switch in {
			case "permanent":
				return "", weaver.Permanent(errors.New("no way"))
			case "later":
				return "", weaver.RetryAfter(time.Second, errors.New("in a second"))
			case "panic":
				panic("oh")
			case "timeout":
				return "", rest(ctx, time.Hour)
			}
			return strings.Repeat("x", 70_000), nil // too large
		}),
		play: func(w *sweepWorld) {
			fail := func(in string, kind weaver.ErrorKind, opts ...weaver.EnqueueOption) func() {
				h := sweepEnqueue(w, sweepA, in, opts...)
				return func() { ends(w, h.ID(), weaver.StateFailed, kind) }
			}
			for _, check := range []func(){
				fail("permanent", task.KindHandler),
				fail("later", task.KindHandler, weaver.MaxAttempts(2)),
				fail("panic", task.KindPanic, weaver.NoRetry()),
				fail("timeout", task.KindTimeout, weaver.NoRetry(), weaver.Timeout(time.Second)),
				fail("too large", task.KindValidation),
			} {
				check()
			}
		},
	},
	{
		name: "payloads at the limit",
		handlers: runs(sweepA, func(ctx context.Context, _ *sweepWorld, in string) (string, error) {
			return value(ctx, "copy", in)
		}),
		play: func(w *sweepWorld) {
			large := strings.Repeat("x", weaver.DefaultInlineLimit-2)
			if _, err := sweepA.Enqueue(w.ctx, w.client, large+"x"); !errors.Is(err, weaver.ErrTooLarge) {
				w.wrong("an input over the limit: %v", err)
			}
			succeeds(w, sweepEnqueue(w, sweepA, large), large)
		},
	},
	{
		name:     "an input that cannot be read",
		loose:    "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers: runs(sweepN, func(_ context.Context, _ *sweepWorld, n int) (int, error) { return n, nil }),
		play: func(w *sweepWorld) {
			got, err := w.client.EnqueueTasks(w.ctx, weaver.NewDraft(sweepN.Name(), json.RawMessage(`"no number"`)))
			w.must(err)
			blocks(w, got[0].ID)
			w.must(w.client.Cancel(w.ctx, got[0].ID))
			ends(w, got[0].ID, weaver.StateCancelled, task.KindCancelled)
		},
	},
	{
		name: "a verified and an overruled outcome",
		cfg: weaver.Config{Decider: deciderFunc(func(kind task.ErrorKind, message string) string {
			if strings.Contains(message, "good enough") {
				return `"overruled"`
			}
			return ""
		})},
		handlers: runs(sweepA, func(ctx context.Context, _ *sweepWorld, in string) (string, error) {
			if in == "overrule" {
				return "", errors.New("good enough")
			}
			return fmt.Sprint(weaver.Current(ctx).AttemptCount), nil
		}, weaver.VerifySuccess(func(_ context.Context, out string) error {
			if out == "0" {
				return errors.New("not the first")
			}
			return nil
		})),
		play: func(w *sweepWorld) {
			verified, overruled := sweepEnqueue(w, sweepA, "verify"), sweepEnqueue(w, sweepA, "overrule")
			succeeds(w, verified, "1")
			succeeds(w, overruled, "overruled")
		},
	},
	{
		name: "concurrency keys",
		handlers: runs(sweepN, func(ctx context.Context, w *sweepWorld, limit int) (int, error) {
			letGo := w.hold(ctx, fmt.Sprint("key ", limit), limit)
			err := rest(ctx, 200*time.Millisecond)
			letGo()
			if err != nil {
				return 0, err
			}
			return limit, weaver.Sleep(ctx, "nap", time.Second) // the key is free meanwhile
		}),
		play: func(w *sweepWorld) {
			var hs []*weaver.Handle[int]
			for _, limit := range []int{1, 2, 1, 2, 1, 2, 2} {
				hs = append(hs, sweepEnqueue(w, sweepN, limit, weaver.ConcurrencyKey(fmt.Sprint("key ", limit), limit)))
			}
			for _, h := range hs {
				_, err := h.Wait(w.ctx)
				w.must(err)
			}
		},
	},
	{
		name: "priorities in a paused queue",
		cfg:  weaver.Config{Concurrency: 1, Queues: map[string]int{"line": 1}},
		handlers: runs(sweepN, func(ctx context.Context, w *sweepWorld, n int) (int, error) {
			w.note(fmt.Sprint(n))
			return n, rest(ctx, 10*time.Millisecond)
		}),
		play: func(w *sweepWorld) {
			w.must(w.client.PauseQueue(w.ctx, "line", weaver.By("ann"), weaver.Reason("lunch")))
			var hs []*weaver.Handle[int]
			for _, p := range []int{5, 9, 1, 3} {
				hs = append(hs, sweepEnqueue(w, sweepN, p, weaver.Priority(p), weaver.Queue("line")))
			}
			sleep(w.ctx, time.Second)
			if len(w.order) > 0 {
				w.wrong("%v started in a paused queue", w.order)
			}
			w.must(w.client.ResumeQueue(w.ctx, "line"))
			for i, p := range []int{5, 9, 1, 3} {
				succeeds(w, hs[i], p)
			}
			// What a dead process held comes back late.
			if want := []string{"1", "3", "5", "9"}; !w.crashed() && !slices.Equal(w.order, want) {
				w.wrong("they started in the order %v, want %v", w.order, want)
			}
		},
	},
	{
		name:      "until idle",
		untilIdle: true,
		onFile:    true,
		handlers: runs(sweepN, func(ctx context.Context, _ *sweepWorld, n int) (int, error) {
			if err := weaver.Sleep(ctx, "nap", 3*time.Second); err != nil {
				return 0, err
			}
			return value(ctx, "n", n)
		}),
		play: func(w *sweepWorld) {
			hs, err := sweepN.EnqueueMany(w.ctx, w.client, []int{1, 2, 3})
			w.must(err)
			for i, h := range hs {
				succeeds(w, h, i+1)
			}
		},
	},
	{
		name:     "reading",
		handlers: runs(sweepA, echo),
		play: func(w *sweepWorld) {
			hs, err := sweepA.EnqueueMany(w.ctx, w.client, []string{"a", "b", "c", "d", "e"}, weaver.Label("color", "red"))
			w.must(err)
			later := sweepEnqueue(w, sweepA, "later", weaver.Delay(time.Hour), weaver.Queue("slow"))
			for _, h := range hs {
				_, err := h.Wait(w.ctx)
				w.must(err)
			}
			f, seen := weaver.Filter{Limit: 2, Labels: map[string]string{"color": "red"}}, 0
			for more := true; more; more = f.After != "" {
				page, next, err := w.client.List(w.ctx, f)
				w.must(err)
				seen, f.After = seen+len(page), next
			}
			if seen != len(hs) {
				w.wrong("the pages list %d tasks, want %d", seen, len(hs))
			}
			h, err := w.client.History(w.ctx, hs[0].ID())
			w.must(err)
			if n := len(h.Attempts); h.Task.State != weaver.StateSucceeded || n < 1 || h.Attempts[n-1].Outcome != task.OutcomeSuccess {
				w.wrong("the history is %+v", h)
			}
			qs, err := w.client.Store().Queues(w.ctx, w.client.Namespace())
			w.must(err)
			if len(qs) != 1 || qs[0].Name != "slow" || qs[0].Later != 1 {
				w.wrong("the queues are %+v", qs)
			}
			w.must(w.client.Store().Ready(w.ctx))
			snap, err := w.client.Store().Snapshot(w.ctx, w.client.Namespace())
			w.must(err)
			if len(snap.Tasks) != len(hs)+1 {
				w.wrong("the snapshot has %d tasks", len(snap.Tasks))
			}
			w.must(w.client.Cancel(w.ctx, later.ID()))
		},
	},
	{
		name: "two processes share the work",
		cfg:  weaver.Config{Concurrency: 2},
		handlers: runs(sweepN, func(ctx context.Context, _ *sweepWorld, n int) (int, error) {
			if err := rest(ctx, 300*time.Millisecond); err != nil {
				return 0, err
			}
			return value(ctx, "n", n)
		}),
		onFile: true,
		play: func(w *sweepWorld) {
			w.beside()
			hs, err := sweepN.EnqueueMany(w.ctx, w.client, []int{1, 2, 3, 4, 5, 6})
			w.must(err)
			var wg sync.WaitGroup
			for i, h := range hs {
				wg.Go(func() {
					if got, err := h.Wait(w.ctx); err != nil || got != i+1 {
						w.wrong("task %s gave %v, %v", h.ID(), got, err)
					}
				})
			}
			wg.Wait()
		},
	},
}
