package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The hash covers the content of a report, not its measurements (R8).
func TestFinishHash(t *testing.T) {
	t.Parallel()
	report := func(change func(*store.Finish)) string {
		f := store.Finish{
			Outcome: task.OutcomeFailure, Output: json.RawMessage(`1`), Delay: time.Second, WakeAt: time.Unix(9, 0),
			Error:    &task.Error{Kind: task.KindHandler, Message: "boom", Step: "s", Stack: "main.go:1"},
			Decision: &task.Decision{Kind: task.DecideRetry, Reason: task.Reason{Text: "once more"}},
		}
		if change != nil {
			change(&f)
		}
		return f.Hash()
	}
	same := report(nil)
	for what, change := range map[string]func(*store.Finish){
		"outcome":        func(f *store.Finish) { f.Outcome = task.OutcomeBlocked },
		"output":         func(f *store.Finish) { f.Output = json.RawMessage(`2`) },
		"delay":          func(f *store.Finish) { f.Delay++ },
		"wake-up":        func(f *store.Finish) { f.WakeAt = f.WakeAt.Add(time.Microsecond) },
		"waiting":        func(f *store.Finish) { f.Waiting = task.WaitSignal },
		"error":          func(f *store.Finish) { f.Error = nil },
		"error kind":     func(f *store.Finish) { f.Error.Kind = task.KindPanic },
		"error message":  func(f *store.Finish) { f.Error.Message = "bang" },
		"error code":     func(f *store.Finish) { f.Error.Code = "refused" },
		"error step":     func(f *store.Finish) { f.Error.Step = "t" },
		"question":       func(f *store.Finish) { f.Error.Ask = "q" },
		"error stack":    func(f *store.Finish) { f.Error.Stack = "main.go:2" },
		"join":           func(f *store.Finish) { f.Join = task.JoinRerun },
		"children":       func(f *store.Finish) { f.Join, f.Children = task.JoinRerun, []task.New{{ID: task.ID{1}}} },
		"other children": func(f *store.Finish) { f.Join, f.Children = task.JoinRerun, []task.New{{ID: task.ID{2}}} },
		"dependency":     func(f *store.Finish) { f.DependsOn = task.ID{1} },
		"decision":       func(f *store.Finish) { f.Decision = nil },
		"decision kind":  func(f *store.Finish) { f.Decision.Kind = task.DecideBlock },
		"reason":         func(f *store.Finish) { f.Decision.Reason.Text = "enough" },
		"text moved on":  func(f *store.Finish) { f.Error.Message, f.Error.Step = "booms", "" },
	} {
		if report(change) == same {
			t.Errorf("the hash does not depend on the %s", what)
		}
	}
	for what, change := range map[string]func(*store.Finish){
		"time taken":   func(f *store.Finish) { f.Elapsed = time.Hour },
		"progress":     func(f *store.Finish) { f.Progress = &task.Progress{Current: 1} },
		"code version": func(f *store.Finish) { f.CodeVersion = 7 },
	} {
		if report(change) != same {
			t.Errorf("the hash depends on the %s", what)
		}
	}
}

func TestDerive(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	before, after := now.Add(-time.Second), now.Add(time.Second)
	var none time.Time
	for _, tc := range []struct {
		name    string
		state   task.State
		rows    store.Availability
		want    task.State
		waiting task.Waiting
		ready   time.Time
	}{
		{"due", task.Pending, store.Availability{Dispatch: before}, task.Ready, task.WaitNone, before},
		{"due at this instant", task.Pending, store.Availability{Dispatch: now}, task.Ready, task.WaitNone, now},
		{"due later", task.Pending, store.Availability{Dispatch: after}, task.Pending, task.WaitDelay, after},
		{"due in a paused queue", task.Ready, store.Availability{Dispatch: before, Pause: task.PauseQueue}, task.Pending, task.WaitPaused, before},
		{"due, of a paused type", task.Ready, store.Availability{Dispatch: before, Pause: task.PauseType}, task.Pending, task.WaitPaused, before},
		{"paused by itself", task.Ready, store.Availability{Parked: before, Pause: task.PauseTask}, task.Pending, task.WaitPaused, before},
		{"paused by itself, not due", task.Pending, store.Availability{Pause: task.PauseTask}, task.Pending, task.WaitDelay, before},
		{"paused by itself, and running", task.Running, store.Availability{Pause: task.PauseTask}, task.Running, task.WaitDelay, none},
		{"without a row", task.Pending, store.Availability{}, task.Pending, task.WaitDelay, before},
		{"waits for its key", task.Ready, store.Availability{Waiter: before}, task.Pending, task.WaitConcurrency, before},
		{"waits for its key in a paused queue", task.Ready, store.Availability{Waiter: before, Pause: task.PauseQueue}, task.Pending, task.WaitConcurrency, before},
		{"runs", task.Running, store.Availability{}, task.Running, task.WaitDelay, none},
		{"blocked", task.Blocked, store.Availability{}, task.Blocked, task.WaitDelay, before},
		{"ended", task.Failed, store.Availability{}, task.Failed, task.WaitDelay, none},
	} {
		got := task.Task{State: tc.state, Waiting: task.WaitDelay, ReadyAt: before}
		store.Derive(&got, tc.rows, now)
		if got.State != tc.want || got.Waiting != tc.waiting || !got.ReadyAt.Equal(tc.ready) {
			t.Errorf("%s: %s/%s, ready at %v; want %s/%s, %v", tc.name, got.State, got.Waiting, got.ReadyAt, tc.want, tc.waiting, tc.ready)
		}
		if shown := tc.rows.Pause == task.PauseTask || got.Waiting == task.WaitPaused; (got.Pause != task.PauseNone) != shown {
			t.Errorf("%s: it shows the pause %q", tc.name, got.Pause)
		}
	}
}
