package weaver_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// nightly is a job of one task.
func nightly[In, Out any](typ *weaver.Type[In, Out], in In) *weaver.Job {
	j := weaver.NewJob("nightly")
	j.Add("only", typ.With(in))
	return j
}

func (fx *fixture) jobs() int {
	fx.Helper()
	jobs, _, err := fx.client.Jobs(fx.Context(), store.JobFilter{})
	fx.must(err)
	return len(jobs)
}

func TestSubmitWithAKey(t *testing.T) {
	typ := weaver.Define[int, int]("engine.submit.keyed.v1")
	inBubble(t, func(fx *fixture) {
		first, err := fx.client.Submit(fx.Context(), nightly(typ, 1), weaver.IdempotencyKey("2026-11-22"))
		fx.must(err)
		equal(fx, "disposition", first.Disposition(), store.DispositionCreated)
		for range 2 {
			again, err := fx.client.Submit(fx.Context(), nightly(typ, 2), weaver.IdempotencyKey("2026-11-22"))
			fx.must(err)
			equal(fx, "the job", again.ID(), first.ID())
			equal(fx, "disposition", again.Disposition(), store.DispositionExisting)
			fx.idle(typ.Handler(func(_ context.Context, n int) (int, error) { return n, nil }))
			res, err := again.Wait(fx.Context())
			fx.must(err)
			equal(fx, "the tasks", len(res.Completed), 1)
		}
		_, err = fx.client.Submit(fx.Context(), nightly(typ, 2), weaver.IdempotencyKey(""))
		wantError(fx, err, weaver.ErrInvalidJob, "IdempotencyKey: the name is empty")
		equal(fx, "jobs", fx.jobs(), 1)
		info, err := fx.client.Job(fx.Context(), first.ID())
		fx.must(err)
		equal(fx, "the key as read", info.IdempotencyKey, "2026-11-22")
	})
}

func TestSubmitInTx(t *testing.T) {
	typ := weaver.Define[int, int]("engine.submit.intx.v1")
	inSQLBubble(t, func(fx *fixture) {
		db := fx.store.(*sqlite.DB)
		submit := func() (*sql.Tx, *weaver.JobHandle) {
			tx, err := db.DB().BeginTx(fx.Context(), nil)
			fx.must(err)
			h, err := fx.client.InTx(sqlite.Tx(tx)).Submit(fx.Context(), nightly(typ, 1), weaver.IdempotencyKey("k"))
			fx.must(err)
			return tx, h
		}
		tx, h := submit()
		_, err := h.Wait(fx.Context())
		wantError(fx, err, weaver.ErrUnbound)
		fx.must(tx.Rollback())
		equal(fx, "jobs after a rollback", fx.jobs(), 0)
		tx, h = submit()
		fx.must(tx.Commit())
		equal(fx, "jobs after a commit", fx.jobs(), 1)
		tx, again := submit()
		fx.must(tx.Commit())
		equal(fx, "the job under its key", again.ID(), h.ID())
		equal(fx, "disposition", again.Disposition(), store.DispositionExisting)
		fx.client.Wake()
		fx.idle(typ.Handler(func(_ context.Context, n int) (int, error) { return n, nil }))
		res, err := fx.client.WaitJob(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "state", res.State, task.JobSucceeded)
		_, err = fx.client.InTx(nil).Submit(fx.Context(), nightly(typ, 1))
		wantError(fx, err, store.ErrForeignTx, "InTx(nil): the transaction is nil: begin one")
		_, err = fx.client.InTx(sqlite.Tx(tx)).Submit(fx.Context(), nil)
		wantError(fx, err, weaver.ErrInvalidJob)
	})
}

func TestSubmitInAHandler(t *testing.T) {
	typ := weaver.Define[int, int]("engine.submit.child.v1")
	parent := weaver.Define[int, string]("engine.submit.parent.v1", weaver.Backoff(time.Second))
	child := typ.Handler(func(_ context.Context, n int) (int, error) { return n, nil })

	subtest(t, "StartJob submits once for the task, under its name", func(fx *fixture) {
		var calls atomic.Int32
		fx.run(child, parent.Handler(func(ctx context.Context, n int) (string, error) {
			var seen []string
			for _, name := range []string{"first", strings.Repeat("long", 60)} {
				id, err := weaver.StartJob(ctx, name, nightly(typ, n))
				if err != nil {
					return "", err
				}
				seen = append(seen, id.String())
				calls.Add(1)
			}
			if weaver.Current(ctx).AttemptNo < 3 {
				return "", errors.New("again")
			}
			return strings.Join(seen, " "), nil
		}))
		a, b := enqueue(fx, parent, 1), enqueue(fx, parent, 2)
		equal(fx, "two tasks have the same jobs", result(fx, a) == result(fx, b), false)
		equal(fx, "jobs", fx.jobs(), 4)
		equal(fx, "calls of StartJob", calls.Load(), 12)
	})

	subtest(t, "a worker that dies between the submit and the record leaves one job", func(fx *fixture) {
		fx.run(child, parent.Handler(func(ctx context.Context, n int) (string, error) {
			// The same as StartJob, without its step.
			key := weaver.Current(ctx).StepKey("start")
			h, err := fx.client.Submit(ctx, nightly(typ, n), weaver.IdempotencyKey(key))
			if err != nil {
				return "", err
			}
			if weaver.Current(ctx).AttemptNo == 1 {
				return "", errors.New("again")
			}
			id, err := weaver.StartJob(ctx, "start", nightly(typ, n))
			equal(fx, "the job that StartJob finds", id, h.ID())
			return "", err
		}))
		result(fx, enqueue(fx, parent, 1))
		equal(fx, "jobs", fx.jobs(), 1)
		equal(fx, "warnings", len(fx.log.lines(fx, unkeyedJob)), 0)
	})

	subtest(t, "a submit without a key is warned about, once", func(fx *fixture) {
		fx.run(child, parent.Handler(func(ctx context.Context, n int) (string, error) {
			_, err := fx.client.Submit(ctx, nightly(typ, n))
			if err == nil && weaver.Current(ctx).AttemptNo < 3 {
				err = errors.New("again")
			}
			return "", err
		}))
		result(fx, enqueue(fx, parent, 1))
		equal(fx, "jobs", fx.jobs(), 3)
		equal(fx, "warnings", len(fx.log.lines(fx, unkeyedJob)), 1)
	})

	sqlSubtest(t, "inside StepTx it is of the step's transaction", func(fx *fixture) {
		fx.run(child, parent.Handler(func(ctx context.Context, n int) (string, error) {
			fails := weaver.Current(ctx).AttemptNo == 1
			return weaver.StepTx(ctx, "save", func(ctx context.Context, _ *sql.Tx) (string, error) {
				if _, err := fx.client.Submit(ctx, nightly(typ, n)); !errors.Is(err, weaver.ErrNestedTx) {
					fx.Errorf("Submit with a client inside StepTx: %v", err)
				}
				h, err := weaver.InStepTx(ctx).Submit(ctx, nightly(typ, n))
				if err == nil && fails {
					err = errors.New("again")
				}
				return h.ID().String(), err
			})
		}))
		h := enqueue(fx, parent, 1)
		equal(fx, "jobs", func() int { result(fx, h); return fx.jobs() }(), 1)
	})

	subtest(t, "a job with mistakes fails the task", func(fx *fixture) {
		fx.run(parent.Handler(func(ctx context.Context, _ int) (string, error) {
			_, err := weaver.StartJob(ctx, "bad", weaver.NewJob("empty"))
			return "", err
		}))
		te := failure(fx, enqueue(fx, parent, 1))
		equal(fx, "attempts", te.Attempts, 1)
		wantError(fx, te, nil, "the job is empty", `"bad"`)
		_, err := weaver.StartJob(fx.Context(), "x", nightly(typ, 1))
		wantError(fx, err, weaver.ErrNoTask)
		_, err = weaver.InStepTx(fx.Context()).Submit(fx.Context(), nightly(typ, 1))
		wantError(fx, err, weaver.ErrNoTask)
	})
}

const unkeyedJob = "submitted a job in a handler without an idempotency key: every attempt submits again; use weaver.StartJob, or an IdempotencyKey"
