package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func submit(fx *fixture, j *weaver.Job) *weaver.JobHandle {
	fx.Helper()
	h, err := fx.client.Submit(fx.Context(), j)
	if err != nil {
		fx.Fatalf("Submit: %v", err)
	}
	return h
}

func jobResult(fx *fixture, h *weaver.JobHandle) weaver.JobResult {
	fx.Helper()
	res, err := h.Wait(fx.Context())
	if err != nil {
		fx.Fatalf("Wait: %v", err)
	}
	return res
}

// named returns a task of a result by its name in the job.
func named(fx *fixture, tasks []weaver.JobTask, name string) weaver.JobTask {
	fx.Helper()
	for _, t := range tasks {
		if t.Name == name {
			return t
		}
	}
	fx.Fatalf("%q is not among %+v", name, tasks)
	return weaver.JobTask{}
}

func TestJob(t *testing.T) {
	extract := weaver.Define[string, []int]("engine.job.extract.v1")
	sum := weaver.Define[weaver.None, int]("engine.job.sum.v1", weaver.MaxAttempts(3))
	report := weaver.Define[string, string]("engine.job.report.v1")
	errNo := errors.New("no")

	extractHandler := extract.Handler(func(context.Context, string) ([]int, error) { return []int{1, 2, 3}, nil })
	sumHandler := sum.Handler(func(ctx context.Context, _ weaver.None) (int, error) {
		rows, err := extract.Output(ctx, "extract")
		total := 0
		for _, n := range rows {
			total += n
		}
		return total, err
	})
	reportHandler := report.Handler(func(ctx context.Context, in string) (string, error) {
		a, errA := sum.Output(ctx, "sum")
		b, errB := sum.Output(ctx, "again")
		return fmt.Sprint(in, ": ", a+b, " of job ", weaver.Current(ctx).JobID), errors.Join(errA, errB)
	})
	diamond := func() *weaver.Job {
		j := weaver.NewJob("nightly")
		top := j.Add("extract", extract.With("day"))
		left := j.Add("sum", sum.With(weaver.None{}), weaver.Needs(top))
		right := j.Add("again", sum.With(weaver.None{}), weaver.Needs(top))
		j.Add("report", report.With("total"), weaver.Needs(left, right))
		return j
	}

	subtest(t, "carries its metadata", func(fx *fixture) {
		j := diamond()
		j.Metadata("file", "/etc/nightly.yaml")
		h := submit(fx, j)
		info, err := fx.client.Job(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "metadata", fmt.Sprint(info.Meta), "map[file:/etc/nightly.yaml]")
		_, err = fx.client.Job(fx.Context(), weaver.JobID{1})
		wantError(fx, err, weaver.ErrNotFound)

		j = diamond()
		j.Metadata("", "x")
		j.Metadata("k", "a\x00b")
		_, err = fx.client.Submit(fx.Context(), j)
		wantError(fx, err, weaver.ErrInvalidJob, "Metadata: the name is empty", `Metadata k: "a\x00b" contains a NUL byte`)
	})

	subtest(t, "runs a diamond in order and hands outputs on", func(fx *fixture) {
		h := submit(fx, diamond())
		st, err := fx.client.JobStatus(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "state", st.State, task.JobRunning)
		tasks, err := fx.client.JobTasks(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "tasks", len(tasks), 4)
		equal(fx, "the first", tasks[0].Node, "extract")
		equal(fx, "the last waits for", tasks[3].Waiting, task.WaitDeps)
		equal(fx, "its open needs", tasks[3].RemainingDeps, 2)

		fx.run(extractHandler, sumHandler, reportHandler)
		res := jobResult(fx, h)
		equal(fx, "state", res.State, task.JobSucceeded)
		equal(fx, "completed", len(res.Completed), 4)
		equal(fx, "failed and incomplete", len(res.Failed)+len(res.Incomplete), 0)
		got, err := report.Get(fx.Context(), fx.client, named(fx, res.Completed, "report").ID)
		fx.must(err)
		equal(fx, "the report", got.Output, fmt.Sprint("total: 12 of job ", h.ID()))
	})

	subtest(t, "a failure fails the dependents, and a retry revives them", func(fx *fixture) {
		broken := true
		fx.run(extractHandler, reportHandler, sum.Handler(func(ctx context.Context, _ weaver.None) (int, error) {
			if broken && weaver.Current(ctx).Node == "sum" {
				return 0, errNo
			}
			return 6, nil
		}))
		h := submit(fx, diamond())
		res := jobResult(fx, h)
		equal(fx, "state", res.State, task.JobFailed)
		failed := named(fx, res.Failed, "sum")
		equal(fx, "attempts of the failed one", failed.Attempts, 3)
		equal(fx, "its reason", failed.Reason, "no")
		lost := named(fx, res.Incomplete, "report")
		equal(fx, "kind of the one that needs it", lost.Kind, task.KindDependencyFailed)
		equal(fx, "its state", lost.State, weaver.StateCancelled)
		wantError(fx, errors.New(lost.Reason), nil, "sum")
		equal(fx, "completed beside it", len(res.Completed), 2)

		broken = false
		wantError(fx, fx.client.Retry(fx.Context(), lost.ID), weaver.ErrState, "sum")
		fx.must(fx.client.Retry(fx.Context(), failed.ID))
		res = jobResult(fx, h)
		equal(fx, "state after the retry", res.State, task.JobSucceeded)
		equal(fx, "completed", len(res.Completed), 4)
	})

	subtest(t, "a failure runs down a whole chain", func(fx *fixture) {
		fx.run(report.Handler(func(_ context.Context, in string) (string, error) { return "", weaver.Permanent(errNo) }))
		j := weaver.NewJob("chain")
		j.Add("0", report.With(""))
		for i := 1; i < 50; i++ {
			j.Add(fmt.Sprint(i), report.With(""), weaver.Needs(j.Nodes(fmt.Sprint(i-1))...))
		}
		res := jobResult(fx, submit(fx, j))
		equal(fx, "failed", len(res.Failed), 1)
		equal(fx, "lost with it", len(res.Incomplete), 49)
		for _, t := range res.Incomplete {
			equal(fx, "kind", t.Kind, task.KindDependencyFailed)
			equal(fx, "attempts", t.Attempts, 0)
		}
	})

	subtest(t, "Output reports what is wrong", func(fx *fixture) {
		j := weaver.NewJob("wrong")
		a := j.Add("extract", extract.With("day"))
		j.Add("other", extract.With("day"))
		j.Add("report", report.With(""), weaver.Needs(a))
		var ghost, wrong error
		fx.run(extractHandler, report.Handler(func(ctx context.Context, _ string) (string, error) {
			_, ghost = extract.Output(ctx, "other")
			_, wrong = sum.Output(ctx, "extract")
			return "", nil
		}))
		jobResult(fx, submit(fx, j))
		wantError(fx, ghost, weaver.ErrNoSuchNeed, `"other"`, "[extract]")
		wantError(fx, wrong, weaver.ErrWrongType, `"extract"`, extract.Name(), sum.Name())
		_, err := extract.Output(fx.Context(), "extract")
		wantError(fx, err, weaver.ErrNoTask)
	})

	subtest(t, "MaxAttemptsPerTask is the tighter limit", func(fx *fixture) {
		fx.run(report.Handler(func(context.Context, string) (string, error) { return "", errNo }),
			sum.Handler(func(context.Context, weaver.None) (int, error) { return 0, errNo }))
		j := weaver.NewJob("tight", weaver.Budget{MaxAttemptsPerTask: 4})
		j.Add("five of its own", report.With(""))
		j.Add("three of its own", sum.With(weaver.None{}))
		res := jobResult(fx, submit(fx, j))
		equal(fx, "attempts of the one with more", named(fx, res.Failed, "five of its own").Attempts, 4)
		equal(fx, "attempts of the one with less", named(fx, res.Failed, "three of its own").Attempts, 3)
	})

	subtest(t, "MaxDuration ends the remaining tasks", func(fx *fixture) {
		fx.run(report.Handler(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}))
		j := weaver.NewJob("short", weaver.Budget{MaxDuration: time.Minute})
		runs := j.Add("runs", report.With(""))
		j.Add("waits", report.With(""), weaver.Needs(runs))
		j.Add("own", report.With("", weaver.ExpireAfter(time.Second)))
		began := time.Now()
		h := submit(fx, j)
		st, err := fx.client.JobStatus(fx.Context(), h.ID())
		fx.must(err)
		near(fx, "the job's deadline", st.DeadlineAt.Sub(began), time.Minute)
		res := jobResult(fx, h)
		near(fx, "time", time.Since(began), time.Minute)
		equal(fx, "state", res.State, task.JobFailed)
		for _, name := range []string{"runs", "own"} {
			equal(fx, "kind of "+name, named(fx, res.Incomplete, name).Kind, task.KindDeadline)
		}
		equal(fx, "state of waits", named(fx, res.Incomplete, "waits").State, weaver.StateCancelled)
	})

	subtest(t, "CancelJob cancels waiting tasks, asks running ones to end, and counts both", func(fx *fixture) {
		g := newGate()
		fx.run(extractHandler, report.Handler(func(ctx context.Context, _ string) (string, error) { return "", g.pass(ctx) }))
		j := weaver.NewJob("stop me")
		done := j.Add("done", extract.With("day"))
		runs := j.Add("runs", report.With(""), weaver.Needs(done))
		j.Add("waits", report.With(""), weaver.Needs(runs))
		j.Add("later", report.With("", weaver.Delay(time.Hour)))
		h := submit(fx, j)
		<-g.in
		ack, err := fx.client.CancelJob(fx.Context(), h.ID(), weaver.By("ops"), weaver.Reason("wrong day"))
		fx.must(err)
		equal(fx, "acknowledgement", ack, ops.CancelAck{Cancelled: 2, Asked: 1, AlreadyDone: 1})
		res := jobResult(fx, h)
		equal(fx, "state", res.State, task.JobCancelled)
		equal(fx, "completed", len(res.Completed), 1)
		equal(fx, "cancelled", len(res.Incomplete), 3)
		wantError(fx, errors.New(named(fx, res.Incomplete, "later").Reason), nil, "ops", "wrong day")

		ack, err = fx.client.CancelJob(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "acknowledgement of a finished job", ack, ops.CancelAck{AlreadyDone: 4})
	})

	subtest(t, "a job whose tasks are blocked is blocked", func(fx *fixture) {
		fx.run(extractHandler, report.Handler(func(ctx context.Context, _ string) (string, error) {
			if _, ok, err := weaver.UnblockInput[bool](ctx); ok || err != nil {
				return "approved", err
			}
			return "", weaver.Blocked("needs an approval")
		}))
		j := weaver.NewJob("approve me")
		a := j.Add("approval", report.With(""))
		j.Add("next", extract.With(""), weaver.Needs(a))
		h := submit(fx, j)
		res, err := h.Wait(fx.Context())
		wantError(fx, err, weaver.ErrBlocked, h.ID().String(), "approve me", "approval", "needs an approval")
		equal(fx, "state", res.State, task.JobBlocked)
		through := make(chan weaver.JobResult, 1)
		go func() {
			res, err := h.Wait(fx.Context(), weaver.WaitThroughBlocked())
			if err != nil {
				fx.Error(err)
			}
			through <- res
		}()
		synctest.Wait()
		fx.must(fx.client.Unblock(fx.Context(), named(fx, res.Incomplete, "approval").ID, true))
		equal(fx, "state in the end", (<-through).State, task.JobSucceeded)
	})

	subtest(t, "jobs are listed and read", func(fx *fixture) {
		var hs []*weaver.JobHandle
		for i := range 5 {
			j := weaver.NewJob(fmt.Sprint("job ", i%2))
			j.Add("extract", extract.With("day"))
			hs = append(hs, submit(fx, j))
		}
		fx.idle(extractHandler)
		page, next, err := fx.client.Jobs(fx.Context(), store.JobFilter{Limit: 3})
		fx.must(err)
		equal(fx, "first page", len(page), 3)
		equal(fx, "newest first", page[0].ID, hs[4].ID())
		page, next, err = fx.client.Jobs(fx.Context(), store.JobFilter{Limit: 3, After: next})
		fx.must(err)
		equal(fx, "second page", len(page), 2)
		equal(fx, "cursor", next, "")
		page, _, err = fx.client.Jobs(fx.Context(), store.JobFilter{Name: "job 1", States: []task.JobState{task.JobSucceeded}})
		fx.must(err)
		equal(fx, "by name and state", len(page), 2)
		res, err := fx.client.JobResult(fx.Context(), hs[0].ID())
		fx.must(err)
		equal(fx, "name", res.Name, "job 0")
	})
}

func TestSubmitRefusesInvalidJobs(t *testing.T) {
	typ := weaver.Define[string, string]("invalid.jobs.run.v1")
	charge := weaver.Define[order, order]("invalid.jobs.charge.v1")
	for name, c := range map[string]struct {
		job      func() *weaver.Job
		sentinel error
		words    []string
	}{
		"an empty job": {
			func() *weaver.Job { return weaver.NewJob("nightly") },
			weaver.ErrInvalidJob,
			[]string{`"nightly"`, "the job is empty", "Add at least one task"},
		},
		"a cycle": {func() *weaver.Job {
			j := weaver.NewJob("nightly")
			j.Add("a", typ.With(""), weaver.Needs(j.Nodes("c")...))
			j.Add("b", typ.With(""), weaver.Needs(j.Nodes("a")...))
			j.Add("c", typ.With(""), weaver.Needs(j.Nodes("b")...))
			return j
		}, weaver.ErrInvalidJob, []string{"cycle", "a → c → b → a"}},
		"a task that needs itself": {func() *weaver.Job {
			j := weaver.NewJob("nightly")
			j.Add("a", typ.With(""), weaver.Needs(j.Nodes("a")...))
			return j
		}, weaver.ErrInvalidJob, []string{"a → a"}},
		"a negative total": {func() *weaver.Job {
			j := weaver.NewJob("nightly", weaver.Budget{MaxTotalAttempts: -1})
			j.Add("a", typ.With(""))
			return j
		}, weaver.ErrInvalidOption, []string{"budget", "negative"}},
		"a negative budget": {func() *weaver.Job {
			j := weaver.NewJob("nightly", weaver.Budget{MaxDuration: -1})
			j.Add("a", typ.With(""))
			return j
		}, weaver.ErrInvalidOption, []string{"budget", "negative"}},
		"everything at once": {func() *weaver.Job {
			j, other := weaver.NewJob(""), weaver.NewJob("other")
			j.Add("a", typ.With("", weaver.IdempotencyKey("k")))
			j.Add("a", charge.With(order{Total: -1}), weaver.Needs(other.Add("x", typ.With("")), nil))
			j.Add("b", typ.With(""), weaver.Needs(j.Nodes("ghost")...))
			return j
		}, weaver.ErrInvalidJob, []string{
			"NewJob: the name is empty", `two tasks are named "a"`, "IdempotencyKey", "Total is -1",
			`"a" needs "x", which belongs to another job`, `"a" needs a nil node`, `"b" needs "ghost", which is not in the job`, "nothing was stored",
		}},
	} {
		subtest(t, name, func(fx *fixture) {
			_, err := fx.client.Submit(fx.Context(), c.job())
			wantError(fx, err, weaver.ErrInvalidJob)
			wantError(fx, err, c.sentinel, c.words...)
			list, _, err := fx.client.List(fx.Context(), weaver.Filter{})
			fx.must(err)
			jobs, _, err := fx.client.Jobs(fx.Context(), store.JobFilter{})
			fx.must(err)
			equal(fx, "stored", len(list)+len(jobs), 0)
		})
	}
}
