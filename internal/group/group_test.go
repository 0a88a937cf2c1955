package group_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/internal/group"
)

// untilEnd is a well-behaved function: it returns the cause of its context's end.
func untilEnd(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestWaitJoinsErrorsInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context())
		late := errors.New("late")
		g.Go("claimer", func(context.Context) error { return io.ErrUnexpectedEOF })
		g.Go("reaper", func(context.Context) error {
			time.Sleep(time.Second)
			return late
		})
		err := g.Wait()
		if !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, late) {
			t.Fatalf("Wait lost an error: %v", err)
		}
		if got, want := err.Error(), "claimer: unexpected EOF\nreaper: late"; got != want {
			t.Errorf("Wait = %q, want %q", got, want)
		}
	})
}

func TestWaitWaitsForFunctionsStartedByFunctions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context())
		returned := false
		g.Go("outer", func(context.Context) error {
			g.Go("inner", func(context.Context) error {
				time.Sleep(time.Minute)
				returned = true
				return nil
			})
			return nil
		})
		if err := g.Wait(); err != nil || !returned {
			t.Fatalf("Wait = %v with inner returned = %v, want nil after inner", err, returned)
		}
	})
}

func TestFailureEndsTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context())
		g.Go("heartbeat", untilEnd)
		g.Go("claimer", func(context.Context) error { return io.ErrUnexpectedEOF })
		err := g.Wait()
		if got, want := err.Error(), "claimer: unexpected EOF"; got != want {
			t.Errorf("Wait = %q, want %q: the others only repeat it", got, want)
		}
		if cause := context.Cause(g.Context()); !errors.Is(cause, io.ErrUnexpectedEOF) {
			t.Errorf("cause = %v, want the failure", cause)
		}
	})
}

func TestEndIsNotAFailure(t *testing.T) {
	t.Parallel()
	drain := errors.New("draining")
	ends := map[string]func(ctx context.Context, g *group.Group, endParent context.CancelCauseFunc){
		"cancel with cause": func(_ context.Context, g *group.Group, _ context.CancelCauseFunc) { g.Cancel(drain) },
		"cancel":            func(_ context.Context, g *group.Group, _ context.CancelCauseFunc) { g.Cancel(nil) },
		"parent":            func(_ context.Context, _ *group.Group, end context.CancelCauseFunc) { end(drain) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				parent, endParent := context.WithCancelCause(t.Context())
				defer endParent(nil)
				g := group.New(parent)
				g.Go("cause", untilEnd)
				g.Go("err", func(ctx context.Context) error {
					<-ctx.Done()
					return ctx.Err()
				})
				end(parent, g, endParent)
				if err := g.Wait(); err != nil {
					t.Errorf("Wait = %v, want nil", err)
				}
			})
		})
	}
}

func TestFailureWhileEndingIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context())
		g.Go("completer", func(ctx context.Context) error {
			<-ctx.Done()
			return io.ErrShortWrite
		})
		g.Cancel(nil)
		if err := g.Wait(); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("Wait = %v, want the failure of the last write", err)
		}
	})
}

func TestCancelledWorkIsAFailureWhileTheGroupLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context())
		g.Go("publisher", func(context.Context) error { return context.Canceled })
		if err := g.Wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait = %v, want the cancellation that the group did not ask for", err)
		}
	})
}

func TestPanicBecomesAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context())
		g.Go("heartbeat", untilEnd)
		g.Go("reaper", func(context.Context) error { panic(io.ErrClosedPipe) })
		err := g.Wait()
		var p *group.PanicError
		if !errors.As(err, &p) {
			t.Fatalf("Wait = %v, want a *PanicError", err)
		}
		if p.Name != "reaper" || !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("PanicError = %q with value %v, want reaper with its value", p.Name, p.Value)
		}
		if !strings.Contains(p.Stack, "TestPanicBecomesAnError") || !strings.Contains(err.Error(), p.Stack) {
			t.Errorf("the error does not show where it happened:\n%v", err)
		}
	})
}

func TestGoexitIsAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context())
		g.Go("collector", func(context.Context) error {
			runtime.Goexit()
			return nil
		})
		err := g.Wait()
		if !errors.Is(err, group.ErrGoexit) || !strings.HasPrefix(err.Error(), "collector: ") {
			t.Errorf("Wait = %v, want ErrGoexit of collector", err)
		}
	})
}

func TestWaitContextNamesWhatStillRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context())
		for _, name := range []string{"slow", "slow", "long"} {
			g.Go(name, func(context.Context) error {
				time.Sleep(time.Minute)
				return nil
			})
		}
		g.Go("quick", func(context.Context) error { return nil })
		timeout := errors.New("drain timeout")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, timeout)
		defer cancel()
		err := g.WaitContext(ctx)
		var still *group.StillRunningError
		if !errors.As(err, &still) || !errors.Is(err, timeout) {
			t.Fatalf("WaitContext = %v, want a *StillRunningError for %v", err, timeout)
		}
		if want := []string{"long", "slow", "slow"}; !slices.Equal(still.Names, want) {
			t.Errorf("still running: %q, want %q", still.Names, want)
		}
		if g.Context().Err() != nil {
			t.Error("giving up ended the group's context")
		}
		if err := g.WaitContext(t.Context()); err != nil {
			t.Errorf("WaitContext = %v after all returned, want nil", err)
		}
	})
}

func TestWaitEndsTheContext(t *testing.T) {
	t.Parallel()
	g := group.New(t.Context())
	if err := g.Wait(); err != nil {
		t.Fatalf("Wait of an empty group = %v", err)
	}
	if g.Context().Err() == nil {
		t.Error("the group's context outlived Wait")
	}
}
