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
	saga := rules.Unfinished{State: task.Pending, Waiting: task.WaitSleep, Attempts: 1, CleansUp: true}
	for _, tc := range []struct {
		name string
		is   func(*rules.Unfinished)
		want rules.Ending
	}{
		{"asleep", func(*rules.Unfinished) {}, rules.CleansUp},
		{"in a retry", func(u *rules.Unfinished) { u.Waiting, u.Attempts = task.WaitRetry, 4 }, rules.CleansUp},
		{"blocked", func(u *rules.Unfinished) { u.State, u.Waiting = task.Blocked, task.WaitManual }, rules.CleansUp},
		{"ready", func(u *rules.Unfinished) { u.State, u.Waiting = task.Ready, task.WaitNone }, rules.CleansUp},
		{"retried by an operator, waits for its needs", func(u *rules.Unfinished) { u.Waiting = task.WaitDeps }, rules.EndsNow},
		{"never ran", func(u *rules.Unfinished) { u.Attempts = 0 }, rules.EndsNow},
		{"without the option", func(u *rules.Unfinished) { u.CleansUp = false }, rules.EndsNow},
		{"is due for it already", func(u *rules.Unfinished) { u.State, u.Waiting, u.Asked = task.Ready, task.WaitNone, true }, rules.CleanupDue},
		{"is due for it already, forced", func(u *rules.Unfinished) { u.Asked, u.Force = true, true }, rules.EndsNow},
		{"running", func(u *rules.Unfinished) { u.State, u.Waiting = task.Running, task.WaitNone }, rules.EndAsked},
		{"running and asked", func(u *rules.Unfinished) { u.State, u.Waiting, u.Asked = task.Running, task.WaitNone, true }, rules.EndAsked},
		{"running, forced", func(u *rules.Unfinished) { u.State, u.Waiting, u.Force = task.Running, task.WaitNone, true }, rules.EndsNow},
		{"asleep, forced", func(u *rules.Unfinished) { u.Force = true }, rules.EndsNow},
	} {
		u := saga
		tc.is(&u)
		if got := rules.ResolveEnd(&u); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestResolveFinishOfACleanup(t *testing.T) {
	t.Parallel()
	fins := map[string]store.Finish{
		"success": {Outcome: task.OutcomeSuccess, Output: result}, "cancelled": {Outcome: task.OutcomeCancelled, Error: failure},
		"released": {Outcome: task.OutcomeReleased}, "suspended": {Outcome: task.OutcomeSuspended, WakeAt: now.Add(time.Hour)},
		"retry": decided(task.DecideRetry, time.Hour), "block": decided(task.DecideBlock, 0), "dead": decided(task.DecideMarkDead, 0),
		"overruled": decided(task.DecideSucceed, 0), "internal": {Outcome: task.OutcomeFailure, Error: broken, Delay: time.Second},
	}
	for how, cancel := range map[string]rules.CancelRequest{
		"asked meanwhile": {Kind: task.KindCancelled, CleansUp: true},
		"asked before":    {Kind: task.KindDeadline, CleansUp: true, Before: true},
		"not asked":       {CleansUp: true},
	} {
		for name, fin := range fins {
			want := map[string]task.State{"success": task.Succeeded, "released": task.Ready}[name]
			switch {
			case cancel.Kind == "":
				plain := rules.ResolveFinish(&fin, rules.CancelRequest{}, time.Time{}, now)
				want = plain.State
			case want != "":
			case cancel.Before, name == "cancelled", name == "dead", name == "overruled":
				want = task.Cancelled
			default:
				want = task.Ready
			}
			got := rules.ResolveFinish(&fin, cancel, now, now)
			if got.State != want {
				t.Errorf("%s, %s: %s, want %s", name, how, got.State, want)
			}
			if got.State == task.Ready && (got.Waiting != task.WaitNone || got.ReadyAt != now || got.SetReadyAt || got.Decision != nil || got.Outcome != fin.Outcome) {
				t.Errorf("%s, %s: %+v", name, how, got)
			}
			if cancel.Before && got.CountsAttempt() {
				t.Errorf("%s, %s: a cleanup counts as an attempt", name, how)
			}
		}
	}
}

func TestInTime(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		deadline time.Time
		asked    bool
		want     bool
	}{
		{time.Time{}, false, true}, {now.Add(1), false, true}, {now, false, false}, {now, true, true},
	} {
		if got := rules.InTime(&task.Task{DeadlineAt: tc.deadline, CancelRequested: tc.asked}, now); got != tc.want {
			t.Errorf("with the deadline %v, asked %v: %v", tc.deadline, tc.asked, got)
		}
	}
}
