package weavertest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/weavertest"
)

var (
	release  = weaver.Define[int, string]("acme.release.ship.v1")
	approved = weaver.DefineSignal[string]("approved")
)

// releaseHandler asks a person and, after the approval, charges two children.
func releaseHandler(ask func(ctx context.Context) error) weaver.Handler {
	return release.Handler(func(ctx context.Context, n int) (string, error) {
		if err := weaver.Do(ctx, "ask", ask); err != nil {
			return "", err
		}
		who, ok, err := approved.Wait(ctx, "approval", 24*time.Hour)
		if err != nil {
			return "", err
		}
		if !ok {
			return "nobody answered", nil
		}
		outs, err := weaver.CallAll(ctx, "charges", charge, []int{n, n + 1})
		return fmt.Sprint(who, ": ", outs), err
	})
}

func chargeHandler() weaver.Handler {
	return charge.Handler(func(ctx context.Context, n int) (string, error) {
		return fmt.Sprint("charged ", n), weaver.Sleep(ctx, "settle", time.Hour)
	})
}

// A test sends a signal to the waiting task, and a wait without a signal times out.
func TestSignalAndCall(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		e := weavertest.New(t, chargeHandler(), releaseHandler(func(context.Context) error { return nil }))
		h, err := release.Enqueue(t.Context(), e, 1)
		if err != nil {
			t.Fatal(err)
		}
		weavertest.RunUntilIdle(t, e)
		if got, err := e.Get(t.Context(), h.ID()); err != nil || got.Waiting != task.WaitSignal {
			t.Fatalf("it waits for %q, %v", got.Waiting, err)
		}
		if err := approved.Send(t.Context(), e, h.ID(), "click", "ann"); err != nil {
			t.Fatal(err)
		}
		if out := weavertest.Continue(t, e, release, h.ID()); out != "ann: [charged 1 charged 2]" {
			t.Errorf("Continue: %q", out)
		}
		if out := weavertest.Run(t, e, release, 2); out != "nobody answered" {
			t.Errorf("Run: %q", out)
		}
	})
}

// A fake of the function that asks the person sends the signal, so that the task can run, and be killed after every
// step, in one call.
func TestReplayWithSignalAndCall(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		var e *weavertest.Env
		e = weavertest.New(t, chargeHandler(), releaseHandler(func(ctx context.Context) error {
			return approved.Send(ctx, e, weaver.Current(ctx).TaskID, "click", "ann")
		}))
		if out := weavertest.Replay(t, e, release, 5); out != "ann: [charged 5 charged 6]" {
			t.Errorf("Replay: %q", out)
		}
	})
}
