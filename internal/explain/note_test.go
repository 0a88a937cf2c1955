package explain_test

import (
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		t           task.Task
		long, short string
	}{
		{task.Task{State: task.Ready}, "ready", "ready"},
		{task.Task{State: task.Blocked}, "blocked", "blocked"},
		{task.Task{State: task.Running, StartedAt: ago(5 * time.Second)}, "running 5s", "5s"},
		{task.Task{State: task.Running, StartedAt: ago(5 * time.Second), CancelRequested: true}, "ending 5s", "ending"},
		{task.Task{State: task.Running, StartedAt: in(4 * time.Second)}, "running 0s", "0s"}, // the store's clock is ahead
		{task.Task{State: task.Succeeded}, "succeeded 1.2s", "1.2s"},
		{task.Task{State: task.Failed}, "failed 1.2s", "failed"},
		{task.Task{State: task.Pending, Waiting: task.WaitRetry, ReadyAt: in(1500 * time.Millisecond)}, "retry in 2s", "retry 2s"},
		{task.Task{State: task.Pending, Waiting: task.WaitRetry, ReadyAt: ago(time.Second)}, "retry in a moment", "retry a moment"},
		{task.Task{State: task.Pending, Waiting: task.WaitSleep, ReadyAt: in(time.Minute)}, "wakes in 1m", "asleep"},
		{task.Task{State: task.Pending, Waiting: task.WaitDeps}, "waiting", "waiting"},
	} {
		long, short := explain.Status(&tc.t, 1234*time.Millisecond, now)
		if long != tc.long || short != tc.short {
			t.Errorf("%s %s: %q, %q; want %q, %q", tc.t.State, tc.t.Waiting, long, short, tc.long, tc.short)
		}
	}
}

func TestWaitsAndCancelled(t *testing.T) {
	t.Parallel()
	lost := []store.Need{{Node: "x", State: task.Failed}, {Node: "y", State: task.Succeeded}, {ID: id(7), State: task.Cancelled}}
	open := []store.Need{{Node: "v", State: task.Running}, {Node: "w", State: task.Pending}, lost[1]}
	many := make([]store.Need, 9)
	for i := range many {
		many[i] = store.Need{Node: string(rune('a' + i)), State: task.Ready}
	}
	pending := func(w task.Waiting) task.Task {
		return task.Task{State: task.Pending, Waiting: w, RemainingDeps: 2, ConcurrencyKey: "db"}
	}
	cancelled := func(kind task.ErrorKind, message string) task.Task {
		return task.Task{State: task.Cancelled, Error: &task.Error{Kind: kind, Message: message}}
	}
	byOps := cancelled(task.KindCancelled, "cancelled by ops: late")
	byOps.CancelBy, byOps.CancelReason = "ops", "late"
	for _, tc := range []struct {
		t     task.Task
		needs []store.Need
		want  string
	}{
		{task.Task{State: task.Ready}, nil, "waits for a worker"},
		{pending(task.WaitDeps), nil, "needs 2 more tasks"},
		{pending(task.WaitDeps), lost, "x, 00000000000000000000000007 did not succeed"},
		{pending(task.WaitDeps), open, "needs v, w"},
		{pending(task.WaitDeps), many, "needs a, b, c, d, e and 4 more"},
		{pending(task.WaitDeps), lost[1:2], ""},
		{pending(task.WaitDeps), []store.Need{{Node: "x", Kind: task.OnDone, State: task.Failed}, {Node: "y", Kind: task.OnDone, State: task.Running}}, "needs y to end"},
		{pending(task.WaitDeps), []store.Need{{Node: "x", Kind: task.OnFailed, State: task.Succeeded}, {Node: "y", Kind: task.OnFailed, State: task.Running}}, "needs y to fail"},
		{pending(task.WaitDeps), []store.Need{{Node: "x", Kind: task.OnFailed, State: task.Failed}, {Node: "y", Kind: task.OnFailed, State: task.Running}}, "x failed"},
		{pending(task.WaitDeps), []store.Need{{Node: "x", Kind: task.OnFailed, State: task.Failed}, {Node: "y", Kind: task.OnFailed}, {Node: "z", State: task.Running}}, "needs z"},
		{pending(task.WaitDeps), []store.Need{{Node: "x", State: task.Failed, AllowFailure: true}, {Node: "y", State: task.Running}}, "needs y"},
		{pending(task.WaitConcurrency), nil, `waits for key "db"`},
		{pending(task.WaitPaused), nil, "queue is paused"},
		{pending(task.WaitSignal), nil, "waits for a signal"},
		{pending(task.WaitSleep), nil, ""},
		{task.Task{State: task.Cancelled}, nil, ""},
		{cancelled(task.KindDependencyFailed, "it needs task z"), lost, "x, 00000000000000000000000007 did not succeed"},
		{cancelled(task.KindDependencyFailed, "it needs task z"), nil, "it needs task z"},
		{cancelled(task.KindDependencyFailed, ""), nil, "what it needs did not succeed"},
		{cancelled(task.KindNotNeeded, "not needed: it runs if …"), nil, "it was not needed"},
		{cancelled(task.KindDeadline, "…"), nil, "its deadline had passed"},
		{cancelled(task.KindCancelled, "by ops"), nil, "by ops"},
		{byOps, nil, "ops: late"},
	} {
		words := explain.Waits
		if tc.t.State == task.Cancelled {
			words = explain.Clock{}.Cancelled
		}
		if got := words(&tc.t, tc.needs); got != tc.want {
			t.Errorf("%s %s %v: %q, want %q", tc.t.State, tc.t.Waiting, tc.t.Error, got, tc.want)
		}
	}
}

func TestNote(t *testing.T) {
	t.Parallel()
	boom := &task.Error{Kind: task.KindHandler, Message: "boom"}
	for _, tc := range []struct {
		t    task.Task
		want string
	}{
		{task.Task{State: task.Pending, ReadyAt: in(time.Minute)}, "due in 1m"},
		{task.Task{State: task.Pending, Waiting: task.WaitRetry, ReadyAt: in(time.Minute), Error: boom}, "retries in 1m: handler_error: boom"},
		{task.Task{State: task.Pending, Waiting: task.WaitSleep, ReadyAt: in(time.Minute)}, "sleeps, wakes in 1m"},
		{task.Task{State: task.Pending, Waiting: task.WaitDeps, RemainingDeps: 1}, "needs 1 more task"},
		{task.Task{State: task.Ready, ReadyAt: ago(time.Minute)}, "waits for a worker"},
		{task.Task{State: task.Pending, Waiting: task.WaitUndo, CancelRequested: true}, "is being undone"},
		{task.Task{State: task.Running, LeasedBy: "web1:7", CancelRequested: true}, "on web1:7, asked to end"},
		{task.Task{State: task.Running, LeasedBy: "web1:7", LeaseExpiresAt: ago(time.Minute)}, "on web1:7, lease ended 1m ago"},
		{task.Task{State: task.Running, LeasedBy: "web1:7", Progress: &task.Progress{Current: 1, Total: 2}}, "on web1:7, 1 of 2"},
		{task.Task{State: task.Blocked, Error: boom}, "boom"},
		{task.Task{State: task.Failed, Error: boom}, "handler_error: boom"},
		{task.Task{State: task.Cancelled, CancelBy: "ops"}, "ops"},
		{task.Task{State: task.Succeeded}, ""},
	} {
		if got := clock.Note(&tc.t); got != tc.want {
			t.Errorf("%s %s: %q, want %q", tc.t.State, tc.t.Waiting, got, tc.want)
		}
	}
}

// A task that ended with its job's duration budget names the budget, unless its own deadline came first.
func TestCancelledByTheBudget(t *testing.T) {
	t.Parallel()
	c := clock
	c.OfJob = &task.Job{Budget: task.Budget{MaxDuration: 3 * time.Second}, DeadlineAt: ago(time.Minute)}
	over := a(1, task.Cancelled, failed(task.KindDeadline, "…"), with(func(k *task.Task) { k.DeadlineAt = ago(time.Minute) }))
	own := a(1, task.Cancelled, failed(task.KindDeadline, "…"), with(func(k *task.Task) { k.DeadlineAt = ago(time.Hour) }))
	for _, tt := range []struct {
		h           *store.History
		note, state string
	}{
		{&over, "the job reached budget.max_duration (3s)", "was cancelled 1m ago (2026-11-20T11:59:00Z): the job reached budget.max_duration (3s) before it was started"},
		{&own, "its deadline had passed", "was cancelled 1m ago (2026-11-20T11:59:00Z): its deadline, 2026-11-20T11:00:00Z, had passed before it was started"},
	} {
		if note, state := c.Note(&tt.h.Task), c.TaskState(tt.h); note != tt.note || state != tt.state {
			t.Errorf("%q, %q; want %q, %q", note, state, tt.note, tt.state)
		}
	}
}

func TestNotes_UnknownField(t *testing.T) {
	t.Parallel()
	h := a(1, task.Succeeded)
	h.Attempts = []task.Attempt{{No: 1, Notes: map[string]string{"weaver.unknown_field": `there is no field "Name"`}}}
	x := book{tasks: []store.History{h}}.explain(t, id(1), 0)
	if !slices.Contains(x.Notes, `Its input was decoded without a field that it has: there is no field "Name".`) {
		t.Errorf("the notes are %q", x.Notes)
	}
}
