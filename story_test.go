package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/task"
)

// One job over several nights: it takes a set of tasks and returns a bundle of results. Failures are
// retried, within limits and after a delay. A task without progress stops, and its job with it.
// Attempts and the reason for the stop can be read. The status can be read at any time, and a cancel
// ends the rest.
func TestStoryOfAJob(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t, openFile(t, filepath.Join(t.TempDir(), "weaver.db")))
		s := newStory(fx)
		fx.run(s.handlers()...)
		s.sourceAnswersLate()
		h := s.sourceDoesNotAnswer()
		s.sourceIsBack(h)
		h = s.ratesGetNowhere()
		s.ratesAreBack(h)
		s.jobIsCancelled()
	})
}

// The first night: one source fails at first.
func (s *story) sourceAnswersLate() {
	s.failures.Store(2)
	began := time.Now()
	h := s.submit()
	res := jobResult(s.fixture, h)
	equal(s, "the state", res.State, task.JobSucceeded)
	equal(s, "the bundle", bundle(res), `north: "12 orders"; south: "12 orders"; rates: 2; report: "north 12 orders, south 12 orders, at 2"`)

	north := named(s.fixture, res.Completed, "north").ID
	s.wantOutcomes(north, task.OutcomeFailure, task.OutcomeFailure, task.OutcomeSuccess)
	near(s, "the two delays", time.Since(began), 30*time.Second)
	past := s.history(north)
	equal(s, "the number of decisions", len(past.Decisions), 2)
	for i, d := range past.Decisions {
		equal(s, "what was tried", past.Attempts[i].Error.Message, "north does not answer")
		equal(s, "what was decided", d.Kind, task.DecideRetry)
		near(s, "the delay", d.NextReadyAt.Sub(d.At), 10*time.Second<<i)
		says(s, "the reason", d.Reason.Text, "of 4")
	}
}

// The second night: the source fails until the attempts are used up.
func (s *story) sourceDoesNotAnswer() *weaver.JobHandle {
	s.failures.Store(1000)
	h := s.submit()
	res := jobResult(s.fixture, h)
	equal(s, "the state", res.State, task.JobFailed)
	equal(s, "the bundle", bundle(res), `south: "12 orders"; rates: 2`)
	failed := named(s.fixture, res.Failed, "north")
	equal(s, "its attempts", failed.Attempts, 4)
	equal(s, "its reason", failed.Reason, "north does not answer")
	equal(s, "why there is no report", named(s.fixture, res.Incomplete, "report").Kind, task.KindDependencyFailed)
	says(s, "why north failed", s.why(failed.ID), "4 of 4", "north does not answer", "attempt 3")
	says(s, "why the job failed", s.whyJob(h), "north failed: north does not answer", "1 task that needs it was cancelled")
	return h
}

// It works again: an operator's retry runs the missing tasks, and no other.
func (s *story) sourceIsBack(h *weaver.JobHandle) {
	s.failures.Store(0)
	_, err := s.client.RetryJob(s.Context(), h.ID(), weaver.By("ops"), weaver.Reason("the source is back"))
	s.must(err)
	res := jobResult(s.fixture, h)
	equal(s, "the state", res.State, task.JobSucceeded)
	equal(s, "the number of results", len(res.Completed), 4)
	s.wantOutcomes(named(s.fixture, res.Completed, "south").ID, task.OutcomeSuccess)
}

// The third night: the rates make no progress, within a limit of a thousand attempts. The limit of
// attempts without progress stops the job.
func (s *story) ratesGetNowhere() *weaver.JobHandle {
	s.stuck.Store(true)
	h := s.submit()
	res, err := h.Wait(s.Context())
	wantError(s, err, weaver.ErrBlocked, "rates", "the page is empty")
	equal(s, "the state", res.State, task.JobBlocked)
	rates := named(s.fixture, res.Incomplete, "rates").ID
	equal(s, "the rates wait for", s.get(rates).Waiting, task.WaitBudget)
	says(s, "why the rates stopped", s.why(rates), "3 attempts", "the page is empty")
	says(s, "why the job stands still", s.whyJob(h), `"rates"`, "the page is empty", `"report"`)

	time.Sleep(time.Hour)
	s.wantOutcomes(rates, task.OutcomeFailure, task.OutcomeFailure, task.OutcomeFailure)
	st, err := s.client.JobStatus(s.Context(), h.ID())
	s.must(err)
	equal(s, "the status an hour later", status(st), "blocked: 1 blocked, 1 pending, 2 succeeded")
	return h
}

// A person has repaired the page and resumes the task.
func (s *story) ratesAreBack(h *weaver.JobHandle) {
	s.stuck.Store(false)
	res, err := s.client.JobResult(s.Context(), h.ID())
	s.must(err)
	s.must(s.client.Unblock(s.Context(), named(s.fixture, res.Incomplete, "rates").ID, nil, weaver.By("ops")))
	res = jobResult(s.fixture, h)
	equal(s, "the state", res.State, task.JobSucceeded)
	equal(s, "the number of results", len(res.Completed), 4)
}

// The fourth night: the status is read, and the job is cancelled.
func (s *story) jobIsCancelled() {
	s.slow.Store(true)
	h := s.submit()
	time.Sleep(time.Minute)
	st, err := s.client.JobStatus(s.Context(), h.ID())
	s.must(err)
	equal(s, "the status", status(st), "running: 1 pending, 1 running, 2 succeeded")
	says(s, "what it waits for", st.Bottleneck, "1 ", "run")

	ack, err := s.client.CancelJob(s.Context(), h.ID(), weaver.By("ops"), weaver.Reason("not tonight"))
	s.must(err)
	equal(s, "the answer", ack, ops.CancelAck{Cancelled: 1, Asked: 1, AlreadyDone: 2})
	res := jobResult(s.fixture, h)
	equal(s, "the state", res.State, task.JobCancelled)
	equal(s, "the bundle", bundle(res), `north: "12 orders"; rates: 2`)
	says(s, "why south ended", s.why(named(s.fixture, res.Incomplete, "south").ID), "ops", "not tonight")
}

// story is the job of every night, with its faults.
type story struct {
	*fixture
	orders *weaver.Type[string, string]
	rates  *weaver.Type[weaver.None, int]
	report *weaver.Type[weaver.None, string]

	failures atomic.Int32 // remaining failures of north
	stuck    atomic.Bool  // the rates fail
	slow     atomic.Bool  // south waits until it is cancelled
}

func newStory(fx *fixture) *story {
	return &story{
		fixture: fx,
		orders:  weaver.Define[string, string]("engine.story.orders.v1", weaver.MaxAttempts(4), weaver.Backoff(10*time.Second)),
		rates:   weaver.Define[weaver.None, int]("engine.story.rates.v1", weaver.MaxAttempts(1000), weaver.MaxNoProgress(3)),
		report:  weaver.Define[weaver.None, string]("engine.story.report.v1"),
	}
}

// submit submits the set of tasks: a report on the orders of two places, at a rate.
func (s *story) submit() *weaver.JobHandle {
	s.Helper()
	j := weaver.NewJob("nightly", weaver.Budget{MaxTotalAttempts: 100, MaxDuration: 100 * time.Hour})
	north := j.Add("north", s.orders.With("north"))
	south := j.Add("south", s.orders.With("south"))
	rates := j.Add("rates", s.rates.With(weaver.None{}))
	j.Add("report", s.report.With(weaver.None{}), weaver.Needs(north, south, rates))
	return submit(s.fixture, j)
}

func (s *story) handlers() []weaver.Handler {
	return []weaver.Handler{
		s.orders.Handler(func(ctx context.Context, place string) (string, error) {
			if place == "north" && s.failures.Add(-1) >= 0 {
				return "", errors.New("north does not answer")
			}
			if place == "south" && s.slow.Load() {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "12 orders", nil
		}),
		s.rates.Handler(func(context.Context, weaver.None) (int, error) {
			if s.stuck.Load() {
				return 0, errors.New("the page is empty")
			}
			return 2, nil
		}),
		s.report.Handler(func(ctx context.Context, _ weaver.None) (string, error) {
			north, errN := s.orders.Output(ctx, "north")
			south, errS := s.orders.Output(ctx, "south")
			rate, errR := s.rates.Output(ctx, "rates")
			return fmt.Sprintf("north %s, south %s, at %d", north, south, rate), errors.Join(errN, errS, errR)
		}),
	}
}

// bundle returns the results of a job as text.
func bundle(res weaver.JobResult) string {
	var all []string
	for _, t := range res.Completed {
		all = append(all, t.Name+": "+string(t.Output))
	}
	return strings.Join(all, "; ")
}

// status returns the state of a job and the numbers of its tasks as text.
func status(st weaver.JobStatus) string {
	var all []string
	for state, n := range st.States {
		all = append(all, fmt.Sprint(n, " ", state))
	}
	slices.Sort(all)
	return fmt.Sprint(st.State, ": ", strings.Join(all, ", "))
}

// why returns the output of `weaver why` for a task, and whyJob that for a job.
func (s *story) why(id weaver.TaskID) string {
	s.Helper()
	h := s.history(id)
	x, _ := s.explainer().Task(&h, explain.Running{}, explain.Known{})
	return said(x)
}

func (s *story) whyJob(h *weaver.JobHandle) string {
	s.Helper()
	info, err := s.client.Job(s.Context(), h.ID())
	s.must(err)
	tasks, err := s.client.JobTasks(s.Context(), h.ID())
	s.must(err)
	x, _ := s.explainer().Job(&info, tasks, explain.Known{})
	return said(x)
}

func (s *story) explainer() *explain.Explainer {
	command := func(args ...string) string { return strings.Join(args, " ") }
	return &explain.Explainer{Clock: explain.Clock{Now: time.Now(), Zone: time.UTC}, Command: command, Depth: 3}
}

// says fails the test unless the text contains every word.
func says(t testing.TB, what, got string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(got, word) {
			t.Errorf("%s: %q does not say %q", what, got, word)
		}
	}
}

func said(x *explain.Explanation) string { return fmt.Sprintf("%+v", *x) }
