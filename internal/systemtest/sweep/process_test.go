package sweep_test

import (
	"context"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// timeCases test the effects of time.
var timeCases = []testCase{
	{
		name:     "deadlines",
		onFile:   true,
		handlers: handles(typeA, byInput),
		run: func(fx *fixture) {
			unstarted := enqueue(fx, typeA, "x", weaver.Delay(time.Hour), weaver.ExpireAfter(10*time.Second))
			running := enqueue(fx, typeA, "wait", weaver.ExpireAfter(20*time.Second))
			ends(fx, unstarted.ID(), weaver.StateCancelled, task.KindDeadline)
			ends(fx, running.ID(), weaver.StateCancelled, task.KindDeadline)
		},
	},
	{
		name:   "a handler that outlives its first lease",
		onFile: true,
		handlers: handles(typeN, func(ctx context.Context, _ *fixture, n int) (int, error) {
			return step(ctx, "long", func(ctx context.Context) (int, error) { return n, rest(ctx, 20*time.Second) })
		}),
		run: func(fx *fixture) {
			a, b := enqueue(fx, typeN, 1), enqueue(fx, typeN, 2)
			succeeds(fx, a, 1)
			succeeds(fx, b, 2)
		},
	},
	{
		name:     "a task of tomorrow",
		handlers: handles(typeA, echo),
		run: func(fx *fixture) {
			begun := time.Now()
			later := enqueue(fx, typeA, "later", weaver.Delay(30*time.Second))
			at := enqueue(fx, typeA, "at", weaver.At(begun.Add(15*time.Second)))
			succeeds(fx, at, "at")
			succeeds(fx, later, "later")
			if d := time.Since(begun); d < 30*time.Second {
				fx.errorf("a task with a delay of 30s has ended after %s", d)
			}
		},
	},
}

// processCases test processes that stop or die by themselves.
var processCases = []testCase{
	{
		name: "a drain in good time",
		handlers: handles(typeA, func(ctx context.Context, fx *fixture, in string) (string, error) {
			fx.mark("running")
			if err := rest(ctx, 3*time.Second); err != nil {
				return "", err
			}
			return value(ctx, "last", in)
		}),
		run: func(fx *fixture) {
			h := enqueue(fx, typeA, "x")
			fx.await("running")
			fx.restart()
			succeeds(fx, h, "x")
		},
	},
	{
		name:   "a drain that exceeds its timeout",
		onFile: true,
		cfg:    weaver.Config{DrainTimeout: 2 * time.Second},
		handlers: handles(typeA, func(ctx context.Context, fx *fixture, in string) (string, error) {
			if _, err := value(ctx, "first", in); err != nil {
				return "", err
			}
			fx.mark("running")
			if err := until(ctx, fx, "restarted"); err != nil {
				return "", err
			}
			return value(ctx, "last", in)
		}),
		run: func(fx *fixture) {
			h := enqueue(fx, typeA, "x")
			fx.await("running")
			fx.restart()
			fx.mark("restarted")
			succeeds(fx, h, "x")
		},
	},
	{
		name: "a drain of a handler that ignores its context",
		cfg:  weaver.Config{DrainTimeout: time.Second},
		handlers: handles(typeA, func(ctx context.Context, fx *fixture, in string) (string, error) {
			fx.mark("running")
			select {
			case <-fx.marked("restarted"):
			default:
				sleep(context.WithoutCancel(ctx), 20*time.Second)
			}
			return value(ctx, "last", in)
		}),
		run: func(fx *fixture) {
			h := enqueue(fx, typeA, "x")
			fx.await("running")
			p, err := fx.living(fx.ctx)
			fx.must(err)
			p.abandons.Store(true)
			fx.restart()
			fx.mark("restarted")
			succeeds(fx, h, "x")
			sleep(fx.ctx, 30*time.Second) // until the handler that ignored its context has tried to write
		},
	},
	{
		name: "a worker that dies",
		// Not the default, 3: this death and two faults that kill make three consecutive crashes, which is poison by
		// the rules.
		cfg:         weaver.Config{CrashBudget: 4},
		losesLeases: true,
		tolerates:   "the other task may be anywhere in its first step",
		onFile:      true,
		handlers: handles(typeA, func(ctx context.Context, fx *fixture, in string) (string, error) {
			if _, err := value(ctx, "first", in); err != nil {
				return "", err
			}
			fx.mark("running")
			if err := until(ctx, fx, "killed"); err != nil {
				return "", err
			}
			return value(ctx, "last", in)
		}),
		run: func(fx *fixture) {
			a, b := enqueue(fx, typeA, "a"), enqueue(fx, typeA, "b")
			fx.await("running")
			p, err := fx.living(fx.ctx)
			fx.must(err)
			p.fault.Die()
			fx.mark("killed")
			succeeds(fx, a, "a")
			succeeds(fx, b, "b")
		},
	},
	{
		name: "a task that kills its workers",
		// Not the default, 3. The neighbour shares its worker with a task that kills it. A crash counts against the
		// neighbour too, because only quarantined tasks run apart.
		cfg:         weaver.Config{CrashBudget: 4},
		losesLeases: true,
		tolerates:   "how often others are hit depends on the moment",
		handlers: handleBoth(handles(typeA, func(ctx context.Context, _ *fixture, _ string) (string, error) {
			processOf(ctx).fault.Die()
			<-ctx.Done()
			return "", context.Cause(ctx)
		}), handles(typeB, func(ctx context.Context, _ *fixture, in string) (string, error) {
			return in, rest(ctx, time.Second)
		})),
		run: func(fx *fixture) {
			neighbour := enqueue(fx, typeB, "x")
			killer := enqueue(fx, typeA, "x", weaver.Delay(100*time.Millisecond))
			ends(fx, killer.ID(), weaver.StateFailed, task.KindPoison)
			succeeds(fx, neighbour, "x")
		},
	},
}
