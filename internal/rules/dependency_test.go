package rules_test

import (
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestResolveDependency(t *testing.T) {
	t.Parallel()
	at := func(e task.End) rules.Dependency { return rules.Dependency{Found: true, Name: "b", End: e} }
	with := func(d rules.Dependency, change func(*rules.Dependency)) rules.Dependency { change(&d); return d }
	f := store.Finish{Lease: task.Lease{Task: task.ID{1}}, Outcome: task.OutcomeAddDependency, DependsOn: task.ID{2}}
	self := f
	self.DependsOn = f.Lease.Task
	for _, tc := range []struct {
		name    string
		fin     store.Finish
		on      rules.Dependency
		cancel  rules.CancelRequest
		state   task.State
		waiting task.Waiting
		kind    task.ErrorKind
		awaited bool
		counts  bool
	}{
		{"it runs", f, at(open), rules.CancelRequest{}, task.Pending, task.WaitDeps, "", true, false},
		{"it was needed before, and runs again", f, with(at(open), func(d *rules.Dependency) { d.Known = true }), rules.CancelRequest{}, task.Pending, task.WaitDeps, "", true, false},
		{"it succeeded", f, at(succeeded), rules.CancelRequest{}, task.Ready, "", "", true, false},
		{"it failed, which is allowed", f, at(allowed), rules.CancelRequest{}, task.Ready, "", "", true, false},
		{"it failed", f, at(failed), rules.CancelRequest{}, task.Cancelled, "", task.KindDependencyFailed, true, false},
		{"it was cancelled", f, at(cancelled), rules.CancelRequest{}, task.Cancelled, "", task.KindDependencyFailed, true, false},
		{"it succeeded and was waited for", f, with(at(succeeded), func(d *rules.Dependency) { d.Known = true }), rules.CancelRequest{}, task.Failed, "", task.KindValidation, false, true},
		{"it waits for this one", f, with(at(open), func(d *rules.Dependency) { d.Cycle = true }), rules.CancelRequest{}, task.Failed, "", task.KindValidation, false, true},
		{"it is a child", f, with(at(open), func(d *rules.Dependency) { d.Child = true }), rules.CancelRequest{}, task.Failed, "", task.KindValidation, false, true},
		{"it is this one", self, at(open), rules.CancelRequest{}, task.Failed, "", task.KindValidation, false, true},
		{"there is none", f, rules.Dependency{}, rules.CancelRequest{}, task.Failed, "", task.KindValidation, false, true},
		{"this one is to be cancelled", f, at(open), rules.CancelRequest{Kind: task.KindCancelled}, task.Cancelled, "", task.KindCancelled, false, true},
	} {
		got := rules.ResolveDependency(&tc.fin, &tc.on, tc.cancel, time.Time{}, now)
		if got.State != tc.state || got.Waiting != tc.waiting || rules.KindOf(got.Failure) != tc.kind || got.Awaited != tc.awaited || got.CountsAttempt() != tc.counts {
			t.Errorf("%s: %+v", tc.name, got)
		}
		if waits := got.State == task.Pending; waits && got.Join != task.JoinDependency || got.State == task.Ready && got.Join != task.JoinNone {
			t.Errorf("%s: the join is %q", tc.name, got.Join)
		}
	}
	outside := with(at(open), func(d *rules.Dependency) { d.Outside = true })
	if got := rules.ResolveDependency(&f, &outside, rules.CancelRequest{}, time.Time{}, now); got.Join != task.JoinOutside {
		t.Errorf("a task of another job: %+v", got)
	}
	for recorded, want := range map[task.Outcome]task.State{
		task.OutcomeAddDependency: task.Pending, task.OutcomeFailure: task.Failed, task.OutcomeCancelled: task.Cancelled,
	} {
		if got := rules.ReplayedResult(&f, rules.Recorded{Outcome: recorded, At: now}); got.State != want {
			t.Errorf("reported again, recorded as %s: %+v", recorded, got)
		}
	}
	if err := rules.CheckFinish(&store.Finish{Outcome: task.OutcomeAddDependency}); err == nil {
		t.Error("an add_dependency without a task")
	}
}
