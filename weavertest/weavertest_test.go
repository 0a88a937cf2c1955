package weavertest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/weavertest"
)

var (
	charge = weaver.Define[int, string]("weavertest.billing.charge.v1")
	mail   = weaver.Define[string, weaver.None]("weavertest.mail.send.v1")
)

// everywhere runs a case outside a bubble and inside a bubble of the test.
func everywhere(t *testing.T, play func(t *testing.T)) {
	t.Helper()
	t.Run("outside a bubble", play)
	t.Run("inside a bubble", func(t *testing.T) { synctest.Test(t, play) })
}

func sendMail(context.Context, string) (weaver.None, error) { return weaver.None{}, nil }

func TestRun(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		attempts := 0
		e := weavertest.New(t, charge.Handler(func(ctx context.Context, n int) (string, error) {
			if attempts++; attempts < 4 {
				return "", errors.New("not yet")
			}
			if err := weaver.Sleep(ctx, "settle", 24*time.Hour); err != nil {
				return "", err
			}
			return fmt.Sprint("charged ", n), nil
		}))
		if out := weavertest.Run(t, e, charge, 7); out != "charged 7" {
			t.Errorf("output %q", out)
		}
		if attempts != 5 {
			t.Errorf("%d runs of the handler, want 4 attempts and a wake-up", attempts)
		}
	})
}

func TestRunTwiceInOneEnv(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		var times []time.Time
		e := weavertest.New(t, charge.Handler(func(ctx context.Context, n int) (string, error) {
			times = append(times, time.Now())
			return "", weaver.Sleep(ctx, "a day", 24*time.Hour)
		}))
		for n := range 3 {
			weavertest.Run(t, e, charge, n)
		}
		if !slices.IsSortedFunc(times, time.Time.Compare) {
			t.Errorf("time went back: %v", times)
		}
		if passed := times[len(times)-1].Sub(times[0]); passed < 3*24*time.Hour {
			t.Errorf("three days took %s", passed)
		}
	})
}

func TestRunWithStepTx(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		e := weavertest.New(t, charge.Handler(func(ctx context.Context, n int) (string, error) {
			return weaver.StepTx(ctx, "save", func(ctx context.Context, tx *sql.Tx) (string, error) {
				_, err := tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS payments (n INTEGER)")
				return fmt.Sprint("saved ", n), err
			})
		}))
		// The first use of the user's pool is in the handler.
		for n := range 2 {
			if out := weavertest.Run(t, e, charge, n); out != fmt.Sprint("saved ", n) {
				t.Errorf("output %q", out)
			}
		}
	})
}

func TestRunErr(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		e := weavertest.New(t, charge.Handler(func(ctx context.Context, n int) (string, error) {
			if n == 0 {
				return "", weaver.Blocked("how much?")
			}
			_, err := weaver.Step(ctx, "pay", func(context.Context) (int, error) { return 0, errors.New("card refused") })
			return "", err
		}))
		_, err := weavertest.RunErr(t, e, charge, 7)
		te, ok := errors.AsType[*weaver.TaskError](err)
		if !ok || te.State != weaver.StateFailed || te.FailedStep != "pay" || te.Attempts != 5 {
			t.Errorf("RunErr returned %v", err)
		}
		_, err = weavertest.RunErr(t, e, charge, 0)
		if !errors.Is(err, weaver.ErrBlocked) || !strings.Contains(err.Error(), "how much?") {
			t.Errorf("RunErr of a blocked task returned %v", err)
		}
		_, err = weavertest.RunErr(t, e, charge, 1, weaver.Priority(99))
		if !errors.Is(err, weaver.ErrInvalidOption) {
			t.Errorf("RunErr of a bad enqueue returned %v", err)
		}
	})
}

func TestRequireEnqueued(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		e := weavertest.New(t, mail.Handler(sendMail), charge.Handler(func(ctx context.Context, n int) (string, error) {
			for i := range n {
				if _, err := weaver.Start(ctx, fmt.Sprint("mail ", i), mail, fmt.Sprint("part ", i)); err != nil {
					return "", err
				}
			}
			return "", nil
		}))
		weavertest.Run(t, e, charge, 3)
		all := weavertest.RequireEnqueued(t, e, mail, nil)
		if len(all) != 3 || all[0].Input != "part 0" || all[2].Input != "part 2" {
			t.Errorf("found %d: %+v", len(all), all)
		}
		one := weavertest.RequireEnqueued(t, e, mail, func(s string) bool { return s == "part 1" })
		if len(one) != 1 || one[0].Input != "part 1" {
			t.Errorf("found %+v", one)
		}
	})
}

func TestEnvIsAClient(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		e := weavertest.NewConfig(t, weaver.Config{Namespace: "acme-test", InlineLimit: 10, Handlers: []weaver.Handler{mail.Handler(sendMail)}})
		if e.Namespace() != "acme-test" {
			t.Errorf("namespace %q", e.Namespace())
		}
		_, err := mail.Enqueue(t.Context(), e, "more than ten bytes")
		if !errors.Is(err, weaver.ErrTooLarge) {
			t.Errorf("Enqueue returned %v", err)
		}
		h, err := mail.Enqueue(t.Context(), e, "short", weaver.Delay(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Cancel(t.Context(), h.ID()); err != nil {
			t.Error(err)
		}
	})
}

func TestReplay(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		ran := map[string]int{}
		attempts, failed := 0, false
		step := func(ctx context.Context, name string) error {
			return weaver.Do(ctx, name, func(context.Context) error { ran[name]++; return nil })
		}
		e := weavertest.New(t, mail.Handler(sendMail), charge.Handler(func(ctx context.Context, n int) (string, error) {
			attempts++
			if err := step(ctx, "reserve"); err != nil {
				return "", err
			}
			if err := weaver.Sleep(ctx, "settle", 24*time.Hour); err != nil {
				return "", err
			}
			rows, err := weaver.StepTx(ctx, "save", func(ctx context.Context, tx *sql.Tx) (int64, error) {
				ran["save"]++
				res, err := tx.ExecContext(ctx, "INSERT INTO payments (n) VALUES (?)", n)
				if err != nil {
					return 0, err
				}
				return res.RowsAffected()
			})
			if err != nil {
				return "", err
			}
			if _, err := weaver.Start(ctx, "mail", mail, "paid"); err != nil {
				return "", err
			}
			if !failed {
				failed = true
				return "", errors.New("a failure of its own")
			}
			return fmt.Sprint("saved ", rows), step(ctx, "thank")
		}))
		if _, err := e.DB().DB().ExecContext(t.Context(), "CREATE TABLE payments (n INTEGER)"); err != nil {
			t.Fatal(err)
		}
		if out := weavertest.Replay(t, e, charge, 7); out != "saved 1" {
			t.Errorf("output %q", out)
		}
		for _, name := range []string{"reserve", "save", "thank"} {
			if ran[name] != 1 {
				t.Errorf("step %q ran %d times", name, ran[name])
			}
		}
		// Killed after each of the five steps, suspended once, failed once, killed before the result was written, and
		// the last one.
		if attempts != 9 {
			t.Errorf("%d runs of the handler, want 9", attempts)
		}
		if got := len(weavertest.RequireEnqueued(t, e, mail, nil)); got != 1 {
			t.Errorf("%d mails", got)
		}
		var n int
		if err := e.DB().DB().QueryRowContext(t.Context(), "SELECT count(*) FROM payments").Scan(&n); err != nil || n != 1 {
			t.Errorf("%d payments, %v", n, err)
		}
	})
}

func TestReplayWithParallelSteps(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		e := weavertest.New(t, charge.Handler(func(ctx context.Context, n int) (string, error) {
			errs := make(chan error, n)
			for i := range n {
				go func() {
					errs <- weaver.Do(ctx, fmt.Sprint("part ", i), func(context.Context) error { return nil })
				}()
			}
			var all error
			for range n {
				all = errors.Join(all, <-errs)
			}
			return "done", all
		}))
		if out := weavertest.Replay(t, e, charge, 10); out != "done" {
			t.Errorf("output %q", out)
		}
	})
}

func TestReplayOfAHandlerWithoutSteps(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		attempts := 0
		e := weavertest.New(t, charge.Handler(func(context.Context, int) (string, error) {
			attempts++
			return "done", nil
		}))
		weavertest.Replay(t, e, charge, 1)
		if attempts != 2 {
			t.Errorf("%d runs, want one that is killed and one that is not", attempts)
		}
	})
}
