package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
)

func TestWait(t *testing.T) {
	typ := weaver.Define[string, string]("engine.wait.run.v1")
	handler := typ.Handler(func(_ context.Context, in string) (string, error) {
		time.Sleep(90 * time.Second)
		return in, nil
	})

	subtest(t, "many wait for one, each at once", func(fx *fixture) {
		fx.run(handler)
		h := enqueue(fx, typ, "x")
		began := time.Now()
		var wg sync.WaitGroup
		for range 20 {
			client := fx.newClient()
			wg.Go(func() {
				info, err := client.Wait(fx.Context(), h.ID())
				if err != nil || string(info.Output) != `"x"` {
					fx.Errorf("Wait: %v, %s", err, info.Output)
				}
				equal(fx, "time", time.Since(began), 90*time.Second)
			})
		}
		wg.Wait()
	})

	subtest(t, "polls a store without notices", func(fx *fixture) {
		fx.run(handler)
		client, err := weaver.NewClient(polled(fx.store), weaver.ClientConfig{})
		fx.must(err)
		h, err := typ.Enqueue(fx.Context(), client, "x")
		fx.must(err)
		began := time.Now()
		equal(fx, "output", result(fx, h), "x")
		if took := time.Since(began); took < 90*time.Second || took > 92*time.Second {
			fx.Errorf("it took %s, want 90s and a poll", took)
		}
	})

	subtest(t, "Wake lets an engine look at once", func(fx *fixture) {
		var began time.Time
		e := fx.runConfig(polled(fx.store), weaver.Config{Poll: time.Hour, Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, in string) (string, error) {
			began = time.Now()
			return in, nil
		})}})
		synctest.Wait()
		h := enqueue(fx, typ, "x")
		time.Sleep(time.Minute)
		fx.wantState(h.ID(), weaver.StateReady)
		woken := time.Now()
		e.Wake()
		result(fx, h)
		equal(fx, "time to its start", began.Sub(woken), 0)
	})

	subtest(t, "ends with its context", func(fx *fixture) {
		h := enqueue(fx, typ, "x")
		cause := errors.New("the caller went home")
		ctx, cancel := context.WithTimeoutCause(fx.Context(), time.Minute, cause)
		defer cancel()
		_, err := h.Wait(ctx)
		wantError(fx, err, cause)
	})

	subtest(t, "says what is wrong with an output of another type", func(fx *fixture) {
		fx.run(handler)
		h := enqueue(fx, typ, "x")
		result(fx, h)
		number := weaver.Define[string, int](typ.Name())
		again, err := number.Enqueue(fx.Context(), fx.client, "x", weaver.Delay(0))
		fx.must(err)
		_, err = again.Wait(fx.Context())
		wantError(fx, err, nil, "output", again.ID().String(), "does not decode as int")
	})
}

// unreadable is a store whose reads fail while an error is set.
type unreadable struct {
	store store.Store
	err   atomic.Pointer[error]
	reads atomic.Int32
}

func newUnreadable(s store.Store, err error) *unreadable {
	u := &unreadable{}
	u.err.Store(&err)
	u.store = storehook.New(s, &storehook.Hooks{Around: func(ctx context.Context, c *storehook.Call, next func(context.Context) error) error {
		if c.Method == "Tasks" || c.Method == "Jobs" {
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
	// begin enqueues through the store behind, and returns the wait of a client of the front store.
	begin := map[string]func(fx *fixture, c *weaver.Client) func(context.Context) error{
		"Wait": func(fx *fixture, c *weaver.Client) func(context.Context) error {
			id := enqueue(fx, typ, "x").ID()
			return func(ctx context.Context) error { _, err := c.Wait(ctx, id); return err }
		},
		"WaitJob": func(fx *fixture, c *weaver.Client) func(context.Context) error {
			j := weaver.NewJob("unreadable")
			j.Add("only", typ.With("x"))
			h, err := fx.client.Submit(fx.Context(), j)
			fx.must(err)
			return func(ctx context.Context) error { _, err := c.WaitJob(ctx, h.ID()); return err }
		},
	}
	setUp := func(fx *fixture, sentinel error, start func(fx *fixture, c *weaver.Client) func(context.Context) error) (*unreadable, func(context.Context) error) {
		front := newUnreadable(fx.store, sentinel)
		c, err := weaver.NewClient(front.store, weaver.ClientConfig{Logger: fx.log.logger()})
		fx.must(err)
		return front, start(fx, c)
	}
	for name, start := range begin {
		for _, sentinel := range []error{store.ErrUnavailable, store.ErrBusy} {
			subtest(t, name+" goes on after: "+sentinel.Error(), func(fx *fixture) {
				front, wait := setUp(fx, sentinel, start)
				got := make(chan error, 1)
				go func() { got <- wait(fx.Context()) }()
				fx.idle(echo) // it ends while the store is unreachable
				time.Sleep(time.Minute)
				synctest.Wait()
				if looks := front.reads.Load(); looks < 55 || looks > 65 {
					fx.Errorf("it looked %d times in a minute, want about one a second", looks)
				}
				front.err.Store(nil)
				fx.must(<-got)
				equal(fx, "warnings", len(fx.log.lines(fx, "the store cannot be read; the wait goes on")), 1)
			})
		}
		subtest(t, name+" ends with its context, and reports both errors", func(fx *fixture) {
			_, wait := setUp(fx, store.ErrUnavailable, start)
			ctx, cancel := context.WithTimeout(fx.Context(), time.Minute)
			defer cancel()
			err := wait(ctx)
			wantError(fx, err, context.DeadlineExceeded, "the test makes it unreadable")
			wantError(fx, err, store.ErrUnavailable)
		})
		subtest(t, name+" ends at once when the store is closed", func(fx *fixture) {
			front, wait := setUp(fx, store.ErrClosed, start)
			wantError(fx, wait(fx.Context()), store.ErrClosed)
			equal(fx, "looks", front.reads.Load(), 1)
		})
	}
}
