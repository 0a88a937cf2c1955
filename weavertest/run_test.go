package weavertest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/weavertest"
)

func TestContinue(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		broken := true
		e := weavertest.New(t, charge.Handler(func(ctx context.Context, n int) (string, error) {
			if broken {
				return "", weaver.Permanent(errors.New("card refused"))
			}
			return fmt.Sprint("charged ", n), weaver.Sleep(ctx, "settle", day)
		}))
		id := enqueue(t, e)
		_, err := weavertest.ContinueErr(t, e, charge, id)
		if te, ok := errors.AsType[*weaver.TaskError](err); !ok || te.State != weaver.StateFailed {
			t.Errorf("ContinueErr returned %v", err)
		}
		broken = false
		if err := e.Retry(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time it has already ended
			if out := weavertest.Continue(t, e, charge, id); out != "charged 1" {
				t.Errorf("output %q", out)
			}
		}
		if _, err := weavertest.ContinueErr(t, e, charge, weaver.TaskID{1}); !errors.Is(err, weaver.ErrNotFound) {
			t.Errorf("ContinueErr of no task returned %v", err)
		}
	})
}

func TestRunJob(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		refuse := 0
		e := weavertest.New(t, charge.Handler(func(ctx context.Context, n int) (string, error) {
			if n == refuse {
				return "", weaver.Permanent(errors.New("card refused"))
			}
			return "", weaver.Sleep(ctx, "settle", day)
		}))
		began := e.Now()
		if res := weavertest.RunJob(t, e, payments()); res.State != task.JobSucceeded || len(res.Completed) != 2 {
			t.Errorf("the job is %s: %+v", res.State, res)
		}
		if passed := e.Now().Sub(began); passed < 2*day {
			t.Errorf("two days took %s", passed)
		}
		refuse = 2
		res, err := weavertest.RunJobErr(t, e, payments())
		if err != nil || res.State != task.JobFailed || len(res.Completed) != 1 || len(res.Failed) != 1 {
			t.Errorf("RunJobErr returned %+v, %v", res, err)
		}
	})
}

// A killed worker is known to be dead: the task does not reach its deadline while its lease expires.
func TestReplayTakesNoTime(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		e := weavertest.New(t, mail.Handler(sendMail), charge.Handler(func(ctx context.Context, n int) (string, error) {
			sent, err := weaver.Start(ctx, "mail", mail, "paid", weaver.ExpireAfter(time.Minute))
			for i := 0; err == nil && i < n; i++ {
				err = weaver.Do(ctx, fmt.Sprint("part ", i), func(context.Context) error { return nil })
			}
			return sent.ID.String(), err
		}))
		weavertest.Replay(t, e, charge, 5, weaver.ExpireAfter(time.Second))
		weavertest.RunUntilIdle(t, e)
		if sent := weavertest.RequireEnqueued(t, e, mail, nil); sent[0].State != weaver.StateSucceeded {
			t.Errorf("the mail is %s", sent[0].State)
		}
	})
}
