package rules_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func waitStep(change func(*task.Step)) *task.Step {
	s := &task.Step{Name: "w", Kind: task.KindSignal, State: task.StepWaiting, Signal: "s", AttemptNo: 2}
	if change != nil {
		change(s)
	}
	return s
}

func TestAcceptWait(t *testing.T) {
	t.Parallel()
	completed := func(s *task.Step) { s.State, s.AttemptNo, s.Value = task.StepCompleted, 1, result }
	for _, tc := range []struct {
		name     string
		stored   *task.Step
		cancel   bool
		answered bool
		err      error
	}{
		{"nothing is stored", nil, false, false, nil},
		{"nothing is stored, and the task is to end", nil, true, false, store.ErrCancelRequested},
		{"it waits", waitStep(nil), false, false, nil},
		{"it waits since an earlier attempt", waitStep(func(s *task.Step) { s.AttemptNo = 1 }), false, false, nil},
		{"it waits, and the task is to end", waitStep(nil), true, false, store.ErrCancelRequested},
		{"it is completed", waitStep(completed), false, true, nil},
		{"it is completed, and the task is to end", waitStep(completed), true, true, nil},
		{"it waits for another signal", waitStep(func(s *task.Step) { s.Signal = "t" }), false, false, store.ErrStepConflict},
		{"it is a call", waitStep(func(s *task.Step) { s.Kind, s.Signal = task.KindCall, "" }), false, false, store.ErrStepConflict},
		{"it is a step", waitStep(func(s *task.Step) { s.Kind, s.State = task.KindStep, task.StepCompleted }), true, false, store.ErrStepConflict},
	} {
		answered, err := rules.AcceptWait(tc.stored, waitStep(nil), tc.cancel)
		if answered != tc.answered || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
			t.Errorf("%s: AcceptWait = %v, %v", tc.name, answered, err)
		}
	}
}

func TestResolveWait(t *testing.T) {
	t.Parallel()
	signal := &task.Signal{Payload: result}
	for _, tc := range []struct {
		name      string
		wakeAt    time.Time
		signal    *task.Signal
		withdrawn bool
		over      bool
		value     string
	}{
		{"nothing came, and it waits for ever", time.Time{}, nil, false, false, ""},
		{"nothing came yet", now.Add(1), nil, false, false, ""},
		{"it has timed out", now, nil, false, true, ""},
		{"a signal came", time.Time{}, signal, false, true, "1"},
		{"a signal came, and it has timed out", now.Add(-time.Hour), signal, false, true, "1"},
		{"it is withdrawn", now.Add(time.Hour), nil, true, true, ""},
	} {
		s := waitStep(func(s *task.Step) { s.WakeAt = tc.wakeAt })
		over := rules.ResolveWait(s, tc.signal, tc.withdrawn, now)
		if over != tc.over || string(s.Value) != tc.value || (s.State == task.StepCompleted) != over || s.CompletedAt.IsZero() == over {
			t.Errorf("%s: ResolveWait = %v, %+v", tc.name, over, s)
		}
	}
}

func TestAcceptSignal(t *testing.T) {
	t.Parallel()
	cmd := store.SendSignal{Name: "s", Key: "k", Payload: json.RawMessage(`1`)}
	same, other := &task.Signal{Payload: json.RawMessage(`1`)}, &task.Signal{Payload: json.RawMessage(`2`)}
	for _, tc := range []struct {
		name     string
		state    task.State
		stored   *task.Signal
		existing bool
		err      error
	}{
		{"a new one", task.Running, nil, false, nil},
		{"a new one for a blocked task", task.Blocked, nil, false, nil},
		{"one that was sent", task.Pending, same, true, nil},
		{"one that was sent to a task that has ended since", task.Succeeded, same, true, nil},
		{"another payload", task.Pending, other, false, store.ErrConflict},
		{"another payload, to a task that ended", task.Failed, other, false, store.ErrConflict},
		{"a new one for a task that ended", task.Cancelled, nil, false, store.ErrState},
	} {
		existing, err := rules.AcceptSignal(&cmd, tc.state, tc.stored)
		if existing != tc.existing || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
			t.Errorf("%s: AcceptSignal = %v, %v", tc.name, existing, err)
		}
	}
	if err := rules.KeepSignal(task.ID{}, task.MaxSignals-1); err != nil {
		t.Errorf("the last one: %v", err)
	}
	if err := rules.KeepSignal(task.ID{}, task.MaxSignals); !errors.Is(err, store.ErrLimit) {
		t.Errorf("one too many: %v", err)
	}
	for _, cmd := range []store.SendSignal{{Key: "k", Payload: result}, {Name: "s", Payload: result}, {Name: "s", Key: "k"}} {
		if rules.CheckSignal(&cmd) == nil {
			t.Errorf("%+v is accepted", cmd)
		}
	}
}

func TestResolveSuspend(t *testing.T) {
	t.Parallel()
	later := now.Add(time.Hour)
	for _, tc := range []struct {
		name      string
		why       task.Waiting
		wakeAt    time.Time
		wakeSeq   int // the attempt has seen 3
		state     task.State
		waiting   task.Waiting
		readyAt   time.Time
		claimable bool
	}{
		{"a sleep of an older program", "", later, 7, task.Pending, task.WaitSleep, later, true},
		{"a sleep", task.WaitSleep, later, 3, task.Pending, task.WaitSleep, later, true},
		{"a sleep without a time", task.WaitSleep, time.Time{}, 3, task.Ready, "", time.Time{}, true},
		{"a sleep that is over", task.WaitSleep, now, 3, task.Ready, "", now, true},
		{"a signal", task.WaitSignal, time.Time{}, 3, task.Pending, task.WaitSignal, time.Time{}, false},
		{"a signal until a time", task.WaitSignal, later, 3, task.Pending, task.WaitSignal, later, true},
		{"a signal that has timed out", task.WaitSignal, now, 3, task.Ready, "", now, true},
		{"a call", task.WaitChildren, time.Time{}, 3, task.Pending, task.WaitChildren, time.Time{}, false},
		{"a call until a time", task.WaitChildren, later, 3, task.Pending, task.WaitChildren, later, true},
		{"a wait was completed meanwhile", task.WaitSignal, time.Time{}, 4, task.Ready, "", now, true},
		{"a wait was completed during a sleep", task.WaitSleep, later, 4, task.Ready, "", now, true},
	} {
		f := store.Finish{Outcome: task.OutcomeSuspended, Waiting: tc.why, WakeAt: tc.wakeAt, WakeSeq: 3}
		got := rules.ResolveSuspend(&f, tc.wakeSeq, rules.CancelRequest{}, time.Time{}, now)
		if got.State != tc.state || got.Waiting != tc.waiting || !got.ReadyAt.Equal(tc.readyAt) || !got.SetReadyAt || !got.KeepError ||
			got.Claimable() != tc.claimable || got.CountsAttempt() || got.Timed() != !tc.readyAt.IsZero() {
			t.Errorf("%s: %+v", tc.name, got)
		}
		got = rules.ResolveSuspend(&f, tc.wakeSeq, rules.CancelRequest{Kind: task.KindCancelled}, time.Time{}, now)
		if got.State != task.Cancelled {
			t.Errorf("%s, and the task is to end: %+v", tc.name, got)
		}
		if err := rules.CheckFinish(&f); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if rules.CheckFinish(&store.Finish{Outcome: task.OutcomeSuspended, Waiting: task.WaitDeps}) == nil {
		t.Error("a suspension that waits for needs is accepted")
	}
}

func TestSuspended(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		state task.State
		why   task.Waiting
		join  task.Join
		want  bool
	}{
		{task.Pending, task.WaitSignal, "", true},
		{task.Pending, task.WaitSleep, "", true},
		{task.Pending, task.WaitChildren, "", true},
		{task.Pending, task.WaitChildren, task.JoinRerun, false},
		{task.Pending, task.WaitDeps, "", false},
		{task.Pending, task.WaitRetry, "", false},
		{task.Pending, task.WaitDelay, "", false},
		{task.Ready, "", "", false},
		{task.Running, "", "", false},
		{task.Blocked, task.WaitManual, "", false},
	} {
		if got := rules.Suspended(tc.state, tc.why, tc.join); got != tc.want {
			t.Errorf("%s/%s/%s: %v", tc.state, tc.why, tc.join, got)
		}
	}
}

func TestCheckWait(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		step  *task.Step
		tasks int
		ok    bool
	}{
		{"a wait", waitStep(nil), 0, true},
		{"a wait that is withdrawn", waitStep(func(s *task.Step) { s.State = task.StepCompleted }), 0, true},
		{"a value", waitStep(func(s *task.Step) { s.State, s.Value = task.StepCompleted, result }), 0, false},
		{"no name", waitStep(func(s *task.Step) { s.Signal = "" }), 0, false},
		{"tasks", waitStep(nil), 1, false},
		{"a step that waits", waitStep(func(s *task.Step) { s.Kind = task.KindStep }), 0, false},
		{"a call", waitStep(func(s *task.Step) { s.Kind = task.KindCall }), task.MaxCallTasks, true},
		{"a call with too many tasks", waitStep(func(s *task.Step) { s.Kind = task.KindCall }), task.MaxCallTasks + 1, false},
		{"a call that is completed", waitStep(func(s *task.Step) { s.Kind, s.State = task.KindCall, task.StepCompleted }), 0, false},
		{"a call with a value", waitStep(func(s *task.Step) { s.Kind, s.Error = task.KindCall, failure }), 0, false},
	} {
		tasks := make([]task.New, tc.tasks)
		for i := range tasks {
			tasks[i].ID[15] = 1
		}
		rec := store.Record{Step: tc.step, Tasks: tasks}
		if err := rules.CheckRecord(&rec); (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.name, err)
		}
		if !rules.IsWait(&rec) && tc.ok {
			t.Errorf("%s: not a wait", tc.name)
		}
	}
	rec := store.Record{Lease: task.Lease{Task: task.ID{1}}, Timeout: time.Minute, Step: waitStep(nil)}
	if got := rules.StoredStep(&rec, 3, now); got.WakeAt != now.Add(time.Minute) || !got.CompletedAt.IsZero() || got.AttemptNo != 3 {
		t.Errorf("StoredStep = %+v", got)
	}
}
