package rules_test

import (
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/task"
)

func TestFirstState(t *testing.T) {
	t.Parallel()
	needs := []task.Edge{{Kind: task.OnSuccess}}
	later := now.Add(time.Hour)
	for _, tc := range []struct {
		name    string
		n       task.New
		state   task.State
		waiting task.Waiting
		at      time.Time
	}{
		{"at once", task.New{}, task.Ready, task.WaitNone, time.Time{}},
		{"after a delay", task.New{Delay: time.Hour}, task.Pending, task.WaitDelay, later},
		{"at an instant", task.New{At: later.In(time.FixedZone("x", 3600)).Add(time.Nanosecond)}, task.Pending, task.WaitDelay, later},
		{"an instant goes before a delay", task.New{At: later, Delay: time.Minute}, task.Pending, task.WaitDelay, later},
		{"at an instant that has passed", task.New{At: now.Add(-time.Hour)}, task.Ready, task.WaitNone, now.Add(-time.Hour)},
		{"at this very instant", task.New{At: now}, task.Ready, task.WaitNone, now},
		{"with needs", task.New{Needs: needs}, task.Pending, task.WaitDeps, time.Time{}},
		{"with needs and a delay", task.New{Needs: needs, Delay: time.Hour}, task.Pending, task.WaitDeps, later},
	} {
		state, waiting, at := rules.FirstState(&tc.n, now)
		if state != tc.state || waiting != tc.waiting || at != tc.at {
			t.Errorf("%s: %s, %s, %v; want %s, %s, %v", tc.name, state, waiting, at, tc.state, tc.waiting, tc.at)
		}
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	var never time.Time
	hour, minute := now.Add(time.Hour), now.Add(time.Minute)
	for _, tc := range []struct {
		own       time.Duration
		job, want time.Time
	}{
		{0, never, never},
		{0, hour, hour},
		{time.Minute, never, minute},
		{time.Minute, hour, minute},
		{time.Hour, minute, minute},
		{-time.Minute, hour, hour},
	} {
		if got := rules.Deadline(&task.New{ExpireAfter: tc.own}, tc.job, now); got != tc.want {
			t.Errorf("Deadline(%v, %v) = %v, want %v", tc.own, tc.job, got, tc.want)
		}
	}
	if got := rules.JobDeadline(task.Budget{MaxDuration: time.Hour}, now); got != hour {
		t.Errorf("JobDeadline = %v", got)
	}
	if got := rules.JobDeadline(task.Budget{}, now); !got.IsZero() {
		t.Errorf("JobDeadline without a limit = %v", got)
	}
	for _, tc := range []struct {
		deadline time.Time
		past     bool
	}{{never, false}, {now, true}, {now.Add(time.Microsecond), false}} {
		if got := rules.Past(tc.deadline, now); got != tc.past {
			t.Errorf("Past(%v) = %v", tc.deadline, got)
		}
	}
}
