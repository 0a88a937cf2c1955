package weavertest_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/weavertest"
)

const day = 24 * time.Hour

// The times are so long that an engine that polls or renews leases every few seconds would not finish.
func TestIdleTimeCostsNothing(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		e := weavertest.New(t,
			charge.Handler(func(ctx context.Context, _ int) (string, error) {
				return "awake", weaver.Sleep(ctx, "decades", 80*365*day)
			}),
			mail.Handler(func(context.Context, string) (weaver.None, error) {
				time.Sleep(20 * 365 * day) // running, and renewing its lease
				return weaver.None{}, nil
			}))
		if out := weavertest.Run(t, e, charge, 1); out != "awake" {
			t.Errorf("output %q", out)
		}
		weavertest.Run(t, e, mail, "a long letter")
		weavertest.Advance(t, e, 20*365*day)
	})
}

func TestAdvance(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		var ran []time.Duration
		var began time.Time
		e := weavertest.New(t, charge.Handler(func(ctx context.Context, n int) (string, error) {
			ran = append(ran, time.Since(began))
			if n == 0 {
				return "", nil
			}
			_, err := weaver.Start(ctx, "next", charge, n-1, weaver.Delay(day))
			return "", err
		}))
		weavertest.Advance(t, e, time.Hour) // from here on the time is no longer the present
		began = e.Now()
		if _, err := charge.Enqueue(t.Context(), e, 3, weaver.At(began.Add(day))); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			by   time.Duration
			runs int
		}{
			{0, 0},
			{day - time.Hour, 0},
			{time.Hour, 1}, // up to and including the instant
			{2*day + time.Hour, 3},
			{10 * day, 4},
		} {
			before := e.Now()
			weavertest.Advance(t, e, step.by)
			if len(ran) != step.runs {
				t.Errorf("after %s the handler ran at %v, want %d times", e.Now().Sub(began), ran, step.runs)
			}
			if passed := e.Now().Sub(before); passed != step.by {
				t.Errorf("Advance(%s) took %s", step.by, passed)
			}
		}
	})
}

func TestAdvanceWithAHandlerAtWork(t *testing.T) {
	work := func(d time.Duration, runs *int) weaver.Handler {
		return charge.Handler(func(ctx context.Context, _ int) (string, error) {
			*runs++
			return weaver.Step(ctx, "work", func(ctx context.Context) (string, error) {
				select {
				case <-ctx.Done():
					return "", context.Cause(ctx)
				case <-time.After(d):
					return "done", nil
				}
			})
		})
	}
	t.Run("returns in time", func(t *testing.T) {
		everywhere(t, func(t *testing.T) {
			runs := 0
			e := weavertest.New(t, work(10*time.Second, &runs))
			h, err := charge.Enqueue(t.Context(), e, 1)
			if err != nil {
				t.Fatal(err)
			}
			weavertest.Advance(t, e, time.Second)
			if info, err := h.Get(t.Context()); err != nil || info.State != weaver.StateSucceeded {
				t.Errorf("the task is %s, %v", info.State, err)
			}
		})
	})
	t.Run("is interrupted", func(t *testing.T) {
		everywhere(t, func(t *testing.T) {
			runs := 0
			e := weavertest.New(t, work(time.Hour, &runs))
			h, err := charge.Enqueue(t.Context(), e, 1)
			if err != nil {
				t.Fatal(err)
			}
			weavertest.Advance(t, e, time.Second)
			if info, err := h.Get(t.Context()); err != nil || info.State != weaver.StateReady {
				t.Errorf("the task is %s, %v", info.State, err)
			}
			if out := weavertest.Continue(t, e, charge, h.ID()); out != "done" || runs != 2 {
				t.Errorf("output %q after %d runs", out, runs)
			}
		})
	})
}

func TestRunUntilIdle(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		ran := 0
		e := weavertest.New(t, mail.Handler(sendMail), charge.Handler(func(ctx context.Context, n int) (string, error) {
			ran++
			if _, err := weaver.Start(ctx, "mail", mail, "paid"); err != nil {
				return "", err
			}
			return "", weaver.Sleep(ctx, "settle", day)
		}))
		if _, err := charge.Enqueue(t.Context(), e, 1); err != nil {
			t.Fatal(err)
		}
		later, err := charge.Enqueue(t.Context(), e, 2, weaver.Delay(day))
		if err != nil {
			t.Fatal(err)
		}
		weavertest.RunUntilIdle(t, e)
		if sent := weavertest.RequireEnqueued(t, e, mail, nil); sent[0].State != weaver.StateSucceeded || ran != 1 {
			t.Errorf("the mail is %s, %d charges ran", sent[0].State, ran)
		}
		if info, err := later.Get(t.Context()); err != nil || info.State != weaver.StatePending {
			t.Errorf("the later one is %s, %v", info.State, err)
		}
	})
}

// Between calls the client works at the environment's time.
func TestTimeOfTheClient(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		var ran atomic.Int32
		e := weavertest.New(t, charge.Handler(func(context.Context, int) (string, error) { ran.Add(1); return "", nil }))
		weavertest.Advance(t, e, 10*day)

		tx, err := e.DB().DB().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }() // in case a check below ends the test
		if _, err := charge.Enqueue(t.Context(), e.InTx(sqlite.Tx(tx)), 0, weaver.Delay(day)); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if _, err := charge.Enqueue(t.Context(), e, 1, weaver.Delay(day)); err != nil {
			t.Fatal(err)
		}
		job := weaver.NewJob("later")
		job.Add("one", charge.With(2, weaver.Delay(day)))
		if _, err := e.Submit(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		weavertest.Advance(t, e, day-time.Second)
		if n := ran.Load(); n != 0 {
			t.Errorf("%d tasks ran a second early", n)
		}
		weavertest.Advance(t, e, time.Second)
		if n := ran.Load(); n != 3 {
			t.Errorf("%d tasks ran after a day, want 3", n)
		}

		// A task that expires in an hour therefore does not expire at once.
		weavertest.Run(t, e, charge, 3, weaver.ExpireAfter(time.Hour))
		h, err := charge.Enqueue(t.Context(), e, 4, weaver.ExpireAfter(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		weavertest.Continue(t, e, charge, h.ID())

		// IDs also follow the environment's time.
		var ids []weaver.TaskID
		for _, task := range weavertest.RequireEnqueued(t, e, charge, func(n int) bool { return n > 0 }) {
			ids = append(ids, task.ID)
			if n := len(ids); task.Input != n {
				t.Errorf("task %d has input %d", n, task.Input)
			}
		}
	})
}

func TestClientInGoroutines(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		e := weavertest.New(t, mail.Handler(sendMail), charge.Handler(func(ctx context.Context, n int) (string, error) { return "", nil }))
		weavertest.Advance(t, e, day)
		var all sync.WaitGroup
		for n := range 10 {
			all.Go(func() {
				h, err := charge.Enqueue(t.Context(), e, n)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := h.Get(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		weavertest.RunUntilIdle(t, e)
		for _, got := range weavertest.RequireEnqueued(t, e, charge, nil) {
			if got.State != weaver.StateSucceeded {
				t.Errorf("task %d is %s", got.Input, got.State)
			}
		}
	})
}

// Handlers may use the environment as their client.
func TestClientInHandlers(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		var e *weavertest.Env
		e = weavertest.New(t, mail.Handler(sendMail), charge.Handler(func(ctx context.Context, n int) (string, error) {
			_, err := mail.EnqueueAndWait(ctx, e, "paid", weaver.IdempotencyKey(weaver.Current(ctx).TaskID.String()), weaver.Delay(day))
			return "sent", err
		}))
		if out := weavertest.Run(t, e, charge, 1); out != "sent" {
			t.Errorf("output %q", out)
		}
		if out := weavertest.Replay(t, e, charge, 1); out != "sent" {
			t.Errorf("output %q", out)
		}
	})
}

func TestEnvOfTheTestInABubble(t *testing.T) {
	e := weavertest.New(t, charge.Handler(func(ctx context.Context, n int) (string, error) {
		return "paid", weaver.Sleep(ctx, "settle", day)
	}))
	h, err := charge.Enqueue(t.Context(), e, 1, weaver.Delay(day))
	if err != nil {
		t.Fatal(err)
	}
	due, err := h.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		if out := weavertest.Continue(t, e, charge, h.ID()); out != "paid" {
			t.Errorf("output %q", out)
		}
	})
	if now, want := e.Now().UTC(), due.ReadyAt.Add(day); !now.Equal(want) {
		t.Errorf("it is %s afterwards, want %s", now, want)
	}
	t.Cleanup(func() { // a test must not open a bubble during cleanup
		if _, err := charge.Get(context.Background(), e, h.ID()); err != nil {
			t.Error(err)
		}
	})
}

// The environment of a benchmark needs no bubbles.
func TestEnvOfABenchmark(t *testing.T) {
	b := struct{ testing.TB }{t} // not a *testing.T
	e := weavertest.New(b, mail.Handler(sendMail))
	if _, err := mail.Enqueue(b.Context(), e, "bob"); err != nil {
		b.Fatal(err)
	}
	weavertest.RequireEnqueued(b, e, mail, nil)
}
