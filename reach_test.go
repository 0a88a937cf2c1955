package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// A task known only by its ID is awaited with its type.
func TestTypeWait(t *testing.T) {
	typ := weaver.Define[int, string]("engine.reach.wait.v1", weaver.NoRetry())
	other := weaver.Define[int, string]("engine.reach.other.v1")
	handler := typ.Handler(func(_ context.Context, n int) (string, error) {
		switch n {
		case 0:
			return "", errors.New("zero")
		case 1:
			return "", weaver.Blocked("one")
		}
		return "many", nil
	})
	subtest(t, "returns the typed output, from any process", func(fx *fixture) {
		h := enqueue(fx, typ, 7, weaver.Delay(time.Hour))
		eng := fx.run(handler)
		for _, c := range []weaver.Caller{fx.client, eng} {
			out, err := typ.Wait(fx.Context(), c, h.ID())
			fx.must(err)
			equal(fx, "output", out, "many")
		}
	})
	subtest(t, "returns what Handle.Wait does", func(fx *fixture) {
		fx.run(handler)
		_, err := typ.Wait(fx.Context(), fx.client, enqueue(fx, typ, 0).ID())
		te, ok := errors.AsType[*weaver.TaskError](err)
		equal(fx, "it is a TaskError", ok && te.Message == "zero", true)
		stuck := enqueue(fx, typ, 1).ID()
		_, err = typ.Wait(fx.Context(), fx.client, stuck)
		wantError(fx, err, weaver.ErrBlocked, "one")
		ctx, cancel := context.WithTimeout(fx.Context(), time.Hour)
		defer cancel()
		_, err = typ.Wait(ctx, fx.client, stuck, weaver.WaitThroughBlocked())
		wantError(fx, err, context.DeadlineExceeded)
	})
	subtest(t, "refuses another type at once, and an id of nothing", func(fx *fixture) {
		h := enqueue(fx, other, 7, weaver.Delay(time.Hour))
		began := time.Now()
		_, err := typ.Wait(fx.Context(), fx.client, h.ID())
		wantError(fx, err, weaver.ErrWrongType, other.Name(), typ.Name())
		_, err = typ.Wait(fx.Context(), fx.client, weaver.TaskID{7})
		wantError(fx, err, weaver.ErrNotFound)
		equal(fx, "it waited", time.Since(began), 0)
	})
}

// sums is a job of two tasks, of which the second one doubles the first.
func sums(fx *fixture) (job *weaver.Job, double *weaver.Type[weaver.None, int], handlers []weaver.Handler) {
	fx.Helper()
	load := weaver.Define[int, int]("engine.reach.load.v1", weaver.NoRetry())
	double = weaver.Define[weaver.None, int]("engine.reach.double.v1")
	job = weaver.NewJob("sums")
	first := job.Add("load", load.With(21))
	job.Add("double", double.With(weaver.None{}), weaver.Needs(first))
	return job, double, []weaver.Handler{
		load.Handler(func(_ context.Context, n int) (int, error) { return n, nil }),
		double.Handler(func(ctx context.Context, _ weaver.None) (int, error) {
			n, err := load.Output(ctx, "load")
			return 2 * n, err
		}),
	}
}

func TestJobOutput(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		job, double, handlers := sums(fx)
		h, err := fx.client.Submit(fx.Context(), job)
		fx.must(err)
		_, err = double.JobOutput(fx.Context(), fx.client, h.ID(), "double")
		wantError(fx, err, weaver.ErrNotSucceeded, `"double"`, "pending")
		fx.idle(handlers...)
		out, err := double.JobOutput(fx.Context(), fx.client, h.ID(), "double")
		fx.must(err)
		equal(fx, "output", out, 42)
		_, err = double.JobOutput(fx.Context(), fx.client, h.ID(), "load")
		wantError(fx, err, weaver.ErrWrongType, `"load"`, double.Name())
		_, err = double.JobOutput(fx.Context(), fx.client, h.ID(), "dubble")
		wantError(fx, err, weaver.ErrNoSuchNode, `"dubble"`, h.ID().String())
		_, err = double.JobOutput(fx.Context(), fx.client, weaver.JobID{7}, "double")
		wantError(fx, err, weaver.ErrNotFound)
	})
}

func TestRunJob(t *testing.T) {
	subtest(t, "runs the engine until the job has ended", func(fx *fixture) {
		job, double, handlers := sums(fx)
		eng := fx.newEngine(fx.store, weaver.Config{Handlers: handlers})
		res, err := eng.RunJob(fx.Context(), job)
		fx.must(err)
		equal(fx, "state", res.State, task.JobSucceeded)
		out, err := double.JobOutput(fx.Context(), eng, res.ID, "double")
		fx.must(err)
		equal(fx, "output", out, 42)
		fx.idle(handlers...) // the engine has stopped: another one may run
		res, err = eng.RunJob(fx.Context(), job)
		fx.must(err)
		equal(fx, "the second job's state", res.State, task.JobSucceeded)
	})
	subtest(t, "in an engine that runs, it submits and waits", func(fx *fixture) {
		job, _, handlers := sums(fx)
		eng := fx.run(handlers...)
		synctest.Wait()
		res, err := eng.RunJob(fx.Context(), job)
		fx.must(err)
		equal(fx, "state", res.State, task.JobSucceeded)
		select {
		case <-eng.ended:
			fx.Error("the engine that ran before was stopped")
		default:
		}
	})
	subtest(t, "names the tasks that are left to others", func(fx *fixture) {
		here, there := weaver.Define[int, int]("engine.reach.here.v1"), weaver.Define[int, int]("engine.reach.there.v1")
		run := func(_ context.Context, n int) (int, error) { return n, nil }
		eng := fx.newEngine(fx.store, weaver.Config{Handlers: []weaver.Handler{here.Handler(run)}, Queues: map[string]int{"default": 1}})
		fx.runConfig(fx.store, weaver.Config{Handlers: []weaver.Handler{here.Handler(run), there.Handler(run)}})
		j := weaver.NewJob("two places")
		j.Add("mine", here.With(1))
		j.Add("elsewhere", here.With(1, weaver.Queue("elsewhere")))
		j.Add("unknown", there.With(1))
		_, err := eng.RunJob(fx.Context(), j)
		fx.must(err)
		for message, want := range map[string]string{
			"this engine does not handle a task of the job, which waits for another worker: add its type to Config.Handlers":     "unknown",
			"this engine does not serve the queue of a task of the job, which waits for another worker: add it to Config.Queues": "elsewhere",
		} {
			if lines := fx.log.lines(fx, message); len(lines) != 1 || lines[0]["task"] != want || lines[0]["level"] != "WARN" {
				fx.Errorf("the log has %v, want one warning about %q", lines, want)
			}
		}
	})
	subtest(t, "ends when the job waits for a person, and when ctx ends", func(fx *fixture) {
		typ := weaver.Define[int, int]("engine.reach.stuck.v1")
		handler := typ.Handler(func(ctx context.Context, n int) (int, error) {
			if n == 1 {
				return 0, weaver.Blocked("who pays?")
			}
			return 0, weaver.Sleep(ctx, "nap", 24*time.Hour)
		})
		run := func(n int) (weaver.JobResult, error) {
			job := weaver.NewJob("stuck")
			job.Add("only", typ.With(n))
			ctx, cancel := context.WithTimeout(fx.Context(), time.Hour)
			defer cancel()
			return fx.newEngine(fx.store, weaver.Config{Handlers: []weaver.Handler{handler}}).RunJob(ctx, job)
		}
		res, err := run(1)
		wantError(fx, err, weaver.ErrBlocked, "who pays?")
		equal(fx, "tasks left", len(res.Incomplete), 1)
		res, err = run(2)
		wantError(fx, err, context.DeadlineExceeded)
		fx.must(fx.client.Cancel(fx.Context(), res.Incomplete[0].ID)) // the job still exists and continues
	})
	subtest(t, "an invalid job and a store without a schema run nothing", func(fx *fixture) {
		eng := fx.newEngine(fx.store, weaver.Config{})
		_, err := eng.RunJob(fx.Context(), weaver.NewJob("empty"))
		wantError(fx, err, weaver.ErrInvalidJob)
	})
}

func TestRetryJob(t *testing.T) {
	subtest(t, "retries what failed or was cancelled, needs first", func(fx *fixture) {
		var broken atomic.Bool
		broken.Store(true)
		typ := weaver.Define[string, string]("engine.reach.fragile.v1", weaver.NoRetry())
		var ran atomic.Int32
		handler := typ.Handler(func(_ context.Context, name string) (string, error) {
			ran.Add(1)
			if broken.Load() && (name == "a" || name == "c") {
				return "", errors.New("broken")
			}
			return name, nil
		})
		job := weaver.NewJob("fragile")
		job.Add("last", typ.With("last"), weaver.Needs(job.Nodes("a", "c", "fine")...)) // before its needs
		for _, name := range []string{"a", "c", "fine"} {
			job.Add(name, typ.With(name))
		}
		h, err := fx.client.Submit(fx.Context(), job)
		fx.must(err)
		fx.idle(handler)
		res, err := fx.client.JobResult(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "state", res.State, task.JobFailed)
		broken.Store(false)
		ran.Store(0)
		ack, err := fx.client.RetryJob(fx.Context(), h.ID(), weaver.By("ops"), weaver.Reason("mended"))
		fx.must(err)
		equal(fx, "retried", ack.Retried, 2)
		fx.idle(handler)
		res, err = h.Wait(fx.Context())
		fx.must(err)
		equal(fx, "state", res.State, task.JobSucceeded)
		equal(fx, "what ran again", ran.Load(), 3)
		equal(fx, "the audit of a task", fx.history(res.Completed[0].ID).Audit == nil, true) // last: revived with its needs
		_, err = fx.client.RetryJob(fx.Context(), h.ID())
		wantError(fx, err, weaver.ErrState, "no task of job", "failed or was cancelled")
	})
	subtest(t, "revives a cancelled job, whatever the order of its tasks", func(fx *fixture) {
		typ := weaver.Define[string, string]("engine.reach.chain.v1")
		handler := typ.Handler(func(_ context.Context, name string) (string, error) { return name, nil })
		job := weaver.NewJob("chain")
		job.Add("c", typ.With("c"), weaver.Needs(job.Nodes("b")...))
		job.Add("b", typ.With("b"), weaver.Needs(job.Nodes("a")...))
		job.Add("a", typ.With("a"))
		h, err := fx.client.Submit(fx.Context(), job)
		fx.must(err)
		_, err = fx.client.CancelJob(fx.Context(), h.ID())
		fx.must(err)
		ack, err := fx.client.RetryJob(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "retried", ack.Retried, 3)
		fx.idle(handler)
		res, err := h.Wait(fx.Context())
		fx.must(err)
		equal(fx, "state", res.State, task.JobSucceeded)
	})
	inBubble(t, func(fx *fixture) {
		_, err := fx.client.RetryJob(fx.Context(), weaver.JobID{7})
		wantError(fx, err, weaver.ErrNotFound)
	})
}

func TestIsPermanent(t *testing.T) {
	plain := errors.New("no")
	for want, errs := range map[bool][]error{
		true:  {weaver.Permanent(plain), errors.Join(plain, weaver.Permanent(plain))},
		false: {nil, plain, weaver.RetryAfter(time.Second, plain), weaver.Blocked("who?")},
	} {
		for _, err := range errs {
			equal(t, "IsPermanent of a "+errorText(err), weaver.IsPermanent(err), want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return "nil"
	}
	return err.Error()
}

func TestLastAttempt(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		typ := weaver.Define[int, int]("engine.reach.last.v1", weaver.MaxAttempts(3))
		var last []bool
		fx.run(typ.Handler(func(ctx context.Context, n int) (int, error) {
			last = append(last, weaver.Current(ctx).LastAttempt)
			if len(last) == 2 {
				return 0, weaver.Sleep(ctx, "nap", time.Second) // costs no attempt
			}
			return 0, errors.New("again")
		}))
		h := enqueue(fx, typ, 1)
		fails(fx, h)
		if !slices.Equal(last, []bool{false, false, false, true}) {
			fx.Errorf("LastAttempt was %v", last)
		}
		equal(fx, "state", fx.get(h.ID()).State, task.Failed)
	})
}

// Final predicts the end of the task before the handler returns.
func TestFinal(t *testing.T) {
	typ := weaver.Define[string, string]("engine.reach.final.v1", weaver.MaxAttempts(2), weaver.Backoff(time.Second))
	subtest(t, "says whether the task ends with an error", func(fx *fixture) {
		var mu sync.Mutex
		said := make(map[string][]bool)
		fx.run(typ.Handler(func(ctx context.Context, how string) (string, error) {
			var err error
			switch how {
			case "plain":
				err = errors.New("broken")
			case "permanent":
				err = fmt.Errorf("charge: %w", weaver.Permanent(errors.New("refused")))
			case "blocked":
				err = weaver.Blocked("who pays?")
			case "later":
				err = weaver.RetryAfter(time.Second, errors.New("not yet"))
			case "sleep":
				err = weaver.Sleep(ctx, "nap", time.Minute)
			case "cancel", "deadline":
				<-ctx.Done()
				err = context.Cause(ctx)
			}
			mu.Lock()
			defer mu.Unlock()
			said[how] = append(said[how], weaver.Final(ctx, err))
			return "", err
		}))
		ids := make(map[string]weaver.TaskID)
		for _, how := range []string{"plain", "permanent", "blocked", "later", "sleep", "cancel"} {
			ids[how] = enqueue(fx, typ, how).ID()
		}
		enqueue(fx, typ, "deadline", weaver.ExpireAfter(time.Minute))
		time.Sleep(time.Second)
		fx.must(fx.client.Cancel(fx.Context(), ids["cancel"]))
		time.Sleep(10 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for how, want := range map[string][]bool{
			"plain": {false, true}, "permanent": {true}, "blocked": {false}, "later": {false, true}, "sleep": {false, false}, "cancel": {true}, "deadline": {true},
		} {
			equal(fx, how, fmt.Sprint(said[how]), fmt.Sprint(want))
		}
	})
}
