package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

var (
	piece = weaver.Define[int, int]("engine.children.piece.v1", weaver.NoRetry())
	whole = weaver.Define[int, string]("engine.children.whole.v1", weaver.NoRetry())
)

// pieceHandler doubles its input; a negative one fails.
func pieceHandler() weaver.Handler {
	return piece.Handler(func(_ context.Context, in int) (int, error) {
		if in < 0 {
			return 0, errors.New("below zero")
		}
		return 2 * in, nil
	})
}

func TestDecompose(t *testing.T) {
	outer := func(join task.Join, drafts ...weaver.Draft) weaver.Handler {
		return whole.Handler(func(ctx context.Context, _ int) (string, error) {
			children, err := weaver.Children(ctx)
			if err != nil {
				return "", err
			}
			if len(children) > 0 {
				var said []string
				for _, c := range children {
					out, err := piece.OutputOf(c)
					equal(t, "it is ErrNotSucceeded", errors.Is(err, weaver.ErrNotSucceeded), c.State != weaver.StateSucceeded)
					said = append(said, fmt.Sprint(c.Node, " ", c.State, " ", out))
				}
				return strings.Join(said, ", "), nil
			}
			return "joined", fmt.Errorf("split: %w", weaver.Decompose(join, drafts...))
		})
	}
	subtest(t, "rerun", func(fx *fixture) {
		h := enqueue(fx, whole, 0)
		fx.idle(pieceHandler(), outer(weaver.JoinRerun, piece.With(1), piece.With(-1), piece.With(3, weaver.Delay(time.Millisecond))))
		equal(fx, "it waits for", fx.get(h.ID()).Waiting, task.WaitChildren)
		time.Sleep(time.Second)
		fx.idle(pieceHandler(), outer(weaver.JoinRerun))
		equal(fx, "output", result(fx, h), "decompose[0] succeeded 2, decompose[1] failed 0, decompose[2] succeeded 6")
		fx.wantOutcomes(h.ID(), task.OutcomeDecompose, task.OutcomeSuccess)
		equal(fx, "attempts that count", fx.get(h.ID()).AttemptCount, 1)
	})
	subtest(t, "complete", func(fx *fixture) {
		h := enqueue(fx, whole, 0)
		fx.idle(pieceHandler(), outer(weaver.JoinComplete, piece.With(1), piece.With(2)))
		equal(fx, "output", result(fx, h), "joined")
		fx.wantOutcomes(h.ID(), task.OutcomeDecompose)
	})
	subtest(t, "complete with a child that fails", func(fx *fixture) {
		h := enqueue(fx, whole, 0)
		fx.idle(pieceHandler(), outer(weaver.JoinComplete, piece.With(1), piece.With(-1)))
		_, err := h.Wait(fx.Context())
		var te *weaver.TaskError
		if !errors.As(err, &te) || te.Kind != task.KindDependencyFailed || !strings.Contains(te.Message, "decompose[1]") {
			fx.Errorf("Wait: %v", err)
		}
	})
	for name, tc := range map[string]struct {
		join   task.Join
		drafts []weaver.Draft
		want   string
	}{
		"no child":           {weaver.JoinRerun, nil, "no child is named"},
		"a join":             {"later", []weaver.Draft{piece.With(1)}, `the join "later"`},
		"a draft":            {weaver.JoinRerun, []weaver.Draft{piece.With(1), piece.With(2, weaver.Priority(12))}, "child 1: "},
		"an idempotency key": {weaver.JoinRerun, []weaver.Draft{piece.With(1, weaver.IdempotencyKey("k"))}, "IdempotencyKey"},
		"too many":           {weaver.JoinRerun, make([]weaver.Draft, task.MaxChildren+1), "10000 are allowed"},
	} {
		subtest(t, "a mistake fails it at once: "+name, func(fx *fixture) {
			h := enqueue(fx, whole, 0)
			fx.idle(pieceHandler(), outer(tc.join, tc.drafts...))
			got := fx.get(h.ID())
			equal(fx, "state", got.State, weaver.StateFailed)
			if got.Error.Kind != task.KindValidation || !strings.Contains(got.Error.Message, tc.want) {
				fx.Errorf("error %+v, want %q", got.Error, tc.want)
			}
		})
	}
	subtest(t, "too deep", func(fx *fixture) {
		var last weaver.TaskID
		nested := whole.Handler(func(ctx context.Context, n int) (string, error) {
			last = weaver.Current(ctx).TaskID
			return "", weaver.Decompose(weaver.JoinComplete, whole.With(n+1))
		})
		h := enqueue(fx, whole, 0)
		fx.idle(nested)
		equal(fx, "depth", fx.get(last).Depth, task.MaxDepth)
		equal(fx, "state of the last", fx.get(last).State, weaver.StateFailed)
		equal(fx, "state of the first", fx.get(h.ID()).State, weaver.StateFailed)
	})
}

func TestDecomposeIsNoFailure(t *testing.T) {
	err := fmt.Errorf("split: %w", weaver.Decompose(weaver.JoinRerun, piece.With(1)))
	if !weaver.Suspended(err) || weaver.Final(t.Context(), err) {
		t.Errorf("%v is taken for a failure", err)
	}
	if _, err := weaver.Children(t.Context()); !errors.Is(err, weaver.ErrNoTask) {
		t.Errorf("Children outside of a handler: %v", err)
	}
}

func TestCancelEndsChildren(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		ended := make(chan error, 1)
		fx.run(whole.Handler(func(ctx context.Context, _ int) (string, error) {
			return "", weaver.Decompose(weaver.JoinRerun, piece.With(1))
		}), piece.Handler(func(ctx context.Context, _ int) (int, error) {
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return 0, ctx.Err()
		}))
		h := enqueue(fx, whole, 0)
		time.Sleep(time.Second)
		if err := fx.client.Cancel(fx.Context(), h.ID()); err != nil {
			fx.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, weaver.ErrCancelled) {
			fx.Errorf("the child's context ended with %v", err)
		}
	})
}

func TestAddDependency(t *testing.T) {
	asks := func(id weaver.TaskID) weaver.Handler {
		return whole.Handler(func(ctx context.Context, _ int) (string, error) {
			if weaver.Current(ctx).AttemptNo > 1 {
				return "after it", nil
			}
			return "", fmt.Errorf("not yet: %w", weaver.AddDependency(id))
		})
	}
	subtest(t, "waits for any task", func(fx *fixture) {
		other := enqueue(fx, piece, 1, weaver.Delay(time.Minute))
		h := enqueue(fx, whole, 0)
		fx.idle(pieceHandler(), asks(other.ID()))
		equal(fx, "it waits for", fx.get(h.ID()).Waiting, task.WaitDeps)
		time.Sleep(time.Hour)
		fx.idle(pieceHandler(), asks(other.ID()))
		equal(fx, "output", result(fx, h), "after it")
		fx.wantOutcomes(h.ID(), task.OutcomeAddDependency, task.OutcomeSuccess)
		equal(fx, "attempts that count", fx.get(h.ID()).AttemptCount, 1)
	})
	subtest(t, "cannot run when that fails", func(fx *fixture) {
		other := enqueue(fx, piece, -1)
		h := enqueue(fx, whole, 0)
		fx.idle(pieceHandler(), asks(other.ID()))
		equal(fx, "error", fx.get(h.ID()).Error.Kind, task.KindDependencyFailed)
	})
	for name, id := range map[string]weaver.TaskID{"nothing": {}, "a task that is not there": {1}} {
		subtest(t, "fails at once that asks for "+name, func(fx *fixture) {
			h := enqueue(fx, whole, 0)
			fx.idle(asks(id))
			equal(fx, "state", fx.get(h.ID()).State, weaver.StateFailed)
			equal(fx, "error", fx.get(h.ID()).Error.Kind, task.KindValidation)
		})
	}
}

func TestRetryJobWithChildren(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		runs := 0
		handlers := []weaver.Handler{pieceHandler(), whole.Handler(func(ctx context.Context, _ int) (string, error) {
			children, err := weaver.Children(ctx)
			if runs++; err != nil || len(children) == 0 {
				return "", errors.Join(err, weaver.Decompose(weaver.JoinRerun, piece.With(1), piece.With(2, weaver.Delay(time.Hour))))
			}
			out, err := piece.OutputOf(children[1])
			return fmt.Sprint(out), err
		})}
		j := weaver.NewJob("tree")
		j.Add("all", whole.With(0))
		h, err := fx.client.Submit(fx.Context(), j)
		if err != nil {
			fx.Fatal(err)
		}
		fx.idle(handlers...)
		if _, err := fx.client.CancelJob(fx.Context(), h.ID()); err != nil {
			fx.Fatal(err)
		}
		if _, err := fx.client.RetryJob(fx.Context(), h.ID()); err != nil {
			fx.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		fx.idle(handlers...)
		job, err := fx.client.Job(fx.Context(), h.ID())
		if err != nil || job.State != task.JobSucceeded || job.Counters.Total != 3 {
			fx.Errorf("the job: %+v, %v", job, err)
		}
		equal(fx, "runs of the handler", runs, 2)
	})
}
