package rules_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var (
	now     = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	failure = &task.Error{Kind: task.KindHandler, Message: "boom"}
	broken  = &task.Error{Kind: task.KindInternal, Message: "no store"}
	result  = json.RawMessage(`1`)
)

func decided(kind task.DecisionKind, delay time.Duration) store.Finish {
	return store.Finish{Outcome: task.OutcomeFailure, Error: failure, Output: result, Decision: &task.Decision{Kind: kind}, Delay: delay}
}

func TestResolveFinish(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) time.Time { return now.Add(d) }
	none := rules.CancelRequest{}
	asked := rules.CancelRequest{Kind: task.KindCancelled, By: "ops", Reason: "wrong"}
	late := rules.CancelRequest{Kind: task.KindDeadline}
	for _, tc := range []struct {
		name   string
		fin    store.Finish
		cancel rules.CancelRequest
		want   rules.Transition
		counts bool
	}{
		{
			"success",
			store.Finish{Outcome: task.OutcomeSuccess, Output: result},
			none,
			rules.Transition{State: task.Succeeded, Outcome: task.OutcomeSuccess, Output: result, ResetCrashes: true},
			true,
		},
		{
			"success although a cancel was asked for",
			store.Finish{Outcome: task.OutcomeSuccess, Output: result},
			asked,
			rules.Transition{State: task.Succeeded, Outcome: task.OutcomeSuccess, Output: result, ResetCrashes: true},
			true,
		},
		{
			"failure of a task that was asked to cancel", decided(task.DecideRetry, time.Second), asked,
			rules.Transition{State: task.Cancelled, Outcome: task.OutcomeCancelled, Failure: &task.Error{Kind: task.KindCancelled, Message: "cancelled by ops: wrong"}, Unaware: true},
			true,
		},
		{
			"sleep of a task whose deadline passed",
			store.Finish{Outcome: task.OutcomeSuspended, WakeAt: at(time.Hour)},
			late,
			rules.Transition{State: task.Cancelled, Outcome: task.OutcomeCancelled, Failure: rules.DeadlineFailure(at(-time.Second)), Unaware: true},
			true,
		},
		{
			"retry later", decided(task.DecideRetry, time.Minute), none,
			rules.Transition{
				State: task.Pending, Waiting: task.WaitRetry, ReadyAt: at(time.Minute), SetReadyAt: true, Outcome: task.OutcomeFailure, Failure: failure,
				Decision: &task.Decision{Kind: task.DecideRetry, NextReadyAt: at(time.Minute)},
			},
			true,
		},
		{
			"retry at once", decided(task.DecideRetry, -time.Minute), none,
			rules.Transition{
				State: task.Ready, ReadyAt: now, SetReadyAt: true, Outcome: task.OutcomeFailure, Failure: failure,
				Decision: &task.Decision{Kind: task.DecideRetry, NextReadyAt: now},
			},
			true,
		},
		{
			"mark dead", decided(task.DecideMarkDead, 0), none,
			rules.Transition{State: task.Failed, Outcome: task.OutcomeFailure, Failure: failure, Decision: &task.Decision{Kind: task.DecideMarkDead}},
			true,
		},
		{
			"mark dead with an instant that only stores fill in",
			store.Finish{Outcome: task.OutcomeFailure, Error: failure, Decision: &task.Decision{Kind: task.DecideMarkDead, NextReadyAt: now}},
			none,
			rules.Transition{State: task.Failed, Outcome: task.OutcomeFailure, Failure: failure, Decision: &task.Decision{Kind: task.DecideMarkDead}},
			true,
		},
		{
			"block", decided(task.DecideBlock, 0), none,
			rules.Transition{State: task.Blocked, Waiting: task.WaitManual, Outcome: task.OutcomeFailure, Failure: failure, Decision: &task.Decision{Kind: task.DecideBlock}},
			true,
		},
		{
			"overruled: succeed", decided(task.DecideSucceed, 0), none,
			rules.Transition{State: task.Succeeded, Outcome: task.OutcomeFailure, Failure: failure, Output: result, ResetCrashes: true, Decision: &task.Decision{Kind: task.DecideSucceed}},
			true,
		},
		{
			"error of the engine",
			store.Finish{Outcome: task.OutcomeFailure, Error: broken, Delay: time.Second},
			none,
			rules.Transition{State: task.Pending, Waiting: task.WaitRetry, ReadyAt: at(time.Second), SetReadyAt: true, Outcome: task.OutcomeFailure, Failure: broken, CountsInternal: true},
			false,
		},
		{
			"last error of the engine",
			store.Finish{Outcome: task.OutcomeFailure, Error: broken, Delay: -1},
			none,
			rules.Transition{State: task.Failed, Outcome: task.OutcomeFailure, Failure: broken, CountsInternal: true},
			false,
		},
		{
			"sleep",
			store.Finish{Outcome: task.OutcomeSuspended, Error: failure, WakeAt: at(time.Hour + time.Nanosecond)},
			none,
			rules.Transition{State: task.Pending, Waiting: task.WaitSleep, ReadyAt: at(time.Hour), SetReadyAt: true, KeepError: true, Outcome: task.OutcomeSuspended},
			false,
		},
		{
			"sleep that is over",
			store.Finish{Outcome: task.OutcomeSuspended, WakeAt: now},
			none,
			rules.Transition{State: task.Ready, ReadyAt: now, SetReadyAt: true, KeepError: true, Outcome: task.OutcomeSuspended},
			false,
		},
		{
			"release",
			store.Finish{Outcome: task.OutcomeReleased},
			none,
			rules.Transition{State: task.Ready, ReadyAt: now, KeepError: true, RaiseEpoch: true, Outcome: task.OutcomeReleased},
			false,
		},
		{
			"release by a worker that cannot run it",
			store.Finish{Outcome: task.OutcomeReleased, Error: &task.Error{Kind: task.KindWorker}, Delay: time.Second},
			none,
			rules.Transition{State: task.Pending, Waiting: task.WaitRetry, ReadyAt: at(time.Second), SetReadyAt: true, KeepError: true, RaiseEpoch: true, Outcome: task.OutcomeReleased, Failure: &task.Error{Kind: task.KindWorker}},
			false,
		},
		{
			"cancelled",
			store.Finish{Outcome: task.OutcomeCancelled, Error: failure},
			none,
			rules.Transition{State: task.Cancelled, Outcome: task.OutcomeCancelled, Failure: failure},
			true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := rules.ResolveFinish(&tc.fin, tc.cancel, at(-time.Second), now)
			if !equal(got, tc.want) {
				t.Errorf("ResolveFinish:\n%+v, want\n%+v", got, tc.want)
			}
			if got.CountsAttempt() != tc.counts {
				t.Errorf("CountsAttempt = %v", got.CountsAttempt())
			}
			if err := got.TaskError(); (got.State == task.Succeeded) && err != nil {
				t.Errorf("a task that succeeded shows %v", err)
			}
			// R8: a repeated report is answered with the same state.
			again := rules.ReplayedResult(&tc.fin, rules.Recorded{Outcome: got.Outcome, Error: got.Failure, Decision: kindOf(got.Decision), At: now})
			if again.State != got.State || again.Waiting != got.Waiting || again.Err != nil {
				t.Errorf("ReplayedResult = %+v, want %s/%s", again, got.State, got.Waiting)
			}
		})
	}
}

// equal compares by JSON, in which equal pointers and instants are equal.
func equal(a, b any) bool {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && string(x) == string(y)
}

func TestCancelFailure(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]rules.CancelRequest{
		"cancelled":               {Kind: task.KindCancelled},
		"cancelled by ops":        {Kind: task.KindCancelled, By: "ops"},
		"cancelled: wrong":        {Kind: task.KindCancelled, Reason: "wrong"},
		"cancelled by ops: wrong": {Kind: task.KindCancelled, By: "ops", Reason: "wrong"},
	} {
		if got := rules.CancelFailure(c, time.Time{}); got.Message != want || got.Kind != task.KindCancelled {
			t.Errorf("CancelFailure(%+v) = %+v, want %q", c, got, want)
		}
	}
}

func TestCheckFinish(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		fin  store.Finish
		want string // part of the error; "": no error
	}{
		{store.Finish{Outcome: task.OutcomeSuccess}, ""},
		{store.Finish{Outcome: task.OutcomeSuspended}, ""},
		{store.Finish{Outcome: task.OutcomeReleased}, ""},
		{store.Finish{Outcome: task.OutcomeCancelled}, ""},
		{store.Finish{Outcome: task.OutcomeLeaseLost}, `outcome "lease_lost" cannot be reported`},
		{store.Finish{Outcome: "odd"}, `outcome "odd" cannot be reported`},
		{store.Finish{Outcome: task.OutcomeFailure, Error: failure}, `outcome "failure" without a decision`},
		{store.Finish{Outcome: task.OutcomeBlocked}, `outcome "blocked" without a decision`},
		{store.Finish{Outcome: task.OutcomeFailure, Error: broken}, ""},
		{decided(task.DecideRetry, 0), ""},
		{decided(task.DecideMarkDead, 0), ""},
		{decided(task.DecideBlock, 0), ""},
		{decided(task.DecideSucceed, 0), ""},
		{decided("odd", 0), `decision "odd" cannot be carried out`},
	} {
		err := rules.CheckFinish(&tc.fin)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("CheckFinish(%s, %v) = %v, want %q", tc.fin.Outcome, tc.fin.Decision, err, tc.want)
		}
	}
	if err := rules.Conflicting(&task.Lease{}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Conflicting: %v", err)
	}
	if err := rules.LeaseLost(&task.Lease{}, rules.LostToAnother); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("LeaseLost: %v", err)
	}
}

func TestLeaseLostFailure(t *testing.T) {
	t.Parallel()
	for want, expires := range map[string]time.Time{
		`the lease of worker "w" ended at 2026-03-01T12:00:00Z without a report`: now,
		`the process of worker "w" ended without a report`:                       now.Add(time.Second),
	} {
		if got := rules.LeaseLostFailure("w", expires, now); got.Message != want || got.Kind != task.KindLeaseExpired {
			t.Errorf("a lease until %v: %+v, want %q", expires, got, want)
		}
	}
}
