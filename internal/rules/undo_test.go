package rules_test

import (
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func errorOf(kind task.ErrorKind) *task.Error {
	return &task.Error{Kind: kind, Message: "as " + string(kind)}
}

func TestBeginUndo(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	saga := rules.Undoable{Began: true, CleansUp: true}
	unaware := rules.Undoable{Began: true, CleansUp: true, Unaware: true}
	for _, c := range []struct {
		name  string
		state task.State
		of    rules.Undoable
		want  bool
	}{
		{"open steps after a failure", task.Failed, rules.Undoable{Open: 1}, true},
		{"open steps after a cancel", task.Cancelled, rules.Undoable{Open: 1}, true},
		{"open steps after success", task.Succeeded, rules.Undoable{Open: 1}, false},
		{"open steps of a retry", task.Pending, rules.Undoable{Open: 1}, false},
		{"open steps of a block", task.Blocked, rules.Undoable{Open: 1}, false},
		{"open steps in the phase", task.Failed, rules.Undoable{Open: 1, Phase: &task.UndoPhase{}}, false},
		{"a cleanup that failed", task.Failed, rules.Undoable{Unclean: true}, true},
		{"a cleanup that failed before a retry", task.Pending, rules.Undoable{Unclean: true}, false},
		{"cleans up, by its handler", task.Failed, saga, false},
		{"cleans up, without its handler", task.Cancelled, unaware, true},
		{"cleans up, and has not begun", task.Cancelled, rules.Undoable{CleansUp: true, Unaware: true}, false},
		{"does not clean up", task.Cancelled, rules.Undoable{Began: true, Unaware: true}, false},
		{"nothing", task.Failed, rules.Undoable{}, false},
	} {
		to := rules.Transition{State: c.state, Failure: errorOf(task.KindHandler), Outcome: task.OutcomeFailure}
		if got := to.BeginUndo(&c.of, time.Time{}, now); got != c.want {
			t.Errorf("%s: begins %v, want %v", c.name, got, c.want)
		}
		if begins := to.SetUndo && to.Undo != nil && to.State == task.Pending && to.Waiting == task.WaitUndo; begins != c.want || !c.want && to.State != c.state {
			t.Errorf("%s: the transition is %+v", c.name, to)
		}
	}
}

func TestBeginUndo_KeepsTheVerdict(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	verdict := errorOf(task.KindTimeout)
	to := rules.Transition{
		State: task.Failed, Failure: verdict, Outcome: task.OutcomeFailure, Output: []byte(`1`), Join: task.JoinRerun, Awaited: true,
		Decision: &task.Decision{Kind: task.DecideMarkDead},
	}
	lease := task.LeaseID{1}
	if !to.BeginUndo(&rules.Undoable{Open: 2, Key: true, Hold: lease, Forced: true}, now.Add(time.Second), now) {
		t.Fatal("no phase begins")
	}
	p := to.Undo
	if p.EndsAs != task.Failed || p.Error != verdict || !p.Began.Equal(now) || !p.HoldsKey || p.Hold != lease || !p.Forced || !p.NotBefore.Equal(now.Add(time.Second)) {
		t.Errorf("the phase is %+v", p)
	}
	if !to.ReadyAt.Equal(p.NotBefore) || to.SetReadyAt || !to.Claimable() || to.TaskError() != verdict || to.KeepError {
		t.Errorf("the transition is %+v", to)
	}
	if to.Output != nil || to.Join != task.JoinNone || to.Awaited || to.Decision == nil || to.Outcome != task.OutcomeFailure {
		t.Errorf("the transition is %+v", to)
	}
	early := rules.Transition{State: task.Cancelled, Failure: verdict}
	if early.BeginUndo(&rules.Undoable{Open: 1, Hold: lease}, now.Add(-time.Second), now); !early.ReadyAt.Equal(now) || !early.Undo.Hold.IsZero() || !early.Undo.NotBefore.IsZero() {
		t.Errorf("with a lease that is over it is %+v, %+v", early, early.Undo)
	}
}

func TestResolveUndo(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cancelled := &task.UndoPhase{EndsAs: task.Cancelled, Error: errorOf(task.KindCancelled)}
	failed := &task.UndoPhase{EndsAs: task.Failed, Error: errorOf(task.KindTimeout), HoldsKey: true}
	held := &task.UndoPhase{EndsAs: task.Failed, NotBefore: now.Add(time.Hour)}
	gaveUp, broke := errorOf(task.KindUndoFailed), errorOf(task.KindHandler)
	for _, c := range []struct {
		name    string
		fin     store.Finish
		phase   *task.UndoPhase
		open    int
		state   task.State
		waiting task.Waiting
		outcome task.Outcome
		after   time.Duration
		kept    task.ErrorKind // of a task that keeps its error and ends
		shows   *task.Error    // replaces the task's error; nil: the error stays
		goesOn  bool           // the phase continues
	}{
		{"undone", store.Finish{Outcome: task.OutcomeUndone, EndsAs: task.Failed}, failed, 0, task.Failed, "", task.OutcomeUndone, 0, task.KindTimeout, nil, false},
		{"undone, after a cancel", store.Finish{Outcome: task.OutcomeUndone, EndsAs: task.Cancelled}, cancelled, 0, task.Cancelled, "", task.OutcomeUndone, 0, task.KindCancelled, nil, false},
		{"undone, with a step left", store.Finish{Outcome: task.OutcomeUndone, EndsAs: task.Failed}, failed, 1, task.Pending, task.WaitUndo, task.OutcomeUndoFailed, time.Second, "", nil, true},
		{"undone, to another end", store.Finish{Outcome: task.OutcomeUndone, EndsAs: task.Cancelled}, failed, 0, task.Pending, task.WaitUndo, task.OutcomeUndoFailed, time.Second, "", nil, true},
		{"failed", store.Finish{Outcome: task.OutcomeUndoFailed, EndsAs: task.Failed, Error: broke, Delay: time.Minute}, failed, 1, task.Pending, task.WaitUndo, task.OutcomeUndoFailed, time.Minute, "", nil, true},
		{"failed, while a lease holds it", store.Finish{Outcome: task.OutcomeUndoFailed, EndsAs: task.Failed, Error: broke}, held, 1, task.Pending, task.WaitUndo, task.OutcomeUndoFailed, time.Hour, "", nil, true},
		{"given up", store.Finish{Outcome: task.OutcomeUndoFailed, EndsAs: task.Failed, Error: gaveUp, Delay: -1}, failed, 1, task.Failed, "", task.OutcomeUndoFailed, 0, "", gaveUp, true},
		{"blocked", store.Finish{Outcome: task.OutcomeBlocked, EndsAs: task.Failed, Error: broke, Waiting: task.WaitUndo}, failed, 1, task.Blocked, task.WaitUndo, task.OutcomeBlocked, 0, "", broke, true},
		{"released", store.Finish{Outcome: task.OutcomeReleased, EndsAs: task.Failed}, failed, 1, task.Pending, task.WaitUndo, task.OutcomeReleased, 0, "", nil, true},
		{"suspended", store.Finish{Outcome: task.OutcomeSuspended, EndsAs: task.Failed, Waiting: task.WaitUndo, Delay: time.Second}, failed, 1, task.Pending, task.WaitUndo, task.OutcomeSuspended, time.Second, "", nil, true},
		{"success after a cancel", store.Finish{Outcome: task.OutcomeSuccess, EndsAs: task.Cancelled}, cancelled, 0, task.Succeeded, "", task.OutcomeSuccess, 0, "", nil, false},
		{"success after a cancel, with a step left", store.Finish{Outcome: task.OutcomeSuccess, EndsAs: task.Cancelled}, cancelled, 1, task.Pending, task.WaitUndo, task.OutcomeUndoFailed, time.Second, "", nil, true},
		{"success after a failure", store.Finish{Outcome: task.OutcomeSuccess, EndsAs: task.Failed}, failed, 0, task.Failed, "", task.OutcomeUndone, 0, task.KindTimeout, nil, false},
		{"of a program that knows no phase", store.Finish{Outcome: task.OutcomeCancelled, Error: broke}, cancelled, 0, task.Pending, task.WaitUndo, task.OutcomeUndoFailed, time.Second, "", nil, true},
	} {
		got := rules.ResolveUndo(&c.fin, c.phase, c.open, true, now)
		if got.State != c.state || got.Waiting != c.waiting || got.Outcome != c.outcome {
			t.Errorf("%s: it is %s/%s after %s, want %s/%s after %s", c.name, got.State, got.Waiting, got.Outcome, c.state, c.waiting, c.outcome)
		}
		if got.State == task.Pending && !got.ReadyAt.Equal(now.Add(c.after)) {
			t.Errorf("%s: it is due at %v, want after %v", c.name, got.ReadyAt, c.after)
		}
		if !got.SetUndo || (got.Undo != nil) != c.goesOn || got.CountsAttempt() || got.Draws() || got.SetReadyAt {
			t.Errorf("%s: the transition is %+v", c.name, got)
		}
		if got.Undo != nil && (got.Undo == c.phase || got.Undo.GaveUp != (c.state == task.Failed) || got.Undo.HoldsKey != (c.state == task.Pending) || got.Undo.Error != nil && *got.Undo.Error != *c.phase.Error) {
			t.Errorf("%s: the phase is %+v", c.name, got.Undo)
		}
		if c.shows != nil && (got.KeepError || got.TaskError() != c.shows) || c.shows == nil && got.State != task.Succeeded && !got.KeepError {
			t.Errorf("%s: the task shows %+v, %v", c.name, got.TaskError(), got.KeepError)
		}
		if got.State.Terminal() && c.shows == nil && got.EndKind() != c.kept {
			t.Errorf("%s: it ends with the kind %q, want %q", c.name, got.EndKind(), c.kept)
		}
		if c.fin.EndsAs != "" && c.open == 0 && c.fin.EndsAs == c.phase.EndsAs {
			again := rules.ReplayedResult(&c.fin, rules.Recorded{Outcome: got.Outcome, At: now})
			if again.State != got.State || again.Waiting != got.Waiting {
				t.Errorf("%s: reported again it is %s/%s", c.name, again.State, again.Waiting)
			}
		}
	}
}

func TestCheckFinish_InUndoPhase(t *testing.T) {
	broke := errorOf(task.KindHandler)
	for _, c := range []struct {
		fin store.Finish
		ok  bool
	}{
		{store.Finish{Outcome: task.OutcomeUndone, EndsAs: task.Failed}, true},
		{store.Finish{Outcome: task.OutcomeUndone, EndsAs: task.Pending}, false},
		{store.Finish{Outcome: task.OutcomeUndone}, false},
		{store.Finish{Outcome: task.OutcomeUndoFailed, EndsAs: task.Failed}, false},
		{store.Finish{Outcome: task.OutcomeUndoFailed, EndsAs: task.Failed, Error: broke}, true},
		{store.Finish{Outcome: task.OutcomeUndoFailed, Error: broke}, false},
		{store.Finish{Outcome: task.OutcomeUndoFailed, EndsAs: task.Failed, Error: broke, Delay: -1}, false},
		{store.Finish{Outcome: task.OutcomeUndoFailed, EndsAs: task.Failed, Error: errorOf(task.KindUndoFailed), Delay: -1}, true},
		{store.Finish{Outcome: task.OutcomeBlocked, EndsAs: task.Failed, Error: broke, Waiting: task.WaitUndo}, true},
		{store.Finish{Outcome: task.OutcomeBlocked, EndsAs: task.Failed, Error: broke}, false},
		{store.Finish{Outcome: task.OutcomeSuspended, EndsAs: task.Failed, Waiting: task.WaitUndo}, true},
		{store.Finish{Outcome: task.OutcomeSuspended, EndsAs: task.Failed, Waiting: task.WaitSleep}, false},
		{store.Finish{Outcome: task.OutcomeReleased, EndsAs: task.Failed}, true},
		{store.Finish{Outcome: task.OutcomeSuccess, EndsAs: task.Cancelled}, true},
		{store.Finish{Outcome: task.OutcomeFailure, EndsAs: task.Failed, Error: broke, Decision: &task.Decision{Kind: task.DecideRetry}}, false},
		{store.Finish{Outcome: task.OutcomeCancelled, EndsAs: task.Failed}, false},
	} {
		if err := rules.CheckFinish(&c.fin); (err == nil) != c.ok {
			t.Errorf("%s, ends as %q: %v", c.fin.Outcome, c.fin.EndsAs, err)
		}
	}
}

func TestResolveLoss_InUndoPhase(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name    string
		stopped bool
		crashes int // of the task
		phase   task.UndoPhase
		alone   bool
		state   task.State
		counts  int // crashes of the phase afterwards
		crash   bool
		beside  bool // it counts as a loss in quarantine
	}{
		{"not by a crash", false, 0, task.UndoPhase{Crashes: 1}, false, task.Pending, 1, false, false},
		{"the first", true, 0, task.UndoPhase{}, false, task.Pending, 1, true, false},
		{"in quarantine", true, 0, task.UndoPhase{Crashes: 2}, false, task.Pending, 2, false, true},
		{"of a poisoned task", true, 3, task.UndoPhase{}, false, task.Pending, 0, false, true},
		{"of a poisoned task, alone", true, 3, task.UndoPhase{}, true, task.Pending, 1, true, false},
		{"one too many", true, 0, task.UndoPhase{Crashes: 2}, true, task.Failed, 3, true, false},
		{"while a lease holds it", false, 0, task.UndoPhase{NotBefore: now.Add(time.Hour)}, false, task.Pending, 0, false, false},
	} {
		l := rules.LostLease{Stopped: c.stopped, Crashes: c.crashes, Alone: c.alone, Phase: &c.phase, Key: true, Cancel: rules.CancelRequest{Kind: task.KindCancelled}, Deadline: now.Add(-time.Hour)}
		got := rules.ResolveLoss(&l, 3, now)
		if got.State != c.state || got.Undo.Crashes != c.counts || got.Crash != c.crash || got.QuarantineLoss != c.beside || !got.SetUndo || got.Undo == &c.phase {
			t.Errorf("%s: it is %s, %+v, %+v", c.name, got.State, got, got.Undo)
		}
		if got.State == task.Pending && (got.Waiting != task.WaitUndo || got.ReadyAt.Before(now) || got.ReadyAt.Before(c.phase.NotBefore) || !got.KeepError || !got.Undo.HoldsKey) {
			t.Errorf("%s: the transition is %+v, %+v", c.name, got, got.Undo)
		}
		if got.State == task.Failed && (got.EndKind() != task.KindUndoFailed || !got.Undo.GaveUp || got.Undo.HoldsKey) {
			t.Errorf("%s: the transition is %+v, %+v", c.name, got, got.Undo)
		}
	}
	never := rules.ResolveLoss(&rules.LostLease{Stopped: true, Alone: true, Phase: &task.UndoPhase{Crashes: 99}}, -1, now)
	if never.State != task.Pending {
		t.Errorf("without a budget it is %s", never.State)
	}
}

func TestUndoDelay(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	try := func(attempt int, ago time.Duration) task.Step {
		return task.Step{State: task.StepFailed, Kind: task.KindCleanup, AttemptNo: attempt, StartedAt: now.Add(-ago)}
	}
	var many []task.Step
	for i := range 20 {
		many = append(many, try(i+1, time.Hour))
	}
	for _, c := range []struct {
		name   string
		tries  []task.Step
		retry  rules.UndoRetry
		since  int
		about  time.Duration
		giveUp bool
	}{
		{"none", nil, rules.UndoRetry{}, 0, time.Second, false},
		{"one", many[:1], rules.UndoRetry{}, 0, time.Second, false},
		{"two tries of one attempt", []task.Step{try(1, time.Hour), try(1, time.Hour)}, rules.UndoRetry{}, 0, time.Second, false},
		{"three", many[:3], rules.UndoRetry{}, 0, 4 * time.Second, false},
		{"many", many, rules.UndoRetry{}, 0, time.Minute, false},
		{"many, up to its own limit", many, rules.UndoRetry{Base: 3 * time.Second, Most: 10 * time.Second}, 0, 10 * time.Second, false},
		{"for a day", []task.Step{try(1, 24*time.Hour)}, rules.UndoRetry{}, 0, time.Second, true},
		{"for nearly a day", []task.Step{try(1, 24*time.Hour-1)}, rules.UndoRetry{}, 0, time.Second, false},
		{"for as long as it is to be", many, rules.UndoRetry{For: time.Hour}, 0, time.Minute, true},
		{"tried again by an operator", []task.Step{try(1, 48*time.Hour), try(2, time.Hour)}, rules.UndoRetry{}, 1, time.Second, false},
		{"a try that did not fail", []task.Step{{State: task.StepCompleted, AttemptNo: 1, StartedAt: now.Add(-48 * time.Hour)}}, rules.UndoRetry{}, 0, time.Second, false},
	} {
		delay, giveUp := rules.UndoDelay(c.tries, c.retry, c.since, now)
		if giveUp != c.giveUp || delay < c.about*9/10 || delay > c.about*11/10 {
			t.Errorf("%s: %v, give up %v; want about %v, %v", c.name, delay, giveUp, c.about, c.giveUp)
		}
		if again, _ := rules.UndoDelay(c.tries, c.retry, c.since, now); again != delay {
			t.Errorf("%s: %v, then %v", c.name, delay, again)
		}
	}
}

func TestUndoFailure(t *testing.T) {
	phase := &task.UndoPhase{EndsAs: task.Failed, Error: &task.Error{Message: "courier down"}}
	open := []task.Step{
		{Name: "ship", State: task.StepCompleted},
		{Name: "charge", State: task.StepCompleted},
		{Name: "book", State: task.StepBegun},
		{Name: "mail", State: task.StepCompleted, Error: &task.Error{}},
	}
	last := &task.Error{Kind: task.KindHandler, Message: "psp 503", Code: "E7", Step: "ship"}
	for _, c := range []struct {
		name string
		of   rules.GivenUp
		want string
	}{
		{
			"a step",
			rules.GivenUp{Step: "ship", Tries: 412, Took: 24 * time.Hour, Last: last, Open: open, Phase: phase},
			`undo given up: step "ship" (done): its undo failed after 412 tries in 24h0m0s: psp 503; step "charge" (done): not undone; ` +
				`step "book" (its end is not on record): not undone; step "mail" (its end is not on record): not undone; the task had ended failed: courier down`,
		},
		{
			"a cleanup",
			rules.GivenUp{Step: "ship", Cleanup: true, Tries: 2, Took: time.Second, Last: last, Open: open[:1], Phase: phase},
			`undo given up: cleanup "ship" failed after 2 tries in 1s: psp 503; step "ship" (done): not undone; the task had ended failed: courier down`,
		},
	} {
		if got := rules.UndoFailure(&c.of); got.Message != c.want || got.Kind != task.KindUndoFailed || got.Code != "E7" || got.Step != "ship" {
			t.Errorf("%s: %+v, want\n%s", c.name, got, c.want)
		}
	}
	if got := rules.UndoLostFailure(3, phase); got.Kind != task.KindUndoFailed || !strings.Contains(got.Message, "3 leases in a row") || !strings.Contains(got.Message, "courier down") {
		t.Errorf("after lost leases: %+v", got)
	}
}
