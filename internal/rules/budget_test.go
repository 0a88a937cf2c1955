package rules_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestExhausts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		job  task.Job
		want bool
		says string
	}{
		{"no limit", task.Job{AttemptsUsed: 9, Cost: 9}, false, ""},
		{"attempts left", task.Job{AttemptsUsed: 2, Budget: task.Budget{MaxTotalAttempts: 3}}, false, ""},
		{"the last attempt", task.Job{AttemptsUsed: 3, Budget: task.Budget{MaxTotalAttempts: 3}}, true, "its job used 3 of 3 attempts (budget.max_total_attempts)"},
		{"as much as it may spend", task.Job{Cost: 5, Budget: task.Budget{MaxCost: 5}}, false, ""},
		{"more", task.Job{Cost: 6, Budget: task.Budget{MaxCost: 5}}, true, "its job spent 6 of 5 micro-units (budget.max_cost)"},
		{
			"both",
			task.Job{AttemptsUsed: 2, Cost: 6, Budget: task.Budget{MaxCost: 5, MaxTotalAttempts: 1}},
			true,
			"its job used 2 of 1 attempts (budget.max_total_attempts) and spent 6 of 5 micro-units (budget.max_cost)",
		},
		{"ended for it before", task.Job{Cost: 6, Budget: task.Budget{MaxCost: 5}, ExhaustedAt: now}, false, "its job spent 6 of 5 micro-units (budget.max_cost)"},
	} {
		j := tc.job
		if rules.Exhausts(&j) {
			t.Errorf("%s: a job without work is exhausted", tc.name)
		}
		j.Counters.Unfinished = 1
		if got := rules.Exhausts(&j); got != tc.want {
			t.Errorf("%s: exhausted %v", tc.name, got)
		}
		if got := rules.JobSpent(&j); got != tc.says {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.says)
		}
	}
}

func TestSpent(t *testing.T) {
	t.Parallel()
	over := &task.Job{Cost: 6, Budget: task.Budget{MaxCost: 5}}
	for _, tc := range []struct {
		cost, limit int64
		job         *task.Job
		want        string
	}{
		{5, 0, nil, ""},
		{5, 5, &task.Job{Cost: 5, Budget: task.Budget{MaxCost: 5}}, ""},
		{6, 5, over, "it spent 6 of 5 micro-units (its max_cost)"},
		{6, 9, over, "its job spent 6 of 5 micro-units (budget.max_cost)"},
	} {
		if got := rules.Spent(tc.cost, tc.limit, tc.job); got != tc.want {
			t.Errorf("%d of %d: %q, want %q", tc.cost, tc.limit, got, tc.want)
		}
	}
}

func TestOverrule(t *testing.T) {
	t.Parallel()
	last := &task.Job{AttemptsUsed: 3, Budget: task.Budget{MaxTotalAttempts: 3}}
	left := &task.Job{AttemptsUsed: 2, Budget: task.Budget{MaxTotalAttempts: 3}}
	failed := decided(task.DecideRetry, time.Second)
	failed.Error = &task.Error{Kind: task.KindPanic, Message: "boom", Code: "E1", Step: "s", Stack: "at"}
	broke := store.Finish{Outcome: task.OutcomeFailure, Error: broken}
	for _, tc := range []struct {
		name string
		fin  store.Finish
		job  *task.Job
		want bool
	}{
		{"a retry, with an attempt left", failed, left, false},
		{"a retry", failed, last, true},
		{"a success", store.Finish{Outcome: task.OutcomeSuccess}, last, false},
		{"a dead task", decided(task.DecideMarkDead, 0), last, false},
		{"a blocked task", decided(task.DecideBlock, 0), last, false},
		{"a sleep", store.Finish{Outcome: task.OutcomeSuspended, WakeAt: now}, last, false},
		{"an error of the engine", broke, last, false},
	} {
		got := rules.ResolveFinish(&tc.fin, rules.CancelRequest{}, time.Time{}, now)
		before := got
		got.Overrule(tc.job)
		if !tc.want {
			if got.State != before.State || got.Failure != before.Failure {
				t.Errorf("%s: overruled: %+v", tc.name, got)
			}
			continue
		}
		if got.State != task.Failed || got.Waiting != "" || got.Decision.Kind != task.DecideMarkDead || got.Outcome != task.OutcomeFailure || !got.CountsAttempt() {
			t.Errorf("%s: %+v", tc.name, got)
		}
		want := task.Error{
			Kind: task.KindBudget, Code: "E1", Step: "s", Stack: "at",
			Message: "the budget is used up: its job used 3 of 3 attempts (budget.max_total_attempts); the last error: boom",
		}
		if *got.Failure != want || !strings.Contains(got.Decision.Reason.Text, "3 of 3 attempts") {
			t.Errorf("%s: %+v, %+v", tc.name, got.Failure, got.Decision.Reason)
		}
		again := rules.ReplayedResult(&tc.fin, rules.Recorded{Outcome: got.Outcome, Error: got.Failure, At: now})
		if again.State != task.Failed || again.Waiting != "" {
			t.Errorf("%s: reported again it is %+v", tc.name, again)
		}
	}
}

func TestResolveFinishForABudget(t *testing.T) {
	t.Parallel()
	fins := map[string]store.Finish{
		"suspended": {Outcome: task.OutcomeSuspended, WakeAt: now.Add(time.Hour)}, "cancelled": {Outcome: task.OutcomeCancelled, Error: &task.Error{Kind: task.KindCancelled, Message: "stop"}},
		"released": {Outcome: task.OutcomeReleased}, "retry": decided(task.DecideRetry, time.Hour), "decompose": {Outcome: task.OutcomeDecompose, Join: task.JoinRerun},
	}
	for name, fin := range fins {
		own := rules.ResolveFinish(&fin, rules.CancelRequest{Kind: task.KindBudget, Reason: "7 of 5"}, time.Time{}, now)
		if own.State != task.Failed || own.Failure.Kind != task.KindBudget || own.Decision.Kind != task.DecideMarkDead || !strings.Contains(own.Decision.Reason.Text, "7 of 5") {
			t.Errorf("%s over the budget: %+v", name, own)
		}
		if own.Join != task.JoinNone || own.Output != nil || strings.Contains(own.Failure.Message, "stop") {
			t.Errorf("%s over the budget: %+v", name, own.Failure)
		}
		job := rules.ResolveFinish(&fin, rules.CancelRequest{Kind: task.KindJobBudget, Reason: "7 of 5"}, time.Time{}, now)
		if job.State != task.Cancelled || job.Failure.Kind != task.KindBudget || job.Decision != nil || job.Failure.Message != "the budget is used up: 7 of 5" {
			t.Errorf("%s of a job over its budget: %+v, %v", name, job, job.Failure)
		}
	}
	done := store.Finish{Outcome: task.OutcomeSuccess}
	if got := rules.ResolveFinish(&done, rules.CancelRequest{Kind: task.KindBudget}, time.Time{}, now); got.State != task.Succeeded {
		t.Errorf("a success is %+v", got)
	}
	for kind, want := range map[task.ErrorKind]task.State{task.KindBudget: task.Failed, task.KindJobBudget: task.Cancelled} {
		loss := rules.ResolveLoss(&rules.LostLease{Cancel: rules.CancelRequest{Kind: kind, Reason: "7 of 5"}}, 3, now)
		if loss.State != want || loss.Failure.Kind != task.KindBudget {
			t.Errorf("a lost lease with the cancel kind %s: %+v", kind, loss)
		}
	}
}

func TestIdleAttempts(t *testing.T) {
	t.Parallel()
	idle := func(f store.Finish) store.Finish { f.Idle = true; return f }
	for _, tc := range []struct {
		name string
		fin  store.Finish
		want int
	}{
		{"success", idle(store.Finish{Outcome: task.OutcomeSuccess}), 0},
		{"a retry", idle(decided(task.DecideRetry, 0)), 5},
		{"a retry after a step", decided(task.DecideRetry, 0), 0},
		{"a block", idle(decided(task.DecideBlock, 0)), 5},
		{"a dead end", idle(decided(task.DecideMarkDead, 0)), 5},
		{"a wait", idle(store.Finish{Outcome: task.OutcomeSuspended}), 5},
		{"children", idle(store.Finish{Outcome: task.OutcomeDecompose, Join: task.JoinRerun}), 0},
		{"another task", idle(store.Finish{Outcome: task.OutcomeAddDependency}), 0},
		{"given back", idle(store.Finish{Outcome: task.OutcomeReleased}), 4},
		{"an error of the engine", idle(store.Finish{Outcome: task.OutcomeFailure, Error: broken}), 4},
	} {
		to := rules.ResolveFinish(&tc.fin, rules.CancelRequest{}, time.Time{}, now)
		if got := rules.IdleAttempts(&tc.fin, &to, 4); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestBlockedForABudget(t *testing.T) {
	t.Parallel()
	for waiting, want := range map[task.Waiting]task.Waiting{task.WaitNone: task.WaitManual, task.WaitManual: task.WaitManual, task.WaitBudget: task.WaitBudget, task.WaitSleep: ""} {
		f := decided(task.DecideBlock, 0)
		f.Waiting = waiting
		err := rules.CheckFinish(&f)
		if (err == nil) != (want != "") {
			t.Errorf("blocked for %q: %v", waiting, err)
		}
		if got := rules.ResolveFinish(&f, rules.CancelRequest{}, time.Time{}, now); want != "" && got.Waiting != want {
			t.Errorf("blocked for %q: %q", waiting, got.Waiting)
		}
	}
}

func TestRaisedBudget(t *testing.T) {
	t.Parallel()
	both := task.Budget{MaxTotalAttempts: 5, MaxCost: 100}
	over := task.Job{Budget: both, AttemptsUsed: 7, Cost: 130, ExhaustedAt: now, State: task.JobFailed}
	ending := over
	ending.State, ending.Counters.Unfinished = task.JobRunning, 2
	for _, tc := range []struct {
		name     string
		job      task.Job
		attempts int
		cost     int64
		want     string // part of the refusal; "": the budget is raised
	}{
		{"enough", over, 3, 30, ""},
		{"too few attempts", over, 2, 30, "--add-attempts 3"},
		{"too little cost", over, 9, 29, "--add-cost 30"},
		{"a job that goes on", task.Job{Budget: both, State: task.JobRunning}, 1, 0, ""},
		{"nothing", over, 0, 0, "1 or more"},
		{"less", over, -1, 30, "1 or more"},
		{"no limit of attempts", task.Job{Budget: task.Budget{MaxCost: 1}}, 1, 0, "max_total_attempts"},
		{"no limit of the cost", task.Job{Budget: task.Budget{MaxTotalAttempts: 1}}, 1, 1, "max_cost"},
		{"a job that succeeded", task.Job{Budget: both, State: task.JobSucceeded}, 1, 0, "it has succeeded"},
		{"a job that is ending", ending, 9, 90, "2 of its tasks have not ended"},
	} {
		got, err := rules.RaisedBudget(&store.RaiseBudget{AddAttempts: tc.attempts, AddCost: tc.cost}, &tc.job)
		if tc.want != "" {
			if !errors.Is(err, store.ErrState) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v", tc.name, err)
			}
			continue
		}
		if err != nil || got.MaxTotalAttempts != 5+tc.attempts || got.MaxCost != 100+tc.cost {
			t.Errorf("%s: %+v, %v", tc.name, got, err)
		}
	}
	if err := rules.CheckJobBudget(task.ID{1}, task.Failed, &over); !errors.Is(err, store.ErrState) || !strings.Contains(err.Error(), "--add-attempts 3") || !strings.Contains(err.Error(), "--add-cost 30") {
		t.Errorf("the retry of a task: %v", err)
	}
	if err := errors.Join(rules.CheckJobBudget(task.ID{1}, task.Failed, nil), rules.CheckJobBudget(task.ID{1}, task.Failed, &task.Job{})); err != nil {
		t.Error(err)
	}
}

func TestRaisedLimits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name        string
		cmd         store.RetryTask
		maxCost     int64
		attempts    int
		cost        int64
		want, notes string
	}{
		{"nothing", store.RetryTask{Audit: store.Audit{Reason: "why"}}, 7, 5, 7, "", "why"},
		{"both", store.RetryTask{AddAttempts: 2, AddCost: 3}, 7, 7, 10, "", "2 attempts and a cost of 3 more"},
		{"less", store.RetryTask{AddAttempts: -1}, 7, 0, 0, "1 or more", ""},
		{"no limit", store.RetryTask{AddCost: 1}, 0, 0, 0, "MaxCost", ""},
		{"very much", store.RetryTask{AddAttempts: math.MaxInt, AddCost: math.MaxInt64}, 7, math.MaxInt32, math.MaxInt64, "", ""},
	} {
		attempts, cost, err := rules.RaisedLimits(&tc.cmd, 5, tc.maxCost)
		if tc.want != "" {
			if !errors.Is(err, store.ErrState) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v", tc.name, err)
			}
			continue
		}
		if err != nil || attempts != tc.attempts || cost != tc.cost || tc.notes != "" && rules.RetryNote(&tc.cmd) != tc.notes {
			t.Errorf("%s: %d, %d, %v, %q", tc.name, attempts, cost, err, rules.RetryNote(&tc.cmd))
		}
	}
}

func TestRevivesSpent(t *testing.T) {
	t.Parallel()
	need := func(kind task.EdgeKind, s task.State, k task.ErrorKind) []rules.Need {
		return []rules.Need{{EndedNeed: rules.EndedNeed{Need: task.ID{9}, Kind: kind, End: task.End{State: s, Kind: k}}}}
	}
	for _, tc := range []struct {
		name  string
		state task.State
		kind  task.ErrorKind
		needs []rules.Need
		want  bool
	}{
		{"failed for it", task.Failed, task.KindBudget, nil, true},
		{"cancelled for it", task.Cancelled, task.KindBudget, nil, true},
		{"failed", task.Failed, task.KindHandler, nil, false},
		{"blocked", task.Blocked, task.KindBudget, nil, false},
		{"its need goes on", task.Cancelled, task.KindBudget, need(task.OnSuccess, task.Pending, ""), true},
		{"its need is not back yet", task.Cancelled, task.KindBudget, need(task.OnSuccess, task.Cancelled, task.KindBudget), false},
		{"none of those failed for which it runs", task.Cancelled, task.KindBudget, need(task.OnFailed, task.Succeeded, ""), false},
	} {
		if got := rules.RevivesSpent(tc.state, tc.kind, tc.needs); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func TestTighten(t *testing.T) {
	t.Parallel()
	b := task.Budget{MaxAttemptsPerTask: 3, MaxRepairs: 1, MaxNoProgress: 20}
	for _, tc := range []struct{ have, want task.New }{
		{task.New{MaxAttempts: 5, MaxRepairs: 2}, task.New{MaxAttempts: 3, MaxRepairs: 1, MaxNoProgress: 20}},
		{task.New{MaxAttempts: 2, MaxNoProgress: 9}, task.New{MaxAttempts: 2, MaxNoProgress: 9}},
		{task.New{MaxAttempts: 2, MaxNoProgress: 99}, task.New{MaxAttempts: 2, MaxNoProgress: 20}},
	} {
		got := tc.have
		b.Tighten(&got)
		if got.MaxAttempts != tc.want.MaxAttempts || got.MaxRepairs != tc.want.MaxRepairs || got.MaxNoProgress != tc.want.MaxNoProgress {
			t.Errorf("%+v, want %+v", got, tc.want)
		}
	}
}
