package weavertest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// Run enqueues a task, runs due tasks until it has ended, and returns its output. Time advances as needed. The test
// fails when the task fails, is cancelled, blocks, or has no handler.
func Run[In, Out any](t *testing.T, e *Env, typ *weaver.Type[In, Out], in In, opts ...weaver.EnqueueOption) Out {
	t.Helper()
	out, err := RunErr(t, e, typ, in, opts...)
	if err != nil {
		t.Fatalf("weavertest: %v", err)
	}
	return out
}

// RunErr is Run for tasks that are expected to fail: it returns the error of the handle's Wait, a *weaver.TaskError
// or an error that is weaver.ErrBlocked. When an undo of the task or of a child has failed ten times, it returns an
// error that is weaver.ErrUndoing and leaves the task unchanged. The test then fixes the cause and calls ContinueErr.
func RunErr[In, Out any](t *testing.T, e *Env, typ *weaver.Type[In, Out], in In, opts ...weaver.EnqueueOption) (Out, error) {
	t.Helper()
	e.requireHandler(t, typ.Name())
	var h *weaver.Handle[Out]
	var out Out
	var err error
	e.play(t, func(ctx context.Context, w *worker) {
		if h, err = typ.Enqueue(ctx, e, in, opts...); err == nil {
			w.await(h.ID(), weaver.JobID{})
			out, err = h.Wait(ctx)
			err = e.ended(ctx, h.ID(), err)
		}
	})
	requireEnd(t, err)
	return out, err
}

// Continue runs due tasks until an existing task has ended, and returns its output. The task may have been enqueued
// before, unblocked or retried. The test fails as with Run, and when the task has another type.
func Continue[In, Out any](t *testing.T, e *Env, typ *weaver.Type[In, Out], id weaver.TaskID) Out {
	t.Helper()
	out, err := ContinueErr(t, e, typ, id)
	if err != nil {
		t.Fatalf("weavertest: %v", err)
	}
	return out
}

// ContinueErr is Continue for tasks that are expected to fail, as RunErr is for Run. A task that does not exist is
// also an error.
func ContinueErr[In, Out any](t *testing.T, e *Env, typ *weaver.Type[In, Out], id weaver.TaskID) (Out, error) {
	t.Helper()
	got, err := typ.Get(t.Context(), e, id)
	if err != nil {
		return got.Output, err
	}
	if !got.State.Terminal() {
		e.requireHandler(t, typ.Name())
	}
	e.play(t, func(ctx context.Context, w *worker) {
		w.await(id, weaver.JobID{})
		if _, err = e.Wait(ctx, id); err == nil {
			got, err = typ.Get(ctx, e, id)
		}
		err = e.ended(ctx, id, err)
	})
	requireEnd(t, err)
	return got.Output, err
}

// RunJob submits a job, runs due tasks until all its tasks have ended, and returns its result. Time advances as
// needed. The test fails when the job does not succeed.
func RunJob(t *testing.T, e *Env, j *weaver.Job) weaver.JobResult {
	t.Helper()
	res, err := RunJobErr(t, e, j)
	if err != nil {
		t.Fatalf("weavertest: %v", err)
	}
	if res.State != task.JobSucceeded {
		t.Fatalf("weavertest: job %s (%s) is %s: %s", res.ID, res.Name, res.State, unmet(res))
	}
	return res
}

// RunJobErr is RunJob for jobs that are expected to fail. It returns the result of the handle's Wait for a job that
// ended in any state, or an error that is weaver.ErrBlocked with the result so far.
func RunJobErr(t *testing.T, e *Env, j *weaver.Job) (weaver.JobResult, error) {
	t.Helper()
	var h *weaver.JobHandle
	var res weaver.JobResult
	var err error
	e.play(t, func(ctx context.Context, w *worker) {
		if h, err = e.Submit(ctx, j); err == nil {
			w.await(weaver.TaskID{}, h.ID())
			res, err = h.Wait(ctx)
			err = e.jobEnded(ctx, h.ID(), err)
		}
	})
	requireEnd(t, err)
	return res, err
}

// Advance lets d pass, fires schedules and runs tasks that become due, up to and including that instant. A handler that is still
// running then gets Config.DrainTimeout to return, as when a worker stops. After that its context ends (cause
// weaver.ErrDraining), and it runs again in the next call, with its recorded steps.
func Advance(t *testing.T, e *Env, d time.Duration) {
	t.Helper()
	if d < 0 {
		t.Fatalf("weavertest: Advance(%s): time does not go back", d)
	}
	e.play(t, func(context.Context, *worker) {
		time.Sleep(d)
		synctest.Wait()
	})
}

// RunUntilIdle runs due tasks, including those that become due by that, until no task is due or running; see
// weaver.Engine.RunUntilIdle. Only handlers make time pass. Tasks that are due later (retries, sleeps, delays) and
// blocked ones are unchanged.
func RunUntilIdle(t *testing.T, e *Env) {
	t.Helper()
	var err error
	e.clock.bubble(t, func(t *testing.T) {
		var w *worker
		if w, err = newWorker(e.engineStore(), e.cfg); err == nil {
			err = w.untilIdle(t.Context())
		}
	})
	requireEnd(t, err)
	if err != nil {
		t.Fatalf("weavertest: the engine: %v", err)
	}
}

// play runs f concurrently with a worker, in fake time.
func (e *Env) play(t *testing.T, f func(ctx context.Context, w *worker)) {
	t.Helper()
	var err error
	e.clock.bubble(t, func(t *testing.T) {
		var w *worker
		if w, err = newWorker(e.engineStore(), e.cfg); err == nil {
			err = w.beside(t.Context(), func(ctx context.Context) { f(ctx, w) })
		}
	})
	if err != nil {
		t.Errorf("weavertest: the engine: %v", err)
	}
}

// handles reports whether the environment has a handler of a task type.
func (e *Env) handles(typeName string) bool {
	for _, h := range e.cfg.Handlers {
		if h.Name() == typeName {
			return true
		}
	}
	return false
}

// requireHandler fails the test when no task of a type can ever run.
func (e *Env) requireHandler(t *testing.T, typeName string) {
	t.Helper()
	if !e.handles(typeName) {
		t.Fatalf("weavertest: %s has no handler here, so its task would never run: give weavertest.New its Handler", typeName)
	}
}
