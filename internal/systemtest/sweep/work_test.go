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
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// workCases test plain tasks.
var workCases = []testCase{
	{
		name:     "one task",
		onFile:   true,
		handlers: handles(typeA, echo),
		run: func(fx *fixture) {
			succeeds(fx, enqueue(fx, typeA, "x"), "x")
		},
	},
	{
		name: "many tasks",
		handlers: handles(typeN, func(_ context.Context, _ *fixture, n int) (int, error) {
			return 2 * n, nil
		}),
		run: func(fx *fixture) {
			hs, err := typeN.EnqueueMany(fx.ctx, fx.client, []int{1, 2, 3, 4, 5, 6, 7})
			fx.must(err)
			for i, h := range hs {
				succeeds(fx, h, 2*(i+1))
			}
		},
	},
	{
		name:  "hints of two publishers",
		hints: true,
		handlers: handles(typeN, func(_ context.Context, _ *fixture, n int) (int, error) {
			return 2 * n, nil
		}),
		run: func(fx *fixture) {
			fx.beside()
			var hs []*weaver.Handle[int]
			for n := range 5 {
				hs = append(hs, enqueue(fx, typeN, n))
			}
			for n, h := range hs {
				succeeds(fx, h, 2*n)
			}
		},
	},
	{
		name:     "idempotency keys",
		handlers: handles(typeA, echo),
		run: func(fx *fixture) {
			one := enqueue(fx, typeA, "first", weaver.IdempotencyKey("k"))
			two := enqueue(fx, typeA, "second", weaver.IdempotencyKey("k"))
			got, err := fx.client.EnqueueTasks(fx.ctx,
				typeA.With("third", weaver.IdempotencyKey("k")),
				typeA.With("other", weaver.IdempotencyKey("l")),
				typeA.With("more", weaver.IdempotencyKey("l")))
			fx.must(err)
			if two.ID() != one.ID() || got[0].ID != one.ID() || got[2].ID != got[1].ID || two.Disposition() != store.DispositionExisting {
				fx.errorf("a key named two tasks: %s, %s (%s), %v", one.ID(), two.ID(), two.Disposition(), got)
			}
			succeeds(fx, one, "first")
			_, err = fx.client.Wait(fx.ctx, got[1].ID)
			fx.must(err)
		},
	},
	{
		name: "retries by the Decider",
		handlers: handles(typeN, func(ctx context.Context, _ *fixture, n int) (int, error) {
			if weaver.Current(ctx).AttemptCount < n {
				return 0, fmt.Errorf("not yet, after %d", weaver.Current(ctx).AttemptCount)
			}
			return n, nil
		}),
		run: func(fx *fixture) {
			h := enqueue(fx, typeN, 2)
			gone := enqueue(fx, typeN, 1, weaver.Metadata("must", "fail"))
			succeeds(fx, h, 2)
			succeeds(fx, gone, 1)
		},
	},
	{
		name: "failures of every kind",
		handlers: handles(typeA, func(ctx context.Context, _ *fixture, in string) (string, error) {
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
		run: func(fx *fixture) {
			fail := func(in string, kind task.ErrorKind, opts ...weaver.EnqueueOption) func() {
				h := enqueue(fx, typeA, in, opts...)
				return func() { ends(fx, h.ID(), weaver.StateFailed, kind) }
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
		handlers: handles(typeA, func(ctx context.Context, _ *fixture, in string) (string, error) {
			return value(ctx, "copy", in)
		}),
		run: func(fx *fixture) {
			large := strings.Repeat("x", weaver.DefaultInlineLimit-2)
			if _, err := typeA.Enqueue(fx.ctx, fx.client, large+"x"); !errors.Is(err, weaver.ErrTooLarge) {
				fx.errorf("an input over the limit: %v", err)
			}
			succeeds(fx, enqueue(fx, typeA, large), large)
		},
	},
	{
		name:      "an input that cannot be read",
		tolerates: "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers:  handles(typeN, func(_ context.Context, _ *fixture, n int) (int, error) { return n, nil }),
		run: func(fx *fixture) {
			got, err := fx.client.EnqueueTasks(fx.ctx, weaver.NewDraft(typeN.Name(), json.RawMessage(`"no number"`)))
			fx.must(err)
			blocks(fx, got[0].ID)
			fx.must(fx.client.Cancel(fx.ctx, got[0].ID))
			ends(fx, got[0].ID, weaver.StateCancelled, task.KindCancelled)
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
		handlers: handles(typeA, func(ctx context.Context, _ *fixture, in string) (string, error) {
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
		run: func(fx *fixture) {
			verified, overruled := enqueue(fx, typeA, "verify"), enqueue(fx, typeA, "overrule")
			succeeds(fx, verified, "1")
			succeeds(fx, overruled, "overruled")
		},
	},
	{
		name: "concurrency keys",
		handlers: handles(typeN, func(ctx context.Context, fx *fixture, limit int) (int, error) {
			letGo := fx.hold(ctx, fmt.Sprint("key ", limit), limit)
			err := rest(ctx, 200*time.Millisecond)
			letGo()
			if err != nil {
				return 0, err
			}
			return limit, weaver.Sleep(ctx, "nap", time.Second) // the key is free meanwhile
		}),
		run: func(fx *fixture) {
			var hs []*weaver.Handle[int]
			for _, limit := range []int{1, 2, 1, 2, 1, 2, 2} {
				hs = append(hs, enqueue(fx, typeN, limit, weaver.ConcurrencyKey(fmt.Sprint("key ", limit), limit)))
			}
			for _, h := range hs {
				_, err := h.Wait(fx.ctx)
				fx.must(err)
			}
		},
	},
	{
		name: "priorities in a paused queue",
		cfg:  weaver.Config{Concurrency: 1, Queues: map[string]int{"line": 1}},
		handlers: handles(typeN, func(ctx context.Context, fx *fixture, n int) (int, error) {
			fx.note(fmt.Sprint(n))
			return n, rest(ctx, 10*time.Millisecond)
		}),
		run: func(fx *fixture) {
			fx.must(fx.client.PauseQueue(fx.ctx, "line", weaver.By("ann"), weaver.Reason("lunch")))
			var hs []*weaver.Handle[int]
			for _, p := range []int{5, 9, 1, 3} {
				hs = append(hs, enqueue(fx, typeN, p, weaver.Priority(p), weaver.Queue("line")))
			}
			sleep(fx.ctx, time.Second)
			if len(fx.order) > 0 {
				fx.errorf("%v started in a paused queue", fx.order)
			}
			fx.must(fx.client.ResumeQueue(fx.ctx, "line"))
			for i, p := range []int{5, 9, 1, 3} {
				succeeds(fx, hs[i], p)
			}
			// Tasks of a dead process come back late.
			if want := []string{"1", "3", "5", "9"}; !fx.crashed() && !slices.Equal(fx.order, want) {
				fx.errorf("they started in the order %v, want %v", fx.order, want)
			}
		},
	},
	{
		name: "a paused type and a paused task",
		cfg:  weaver.Config{Concurrency: 2},
		handlers: handles(typeN, func(ctx context.Context, fx *fixture, n int) (int, error) {
			fx.note(fmt.Sprint(n))
			return n, rest(ctx, 10*time.Millisecond)
		}),
		run: func(fx *fixture) {
			by := weaver.By("ann")
			fx.must(fx.client.PauseType(fx.ctx, typeN.Name(), by))
			var hs []*weaver.Handle[int]
			for n := range 3 {
				hs = append(hs, enqueue(fx, typeN, n, weaver.ConcurrencyKey("line", 1)))
			}
			fx.must(fx.client.PauseTask(fx.ctx, hs[0].ID(), by))
			fx.must(fx.client.ResumeType(fx.ctx, typeN.Name(), by))
			succeeds(fx, hs[1], 1)
			succeeds(fx, hs[2], 2)
			if slices.Contains(fx.order, "0") {
				fx.errorf("a paused task started: %v", fx.order)
			}
			fx.must(fx.client.ResumeTask(fx.ctx, hs[0].ID(), by))
			succeeds(fx, hs[0], 0)
		},
	},
	{
		name:      "until idle",
		untilIdle: true,
		onFile:    true,
		handlers: handles(typeN, func(ctx context.Context, _ *fixture, n int) (int, error) {
			if err := weaver.Sleep(ctx, "nap", 3*time.Second); err != nil {
				return 0, err
			}
			return value(ctx, "n", n)
		}),
		run: func(fx *fixture) {
			hs, err := typeN.EnqueueMany(fx.ctx, fx.client, []int{1, 2, 3})
			fx.must(err)
			for i, h := range hs {
				succeeds(fx, h, i+1)
			}
		},
	},
	{
		name:     "reading",
		handlers: handles(typeA, echo),
		run: func(fx *fixture) {
			hs, err := typeA.EnqueueMany(fx.ctx, fx.client, []string{"a", "b", "c", "d", "e"}, weaver.Label("color", "red"))
			fx.must(err)
			later := enqueue(fx, typeA, "later", weaver.Delay(time.Hour), weaver.Queue("slow"))
			for _, h := range hs {
				_, err := h.Wait(fx.ctx)
				fx.must(err)
			}
			f, seen := weaver.Filter{Limit: 2, Labels: map[string]string{"color": "red"}}, 0
			for more := true; more; more = f.After != "" {
				page, next, err := fx.client.List(fx.ctx, f)
				fx.must(err)
				seen, f.After = seen+len(page), next
			}
			if seen != len(hs) {
				fx.errorf("the pages list %d tasks, want %d", seen, len(hs))
			}
			h, err := fx.client.History(fx.ctx, hs[0].ID())
			fx.must(err)
			if n := len(h.Attempts); h.Task.State != weaver.StateSucceeded || n < 1 || h.Attempts[n-1].Outcome != task.OutcomeSuccess {
				fx.errorf("the history is %+v", h)
			}
			qs, err := fx.client.Queues(fx.ctx)
			fx.must(err)
			if len(qs) != 1 || qs[0].Name != "slow" || qs[0].Later.N != 1 {
				fx.errorf("the queues are %+v", qs)
			}
			counts, err := fx.client.Counts(fx.ctx)
			fx.must(err)
			if counts.States[weaver.StatePending].N != 1 || counts.States[weaver.StateFailed].N != 0 || counts.Types[typeA.Name()].N != len(hs)+1 {
				fx.errorf("the counts are %v", counts)
			}
			workers, err := fx.client.Workers(fx.ctx)
			fx.must(err)
			for _, w := range workers { // a crashed process may still be among them
				if len(w.Types) == 0 {
					fx.errorf("a worker announces no types: %+v", w)
				}
			}
			fx.must(fx.client.Store().Ready(fx.ctx))
			jobs, _, err := fx.client.Jobs(fx.ctx, store.JobFilter{})
			fx.must(err)
			if len(jobs) > 0 {
				fx.errorf("the jobs are %+v", jobs)
			}
			snap, err := fx.client.Store().Snapshot(fx.ctx, fx.client.Namespace())
			fx.must(err)
			if len(snap.Tasks) != len(hs)+1 {
				fx.errorf("the snapshot has %d tasks", len(snap.Tasks))
			}
			fx.must(fx.client.Cancel(fx.ctx, later.ID()))
			audit, _, err := fx.client.Audit(fx.ctx, store.AuditFilter{Target: later.ID().String()})
			fx.must(err)
			if len(audit) == 0 || audit[0].Verb != "cancel" {
				fx.errorf("the audit is %+v", audit)
			}
			if _, err := fx.client.Graph(fx.ctx, store.GraphRequest{Job: later.ID()}); !errors.Is(err, weaver.ErrNotFound) {
				fx.errorf("the graph of a task: %v, want ErrNotFound", err)
			}
		},
	},
	{
		name: "two processes share the work",
		cfg:  weaver.Config{Concurrency: 2},
		handlers: handles(typeN, func(ctx context.Context, _ *fixture, n int) (int, error) {
			if err := rest(ctx, 300*time.Millisecond); err != nil {
				return 0, err
			}
			return value(ctx, "n", n)
		}),
		onFile: true,
		run: func(fx *fixture) {
			fx.beside()
			hs, err := typeN.EnqueueMany(fx.ctx, fx.client, []int{1, 2, 3, 4, 5, 6})
			fx.must(err)
			var wg sync.WaitGroup
			for i, h := range hs {
				wg.Go(func() {
					if got, err := h.Wait(fx.ctx); err != nil || got != i+1 {
						fx.errorf("task %s gave %v, %v", h.ID(), got, err)
					}
				})
			}
			wg.Wait()
		},
	},
}
