package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// anyClient is what a weaver.Client and a client over HTTP both are.
type anyClient interface {
	weaver.TxSubmitter
	weaver.Waiter
	weaver.JobWaiter
	weaver.Signaler
	History(ctx context.Context, id weaver.TaskID) (weaver.History, error)
	Cancel(ctx context.Context, id weaver.TaskID, opts ...weaver.OperateOption) error
	Retry(ctx context.Context, id weaver.TaskID, opts ...weaver.OperateOption) error
	Unblock(ctx context.Context, id weaver.TaskID, input any, opts ...weaver.OperateOption) error
	RepairInput(ctx context.Context, id weaver.TaskID, input any, opts ...weaver.OperateOption) error
	Reschedule(ctx context.Context, id weaver.TaskID, when time.Time, opts ...weaver.OperateOption) error
	RunNow(ctx context.Context, id weaver.TaskID, opts ...weaver.OperateOption) error
	PauseTask(ctx context.Context, id weaver.TaskID, opts ...weaver.OperateOption) error
	ResumeTask(ctx context.Context, id weaver.TaskID, opts ...weaver.OperateOption) error
	Delete(ctx context.Context, id weaver.TaskID, opts ...weaver.OperateOption) error
	Rerun(ctx context.Context, id weaver.TaskID, opts ...weaver.OperateOption) (weaver.Enqueued, error)
	RerunFrom(ctx context.Context, id weaver.TaskID, step string, opts ...weaver.OperateOption) (weaver.Enqueued, error)
	PauseQueue(ctx context.Context, queue string, opts ...weaver.OperateOption) error
	ResumeQueue(ctx context.Context, queue string, opts ...weaver.OperateOption) error
	Job(ctx context.Context, id weaver.JobID) (weaver.JobInfo, error)
	Jobs(ctx context.Context, f weaver.JobFilter) ([]weaver.JobInfo, string, error)
	JobStatus(ctx context.Context, id weaver.JobID) (weaver.JobStatus, error)
	JobTasks(ctx context.Context, id weaver.JobID) ([]weaver.TaskInfo, error)
	JobResult(ctx context.Context, id weaver.JobID) (weaver.JobResult, error)
	CancelJob(ctx context.Context, id weaver.JobID, opts ...weaver.OperateOption) (weaver.CancelAck, error)
	RetryJob(ctx context.Context, id weaver.JobID, opts ...weaver.OperateOption) (weaver.RetryAck, error)
}

// suite is a store with a client of one kind.
type suite struct {
	*server
	c anyClient
}

// onClients runs a test with a client of the store and with one over HTTP, each in a
// bubble and on a store of its own.
func onClients(t *testing.T, test func(s *suite)) {
	t.Helper()
	for _, kind := range []string{"store", "HTTP"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db, err := sqlite.OpenMemory(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = db.Close() })
				if err := db.Migrate(t.Context()); err != nil {
					t.Fatal(err)
				}
				s := &suite{server: newServer(t, serverOptions{store: db, direct: true, mount: "/weaver"})}
				if s.c = s.client; kind == "HTTP" {
					s.c = s.over()
				}
				test(s)
			})
		})
	}
}

// over returns a client of the server.
func (s *server) over(opts ...httpapi.ClientOption) *httpapi.Client {
	s.Helper()
	c, err := httpapi.NewClient(s.url, append([]httpapi.ClientOption{httpapi.HTTPClient(s.http), httpapi.Logger(slog.New(slog.DiscardHandler))}, opts...)...)
	s.no(err)
	return c
}

// later calls fn after a time; the function that it returns waits for that.
func (s *server) later(d time.Duration, fn func()) (wait func()) {
	var wg sync.WaitGroup
	wg.Go(func() {
		time.Sleep(d)
		fn()
	})
	return wg.Wait
}

// is fails the test unless err is the sentinel and has the words in its text.
func (s *server) is(err, sentinel error, words ...string) {
	s.Helper()
	if err == nil || sentinel != nil && !errors.Is(err, sentinel) {
		s.Errorf("the error is %v, want one that is %v", err, sentinel)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			s.Errorf("the error %q does not have %q", err, w)
		}
	}
}

func (s *suite) charge(name string, opts ...weaver.EnqueueOption) *weaver.Handle[chargeOut] {
	s.Helper()
	h, err := charge.Enqueue(s.Context(), s.c, chargeIn{Order: name, Amount: 5}, opts...)
	s.no(err)
	return h
}

// names lists what a filter selects, by label.
func (s *suite) names(f weaver.Filter) (names []string) {
	s.Helper()
	list, _, err := s.c.List(s.Context(), f)
	s.no(err)
	for i := range list {
		names = append(names, list[i].Labels["name"])
	}
	slices.Sort(names)
	return names
}

func TestClientsEnqueue(t *testing.T) {
	t.Parallel()
	onClients(t, func(s *suite) {
		ctx := s.Context()
		h := s.charge("a<b>&c", weaver.IdempotencyKey("evt-1"), weaver.Label("name", "a"))
		if h.Disposition() != weaver.DispositionCreated {
			s.Errorf("the first is %s", h.Disposition())
		}
		if again := s.charge("other", weaver.IdempotencyKey("evt-1")); again.ID() != h.ID() || again.Disposition() != weaver.DispositionExisting {
			s.Errorf("the same key gave %s, %s", again.ID(), again.Disposition())
		}
		one := s.charge("old", weaver.ConcurrencyKey("k"), weaver.Coalesce(), weaver.Delay(time.Hour))
		if two := s.charge("new", weaver.ConcurrencyKey("k"), weaver.Coalesce()); two.ID() != one.ID() || two.Disposition() != weaver.DispositionCoalesced {
			s.Errorf("Coalesce gave %s", two.Disposition())
		}
		typed, err := charge.Get(ctx, s.c, h.ID())
		s.no(err)
		if typed.Input.Order != "a<b>&c" || typed.Queue != "billing" || typed.MaxAttempts != 1 {
			s.Errorf("the task is %+v", typed)
		}
		hs, err := charge.EnqueueMany(ctx, s.c, []chargeIn{{Order: "1"}, {Order: "2"}, {Order: "3"}})
		s.no(err)
		for i, h := range hs {
			got, err := charge.Get(ctx, s.c, h.ID())
			s.no(err)
			if want := string(rune('1' + i)); got.Input.Order != want {
				s.Errorf("task %d is for the order %s", i, got.Input.Order)
			}
		}
		if got, err := s.c.EnqueueTasks(ctx); got != nil || err != nil {
			s.Errorf("no drafts: %v, %v", got, err)
		}
		_, err = s.c.EnqueueTasks(ctx, charge.With(chargeIn{Order: "good"}), charge.With(chargeIn{}, weaver.Priority(10)), weaver.Draft{})
		s.is(err, weaver.ErrInvalidOption, "draft 1", "Priority(10)", "draft 2")
		s.is(err, weaver.ErrInvalidInput)
		_, err = s.c.EnqueueTasks(ctx, weaver.NewDraft(charge.Name(), json.RawMessage(`{`)))
		s.is(err, weaver.ErrInvalidInput)

		var done []weaver.TaskID
		for _, h := range hs {
			done = append(done, h.ID())
		}
		s.run()
		for _, id := range done {
			out, err := charge.Wait(ctx, s.c, id)
			s.no(err)
			if !strings.HasPrefix(out.Receipt, "r-") {
				s.Errorf("the output is %+v", out)
			}
		}
		out, err := h.Wait(ctx)
		s.no(err)
		if out.Receipt != "r-a<b>&c" {
			s.Errorf("the output is %+v", out)
		}
		if info, err := h.Get(ctx); err != nil || info.State != weaver.StateSucceeded {
			s.Errorf("Get: %s, %v", info.State, err)
		}
	})
}

func TestClientsWait(t *testing.T) {
	t.Parallel()
	onClients(t, func(s *suite) {
		ctx := s.Context()
		slow, bad, ask := s.charge("slow"), s.charge("bad", weaver.Delay(time.Hour)), s.charge("ask", weaver.Delay(time.Hour))
		began := time.Now()
		ran := s.later(100*time.Second, func() { s.run() })
		out, err := slow.Wait(ctx)
		ran()
		s.no(err)
		if took := time.Since(began); out.Receipt != "r-slow" || took < 100*time.Second || took > 102*time.Second {
			s.Errorf("%+v after %s", out, took)
		}

		cause := errors.New("the caller went home")
		short, cancel := context.WithTimeoutCause(ctx, time.Minute, cause)
		_, err = bad.Wait(short)
		cancel()
		s.is(err, cause)

		s.no(s.c.RunNow(ctx, bad.ID()))
		s.no(s.c.RunNow(ctx, ask.ID()))
		s.run()
		_, err = bad.Wait(ctx)
		var failed *weaver.TaskError
		if !errors.As(err, &failed) || failed.ID != bad.ID() || failed.State != weaver.StateFailed || failed.Attempts != 1 || failed.Message != "the card was refused" {
			s.Errorf("the failed task: %v", err)
		}
		_, err = ask.Wait(ctx)
		s.is(err, weaver.ErrBlocked, ask.ID().String(), "look at it")

		began = time.Now()
		cancelled := s.later(70*time.Second, func() { s.no(s.client.Cancel(ctx, ask.ID())) })
		_, err = ask.Wait(ctx, weaver.WaitThroughBlocked())
		cancelled()
		if took := time.Since(began); !errors.As(err, &failed) || failed.State != weaver.StateCancelled || took < 70*time.Second || took > 72*time.Second {
			s.Errorf("through the block: %v after %s", err, took)
		}
		_, err = ask.Wait(ctx, nil)
		s.is(err, weaver.ErrInvalidOption)
		_, err = s.c.Wait(ctx, weaver.TaskID{7})
		s.is(err, weaver.ErrNotFound)
		_, err = s.c.Wait(ctx, weaver.TaskID{})
		s.is(err, weaver.ErrNotFound)
	})
}

func TestClientsList(t *testing.T) {
	t.Parallel()
	onClients(t, func(s *suite) {
		ctx := s.Context()
		name := func(n string) weaver.EnqueueOption { return weaver.Label("name", n) }
		s.charge("x", name("done"), weaver.Label("team", "a=b, c"))
		s.charge("bad", name("bad"), weaver.Label("team", "a=b, c"))
		s.charge("ask", name("ask"), weaver.Queue("other"))
		s.run()
		then := time.Now().Add(time.Second)
		time.Sleep(time.Minute)
		s.charge("x", name("later"), weaver.Delay(time.Hour))
		for what, c := range map[string]struct {
			f    weaver.Filter
			want string
		}{
			"all":          {weaver.Filter{}, "ask bad done later"},
			"states":       {weaver.Filter{States: []weaver.State{weaver.StateFailed, weaver.StateBlocked}}, "ask bad"},
			"a type":       {weaver.Filter{Types: []string{"acme.mail.*", charge.Name()}}, "ask bad done later"},
			"another type": {weaver.Filter{Types: []string{"acme.mail.*"}}, ""},
			"a queue":      {weaver.Filter{Queue: "other"}, "ask"},
			"a label":      {weaver.Filter{Labels: map[string]string{"team": "a=b, c"}}, "bad done"},
			"labels":       {weaver.Filter{Labels: map[string]string{"team": "a=b, c", "name": "bad"}}, "bad"},
			"waiting":      {weaver.Filter{Waiting: s.get1(name("later")).waiting}, "later"},
			"errors":       {weaver.Filter{ErrorKinds: s.get1(name("bad")).kinds}, "ask bad"},
			"before":       {weaver.Filter{CreatedBefore: then}, "ask bad done"},
			"after":        {weaver.Filter{CreatedAfter: then}, "later"},
			"no parent":    {weaver.Filter{Parent: weaver.TaskID{1}}, ""},
			"no job":       {weaver.Filter{Job: weaver.JobID{1}}, ""},
		} {
			if got := strings.Join(s.names(c.f), " "); got != c.want {
				s.Errorf("%s: %q, want %q", what, got, c.want)
			}
		}
		var seen []string
		for f := (weaver.Filter{Limit: 3}); ; {
			list, next, err := charge.List(ctx, s.c, f)
			s.no(err)
			for _, t := range list {
				seen = append(seen, t.Labels["name"])
			}
			if f.After = next; next == "" {
				break
			}
		}
		if got := strings.Join(seen, " "); got != "later ask bad done" {
			s.Errorf("by pages: %s", got)
		}
		if got := s.names(weaver.Filter{Limit: 5000}); len(got) != 4 {
			s.Errorf("a limit that is too large gives %v", got)
		}
		_, _, err := s.c.List(ctx, weaver.Filter{After: "nonsense"})
		s.is(err, weaver.ErrBadCursor)
		_, _, err = s.c.List(ctx, weaver.Filter{States: []weaver.State{"sleeping"}})
		s.is(err, weaver.ErrInvalidOption, "sleeping")
	})
}

type looked struct {
	waiting []task.Waiting
	kinds   []weaver.ErrorKind
}

// get1 reads what the filters of the one task with a label are to be.
func (s *suite) get1(label weaver.EnqueueOption) looked {
	s.Helper()
	n, err := charge.With(chargeIn{}, label).Task()
	s.no(err)
	list, _, err := s.client.List(s.Context(), weaver.Filter{Labels: n.Labels})
	s.no(err)
	l := looked{waiting: []task.Waiting{list[0].Waiting}}
	if e := list[0].Error; e != nil {
		l.kinds = append(l.kinds, e.Kind)
	}
	return l
}

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
		s.is(s.c.Retry(ctx, bad.ID(), weaver.SeenEpoch(99)), weaver.ErrChanged)
		s.is(s.c.Retry(ctx, bad.ID(), weaver.SeenVersion(s.epoch(bad.ID()), time.Now().Add(time.Hour))), weaver.ErrChanged)
		seen, err := s.c.Get(ctx, bad.ID())
		s.no(err)
		s.no(s.c.Retry(ctx, bad.ID(), weaver.SeenVersion(seen.Epoch, seen.UpdatedAt), weaver.AddAttempts(3), weaver.Reason("the card works")))
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
		if same, err := s.c.Rerun(ctx, done.ID(), weaver.RerunWith(weaver.IdempotencyKey("again"))); err != nil || same.ID != again.ID || same.Disposition != weaver.DispositionExisting {
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
		if h.Disposition() != weaver.DispositionCreated || same.ID() != h.ID() || same.Disposition() != weaver.DispositionExisting {
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
		if took := time.Since(began); res.State != weaver.JobSucceeded || len(res.Completed) != 2 || len(res.Incomplete) != 1 || took < 100*time.Second || took > 102*time.Second {
			s.Errorf("the result after %s: %+v", took, res)
		}
		out, err := charge.JobOutput(ctx, s.c, h.ID(), "b")
		s.no(err)
		if out.Receipt != "r-fine" {
			s.Errorf("the output is %+v", out)
		}
		_, err = charge.JobOutput(ctx, s.c, h.ID(), "c")
		s.is(err, weaver.ErrNoSuchNode)
		if res, err = bad.Wait(ctx); err != nil || res.State != weaver.JobFailed || len(res.Failed) != 1 || res.Failed[0].Name != "b" || res.Failed[0].Reason != "the card was refused" {
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
		list, _, err := s.c.Jobs(ctx, weaver.JobFilter{States: []weaver.JobState{weaver.JobFailed}, Name: "nightly"})
		s.no(err)
		if len(list) != 1 || list[0].ID != bad.ID() {
			s.Errorf("the failed jobs are %+v", list)
		}
		_, _, err = s.c.Jobs(ctx, weaver.JobFilter{States: []weaver.JobState{"odd"}})
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

// What holds for a client over HTTP alone.
func TestClientOverHTTP(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, serverOptions{direct: true, config: func(c *httpapi.Config) { c.MaxWait = 5 * time.Second }})
		ctx, c := t.Context(), s.over()
		type mailIn struct{ To string }
		mail := weaver.Define[mailIn, weaver.None]("acme.mail.send.v1")
		_, err := mail.Enqueue(ctx, c, mailIn{"ann"})
		var p *httpapi.Problem
		if !errors.As(err, &p) || p.Status != http.StatusUnprocessableEntity {
			t.Errorf("a type that was not announced: %v", err)
		}
		s.is(err, nil, "acme.mail.send.v1", "start one that handles it")
		s.no(schema.Announce(ctx, s.client, weaver.Define[struct {
			To string `json:"To"`
			Cc string `json:"Cc"`
		}, weaver.None](mail.Name(), weaver.SchemaVersion(2))))
		_, err = mail.Enqueue(ctx, c, mailIn{"ann"})
		s.is(err, nil, "schema_version", "announced with 2")

		h, err := charge.Enqueue(ctx, c, chargeIn{Order: "x", Card: "4111"})
		s.no(err)
		s.is(c.Cancel(ctx, h.ID(), weaver.By("ops")), weaver.ErrInvalidOption, "actor")
		_, err = c.Rerun(ctx, h.ID(), weaver.RerunWith(weaver.Timeout(0)))
		s.is(err, weaver.ErrInvalidOption, "Timeout(0)")
		ran := s.later(time.Minute, func() { s.run() })
		began := time.Now()
		out, err := h.Wait(ctx)
		ran()
		s.no(err)
		if took := time.Since(began); out.Receipt != "r-x" || took > 62*time.Second {
			t.Errorf("of a server that waits less: %+v after %s", out, took)
		}
		got, err := charge.Get(ctx, c, h.ID())
		s.no(err)
		if got.Input.Card != weaver.Redacted {
			t.Errorf("the card is %q", got.Input.Card)
		}
		list, _, err := charge.List(ctx, c, weaver.Filter{})
		s.no(err)
		s.is(list[0].DecodeError, nil, "Get")
		page, err := c.Search(ctx, "state:succeeded", weaver.Filter{Types: []string{charge.Name()}})
		s.no(err)
		if len(page.Items) != 1 || page.Scanned == 0 {
			t.Errorf("found %+v", page)
		}
		_, err = c.Search(ctx, "stat:failed", weaver.Filter{})
		s.is(err, weaver.ErrInvalidQuery)
		if !errors.As(err, &p) || len(p.Errors) != 1 || p.Errors[0].Column == 0 {
			t.Errorf("a wrong query: %#v", p)
		}
		drafts := make([]weaver.Draft, 1001)
		_, err = c.EnqueueTasks(ctx, drafts...)
		s.is(err, weaver.ErrTooLarge)
	})
}

// With less access, a client sees less, and says so.
func TestClientWithLessAccess(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{config: func(c *httpapi.Config) {
		c.Authorize = tokensOf(t, "ann full "+hashOf("ann's_token"), "bob submit,read "+hashOf("bob's_token"), "cy submit "+hashOf("cy's_token")).Authorize
	}})
	ctx := t.Context()
	h, err := charge.Enqueue(ctx, s.over(httpapi.Token("cy's_token")), chargeIn{Order: "x"})
	s.no(err)
	var p *httpapi.Problem
	if _, err = h.Wait(ctx); !errors.As(err, &p) || p.Status != http.StatusForbidden {
		t.Errorf("without read: %v", err)
	}
	s.run()
	_, err = charge.Wait(ctx, s.over(httpapi.Token("bob's_token")), h.ID())
	s.is(err, nil, "access payloads")
	_, err = charge.Get(ctx, s.over(httpapi.Token("bob's_token")), h.ID())
	s.is(err, nil, "access payloads")
	out, err := charge.Wait(ctx, s.over(httpapi.TokenFunc(func(context.Context) (string, error) { return "ann's_token", nil })), h.ID())
	s.no(err)
	if out.Receipt != "r-x" {
		t.Errorf("the output is %+v", out)
	}
	for _, o := range []httpapi.ClientOption{httpapi.Token("wrong"), httpapi.BasicAuth("ann", "secret")} {
		if _, err = s.over(o, httpapi.HTTPClient(new(http.Client))).Get(ctx, h.ID()); !errors.As(err, &p) || p.Status != http.StatusUnauthorized || strings.Contains(err.Error(), "secret") {
			t.Errorf("with wrong credentials: %v", err)
		}
	}
	_, err = s.over(httpapi.TokenFunc(func(context.Context) (string, error) { return "", io.ErrUnexpectedEOF })).Get(ctx, h.ID())
	s.is(err, io.ErrUnexpectedEOF, "token")
}
