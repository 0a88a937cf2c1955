package weaver_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// A retry of the calling task repairs failed calls.
func TestRetryOfATaskWhoseCallFailed(t *testing.T) {
	broken := func(fails *bool) weaver.Handler {
		return piece.Handler(func(_ context.Context, n int) (int, error) {
			if *fails {
				return 0, weaver.Permanent(weaver.WithCode("disk", errors.New("the disk is full")))
			}
			return 2 * n, nil
		})
	}
	callers := map[string]func(ctx context.Context, out *int) error{
		"call": func(ctx context.Context, out *int) (err error) {
			*out, err = weaver.Call(ctx, "sub", piece, 3)
			return err
		},
		"race": func(ctx context.Context, out *int) error {
			_, err := weaver.Race(ctx, "first", weaver.OnCall(piece, 3, out), weaver.OnSleep(time.Hour))
			return err
		},
	}
	for name, call := range callers {
		subtest(t, name, func(fx *fixture) {
			fails := true
			fx.run(broken(&fails), whole.Handler(func(ctx context.Context, _ int) (string, error) {
				var out int
				if err := call(ctx, &out); err != nil {
					return "", err
				}
				return "done", nil
			}))
			j := weaver.NewJob("release")
			j.Add("build", whole.With(0))
			jh, err := fx.client.Submit(fx.Context(), j)
			fx.must(err)
			res, err := jh.Wait(fx.Context())
			fx.must(err)
			equal(fx, "job", res.State, task.JobFailed)
			_, err = fx.client.RetryJob(fx.Context(), jh.ID())
			fx.must(err)
			res, err = jh.Wait(fx.Context())
			fx.must(err)
			equal(fx, "the job, while the disk is full", res.State, task.JobFailed)
			fails = false
			_, err = fx.client.RetryJob(fx.Context(), jh.ID())
			fx.must(err)
			res, err = jh.Wait(fx.Context())
			fx.must(err)
			equal(fx, "the job, when it is not", res.State, task.JobSucceeded)
		})
	}
}

// A replay gets the failure of a child that was retried concurrently.
func TestCallErrorIsKept(t *testing.T) {
	subtest(t, "after a retry of the child", func(fx *fixture) {
		fails := true
		var got []*weaver.CallError
		fx.run(piece.Handler(func(_ context.Context, n int) (int, error) {
			if fails {
				return 0, weaver.Permanent(weaver.WithCode("disk", errors.New("the disk is full")))
			}
			return n, nil
		}), whole.Handler(func(ctx context.Context, _ int) (string, error) {
			_, err := weaver.Call(ctx, "sub", piece, 3)
			var ce *weaver.CallError
			if errors.As(err, &ce) {
				got = append(got, ce)
				return "", weaver.Sleep(ctx, "nap", time.Hour)
			}
			return "", err
		}))
		h := enqueue(fx, whole, 0)
		synctest.Wait()
		time.Sleep(time.Minute)
		fails = false
		fx.must(fx.client.Retry(fx.Context(), fx.history(h.ID()).Needs[0].ID))
		result(fx, h)
		equal(fx, "the attempts that got it", len(got), 2)
		equal(fx, "the second error", *got[1], *got[0])
		equal(fx, "its code", got[1].Code, "disk")
		equal(fx, "its kind", got[1].Kind, task.KindHandler)
		equal(fx, "its message", got[1].Message, "the disk is full")
	})
}
