package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// undoJob is a job whose handlers record their nodes and fail as configured.
type undoJob struct {
	*fixture
	mu    sync.Mutex
	ran   []string
	fails map[string][]error // errors of the next attempts, by node; the last one stays
	hold  map[string]bool    // nodes that block until their contexts end
	typ   *weaver.Type[string, string]
}

func newUndoJob(fx *fixture) *undoJob {
	return &undoJob{
		fixture: fx, fails: map[string][]error{}, hold: map[string]bool{},
		typ: weaver.Define[string, string]("engine.undo.job.v1", weaver.NoRetry()),
	}
}

func (u *undoJob) handler() weaver.Handler {
	return u.typ.Handler(func(ctx context.Context, in string) (string, error) {
		node := weaver.Current(ctx).Node
		u.mu.Lock()
		u.ran = append(u.ran, node)
		var err error
		if next := u.fails[node]; len(next) > 0 {
			if err = next[0]; len(next) > 1 {
				u.fails[node] = next[1:]
			}
		}
		hold := u.hold[node]
		u.mu.Unlock()
		if hold {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
		return in, err
	})
}

// order runs reserve, then charge, then ship and mail concurrently; each except mail has an undo. A
// hook runs at the end.
func (u *undoJob) order(b ...weaver.Budget) *weaver.Job {
	j := weaver.NewJob("order", b...)
	add := func(name string, needs ...*weaver.Node) *weaver.Node {
		n := j.Add(name, u.typ.With(name), weaver.Needs(needs...))
		if name != "mail" {
			j.Add("undo "+name, u.typ.With("undone "+name), weaver.Undoes(n))
		}
		return n
	}
	charge := add("charge", add("reserve"))
	add("ship", charge)
	add("mail", charge)
	j.Add("on failure", u.typ.With("alarm"), weaver.IfFailed(j.Nodes("reserve", "charge", "ship", "mail")...), weaver.IfDone(j.Nodes("undo reserve", "undo charge", "undo ship")...))
	return j
}

func (u *undoJob) order2() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return strings.Join(u.ran, ", ")
}

// states returns the states of a job and its tasks.
func (u *undoJob) states(id weaver.JobID) string {
	u.Helper()
	info, err := u.client.Job(u.Context(), id)
	u.must(err)
	tasks, err := u.client.JobTasks(u.Context(), id)
	u.must(err)
	said := []string{string(info.State)}
	for i := range tasks {
		t := &tasks[i]
		if strings.HasPrefix(t.Node, "undo ") {
			state := string(t.State)
			if t.Error != nil {
				state += "/" + string(t.Error.Kind)
			}
			said = append(said, t.Node+": "+state)
		}
	}
	return strings.Join(said, "; ")
}

func (u *undoJob) id(job weaver.JobID, node string) weaver.TaskID {
	u.Helper()
	tasks, err := u.client.JobTasks(u.Context(), job)
	u.must(err)
	for i := range tasks {
		if tasks[i].Node == node {
			return tasks[i].ID
		}
	}
	u.Fatalf("no task %q", node)
	return weaver.TaskID{}
}

// checkStore checks the invariants of the store.
func (u *undoJob) checkStore() {
	u.Helper()
	snap, err := u.store.Snapshot(u.Context(), weaver.DefaultNamespace)
	u.must(err)
	for _, v := range store.Check(snap) {
		u.Error(v)
	}
}

func contains(fx *fixture, what, text, part string) {
	fx.Helper()
	if !strings.Contains(text, part) {
		fx.Errorf("%s does not say %q: %s", what, part, text)
	}
}

// withUndoJob runs fn in a bubble.
func withUndoJob(t *testing.T, fn func(u *undoJob)) {
	t.Helper()
	inBubble(t, func(fx *fixture) { fn(newUndoJob(fx)) })
}

func TestUndoes_FailedJobIsUndoneInReverse(t *testing.T) {
	withUndoJob(t, func(u *undoJob) {
		u.fails["ship"] = []error{errors.New("no courier")}
		u.runConfig(u.store, weaver.Config{Concurrency: 1, Handlers: []weaver.Handler{u.handler()}})
		h := submit(u.fixture, u.order())
		res := jobResult(u.fixture, h)
		equal(u.fixture, "job", res.State, task.JobFailed)
		got := strings.Replace(u.order2(), "mail, ship", "ship, mail", 1)
		equal(u.fixture, "ran", got, "reserve, charge, ship, mail, undo ship, undo charge, undo reserve, on failure")
		equal(u.fixture, "states", u.states(h.ID()), "failed; undo reserve: succeeded; undo charge: succeeded; undo ship: succeeded")
		t := u.get(u.id(h.ID(), "undo charge"))
		equal(u.fixture, "an undo", fmt.Sprint(t.AttemptCount, string(t.Output), t.Undo), `0"undone charge"<nil>`)
		u.checkStore()
	})
}

func TestUndoes_GoodJobUndoesNothing(t *testing.T) {
	withUndoJob(t, func(u *undoJob) {
		u.runConfig(u.store, weaver.Config{Concurrency: 1, Handlers: []weaver.Handler{u.handler()}})
		h := submit(u.fixture, u.order(weaver.Budget{MaxTotalAttempts: 4}))
		equal(u.fixture, "job", jobResult(u.fixture, h).State, task.JobSucceeded)
		equal(u.fixture, "states", u.states(h.ID()), "succeeded; undo reserve: cancelled/not_needed; undo charge: cancelled/not_needed; undo ship: cancelled/not_needed")
		wantError(u.fixture, u.client.Retry(u.Context(), u.id(h.ID(), "undo ship")), weaver.ErrState, "undoes another task of its job")
		u.checkStore()
	})
}

// Unstarted tasks are not undone; interrupted ones are.
func TestUndoes_CancelledJob(t *testing.T) {
	for _, how := range []string{"cancel", "deadline", "force", "budget"} {
		t.Run(how, func(t *testing.T) {
			withUndoJob(t, func(u *undoJob) {
				u.hold["charge"] = true
				budget, want := weaver.Budget{MaxDuration: 4 * time.Minute}, "cancelled"
				if how == "budget" {
					delete(u.hold, "charge")
					u.fails["charge"] = []error{weaver.RetryAfter(time.Minute, errors.New("busy"))}
					u.typ = weaver.Define[string, string]("engine.undo.job_retry.v1", weaver.MaxAttempts(9))
					budget, want = weaver.Budget{MaxTotalAttempts: 3}, "failed"
				}
				u.runConfig(u.store, weaver.Config{Concurrency: 2, Handlers: []weaver.Handler{u.handler()}})
				h := submit(u.fixture, u.order(budget))
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				switch how {
				case "cancel":
					_, err := u.client.CancelJob(u.Context(), h.ID())
					u.must(err)
				case "force":
					u.must(u.client.Cancel(u.Context(), u.id(h.ID(), "charge"), weaver.Force()))
					want = "failed"
				case "deadline":
					want = "failed"
				}
				equal(u.fixture, "job", string(jobResult(u.fixture, h).State), want)
				ran := strings.TrimSuffix(u.order2(), ", on failure")
				ran = strings.ReplaceAll(ran, "charge, charge", "charge")
				equal(u.fixture, "ran", strings.ReplaceAll(ran, "charge, charge", "charge"), "reserve, charge, undo charge, undo reserve")
				equal(u.fixture, "states", u.states(h.ID()), want+"; undo reserve: succeeded; undo charge: succeeded; undo ship: cancelled/not_needed")
				u.checkStore()
			})
		})
	}
}

func TestUndoes_IsTriedAgain(t *testing.T) {
	withUndoJob(t, func(u *undoJob) {
		u.fails["ship"] = []error{errors.New("no courier")}
		u.fails["undo charge"] = []error{errors.New("psp 503"), errors.New("psp 503"), nil}
		u.runConfig(u.store, weaver.Config{Handlers: []weaver.Handler{u.handler()}})
		h := submit(u.fixture, u.order(weaver.Budget{MaxAttemptsPerTask: 1}))
		time.Sleep(500 * time.Millisecond)
		_, err := u.client.CancelJob(u.Context(), h.ID()) // no undo is cancelled by it
		u.must(err)
		equal(u.fixture, "job", jobResult(u.fixture, h).State, task.JobCancelled)
		equal(u.fixture, "states", u.states(h.ID()), "cancelled; undo reserve: succeeded; undo charge: succeeded; undo ship: succeeded")
		u.wantOutcomes(u.id(h.ID(), "undo charge"), "undo_failed", "undo_failed", "undone")
		u.checkStore()
	})
}

// An undo that is given up blocks later ones until it is retried.
func TestUndoes_IsGivenUp(t *testing.T) {
	withUndoJob(t, func(u *undoJob) {
		ctx := u.Context()
		u.fails["ship"] = []error{errors.New("no courier")}
		u.fails["undo charge"] = []error{weaver.Permanent(errors.New("no such charge")), nil}
		u.runConfig(u.store, weaver.Config{Handlers: []weaver.Handler{u.handler()}})
		h := submit(u.fixture, u.order())
		equal(u.fixture, "job", jobResult(u.fixture, h).State, task.JobFailed)
		equal(u.fixture, "states", u.states(h.ID()), "failed; undo reserve: cancelled/undo_failed; undo charge: failed/undo_failed; undo ship: succeeded")
		id := u.id(h.ID(), "undo charge")
		contains(u.fixture, "the error", u.get(id).Error.Message, "undo given up: it failed after 1 try in 0s: no such charge")
		contains(u.fixture, "that of the other", u.get(u.id(h.ID(), "undo reserve")).Error.Message, `not run: the undo was given up in task "undo charge"`)
		u.checkStore()

		// Neither the job nor a task of it is retried.
		_, err := u.client.RetryJob(ctx, h.ID())
		wantError(u.fixture, err, weaver.ErrState)
		wantError(u.fixture, u.client.Retry(ctx, u.id(h.ID(), "ship")), weaver.ErrState, `but task "undo `, "submit the job again", "--keep-steps (KeepSteps)")
		wantError(u.fixture, u.client.Retry(ctx, id), weaver.ErrState, "its undo was given up", "--cleanup")
		wantError(u.fixture, u.client.Retry(ctx, u.id(h.ID(), "undo reserve")), weaver.ErrState, "try its undo again first")

		u.must(u.client.Retry(ctx, id, weaver.Cleanups()))
		equal(u.fixture, "job", jobResult(u.fixture, h).State, task.JobFailed)
		equal(u.fixture, "states", u.states(h.ID()), "failed; undo reserve: succeeded; undo charge: succeeded; undo ship: succeeded")
		u.checkStore()
	})
}

// With KeepSteps undone tasks count as done, and tasks not needed may stay so.
func TestUndoes_KeepSteps(t *testing.T) {
	withUndoJob(t, func(u *undoJob) {
		u.fails["charge"] = []error{errors.New("declined"), nil}
		u.fails["ship"] = []error{errors.New("no courier")}
		u.runConfig(u.store, weaver.Config{Handlers: []weaver.Handler{u.handler()}})
		h := submit(u.fixture, u.order())
		equal(u.fixture, "job", jobResult(u.fixture, h).State, task.JobFailed)
		_, err := u.client.RetryJob(u.Context(), h.ID())
		wantError(u.fixture, err, weaver.ErrState, "ran, so what it undid would count as done")
		_, err = u.client.RetryJob(u.Context(), h.ID(), weaver.KeepSteps(), weaver.By("ann"))
		u.must(err)
		equal(u.fixture, "job", jobResult(u.fixture, h).State, task.JobFailed)
		equal(u.fixture, "ran", u.order2()[:len("reserve, charge, undo charge, undo reserve, on failure, charge, ")], "reserve, charge, undo charge, undo reserve, on failure, charge, ")
		equal(u.fixture, "undone ship", strings.Count(u.order2(), "undo ship"), 1)
		audit, _, err := u.client.Audit(u.Context(), store.AuditFilter{})
		u.must(err)
		contains(u.fixture, "the audit", fmt.Sprint(audit), "kept though task \"undo ")
		u.checkStore()
	})
}

// An undo that does not succeed for a day is given up.
func TestUndoes_GivenUpAfterADay(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		u := newUndoJob(fx)
		u.fails["a"] = []error{errors.New("no")}
		u.fails["undo a"] = []error{errors.New("psp 503")}
		j := weaver.NewJob("day")
		j.Add("a", u.typ.With(""))
		j.Add("undo a", u.typ.With(""), weaver.Undoes(j.Node("a")))
		e := u.start(u.store, weaver.Config{Handlers: []weaver.Handler{u.handler()}})
		h := submit(fx, j)
		time.Sleep(150 * time.Second) // for the pauses of 1, 2, 4, … 60 s
		fx.must(e.stop())
		id := u.id(h.ID(), "undo a")
		equal(fx, "it waits for", u.get(id).Waiting, task.WaitUndo)
		time.Sleep(24*time.Hour - 150*time.Second) // a day of attempts costs seconds
		u.runConfig(u.store, weaver.Config{Handlers: []weaver.Handler{u.handler()}})
		equal(fx, "job", jobResult(fx, h).State, task.JobFailed)
		contains(fx, "the error", u.get(id).Error.Message, "undo given up: it failed after 9 tries in 24h0m")
	})
}

// A panic is a failed try, and a drain releases an undo at no cost.
func TestUndoes_PanicAndDrain(t *testing.T) {
	withUndoJob(t, func(u *undoJob) {
		undo := weaver.Define[string, string]("engine.undo.panics.v1", weaver.NoRetry())
		tries := 0
		cfg := weaver.Config{DrainTimeout: time.Second, Handlers: []weaver.Handler{u.handler(), undo.Handler(func(ctx context.Context, _ string) (string, error) {
			if !weaver.Current(ctx).Undoing {
				u.Error("it does not know that it undoes")
			}
			switch tries++; tries {
			case 1:
				panic("no psp")
			case 2:
				<-ctx.Done()
				return "", context.Cause(ctx)
			}
			return "", nil
		})}}
		u.fails["a"] = []error{errors.New("no")}
		j := weaver.NewJob("panics")
		j.Add("a", u.typ.With(""))
		j.Add("undo a", undo.With(""), weaver.Undoes(j.Node("a")))
		e := u.start(u.store, cfg)
		h := submit(u.fixture, j)
		time.Sleep(time.Minute)
		u.must(e.stop())
		u.runConfig(u.store, cfg)
		equal(u.fixture, "job", jobResult(u.fixture, h).State, task.JobFailed)
		u.wantOutcomes(u.id(h.ID(), "undo a"), "undo_failed", "released", "undone")
		u.checkStore()
	})
}

func TestUndoes_CallsNoStep(t *testing.T) {
	withUndoJob(t, func(u *undoJob) {
		steps := weaver.Define[string, string]("engine.undo.steps.v1", weaver.NoRetry())
		u.fails["a"] = []error{errors.New("no")}
		u.runConfig(u.store, weaver.Config{Handlers: []weaver.Handler{u.handler(), steps.Handler(func(ctx context.Context, _ string) (string, error) {
			return "", weaver.Sleep(ctx, "nap", time.Hour)
		})}})
		j := weaver.NewJob("steps")
		j.Add("a", u.typ.With(""))
		j.Add("undo a", steps.With(""), weaver.Undoes(j.Node("a")))
		h := submit(u.fixture, j)
		equal(u.fixture, "job", jobResult(u.fixture, h).State, task.JobFailed)
		contains(u.fixture, "the error", u.get(u.id(h.ID(), "undo a")).Error.Message, `step "nap" inside step "undo a"`)
		u.checkStore()
	})
}

func TestUndoes_Misuse(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		u := newUndoJob(fx)
		other := weaver.NewJob("other").Add("x", u.typ.With(""))
		j := weaver.NewJob("wrong")
		a := j.Add("a", u.typ.With(""))
		b := j.Add("b", u.typ.With(""), weaver.Undoes(a))
		j.Add("twice", u.typ.With(""), weaver.Undoes(a))
		j.Add("undone", u.typ.With(""), weaver.Undoes(b))
		j.Add("needy", u.typ.With(""), weaver.Undoes(j.Node("hook")), weaver.Needs(a))
		hook := j.Add("hook", u.typ.With(""), weaver.IfDone(b))
		j.Add("after", u.typ.With(""), weaver.Undoes(hook))
		j.Add("nil", u.typ.With(""), weaver.Undoes(nil))
		j.Add("foreign", u.typ.With(""), weaver.Undoes(other))
		j.Add("missing", u.typ.With(""), weaver.Undoes(j.Node("gone")))
		_, err := fx.client.Submit(fx.Context(), j)
		wantError(fx, err, weaver.ErrInvalidJob,
			`"b" and "twice" both undo "a"`, `"undone" undoes "b", which is an undo itself`, `"needy" undoes "hook" and has needs`,
			`"after" undoes "hook", which runs after an undo`, `"nil" undoes a nil node`, `"foreign" undoes "x", which belongs to another job`,
			`"missing" undoes "gone", which is not in the job`)
	})
}
