package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

func submit(w *world, j *weaver.Job) *weaver.JobHandle {
	w.Helper()
	h, err := w.client.Submit(w.Context(), j)
	if err != nil {
		w.Fatalf("Submit: %v", err)
	}
	return h
}

func jobResult(w *world, h *weaver.JobHandle) weaver.JobResult {
	w.Helper()
	res, err := h.Wait(w.Context())
	if err != nil {
		w.Fatalf("Wait: %v", err)
	}
	return res
}

// named returns a task of a result by its name in the job.
func named(w *world, tasks []weaver.JobTask, name string) weaver.JobTask {
	w.Helper()
	for _, t := range tasks {
		if t.Name == name {
			return t
		}
	}
	w.Fatalf("%q is not among %+v", name, tasks)
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

	scene(t, "carries its metadata", func(w *world) {
		j := diamond()
		j.Metadata("file", "/etc/nightly.yaml")
		h := submit(w, j)
		info, err := w.client.Job(w.Context(), h.ID())
		w.must(err)
		equal(w, "metadata", fmt.Sprint(info.Meta), "map[file:/etc/nightly.yaml]")
		_, err = w.client.Job(w.Context(), weaver.JobID{1})
		wantError(w, err, weaver.ErrNotFound)

		j = diamond()
		j.Metadata("", "x")
		j.Metadata("k", "a\x00b")
		_, err = w.client.Submit(w.Context(), j)
		wantError(w, err, weaver.ErrInvalidJob, "Metadata: the name is empty", `Metadata k: "a\x00b" contains a NUL byte`)
	})

	scene(t, "runs a diamond in order and hands outputs on", func(w *world) {
		h := submit(w, diamond())
		st, err := w.client.JobStatus(w.Context(), h.ID())
		w.must(err)
		equal(w, "state", st.State, weaver.JobRunning)
		equal(w, "tasks", len(st.Tasks), 4)
		equal(w, "the first", st.Tasks[0].Node, "extract")
		equal(w, "the last waits for", st.Tasks[3].Waiting, task.WaitDeps)
		equal(w, "its open needs", st.Tasks[3].RemainingDeps, 2)

		w.run(extractHandler, sumHandler, reportHandler)
		res := jobResult(w, h)
		equal(w, "state", res.State, weaver.JobSucceeded)
		equal(w, "completed", len(res.Completed), 4)
		equal(w, "failed and incomplete", len(res.Failed)+len(res.Incomplete), 0)
		got, err := report.Get(w.Context(), w.client, named(w, res.Completed, "report").ID)
		w.must(err)
		equal(w, "the report", got.Output, fmt.Sprint("total: 12 of job ", h.ID()))
	})

	scene(t, "a failure passes on, and a retry revives what it took with it", func(w *world) {
		broken := true
		w.run(extractHandler, reportHandler, sum.Handler(func(ctx context.Context, _ weaver.None) (int, error) {
			if broken && weaver.Current(ctx).Node == "sum" {
				return 0, errNo
			}
			return 6, nil
		}))
		h := submit(w, diamond())
		res := jobResult(w, h)
		equal(w, "state", res.State, weaver.JobFailed)
		failed := named(w, res.Failed, "sum")
		equal(w, "attempts of the failed one", failed.Attempts, 3)
		equal(w, "its reason", failed.Reason, "no")
		lost := named(w, res.Incomplete, "report")
		equal(w, "kind of the one that needs it", lost.Kind, task.KindDependencyFailed)
		equal(w, "its state", lost.State, weaver.StateCancelled)
		wantError(w, errors.New(lost.Reason), nil, "sum")
		equal(w, "completed beside it", len(res.Completed), 2)

		broken = false
		wantError(w, w.client.Retry(w.Context(), lost.ID), weaver.ErrState, "sum")
		w.must(w.client.Retry(w.Context(), failed.ID))
		res = jobResult(w, h)
		equal(w, "state after the retry", res.State, weaver.JobSucceeded)
		equal(w, "completed", len(res.Completed), 4)
	})

	scene(t, "a failure runs down a whole chain", func(w *world) {
		w.run(report.Handler(func(_ context.Context, in string) (string, error) { return "", weaver.Permanent(errNo) }))
		j := weaver.NewJob("chain")
		j.Add("0", report.With(""))
		for i := 1; i < 50; i++ {
			j.Add(fmt.Sprint(i), report.With(""), weaver.NeedsNamed(fmt.Sprint(i-1)))
		}
		res := jobResult(w, submit(w, j))
		equal(w, "failed", len(res.Failed), 1)
		equal(w, "lost with it", len(res.Incomplete), 49)
		for _, t := range res.Incomplete {
			equal(w, "kind", t.Kind, task.KindDependencyFailed)
			equal(w, "attempts", t.Attempts, 0)
		}
	})

	scene(t, "Output tells what is wrong", func(w *world) {
		j := weaver.NewJob("wrong")
		a := j.Add("extract", extract.With("day"))
		j.Add("other", extract.With("day"))
		j.Add("report", report.With(""), weaver.Needs(a))
		var ghost, wrong error
		w.run(extractHandler, report.Handler(func(ctx context.Context, _ string) (string, error) {
			_, ghost = extract.Output(ctx, "other")
			_, wrong = sum.Output(ctx, "extract")
			return "", nil
		}))
		jobResult(w, submit(w, j))
		wantError(w, ghost, weaver.ErrNoSuchNeed, `"other"`, "[extract]")
		wantError(w, wrong, weaver.ErrWrongType, `"extract"`, extract.Name(), sum.Name())
		_, err := extract.Output(w.Context(), "extract")
		wantError(w, err, weaver.ErrNoTask)
	})

	scene(t, "MaxAttemptsPerTask is the tighter limit", func(w *world) {
		w.run(report.Handler(func(context.Context, string) (string, error) { return "", errNo }),
			sum.Handler(func(context.Context, weaver.None) (int, error) { return 0, errNo }))
		j := weaver.NewJob("tight", weaver.Budget{MaxAttemptsPerTask: 4})
		j.Add("five of its own", report.With(""))
		j.Add("three of its own", sum.With(weaver.None{}))
		res := jobResult(w, submit(w, j))
		equal(w, "attempts of the one with more", named(w, res.Failed, "five of its own").Attempts, 4)
		equal(w, "attempts of the one with less", named(w, res.Failed, "three of its own").Attempts, 3)
	})

	scene(t, "MaxDuration ends what is left", func(w *world) {
		w.run(report.Handler(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}))
		j := weaver.NewJob("short", weaver.Budget{MaxDuration: time.Minute})
		runs := j.Add("runs", report.With(""))
		j.Add("waits", report.With(""), weaver.Needs(runs))
		j.Add("own", report.With("", weaver.ExpireAfter(time.Second)))
		began := time.Now()
		h := submit(w, j)
		st, err := w.client.JobStatus(w.Context(), h.ID())
		w.must(err)
		near(w, "the job's deadline", st.DeadlineAt.Sub(began), time.Minute)
		res := jobResult(w, h)
		near(w, "time", time.Since(began), time.Minute)
		equal(w, "state", res.State, weaver.JobFailed)
		for _, name := range []string{"runs", "own"} {
			equal(w, "kind of "+name, named(w, res.Incomplete, name).Kind, task.KindDeadline)
		}
		equal(w, "state of waits", named(w, res.Incomplete, "waits").State, weaver.StateCancelled)
	})

	scene(t, "CancelJob cancels, asks, and counts", func(w *world) {
		g := newGate()
		w.run(extractHandler, report.Handler(func(ctx context.Context, _ string) (string, error) { return "", g.pass(ctx) }))
		j := weaver.NewJob("stop me")
		done := j.Add("done", extract.With("day"))
		runs := j.Add("runs", report.With(""), weaver.Needs(done))
		j.Add("waits", report.With(""), weaver.Needs(runs))
		j.Add("later", report.With("", weaver.Delay(time.Hour)))
		h := submit(w, j)
		<-g.in
		ack, err := w.client.CancelJob(w.Context(), h.ID(), weaver.By("ops"), weaver.Reason("wrong day"))
		w.must(err)
		equal(w, "acknowledgement", ack, weaver.CancelAck{Cancelled: 2, Asked: 1, AlreadyDone: 1})
		res := jobResult(w, h)
		equal(w, "state", res.State, weaver.JobCancelled)
		equal(w, "completed", len(res.Completed), 1)
		equal(w, "cancelled", len(res.Incomplete), 3)
		wantError(w, errors.New(named(w, res.Incomplete, "later").Reason), nil, "ops", "wrong day")

		ack, err = w.client.CancelJob(w.Context(), h.ID())
		w.must(err)
		equal(w, "acknowledgement of a finished job", ack, weaver.CancelAck{AlreadyDone: 4})
	})

	scene(t, "a job whose tasks wait for a person is blocked", func(w *world) {
		w.run(extractHandler, report.Handler(func(ctx context.Context, _ string) (string, error) {
			if _, ok, err := weaver.UnblockInput[bool](ctx); ok || err != nil {
				return "approved", err
			}
			return "", weaver.Blocked("needs an approval")
		}))
		j := weaver.NewJob("approve me")
		a := j.Add("approval", report.With(""))
		j.Add("next", extract.With(""), weaver.Needs(a))
		h := submit(w, j)
		res, err := h.Wait(w.Context())
		wantError(w, err, weaver.ErrBlocked, h.ID().String(), "approve me", "approval", "needs an approval")
		equal(w, "state", res.State, weaver.JobBlocked)
		through := make(chan weaver.JobResult, 1)
		go func() {
			res, err := h.Wait(w.Context(), weaver.WaitThroughBlocked())
			if err != nil {
				w.Error(err)
			}
			through <- res
		}()
		synctest.Wait()
		w.must(w.client.Unblock(w.Context(), named(w, res.Incomplete, "approval").ID, true))
		equal(w, "state in the end", (<-through).State, weaver.JobSucceeded)
	})

	scene(t, "jobs are listed and read", func(w *world) {
		var hs []*weaver.JobHandle
		for i := range 5 {
			j := weaver.NewJob(fmt.Sprint("job ", i%2))
			j.Add("extract", extract.With("day"))
			hs = append(hs, submit(w, j))
		}
		w.idle(extractHandler)
		page, next, err := w.client.Jobs(w.Context(), weaver.JobFilter{Limit: 3})
		w.must(err)
		equal(w, "first page", len(page), 3)
		equal(w, "newest first", page[0].ID, hs[4].ID())
		page, next, err = w.client.Jobs(w.Context(), weaver.JobFilter{Limit: 3, After: next})
		w.must(err)
		equal(w, "second page", len(page), 2)
		equal(w, "cursor", next, "")
		page, _, err = w.client.Jobs(w.Context(), weaver.JobFilter{Name: "job 1", States: []weaver.JobState{weaver.JobSucceeded}})
		w.must(err)
		equal(w, "by name and state", len(page), 2)
		res, err := w.client.JobResult(w.Context(), hs[0].ID())
		w.must(err)
		equal(w, "name", res.Name, "job 0")
	})
}
