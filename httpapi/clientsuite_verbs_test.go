package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestClientsVerbs(t *testing.T) {
	t.Parallel()
	onClients(t, func(s *suite) {
		ctx := s.Context()
		done, bad, ask, later := s.charge("done"), s.charge("bad"), s.charge("ask"), s.charge("later", weaver.Delay(time.Hour))
		s.run()
		state := func(id weaver.TaskID, want weaver.State) {
			s.Helper()
			if got := s.stateOf(id); got != want {
				s.Errorf("the task is %s, want %s", got, want)
			}
		}
		s.is(s.c.Cancel(ctx, done.ID()), weaver.ErrState, done.ID().String())
		s.is(s.c.Retry(ctx, done.ID()), weaver.ErrState)
		s.is(s.c.Retry(ctx, weaver.TaskID{7}), weaver.ErrNotFound)
		s.is(s.c.Retry(ctx, bad.ID(), weaver.Force()), weaver.ErrInvalidOption, "Force")
		s.is(s.c.Retry(ctx, bad.ID(), nil), weaver.ErrInvalidOption)
		s.is(s.c.Retry(ctx, bad.ID(), weaver.AddAttempts(0)), weaver.ErrInvalidOption, "AddAttempts(0)")
		s.is(s.c.Retry(ctx, bad.ID(), weaver.SeenEpoch(99)), store.ErrChanged)
		s.is(s.c.Retry(ctx, bad.ID(), weaver.SeenEpoch(s.epoch(bad.ID()), time.Now().Add(time.Hour))), store.ErrChanged)
		seen, err := s.c.Get(ctx, bad.ID())
		s.no(err)
		s.no(s.c.Retry(ctx, bad.ID(), weaver.SeenEpoch(seen.Epoch, seen.UpdatedAt), weaver.AddAttempts(3), weaver.Reason("the card works")))
		if got, err := s.c.Get(ctx, bad.ID()); err != nil || got.State != weaver.StateReady || got.MaxAttempts != 4 {
			s.Errorf("after a retry: %s, %d attempts, %v", got.State, got.MaxAttempts, err)
		}
		h, err := s.c.History(ctx, bad.ID())
		s.no(err)
		if a := h.Audit; len(a) != 1 || !strings.HasSuffix(a[0].Reason, "the card works") || len(h.Attempts) != 1 || h.Task.ID != bad.ID() {
			s.Errorf("the history: %+v", h)
		}

		s.no(s.c.PauseTask(ctx, bad.ID()))
		state(bad.ID(), weaver.StatePending)
		s.no(s.c.ResumeTask(ctx, bad.ID()))
		state(bad.ID(), weaver.StateReady)
		s.no(s.c.Cancel(ctx, bad.ID(), weaver.Force(), weaver.SeenEpoch(s.epoch(bad.ID()))))
		state(bad.ID(), weaver.StateCancelled)
		s.is(s.c.Unblock(ctx, bad.ID(), nil), weaver.ErrState)
		s.is(s.c.Unblock(ctx, ask.ID(), func() {}), weaver.ErrInvalidInput)
		s.no(s.c.Unblock(ctx, ask.ID(), map[string]bool{"yes": true}))
		if got, err := s.c.Get(ctx, ask.ID()); err != nil || string(got.UnblockInput) != `{"yes":true}` {
			s.Errorf("unblocked with %s, %v", got.UnblockInput, err)
		}
		when := time.Now().Add(3 * time.Hour).Truncate(time.Microsecond)
		s.no(s.c.Reschedule(ctx, later.ID(), when))
		if got, err := s.c.Get(ctx, later.ID()); err != nil || !got.ReadyAt.Equal(when) {
			s.Errorf("due at %s, %v; want %s", got.ReadyAt, err, when)
		}
		s.is(s.c.Reschedule(ctx, later.ID(), time.Time{}), weaver.ErrInvalidOption)
		s.no(s.c.RunNow(ctx, later.ID()))
		state(later.ID(), weaver.StateReady)
		s.is(s.c.RepairInput(ctx, later.ID(), chargeIn{Order: "x"}), weaver.ErrState)

		s.is(s.c.PauseQueue(ctx, ""), weaver.ErrInvalidOption)
		s.no(s.c.PauseQueue(ctx, "billing"))
		s.run()
		state(later.ID(), weaver.StatePending)
		s.no(s.c.ResumeQueue(ctx, "billing"))

		again, err := s.c.Rerun(ctx, done.ID(), weaver.RerunInput(chargeIn{Order: "anew"}),
			weaver.RerunWith(weaver.IdempotencyKey("again"), weaver.Priority(5), weaver.MaxAttempts(5), weaver.Queue("default"), weaver.Label("team", "pay")))
		s.no(err)
		got, err := charge.Get(ctx, s.c, again.ID)
		s.no(err)
		if again.Type != charge.Name() || got.RerunOf != done.ID() || got.Input.Order != "anew" || got.Queue != "default" || got.MaxAttempts != 5 || got.Labels["team"] != "pay" {
			s.Errorf("rerun as %+v", got)
		}
		if same, err := s.c.Rerun(ctx, done.ID(), weaver.RerunWith(weaver.IdempotencyKey("again"))); err != nil || same.ID != again.ID || same.Disposition != store.DispositionExisting {
			s.Errorf("rerun again: %+v, %v", same, err)
		}
		_, err = s.c.RerunFrom(ctx, done.ID(), "pai")
		s.is(err, weaver.ErrNoSuchStep)
		_, err = s.c.RerunFrom(ctx, done.ID(), "pay")
		s.no(err)
		_, err = s.c.Rerun(ctx, done.ID(), weaver.RerunWith(weaver.Priority(0)))
		s.is(err, weaver.ErrInvalidOption)

		s.is(s.c.Delete(ctx, later.ID()), weaver.ErrState)
		s.no(s.c.Delete(ctx, done.ID(), weaver.Reason("old")))
		_, err = s.c.Get(ctx, done.ID())
		s.is(err, weaver.ErrNotFound, done.ID().String())
	})
}

func (s *server) epoch(id weaver.TaskID) int64 {
	s.Helper()
	t, err := s.client.Get(s.Context(), id)
	s.no(err)
	return t.Epoch
}

func TestClientsSignal(t *testing.T) {
	t.Parallel()
	approved := weaver.DefineSignal[bool]("approved")
	onClients(t, func(s *suite) {
		ctx := s.Context()
		h := s.charge("x")
		s.no(approved.Send(ctx, s.c, h.ID(), "click-1", true))
		s.no(approved.Send(ctx, s.c, h.ID(), "click-1", true))
		s.is(approved.Send(ctx, s.c, h.ID(), "click-1", false), weaver.ErrConflict)
		s.is(approved.Send(ctx, s.c, h.ID(), "", true), weaver.ErrInvalidOption)
		s.is(s.c.SendSignal(ctx, h.ID(), "approved", "k", nil), weaver.ErrInvalidInput)
		got, err := s.c.History(ctx, h.ID())
		s.no(err)
		if len(got.Signals) != 1 || string(got.Signals[0].Payload) != "true" {
			s.Errorf("the signals are %+v", got.Signals)
		}
	})
}

func TestClientsJobs(t *testing.T) {
	t.Parallel()
	onClients(t, func(s *suite) {
		ctx := s.Context()
		job := func(order string) *weaver.Job {
			j := weaver.NewJob("nightly", weaver.Budget{MaxTotalAttempts: 9})
			j.Metadata("tenant", "t1")
			a := j.Add("a", charge.With(chargeIn{Order: "first"}))
			b := j.Add("b", charge.With(chargeIn{Order: order}), weaver.Needs(a))
			j.Add("alarm", charge.With(chargeIn{Order: "alarm"}), weaver.IfFailed(b))
			return j
		}
		h, err := s.c.Submit(ctx, job("fine"), weaver.IdempotencyKey("monday"))
		s.no(err)
		same, err := s.c.Submit(ctx, job("fine"), weaver.IdempotencyKey("monday"))
		s.no(err)
		if h.Disposition() != store.DispositionCreated || same.ID() != h.ID() || same.Disposition() != store.DispositionExisting {
			s.Errorf("submitted as %s, again as %s", h.Disposition(), same.Disposition())
		}
		bad, err := s.c.Submit(ctx, job("bad"))
		s.no(err)
		ask, err := s.c.Submit(ctx, job("ask"))
		s.no(err)
		wrong := job("x")
		wrong.Add("a", charge.With(chargeIn{}, weaver.Priority(0)))
		_, err = s.c.Submit(ctx, wrong, nil)
		s.is(err, weaver.ErrInvalidJob, `"a"`, "Priority(0)", "an option is nil")
		_, err = s.c.Submit(ctx, nil)
		s.is(err, weaver.ErrInvalidJob)

		began := time.Now()
		ran := s.later(100*time.Second, func() { s.run() })
		res, err := h.Wait(ctx)
		ran()
		s.no(err)
		if took := time.Since(began); res.State != task.JobSucceeded || len(res.Completed) != 2 || len(res.Incomplete) != 1 || took < 100*time.Second || took > 102*time.Second {
			s.Errorf("the result after %s: %+v", took, res)
		}
		out, err := charge.JobOutput(ctx, s.c, h.ID(), "b")
		s.no(err)
		if out.Receipt != "r-fine" {
			s.Errorf("the output is %+v", out)
		}
		_, err = charge.JobOutput(ctx, s.c, h.ID(), "c")
		s.is(err, weaver.ErrNoSuchNode)
		if res, err = bad.Wait(ctx); err != nil || res.State != task.JobFailed || len(res.Failed) != 1 || res.Failed[0].Name != "b" || res.Failed[0].Reason != "the card was refused" {
			s.Errorf("the failed job: %+v, %v", res, err)
		}
		_, err = ask.Wait(ctx)
		s.is(err, weaver.ErrBlocked, "b: look at it")

		tasks, err := s.c.JobTasks(ctx, bad.ID())
		s.no(err)
		if len(tasks) != 3 || tasks[0].Node != "a" || tasks[2].Node != "alarm" || tasks[1].State != weaver.StateFailed {
			s.Errorf("the tasks are %+v", tasks)
		}
		st, err := s.c.JobStatus(ctx, ask.ID())
		s.no(err)
		info, err := s.c.Job(ctx, ask.ID())
		s.no(err)
		if st.States[weaver.StateBlocked] != 1 || st.Bottleneck == "" || info.Meta["tenant"] != "t1" || info.Budget.MaxTotalAttempts != 9 {
			s.Errorf("the status is %+v, the job %+v", st, info)
		}
		list, _, err := s.c.Jobs(ctx, store.JobFilter{States: []task.JobState{task.JobFailed}, Name: "nightly"})
		s.no(err)
		if len(list) != 1 || list[0].ID != bad.ID() {
			s.Errorf("the failed jobs are %+v", list)
		}
		_, _, err = s.c.Jobs(ctx, store.JobFilter{States: []task.JobState{"odd"}})
		s.is(err, weaver.ErrInvalidOption, "odd")
		_, err = s.c.Job(ctx, weaver.JobID{7})
		s.is(err, weaver.ErrNotFound)

		retried, err := s.c.RetryJob(ctx, bad.ID(), weaver.AddAttempts(3), weaver.Reason("again"))
		s.no(err)
		cancelled, err := s.c.CancelJob(ctx, ask.ID())
		s.no(err)
		if retried.Retried != 1 || cancelled.Cancelled != 2 || cancelled.AlreadyDone != 1 {
			s.Errorf("retried %+v, cancelled %+v", retried, cancelled)
		}
		_, err = s.c.CancelJob(ctx, weaver.JobID{7})
		s.is(err, weaver.ErrNotFound)
		_, err = s.c.CancelJob(ctx, ask.ID(), weaver.Force())
		s.is(err, weaver.ErrInvalidOption)
	})
}

// Reads of the whole server return the store's contents.
func TestClientsOverview(t *testing.T) {
	t.Parallel()
	onClients(t, func(s *suite) {
		ctx := s.Context()
		done := s.charge("x")
		s.run()
		s.charge("later", weaver.Delay(time.Hour))
		s.no(s.c.PauseQueue(ctx, "a/b c", weaver.Reason("a test")))
		s.no(s.c.PauseType(ctx, charge.Name()))
		s.is(s.c.PauseType(ctx, "odd"), weaver.ErrInvalidOption)

		counts, err := s.c.Counts(ctx)
		s.no(err)
		queues, err := s.c.Queues(ctx)
		s.no(err)
		workers, err := s.c.Workers(ctx)
		s.no(err)
		entries, next, err := s.c.Audit(ctx, store.AuditFilter{Target: "a/b c"})
		s.no(err)
		if len(entries) != 1 || entries[0].Reason != "a test" || next != "" {
			s.Errorf("the audit: %+v, %q", entries, next)
		}
		wantCounts, err := s.client.Counts(ctx)
		s.no(err)
		wantQueues, err := s.client.Queues(ctx)
		s.no(err)
		wantWorkers, err := s.client.Workers(ctx)
		s.no(err)
		for what, pair := range map[string][2]any{"counts": {counts, wantCounts}, "queues": {queues, wantQueues}, "workers": {workers, wantWorkers}} {
			if got, want := text(pair[0]), text(pair[1]); got != want && got+want != "[]null" {
				s.Errorf("the %s are %s, want %s", what, got, want)
			}
		}
		s.no(s.c.ResumeQueue(ctx, "a/b c"))
		s.no(s.c.ResumeType(ctx, charge.Name()))
		_, _, err = s.c.Audit(ctx, store.AuditFilter{After: "odd"})
		s.is(err, store.ErrBadCursor)

		over := s.over()
		types, err := over.Types(ctx)
		s.no(err)
		one, err := over.Type(ctx, charge.Name())
		s.no(err)
		if len(types) != 1 || types[0].Name != charge.Name() || types[0].Input != nil || one.Input == nil || one.Paused {
			s.Errorf("the types are %+v, one is %+v", types, one)
		}
		if _, err = over.Type(ctx, "acme.mail.send.v1"); err == nil {
			s.Error("a type that was not announced is read")
		}
		dry, err := over.Bulk(ctx, httpapi.BulkRequest{Verb: ops.BulkDelete, Q: "state:succeeded", DryRun: true})
		s.no(err)
		wet, err := over.Bulk(ctx, httpapi.BulkRequest{Verb: ops.BulkDelete, Q: "state:succeeded", Newest: dry.Newest.String()})
		s.no(err)
		if dry.Done != 1 || len(dry.Samples) != 1 || dry.Samples[0].ID != done.ID() || wet.Done != 1 {
			s.Errorf("the dry run %+v, the real one %+v", dry, wet)
		}
	})
}
