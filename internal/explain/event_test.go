package explain_test

import (
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// A view that knows the task counts its attempts and omits output; a view of the event alone gets the whole message.
func TestEvent(t *testing.T) {
	t.Parallel()
	head := event.Header{AttemptNo: 3}
	boom := task.Error{Kind: task.KindHandler, Message: "exit 3; it wrote last:\nno space"}
	nilMap := task.Error{Kind: task.KindPanic, Message: "nil map", Step: "charge"}
	known := func(change ...func(*task.Task)) *store.History {
		h := &store.History{Task: task.Task{AttemptCount: 1, MaxAttempts: 5, AttemptNo: 3}}
		for _, c := range change {
			c(&h.Task)
		}
		return h
	}
	second := func(t *task.Task) { t.AttemptCount = 2 }
	none := func(t *task.Task) { t.AttemptCount = 0 }
	for _, tc := range []struct {
		ev   event.Event
		h    *store.History
		want string
	}{
		{event.TaskStarted{Header: event.Header{AttemptNo: 1}}, known(none), "started"},
		{event.TaskStarted{Header: head}, known(none), "started again"},
		{event.TaskStarted{Header: head}, known(), "started, attempt 2 of 5"},
		{event.TaskStarted{Header: head}, known(func(t *task.Task) { t.MaxAttempts = 0 }), "started, attempt 2"},
		{event.TaskStarted{Header: head}, nil, "started, attempt 3"},
		{event.TaskStarted{Header: event.Header{AttemptNo: 1}}, nil, "started"},
		{event.TaskSucceeded{Duration: 1234 * time.Millisecond}, known(), "succeeded in 1.2s"},
		{event.TaskFailed{Header: head, Error: boom, Duration: time.Second}, known(), "failed after 1s: exit 3"},
		{event.TaskFailed{Header: head, Error: boom, Duration: time.Second}, known(second), "failed in attempt 2 after 1s: exit 3"},
		{event.TaskFailed{Header: head, Error: boom, Duration: time.Second}, nil, "failed in attempt 3 after 1s: exit 3; it wrote last: no space"},
		{event.TaskFailed{Header: head, Error: nilMap}, nil, `failed in attempt 3 after <1ms: panic in step "charge": nil map`},
		{event.TaskFailed{Header: head, Error: task.Error{Kind: task.KindPoison}}, nil, "failed in attempt 3 after <1ms: poison"},
		{event.TaskRetrying{Header: head, Error: boom, Delay: 2 * time.Second}, known(), "attempt 1 failed: exit 3; retry in 2s"},
		{event.TaskRetrying{Header: head, Error: boom, Delay: 2 * time.Second}, known(none), "attempt 1 failed: exit 3; retry in 2s"},
		{event.TaskRetrying{Header: head, Error: nilMap}, nil, `attempt 3 failed: panic in step "charge": nil map; retry in a moment`},
		{event.TaskSuspended{WakeAt: in(time.Hour)}, known(), "asleep until 2026-11-20 13:00:00"},
		{event.TaskSuspended{}, known(), "waits"},
		{event.TaskSuspended{Header: head, Error: &boom}, known(), "attempt 1 failed: exit 3; waits for other tasks, as was decided"},
		{event.TaskSuspended{Waiting: task.WaitSignal}, known(), "waits for a signal"},
		{event.TaskSuspended{Waiting: task.WaitSignal, WakeAt: in(time.Hour)}, known(), "waits for a signal until 2026-11-20 13:00:00"},
		{event.TaskSuspended{Waiting: task.WaitChildren}, known(), "waits for its children"},
		{event.TaskBlocked{Error: task.Error{Kind: task.KindHandler, Message: "is it right?"}}, known(), "blocked: is it right?"},
		{event.TaskBlocked{Header: event.Header{TaskType: "weaver.person.approve.v1"}, Error: task.Error{Kind: task.KindHandler, Ask: "approval 2", Message: "approval 2: go on?"}}, known(), "waits for a person: go on?"},
		{event.TaskBlocked{Error: task.Error{Kind: task.KindHandler, Ask: "approval", Message: "approval: go on?"}}, known(), "blocked: approval: go on?"},
		{event.TaskSucceeded{Header: event.Header{TaskType: "weaver.http.request.v1"}, Output: []byte(`{"status": 204}`), Duration: time.Second}, known(), "succeeded in 1s: 204"},
		{event.TaskSucceeded{Output: []byte(`{"status": 204}`), Duration: time.Second}, known(), "succeeded in 1s"},
		{event.TaskCancelled{Error: task.Error{Kind: task.KindDeadline}}, nil, "cancelled: its deadline had passed"},
		{event.TaskCancelled{Error: task.Error{Kind: task.KindCancelled, Message: "cancelled by ops"}}, nil, "cancelled: cancelled by ops"},
		{event.TaskCancelled{}, known(func(t *task.Task) { t.CancelBy = "ops" }), "cancelled: ops"},
		{event.TaskCancelled{}, known(), "cancelled"},
		{event.StepStarted{Step: "charge"}, known(), ""},
		{event.TaskReleased{}, known(), ""},
		{event.TaskLeaseLost{}, known(), "was interrupted"},
		{event.TaskLeaseLost{Crash: true}, nil, "was interrupted: the process of its worker died"},
	} {
		if got := clock.Event(tc.ev, tc.h); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.ev.Type(), got, tc.want)
		}
	}
}

func TestTurn(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		from, to task.State
		want     string
	}{
		{task.Running, task.Ready, "was stopped, and begins again with the next worker"},
		{task.Blocked, task.Pending, "is unblocked"},
		{task.Failed, task.Ready, "is tried again"},
		{task.Cancelled, task.Pending, "is tried again"},
		{task.Pending, task.Ready, ""},
		{task.Blocked, task.Cancelled, ""},
	} {
		if got := explain.Turn(tc.from, tc.to); got != tc.want {
			t.Errorf("from %s to %s: %q, want %q", tc.from, tc.to, got, tc.want)
		}
	}
}

func TestJobBlocked(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{
		"its tasks wait for each other": nil,
		"a waits for a person":          {"a"},
		"a, b� wait for a person":       {"a", "\x1b[2Jb\a"},
	} {
		if got := explain.JobBlocked(event.JobBlocked{Blocked: names}); got != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
}
