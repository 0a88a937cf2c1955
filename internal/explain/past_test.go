package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Each attempt is described with the decision after it; operators' commands appear in time order.
func TestWhyPast(t *testing.T) {
	t.Parallel()
	boom := &task.Error{Kind: task.KindHandler, Message: "boom\nat line 3", Step: "charge"}
	h := a(1, task.Pending, waits(task.WaitRetry, in(4*time.Second)),
		tried(1, "web1:7", ago(10*time.Minute), task.OutcomeFailure, boom),
		decided(task.DecideRetry, ago(9*time.Minute), "attempt 1 of 5 failed: retry after 2s, by exponential backoff"),
		tried(2, "web1:7", ago(8*time.Minute), task.OutcomeSuspended, nil),
		tried(3, "web1:7", ago(7*time.Minute), task.OutcomeReleased, nil),
		tried(4, "web1:7", ago(6*time.Minute), task.OutcomeFailure, &task.Error{Kind: task.KindInternal, Message: "disk"}),
		tried(5, "web1:7", ago(5*time.Minute), task.OutcomeBlocked, &task.Error{Kind: task.KindHandler, Message: "who pays?"}),
		decided(task.DecideBlock, time.Time{}, "the attempt needs a person: who pays?"),
		tried(6, "web1:7", ago(3*time.Minute), task.OutcomeDecodeFailed, &task.Error{Kind: task.KindDecode, Message: "not a number"}),
		func(h *store.History) {
			h.Attempts[0].StepsRun = []string{"reserve", "charge"}
			h.Audit = []store.AuditEntry{{At: ago(4 * time.Minute), Actor: "ops", Verb: "unblock", Target: h.Task.ID.String(), Reason: "we do"}}
			h.Steps = []task.Step{
				{Name: "reserve", Kind: task.KindStep, State: task.StepCompleted, AttemptNo: 1},
				{Name: "charge", Kind: task.KindStep, State: task.StepFailed, AttemptNo: 1, Try: 1},
				{Name: "charge", Kind: task.KindStep, State: task.StepFailed, AttemptNo: 1, Try: 2},
			}
		})
	text := why(t, h)
	says(t, text,
		`  Attempt 1 began 10m ago (2026-11-20T11:50:00Z) on web1:7 and failed after 1s: handler_error in step "charge": boom at line 3; it ran step "reserve" and tried step "charge". 2 tries of its steps failed. It was decided to retry, due 9m ago (2026-11-20T11:51:00Z): attempt 1 of 5 failed: retry after 2s, by exponential backoff.`,
		"  Attempt 2 began 8m ago (2026-11-20T11:52:00Z) on web1:7 and left its worker to wait after 1s.",
		"  Attempt 3 began 7m ago (2026-11-20T11:53:00Z) on web1:7 and was given back because its worker stopped, at no cost, after 1s.",
		"  Attempt 4 began 6m ago (2026-11-20T11:54:00Z) on web1:7 and was stopped by an error of the engine itself, which costs no attempt, after 1s: internal: disk.",
		"  Attempt 5 began 5m ago (2026-11-20T11:55:00Z) on web1:7 and asked for a person after 1s: who pays? It was decided to wait for a person: the attempt needs a person.",
		"  ops unblocked it 4m ago (2026-11-20T11:56:00Z): we do.",
		"  Attempt 6 began 3m ago (2026-11-20T11:57:00Z) on web1:7 and could not read its input after 1s: not a number.",
		"2 of its 5 attempts are used.",
		`Recorded and not run again: step "reserve".`,
	)
	if strings.Index(text, "ops unblocked it") < strings.Index(text, "Attempt 5") {
		t.Errorf("the verb stands before what happened before it:\n%s", text)
	}
}

// Only a step that recorded a value "ran". A step that failed, recorded its error or was interrupted was "tried", and
// is named once.
func TestAttempt_StepsTried(t *testing.T) {
	t.Parallel()
	at := task.Attempt{No: 2, StepsRun: []string{"value", "fails", "fails", "error kept", "cut off", "begun"}, StartedAt: ago(time.Minute), FinishedAt: ago(time.Second), Outcome: task.OutcomeCancelled}
	steps := []task.Step{
		{Name: "value", Kind: task.KindStep, State: task.StepFailed, AttemptNo: 2, Try: 1},
		{Name: "value", Kind: task.KindStep, State: task.StepCompleted, AttemptNo: 2, Try: 2},
		{Name: "fails", Kind: task.KindStep, State: task.StepFailed, AttemptNo: 2, Try: 1},
		{Name: "fails", Kind: task.KindStep, State: task.StepCompleted, AttemptNo: 3, Try: 1},
		{Name: "error kept", Kind: task.KindStep, State: task.StepCompleted, AttemptNo: 2, Error: &task.Error{Message: "no"}},
		{Name: "begun", Kind: task.KindStep, State: task.StepBegun, AttemptNo: 2},
	}
	if got, want := clock.Attempt(&at, nil, steps), `; it ran step "value" and tried steps "fails", "error kept", "cut off", "begun".`; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDecisionThatWaits(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]task.Decision{
		`It was decided to split it into 2 tasks: it is too large (by the policy "model").`: {Kind: task.DecideDecompose, ChildIDs: make([]task.ID, 2), Reason: task.Reason{Policy: "model", Text: "it is too large"}},
		`It was decided to split it into 1000 tasks or more.`:                               {Kind: task.DecideDecompose, ChildIDs: make([]task.ID, 1000)},
		`It was decided to wait for another task: the index is not there.`:                  {Kind: task.DecideAddDependency, Reason: task.Reason{Text: "the index is not there"}},
	} {
		if got := clock.Decision(&d); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRoutedAttempt(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]task.Attempt{
		"":                             {},
		"canary":                       {Handler: "canary"},
		"canary (rule 1: tenant=t1)":   {Handler: "canary", RouteReason: "rule 1: tenant=t1"},
		"without a name (no one else)": {RouteReason: "no one else"},
	} {
		if got := explain.Routed(&a); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	a := task.Attempt{No: 2, Handler: "canary", RouteReason: "rule 1", StartedAt: ago(time.Minute), FinishedAt: ago(time.Second), Outcome: task.OutcomeSuccess, Worker: "web1:7"}
	if got, want := clock.Attempt(&a, nil, nil), "on web1:7 with the handler canary (rule 1) and succeeded"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The retry action warns that a cleanup may have undone steps that will not run again.
func TestWhyRetryAfterACleanup(t *testing.T) {
	t.Parallel()
	h := a(1, task.Failed, failed(task.KindHandler, "no seat"), func(h *store.History) {
		h.Steps = []task.Step{{Name: "reserve", Kind: task.KindStep, State: task.StepCompleted, AttemptNo: 1}}
	})
	const (
		refused = "Its cleanup \"release\" ran: a retry without --keep-steps is refused, as the steps that it undid would count as done."
		rerun   = "  weaver task rerun 00000000000000000000000001"
		stays   = "Recorded and not run again: step \"reserve\"."
	)
	says(t, why(t, h), stays, "  weaver task retry 00000000000000000000000001")
	neverSays(t, why(t, h), refused, rerun)
	h.Steps = append(h.Steps, task.Step{Name: "release", Kind: task.KindCleanup, State: task.StepCompleted, AttemptNo: 1})
	says(t, why(t, h), refused, rerun, "  weaver task retry --keep-steps 00000000000000000000000001",
		"      starts 00000000000000000000000001 again with all its attempts; recorded steps stay, and do not run again: only if its cleanup did not undo them")
	h.Needs = []store.Need{{ID: id(2), Node: "pay", State: task.Succeeded}}
	says(t, why(t, h), refused)
	neverSays(t, why(t, h), rerun)
	h.Steps[1].Undo = task.UndoSkipped
	says(t, why(t, h), stays)
	neverSays(t, why(t, h), "release", "keep-steps")
	h.Task.State, h.Task.Error = task.Ready, nil
	says(t, why(t, h), stays, "A retry kept its steps though cleanup \"release\" ran, which runs again when its turn comes.")
}

func TestEarlier(t *testing.T) {
	t.Parallel()
	h := a(1, task.Pending, waits(task.WaitSleep, in(time.Hour)))
	for n := range 4 {
		tried(n+1, "web1:7", ago(time.Hour), task.OutcomeSuspended, nil)(&h)
	}
	if got, want := explain.Earlier(clock.Past(&h)), "Before that: 4 attempts (4 suspended)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	tried(5, "web1:7", ago(time.Hour), task.OutcomeFailure, nil)(&h)
	h.Audit = []store.AuditEntry{{At: ago(time.Minute), Verb: "retry"}}
	if got, want := explain.Earlier(clock.Past(&h)), "Before that: 5 attempts (4 suspended, 1 failure) and 1 command of operators"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
