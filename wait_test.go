package weaver_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/storehook"
	"github.com/goweaver/weaver/task"
)

// unreadable is a store whose reads fail while it has an error.
type unreadable struct {
	store weaver.Store
	err   atomic.Pointer[error]
	reads atomic.Int32
}

func newUnreadable(s weaver.Store, err error) *unreadable {
	u := &unreadable{}
	u.err.Store(&err)
	u.store = storehook.New(s, &storehook.Hooks{Around: func(ctx context.Context, c *storehook.Call, next func(context.Context) error) error {
		if c.Method == "Tasks" || c.Method == "Job" {
			u.reads.Add(1)
			if err := u.err.Load(); err != nil {
				return fmt.Errorf("the test makes it unreadable: %w", *err)
			}
		}
		return next(ctx)
	}})
	return u
}

func TestWaitOutlivesAnUnreadableStore(t *testing.T) {
	typ := weaver.Define[string, string]("engine.wait.echo.v1")
	echo := typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil })
	// begin enqueues through the store behind, and returns the wait of a client
	// of the one in front.
	begin := map[string]func(w *world, c *weaver.Client) func(context.Context) error{
		"Wait": func(w *world, c *weaver.Client) func(context.Context) error {
			id := enqueue(w, typ, "x").ID()
			return func(ctx context.Context) error { _, err := c.Wait(ctx, id); return err }
		},
		"WaitJob": func(w *world, c *weaver.Client) func(context.Context) error {
			j := weaver.NewJob("unreadable")
			j.Add("only", typ.With("x"))
			h, err := w.client.Submit(w.Context(), j)
			w.must(err)
			return func(ctx context.Context) error { _, err := c.WaitJob(ctx, h.ID()); return err }
		},
	}
	play := func(w *world, sentinel error, start func(w *world, c *weaver.Client) func(context.Context) error) (*unreadable, func(context.Context) error) {
		front := newUnreadable(w.store, sentinel)
		c, err := weaver.NewClient(front.store, weaver.ClientConfig{Logger: w.log.logger()})
		w.must(err)
		return front, start(w, c)
	}
	for name, start := range begin {
		for _, sentinel := range []error{weaver.ErrUnavailable, weaver.ErrBusy} {
			scene(t, name+" goes on after: "+sentinel.Error(), func(w *world) {
				front, wait := play(w, sentinel, start)
				got := make(chan error, 1)
				go func() { got <- wait(w.Context()) }()
				w.idle(echo) // it ends while nobody can see it
				time.Sleep(time.Minute)
				synctest.Wait()
				if looks := front.reads.Load(); looks < 55 || looks > 65 {
					w.Errorf("it looked %d times in a minute, want about one a second", looks)
				}
				front.err.Store(nil)
				w.must(<-got)
				equal(w, "warnings", len(w.log.lines(w, "the store cannot be read; the wait goes on")), 1)
			})
		}
		scene(t, name+" ends with its context, and tells of both", func(w *world) {
			_, wait := play(w, weaver.ErrUnavailable, start)
			ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
			defer cancel()
			err := wait(ctx)
			wantError(w, err, context.DeadlineExceeded, "the test makes it unreadable")
			wantError(w, err, weaver.ErrUnavailable)
		})
		scene(t, name+" ends at once when the store is closed", func(w *world) {
			front, wait := play(w, weaver.ErrClosed, start)
			wantError(w, wait(w.Context()), weaver.ErrClosed)
			equal(w, "looks", front.reads.Load(), 1)
		})
	}
}

func TestTaskErrorSaysNothingTwice(t *testing.T) {
	const id = "01JCZ000000000000000000000"
	parsed, err := weaver.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	for want, e := range map[string]weaver.TaskError{
		"failed after 5 attempts: handler_error: boom":           {State: weaver.StateFailed, Attempts: 5, Kind: task.KindHandler, Message: "boom"},
		"failed after 1 attempt: timeout: the attempt timed out": {State: weaver.StateFailed, Attempts: 1, Kind: task.KindTimeout, Message: "the attempt timed out"},
		"failed after 2 attempts: panic: index out of range":     {State: weaver.StateFailed, Attempts: 2, Kind: task.KindPanic, Message: "panic: index out of range"},
		"cancelled after 0 attempts: x":                          {State: weaver.StateCancelled, Kind: task.KindCancelled, Message: "cancelled: x"},
		"cancelled after 0 attempts: by ann: x":                  {State: weaver.StateCancelled, Kind: task.KindCancelled, Message: "cancelled by ann: x"},
		"cancelled after 0 attempts":                             {State: weaver.StateCancelled, Kind: task.KindCancelled, Message: "cancelled"},
		"cancelled after 0 attempts: deadline: it has passed":    {State: weaver.StateCancelled, Kind: task.KindDeadline, Message: "it has passed"},
		"failed after 3 attempts":                                {State: weaver.StateFailed, Attempts: 3},
	} {
		e.ID, e.Type = parsed, "a.b.c.v1"
		if got := e.Error(); got != "task "+id+" (a.b.c.v1) "+want {
			t.Errorf("%q, want …%q", got, want)
		}
	}
}
