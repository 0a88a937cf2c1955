package decide_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/task"
)

func TestAgain(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	in := failing(1, 5)
	in.Task.State, in.Task.Type, in.Task.StartedAt, in.Task.UpdatedAt = task.Running, "acme.a.b.v1", began, began
	in.Task.StepCount, in.RetryAfter, in.TimeLeft, in.IdleAttempts = 3, 7*time.Second, time.Hour, 4
	in.Task.Error = &task.Error{Kind: task.KindHandler, Message: "first"}
	made := decide.Default{}.Decide(in)

	now := in.Task
	now.State, now.Waiting, now.AttemptNo, now.AttemptCount, now.StepCount = task.Pending, task.WaitSleep, 9, 0, 8
	now.Error, now.UpdatedAt = &task.Error{Message: "last"}, began.Add(time.Hour)
	d := task.Decision{AttemptNo: 2, At: began, NextReadyAt: began.Add(made.Delay), Kind: made.Kind, Reason: made.Reason}
	d.Reason.Asked = &task.Asked{AttemptCount: 1, StepCount: 3, RetryAfter: in.RetryAfter, TimeLeft: in.TimeLeft, IdleAttempts: 4}
	attempts := []task.Attempt{
		{No: 1, Error: in.Task.Error},
		{No: 2, StartedAt: began, Outcome: task.OutcomeFailure, Error: &in.Error},
		{No: 3, Error: &task.Error{Message: "later"}},
	}
	got, ok := decide.Again(now, attempts, &d)
	if !ok || !reflect.DeepEqual(got, in) {
		t.Errorf("Again:\n%+v, want\n%+v", got, in)
	}
	for want, other := range map[string]decide.Decider{
		"":                           decide.Default{},
		"mark_dead instead of retry": decide.AtMost(2, decide.Default{}),
		"retry after 1s instead of 7s": decide.Func(func(decide.Input) decide.Decision {
			return decide.Decision{Kind: task.DecideRetry, Delay: time.Second}
		}),
		"it panics: no idea": decide.Func(func(decide.Input) decide.Decision { panic("no idea") }),
	} {
		if _, differs := decide.Compare(got, &d, other); differs != want {
			t.Errorf("differs in %q, want %q", differs, want)
		}
	}
	split := task.Decision{Kind: task.DecideDecompose, ChildIDs: make([]task.ID, 2)}
	three := decide.Func(func(decide.Input) decide.Decision {
		return decide.Decision{Kind: task.DecideDecompose, Children: make([]task.Draft, 3)}
	})
	if _, differs := decide.Compare(got, &split, three); differs != "3 children instead of 2" {
		t.Errorf("differs in %q", differs)
	}
	for _, tc := range []struct {
		said   task.DecisionKind
		now    decide.Decider
		differ string
	}{
		{"", decide.Func(func(decide.Input) decide.Decision { panic("again") }), ""},
		{task.DecideDecompose, three, ""},
		{"", three, "decompose instead of a fallback to mark_dead: it failed"},
		{task.DecideDecompose, decide.Func(func(decide.Input) decide.Decision { panic("again") }), "it panics: again"},
	} {
		fell := task.Decision{Kind: task.DecideMarkDead, Reason: task.Reason{Fallback: "it failed", Said: tc.said}}
		if _, differs := decide.Compare(got, &fell, tc.now); differs != tc.differ {
			t.Errorf("a fallback from %q differs in %q, want %q", tc.said, differs, tc.differ)
		}
	}
	d.AttemptNo = 7
	if _, ok := decide.Again(now, attempts, &d); ok {
		t.Error("a decision of no attempt is made again")
	}
	d.AttemptNo, d.Reason.Asked = 2, nil
	if _, ok := decide.Again(now, attempts, &d); ok {
		t.Error("a decision without what it was asked with is made again")
	}
}

func TestAtMost(t *testing.T) {
	t.Parallel()
	two := decide.AtMost(2, decide.Default{})
	if got := two.Decide(failing(0, 5)); got.Kind != task.DecideRetry {
		t.Errorf("after the first attempt: %s", got.Kind)
	}
	if got := two.Decide(failing(1, 5)); got.Kind != task.DecideMarkDead || got.Reason.Policy != "at-most" {
		t.Errorf("after the second one: %s by %s", got.Kind, got.Reason.Policy)
	}
	blocked := failing(7, 5)
	blocked.Outcome = task.OutcomeBlocked
	if got := two.Decide(blocked); got.Kind != task.DecideBlock {
		t.Errorf("a block: %s", got.Kind)
	}
}
