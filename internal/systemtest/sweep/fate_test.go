package sweep_test

import (
	"context"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// sweepTime are scenes of time that passes.
var sweepTime = []sweepScene{
	{
		name:     "deadlines",
		onFile:   true,
		handlers: runs(sweepA, fate),
		play: func(w *sweepWorld) {
			unstarted := sweepEnqueue(w, sweepA, "x", weaver.Delay(time.Hour), weaver.ExpireAfter(10*time.Second))
			running := sweepEnqueue(w, sweepA, "wait", weaver.ExpireAfter(20*time.Second))
			ends(w, unstarted.ID(), weaver.StateCancelled, task.KindDeadline)
			ends(w, running.ID(), weaver.StateCancelled, task.KindDeadline)
		},
	},
	{
		name:   "a handler that outlives its first lease",
		onFile: true,
		handlers: runs(sweepN, func(ctx context.Context, _ *sweepWorld, n int) (int, error) {
			return step(ctx, "long", func(ctx context.Context) (int, error) { return n, rest(ctx, 20*time.Second) })
		}),
		play: func(w *sweepWorld) {
			a, b := sweepEnqueue(w, sweepN, 1), sweepEnqueue(w, sweepN, 2)
			succeeds(w, a, 1)
			succeeds(w, b, 2)
		},
	},
	{
		name:     "a task of tomorrow",
		handlers: runs(sweepA, echo),
		play: func(w *sweepWorld) {
			begun := time.Now()
			later := sweepEnqueue(w, sweepA, "later", weaver.Delay(30*time.Second))
			at := sweepEnqueue(w, sweepA, "at", weaver.At(begun.Add(15*time.Second)))
			succeeds(w, at, "at")
			succeeds(w, later, "later")
			if d := time.Since(begun); d < 30*time.Second {
				w.wrong("a task with a delay of 30s has ended after %s", d)
			}
		},
	},
}

// sweepFate are scenes of processes that stop or die by themselves.
var sweepFate = []sweepScene{
	{
		name: "a drain in good time",
		handlers: runs(sweepA, func(ctx context.Context, w *sweepWorld, in string) (string, error) {
			w.mark("running")
			if err := rest(ctx, 3*time.Second); err != nil {
				return "", err
			}
			return value(ctx, "last", in)
		}),
		play: func(w *sweepWorld) {
			h := sweepEnqueue(w, sweepA, "x")
			w.await("running")
			w.restart()
			succeeds(w, h, "x")
		},
	},
	{
		name:   "a drain that runs out of patience",
		onFile: true,
		cfg:    weaver.Config{DrainTimeout: 2 * time.Second},
		handlers: runs(sweepA, func(ctx context.Context, w *sweepWorld, in string) (string, error) {
			if _, err := value(ctx, "first", in); err != nil {
				return "", err
			}
			w.mark("running")
			if err := until(ctx, w, "restarted"); err != nil {
				return "", err
			}
			return value(ctx, "last", in)
		}),
		play: func(w *sweepWorld) {
			h := sweepEnqueue(w, sweepA, "x")
			w.await("running")
			w.restart()
			w.mark("restarted")
			succeeds(w, h, "x")
		},
	},
	{
		name: "a drain of a deaf handler",
		cfg:  weaver.Config{DrainTimeout: time.Second},
		handlers: runs(sweepA, func(ctx context.Context, w *sweepWorld, in string) (string, error) {
			w.mark("running")
			select {
			case <-w.marked("restarted"):
			default:
				sleep(context.WithoutCancel(ctx), 20*time.Second)
			}
			return value(ctx, "last", in)
		}),
		play: func(w *sweepWorld) {
			h := sweepEnqueue(w, sweepA, "x")
			w.await("running")
			p, err := w.living(w.ctx)
			w.must(err)
			p.deaf.Store(true)
			w.restart()
			w.mark("restarted")
			succeeds(w, h, "x")
			sleep(w.ctx, 30*time.Second) // until the deaf one has tried to write
		},
	},
	{
		name:   "a worker that dies",
		loses:  true,
		loose:  "the other task may be anywhere in its first step",
		onFile: true,
		handlers: runs(sweepA, func(ctx context.Context, w *sweepWorld, in string) (string, error) {
			if _, err := value(ctx, "first", in); err != nil {
				return "", err
			}
			w.mark("running")
			if err := until(ctx, w, "killed"); err != nil {
				return "", err
			}
			return value(ctx, "last", in)
		}),
		play: func(w *sweepWorld) {
			a, b := sweepEnqueue(w, sweepA, "a"), sweepEnqueue(w, sweepA, "b")
			w.await("running")
			p, err := w.living(w.ctx)
			w.must(err)
			p.fault.Die()
			w.mark("killed")
			succeeds(w, a, "a")
			succeeds(w, b, "b")
		},
	},
	{
		name: "a task that kills its workers",
		// Not the default, 3: a crash that the neighbour lives through beside a
		// killer of one crash counts against it even when it is a suspect. Only
		// suspects keep apart.
		cfg:   weaver.Config{CrashBudget: 4},
		loses: true,
		loose: "how often others are hit depends on the moment",
		handlers: both(runs(sweepA, func(ctx context.Context, _ *sweepWorld, _ string) (string, error) {
			processOf(ctx).fault.Die()
			<-ctx.Done()
			return "", context.Cause(ctx)
		}), runs(sweepB, func(ctx context.Context, _ *sweepWorld, in string) (string, error) {
			return in, rest(ctx, time.Second)
		})),
		play: func(w *sweepWorld) {
			neighbour := sweepEnqueue(w, sweepB, "x")
			killer := sweepEnqueue(w, sweepA, "x", weaver.Delay(100*time.Millisecond))
			ends(w, killer.ID(), weaver.StateFailed, task.KindPoison)
			succeeds(w, neighbour, "x")
		},
	},
}
