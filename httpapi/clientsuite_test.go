package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// anyClient is the interface of a weaver.Client and of a client over HTTP.
type anyClient interface {
	weaver.Caller
	History(ctx context.Context, id weaver.TaskID) (store.History, error)
	UndoPlan(ctx context.Context, id weaver.TaskID) (task.UndoPlan, error)
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
	PauseType(ctx context.Context, name string, opts ...weaver.OperateOption) error
	ResumeType(ctx context.Context, name string, opts ...weaver.OperateOption) error
	Counts(ctx context.Context) (store.Counts, error)
	Queues(ctx context.Context) ([]store.Queue, error)
	Workers(ctx context.Context) ([]store.WorkerStatus, error)
	Audit(ctx context.Context, f store.AuditFilter) ([]store.AuditEntry, string, error)
	PauseQueue(ctx context.Context, queue string, opts ...weaver.OperateOption) error
	ResumeQueue(ctx context.Context, queue string, opts ...weaver.OperateOption) error
	Job(ctx context.Context, id weaver.JobID) (weaver.JobInfo, error)
	Jobs(ctx context.Context, f store.JobFilter) ([]weaver.JobInfo, string, error)
	JobStatus(ctx context.Context, id weaver.JobID) (weaver.JobStatus, error)
	JobTasks(ctx context.Context, id weaver.JobID) ([]weaver.TaskInfo, error)
	JobResult(ctx context.Context, id weaver.JobID) (weaver.JobResult, error)
	CancelJob(ctx context.Context, id weaver.JobID, opts ...weaver.OperateOption) (ops.CancelAck, error)
	RetryJob(ctx context.Context, id weaver.JobID, opts ...weaver.OperateOption) (ops.RetryAck, error)
	SetLimit(ctx context.Context, name string, l weaver.Limit, opts ...weaver.OperateOption) error
	DeleteLimit(ctx context.Context, name string, opts ...weaver.OperateOption) error
	Limit(ctx context.Context, name string) (weaver.LimitInfo, error)
	Limits(ctx context.Context, after string, limit int) ([]weaver.LimitInfo, error)
	PutSchedule(ctx context.Context, s weaver.Schedule, opts ...weaver.OperateOption) (weaver.ScheduleInfo, error)
	Schedule(ctx context.Context, name string) (weaver.ScheduleInfo, error)
	Schedules(ctx context.Context, after string, limit int) ([]weaver.ScheduleInfo, error)
	ScheduleFires(ctx context.Context, name string, before time.Time, limit int) ([]weaver.ScheduleFire, error)
	NextFires(ctx context.Context, name string, n int) ([]time.Time, error)
	PauseSchedule(ctx context.Context, name string, opts ...weaver.OperateOption) (weaver.ScheduleInfo, error)
	ResumeSchedule(ctx context.Context, name string, opts ...weaver.OperateOption) (weaver.ScheduleInfo, error)
	TriggerSchedule(ctx context.Context, name string, opts ...weaver.OperateOption) (weaver.ScheduleInfo, error)
	BackfillSchedule(ctx context.Context, name string, from, to time.Time, opts ...weaver.OperateOption) (weaver.Backfilled, error)
	DeleteSchedule(ctx context.Context, name string, opts ...weaver.OperateOption) error
}

// suite is a store with a client of one kind.
type suite struct {
	*server
	c anyClient
}

// onClients runs a test with a client of the store and with a client over HTTP, each in a bubble
// and on its own store.
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

// later calls fn after a delay; wait waits for its end.
func (s *server) later(d time.Duration, fn func()) (wait func()) {
	var wg sync.WaitGroup
	wg.Go(func() {
		time.Sleep(d)
		fn()
	})
	return wg.Wait
}

// is fails the test unless err matches the sentinel and contains the words.
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

// names returns the tasks that a filter selects, by label.
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
		if h.Disposition() != store.DispositionCreated {
			s.Errorf("the first is %s", h.Disposition())
		}
		if again := s.charge("other", weaver.IdempotencyKey("evt-1")); again.ID() != h.ID() || again.Disposition() != store.DispositionExisting {
			s.Errorf("the same key gave %s, %s", again.ID(), again.Disposition())
		}
		one := s.charge("old", weaver.ConcurrencyKey("k"), weaver.Coalesce(), weaver.Delay(time.Hour))
		if two := s.charge("new", weaver.ConcurrencyKey("k"), weaver.Coalesce()); two.ID() != one.ID() || two.Disposition() != store.DispositionCoalesced {
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
		s.is(err, store.ErrBadCursor)
		_, _, err = s.c.List(ctx, weaver.Filter{States: []weaver.State{"sleeping"}})
		s.is(err, weaver.ErrInvalidOption, "sleeping")
	})
}

type looked struct {
	waiting []task.Waiting
	kinds   []task.ErrorKind
}

// get1 returns the values that filters of the one task with a label must have.
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
