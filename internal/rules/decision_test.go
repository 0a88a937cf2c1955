package rules_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func kindOf(d *task.Decision) task.DecisionKind {
	if d == nil {
		return ""
	}
	return d.Kind
}

// decomposes returns a failed attempt whose Decider chose n children.
func decomposes(o task.Outcome, join task.Join, n int) store.Finish {
	f := decided(task.DecideDecompose, 0)
	f.Outcome, f.Join, f.Lease.Task = o, join, task.ID{1}
	f.Decision.Reason.Text = "too large"
	for i := range n {
		f.Children = append(f.Children, task.New{ID: task.ID{2, byte(i), byte(i >> 8)}})
	}
	return f
}

func TestDecidedDecompose(t *testing.T) {
	t.Parallel()
	asked := rules.CancelRequest{Kind: task.KindCancelled}
	for _, tc := range []struct {
		name    string
		fin     store.Finish
		parent  rules.Parent
		cancel  rules.CancelRequest
		state   task.State
		outcome task.Outcome
		kind    task.ErrorKind // of the attempt
		decided task.DecisionKind
		counts  bool
	}{
		{"rerun", decomposes(task.OutcomeFailure, task.JoinRerun, 2), rules.Parent{}, rules.CancelRequest{}, task.Pending, task.OutcomeFailure, task.KindHandler, task.DecideDecompose, true},
		{"complete", decomposes(task.OutcomeBlocked, task.JoinComplete, 1), rules.Parent{}, rules.CancelRequest{}, task.Pending, task.OutcomeBlocked, task.KindHandler, task.DecideDecompose, false},
		{"too deep", decomposes(task.OutcomeFailure, task.JoinRerun, 1), rules.Parent{Depth: 8}, rules.CancelRequest{}, task.Failed, task.OutcomeFailure, task.KindValidation, task.DecideMarkDead, true},
		{"too many, blocked", decomposes(task.OutcomeBlocked, task.JoinRerun, 2), rules.Parent{Children: 9_999}, rules.CancelRequest{}, task.Failed, task.OutcomeBlocked, task.KindValidation, task.DecideMarkDead, false},
		{"to be cancelled", decomposes(task.OutcomeFailure, task.JoinRerun, 1), rules.Parent{}, asked, task.Cancelled, task.OutcomeCancelled, task.KindCancelled, "", true},
		{"too deep and to be cancelled", decomposes(task.OutcomeFailure, task.JoinRerun, 1), rules.Parent{Depth: 8}, asked, task.Cancelled, task.OutcomeCancelled, task.KindCancelled, "", true},
	} {
		got := rules.ResolveDecompose(&tc.fin, tc.parent, tc.cancel, time.Time{}, now)
		if got.State != tc.state || got.Outcome != tc.outcome || rules.KindOf(got.Failure) != tc.kind || kindOf(got.Decision) != tc.decided || got.CountsAttempt() != tc.counts {
			t.Errorf("%s: %+v", tc.name, got)
		}
		if waits := got.State == task.Pending; waits != (got.Join == tc.fin.Join) || waits && (got.Waiting != task.WaitChildren || got.KeepError || len(got.Decision.ChildIDs) != len(tc.fin.Children)) {
			t.Errorf("%s: %+v", tc.name, got)
		}
		if again := rules.ReplayedResult(&tc.fin, rules.Recorded{Outcome: got.Outcome, Decision: kindOf(got.Decision), At: now}); again.State != got.State || again.Waiting != got.Waiting {
			t.Errorf("%s: reported again: %+v", tc.name, again)
		}
	}
	f := decomposes(task.OutcomeFailure, task.JoinComplete, task.MaxDecisionChildren+5)
	got := rules.ResolveDecompose(&f, rules.Parent{}, rules.CancelRequest{}, time.Time{}, now)
	if len(got.Decision.ChildIDs) != task.MaxDecisionChildren || string(got.JoinOutput) != string(result) {
		t.Errorf("many children: %d in the decision, output %s", len(got.Decision.ChildIDs), got.JoinOutput)
	}
	got = rules.ResolveDecompose(&f, rules.Parent{Depth: 8}, rules.CancelRequest{}, time.Time{}, now)
	for _, part := range []string{"the decider chose decompose", "depth 8", "boom"} {
		if !strings.Contains(got.Failure.Message, part) {
			t.Errorf("a refused decision: %q lacks %q", got.Failure.Message, part)
		}
	}
	if !strings.Contains(got.Decision.Reason.Text, "too large") {
		t.Errorf("a refused decision has the reason %q", got.Decision.Reason.Text)
	}
}

func TestDecidedDependency(t *testing.T) {
	t.Parallel()
	f := decided(task.DecideAddDependency, 0)
	f.Lease.Task, f.DependsOn = task.ID{1}, task.ID{2}
	for _, tc := range []struct {
		name    string
		on      rules.Dependency
		state   task.State
		kind    task.ErrorKind
		decided task.DecisionKind
		counts  bool
	}{
		{"it runs", rules.Dependency{Found: true, End: open}, task.Pending, task.KindHandler, task.DecideAddDependency, true},
		{"it succeeded", rules.Dependency{Found: true, End: succeeded}, task.Ready, task.KindHandler, task.DecideAddDependency, true},
		{"it failed", rules.Dependency{Found: true, End: failed}, task.Cancelled, task.KindDependencyFailed, task.DecideAddDependency, false},
		{"there is none", rules.Dependency{}, task.Failed, task.KindValidation, task.DecideMarkDead, true},
		{"it waits for this one", rules.Dependency{Found: true, End: open, Cycle: true}, task.Failed, task.KindValidation, task.DecideMarkDead, true},
	} {
		got := rules.ResolveDependency(&f, &tc.on, rules.CancelRequest{}, time.Time{}, now)
		if got.State != tc.state || rules.KindOf(got.Failure) != tc.kind || kindOf(got.Decision) != tc.decided || got.CountsAttempt() != tc.counts || got.Awaited != (tc.state != task.Failed) {
			t.Errorf("%s: %+v", tc.name, got)
		}
		if got.State == task.Ready {
			continue // a repetition answers with a waiting state
		}
		if again := rules.ReplayedResult(&f, rules.Recorded{Outcome: got.Outcome, Decision: kindOf(got.Decision), At: now}); again.State != got.State {
			t.Errorf("%s: reported again: %+v", tc.name, again)
		}
	}
}

func TestCheckDecision(t *testing.T) {
	t.Parallel()
	good, none, join := decomposes(task.OutcomeFailure, task.JoinRerun, 1), decomposes(task.OutcomeFailure, task.JoinRerun, 0), decomposes(task.OutcomeFailure, "later", 1)
	needs := decomposes(task.OutcomeFailure, task.JoinRerun, 1)
	needs.Children[0].Needs = []task.Edge{{Needs: task.ID{9}}}
	on, nothing := decided(task.DecideAddDependency, 0), decided(task.DecideAddDependency, 0)
	on.DependsOn = task.ID{2}
	for want, f := range map[string]store.Finish{"": good, "without children": none, "join": join, "needs": needs, "without a task": nothing} {
		err := rules.CheckFinish(&f)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	if err := rules.CheckFinish(&on); err != nil {
		t.Error(err)
	}
	for want, f := range map[task.Outcome]store.Finish{
		task.OutcomeDecompose: good, task.OutcomeAddDependency: on, task.OutcomeNone: decided(task.DecideRetry, 0),
	} {
		if got := rules.Asks(&f); got != want {
			t.Errorf("Asks(%s) = %q", f.Decision.Kind, got)
		}
	}
	ok := store.Finish{Outcome: task.OutcomeSuccess, Decision: good.Decision, Output: json.RawMessage("1")}
	if got := rules.Asks(&ok); got != task.OutcomeNone {
		t.Errorf("a success asks for %q", got)
	}
}
