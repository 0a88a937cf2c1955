package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

var signalS = weaver.DefineSignal[string]("sweep")

// send sends a signal and checks that it is stored once.
func (fx *fixture) send(id weaver.TaskID, key, text string) {
	fx.Helper()
	fx.must(signalS.Send(fx.ctx, fx.client, id, key, text, weaver.By("ann")))
}

// signalled waits for the number of signals in its input, and then for a signal that does not come.
func signalled(ctx context.Context, _ *fixture, n int) (int, error) {
	sum := 0
	for i := range n {
		text, ok, err := signalS.Wait(ctx, fmt.Sprint("wait ", i), 0)
		if err != nil || !ok {
			return 0, errors.Join(err, errors.New("a wait without an end is over"))
		}
		sum += len(text)
	}
	_, ok, err := signalS.Wait(ctx, "late", 5*time.Second)
	switch {
	case err != nil:
		return 0, err
	case ok:
		return 0, weaver.Permanent(errors.New("a signal came that was not sent"))
	}
	return value(ctx, "sum", sum)
}

const unreadable = "children that cannot be read end the attempt"

// waitCases test waits inside handlers.
var waitCases = []testCase{
	{
		name:      "signals",
		tolerates: "a signal may come before its wait or after it",
		onFile:    true,
		handlers:  handles(typeN, signalled),
		run: func(fx *fixture) {
			h := enqueue(fx, typeN, 2)
			fx.send(h.ID(), "1", "a")
			fx.send(h.ID(), "1", "a")
			sleep(fx.ctx, 20*time.Second) // it waits for the next one
			fx.send(h.ID(), "2", "bb")
			succeeds(fx, h, 3)
			fx.send(h.ID(), "2", "bb")
		},
	},
	{
		name:      "calls",
		tolerates: unreadable,
		onFile:    true,
		handlers: handleBoth(handles(typeA, byInput), handles(typeN, func(ctx context.Context, _ *fixture, n int) (int, error) {
			outs, err := weaver.CallAll(ctx, "all", typeA, []string{"a", "fail", "b"})
			failed, ok := errors.AsType[*weaver.CallError](err)
			if !ok {
				return 0, err
			}
			one, err := weaver.Call(ctx, "one", typeA, outs[0]+outs[2])
			if err != nil || failed.Index != 1 {
				return 0, err
			}
			return value(ctx, "length", n+len(one))
		})),
		run: func(fx *fixture) {
			succeeds(fx, enqueue(fx, typeN, 1), 3)
		},
	},
	{
		name:      "a race of a call, a signal and a sleep",
		tolerates: unreadable,
		handlers: handleBoth(handles(typeA, byInput), handles(typeN, func(ctx context.Context, _ *fixture, n int) (int, error) {
			var text string
			first, err := weaver.Race(ctx, "first", weaver.OnCall(typeA, "wait", nil), weaver.OnSignal(signalS, &text), weaver.OnSleep(time.Hour))
			if err != nil {
				return 0, err
			}
			return value(ctx, "which", first+n+len(text))
		})),
		run: func(fx *fixture) {
			h := enqueue(fx, typeN, 10)
			fx.await("running")           // the child runs
			sleep(fx.ctx, 20*time.Second) // and the whole race is recorded
			fx.send(h.ID(), "k", "go")
			succeeds(fx, h, 13)
			children, _, err := typeA.List(fx.ctx, fx.client, weaver.Filter{})
			fx.must(err)
			if len(children) != 1 {
				fx.fatal("the race has %d children", len(children))
			}
			ends(fx, children[0].ID, weaver.StateCancelled, task.KindCancelled) // with its parent
		},
	},
	{
		name:      "a task that calls others is cancelled and retried",
		tolerates: "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers: handleBoth(handles(typeA, func(ctx context.Context, fx *fixture, in string) (string, error) {
			if in == "until fixed" {
				fx.mark("running")
				return in, until(ctx, fx, "fixed")
			}
			return in, nil
		}), handles(typeN, func(ctx context.Context, _ *fixture, n int) (int, error) {
			outs, err := weaver.CallAll(ctx, "all", typeA, []string{"x", "until fixed"})
			return n + len(outs), err
		})),
		run: func(fx *fixture) {
			h := enqueue(fx, typeN, 1)
			fx.await("running")
			sleep(fx.ctx, 10*time.Second)
			fx.must(fx.client.Cancel(fx.ctx, h.ID()))
			ends(fx, h.ID(), weaver.StateCancelled, task.KindCancelled)
			children, _, err := typeA.List(fx.ctx, fx.client, weaver.Filter{})
			fx.must(err)
			for _, c := range children {
				if _, err := fx.client.Wait(fx.ctx, c.ID); c.State != weaver.StateSucceeded && err == nil {
					fx.errorf("a child succeeded, though its parent had ended")
				}
			}
			fx.mark("fixed")
			fx.must(fx.client.Retry(fx.ctx, h.ID()))
			succeeds(fx, h, 3)
		},
	},
	{
		name:      "a task whose call failed is retried",
		tolerates: unreadable,
		onFile:    true,
		handlers: handleBoth(handles(typeA, byInput), handles(typeN, func(ctx context.Context, _ *fixture, n int) (int, error) {
			outs, err := weaver.CallAll(ctx, "all", typeA, []string{"x", "fail until fixed"})
			return n + len(outs), err
		})),
		run: func(fx *fixture) {
			h := enqueue(fx, typeN, 1)
			ends(fx, h.ID(), weaver.StateFailed, task.KindHandler)
			fx.mark("fixed")
			fx.must(fx.client.Retry(fx.ctx, h.ID()))
			succeeds(fx, h, 3)
		},
	},
}
