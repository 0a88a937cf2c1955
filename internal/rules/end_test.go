package rules_test

import (
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestResolveEnd(t *testing.T) {
	t.Parallel()
	undo, forced := &task.UndoPhase{EndsAs: task.Failed}, &task.UndoPhase{EndsAs: task.Failed, Forced: true}
	for _, tc := range []struct {
		name string
		of   rules.Unfinished
		want rules.Ending
	}{
		{"asleep", rules.Unfinished{State: task.Pending}, rules.EndsNow},
		{"blocked", rules.Unfinished{State: task.Blocked}, rules.EndsNow},
		{"ready", rules.Unfinished{State: task.Ready}, rules.EndsNow},
		{"running", rules.Unfinished{State: task.Running}, rules.EndAsked},
		{"running, forced", rules.Unfinished{State: task.Running, Force: true}, rules.EndsNow},
		{"due for its undo", rules.Unfinished{State: task.Pending, Phase: undo}, rules.InPhase},
		{"in its undo", rules.Unfinished{State: task.Running, Phase: undo}, rules.InPhase},
		{"in its undo, forced", rules.Unfinished{State: task.Running, Phase: undo, Force: true}, rules.ForcesUndo},
		{"in its undo, forced twice", rules.Unfinished{State: task.Blocked, Phase: forced, Force: true}, rules.AbandonsUndo},
		{"in its forced undo", rules.Unfinished{State: task.Running, Phase: forced}, rules.InPhase},
		{"in its undo, abandoned", rules.Unfinished{State: task.Running, Phase: undo, Abandon: true}, rules.AbandonsUndo},
	} {
		if got := rules.ResolveEnd(&tc.of); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestBegan(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		state    task.State
		why      task.Waiting
		join     task.Join
		attempts int
		want     bool
	}{
		{"asleep", task.Pending, task.WaitSleep, task.JoinNone, 1, true},
		{"in a retry", task.Pending, task.WaitRetry, task.JoinNone, 4, true},
		{"blocked", task.Blocked, task.WaitManual, task.JoinNone, 1, true},
		{"never ran", task.Ready, task.WaitNone, task.JoinNone, 0, false},
		{"retried by an operator, waits for its needs", task.Pending, task.WaitDeps, task.JoinNone, 1, false},
		{"waits for a task that it asked for", task.Pending, task.WaitDeps, task.JoinDependency, 1, true},
	} {
		if got := rules.Began(tc.state, tc.why, tc.join, tc.attempts); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

// A task that was asked to end is cancelled by every outcome except success. The transition
// says whether its handler knew of the request.
func TestResolveFinish_AskedToEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fin     store.Finish
		unaware bool
	}{
		"cancelled": {store.Finish{Outcome: task.OutcomeCancelled, Error: failure}, false},
		"dead":      {decided(task.DecideMarkDead, 0), false},
		"overruled": {decided(task.DecideSucceed, 0), false},
		"released":  {store.Finish{Outcome: task.OutcomeReleased}, true},
		"suspended": {store.Finish{Outcome: task.OutcomeSuspended, WakeAt: now.Add(time.Hour)}, true},
		"retry":     {decided(task.DecideRetry, time.Hour), true},
		"block":     {decided(task.DecideBlock, 0), true},
		"internal":  {store.Finish{Outcome: task.OutcomeFailure, Error: broken, Delay: time.Second}, true},
	} {
		got := rules.ResolveFinish(&tc.fin, rules.CancelRequest{Kind: task.KindDeadline}, now, now)
		if got.State != task.Cancelled || got.EndKind() != task.KindDeadline || got.Unaware != tc.unaware {
			t.Errorf("%s: %+v", name, got)
		}
		spent := rules.ResolveFinish(&tc.fin, rules.CancelRequest{Kind: task.KindBudget, Reason: "spent"}, now, now)
		if spent.State != task.Failed || spent.EndKind() != task.KindBudget || spent.Unaware != tc.unaware {
			t.Errorf("%s, for its budget: %+v", name, spent)
		}
	}
	good := store.Finish{Outcome: task.OutcomeSuccess, Output: result}
	if got := rules.ResolveFinish(&good, rules.CancelRequest{Kind: task.KindDeadline}, now, now); got.State != task.Succeeded {
		t.Errorf("success: %+v", got)
	}
}

func TestInTime(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		deadline time.Time
		phase    *task.UndoPhase
		want     bool
	}{
		{time.Time{}, nil, true}, {now.Add(1), nil, true}, {now, nil, false}, {now, &task.UndoPhase{}, true},
	} {
		if got := rules.InTime(&task.Task{DeadlineAt: tc.deadline, Undo: tc.phase}, now); got != tc.want {
			t.Errorf("with the deadline %v, in the phase %v: %v", tc.deadline, tc.phase != nil, got)
		}
	}
}
