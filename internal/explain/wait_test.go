package explain_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func signalStep(name string, until time.Time) task.Step {
	return task.Step{Name: name, Kind: task.KindSignal, State: task.StepWaiting, Signal: "approved", StartedAt: ago(time.Minute), WakeAt: until}
}

func callStep(name string, left int) task.Step {
	return task.Step{Name: name, Kind: task.KindCall, State: task.StepWaiting, Children: 10, ChildrenLeft: left, ChildrenStored: 10}
}

// The explanation names the waits of a handler and the events that end them.
func TestWhyWaitInAHandler(t *testing.T) {
	t.Parallel()
	said := `It waits for the signal "approved" in "manager", since 1m ago (2026-11-20T11:59:00Z)`
	for _, tt := range []struct {
		waiting task.Waiting
		due     time.Time
		steps   []task.Step
		want    []string
	}{
		{task.WaitSignal, time.Time{}, []task.Step{signalStep("manager", time.Time{})}, []string{
			said + ".",
			"  weaver task signal 00000000000000000000000001 approved JSON",
			"      sends the signal to 00000000000000000000000001; JSON is its payload",
		}},
		{task.WaitPaused, in(time.Hour), []task.Step{signalStep("manager", in(time.Hour))}, []string{
			`It waits because its queue "billing" is paused, and it w` + said[len("It w"):] + ", until 2026-11-20T13:00:00Z.",
			"  weaver queue resume billing",
			"  weaver task signal 00000000000000000000000001 approved JSON",
		}},
		{task.WaitSignal, in(time.Hour), []task.Step{signalStep("manager", in(time.Hour)), callStep("fan", 3)}, []string{
			said + `, until 2026-11-20T13:00:00Z, and for 3 of 10 children of the call "fan".`,
			"  It waits for 00000000000000000000000002 (acme.billing.charge.v1), which is blocked and waits for a person.",
			"  weaver task unblock 00000000000000000000000002",
		}},
		{task.WaitChildren, in(time.Minute), []task.Step{callStep("fan", 3)}, []string{
			`It waits for 3 of 10 children of the call "fan", and goes on in 1m (2026-11-20T12:01:00Z) at the latest.`,
			"  It waits for 00000000000000000000000002 (acme.billing.charge.v1), which is blocked and waits for a person.",
		}},
		{task.WaitSignal, time.Time{}, []task.Step{ // the race is decided: its losing case is not a wait
			{Name: "first", Kind: task.KindRace, State: task.StepCompleted, Value: json.RawMessage("0")}, callStep("first[1]", 2), signalStep("manager", time.Time{}),
		}, []string{said + "."}},
	} {
		h := a(1, task.Pending, waits(tt.waiting, tt.due), func(h *store.History) { h.Steps = tt.steps },
			needs(store.Need{ID: id(2), Kind: task.OnDone, Awaited: 1, Step: "fan"}, store.Need{ID: id(3), Kind: task.OnDone, Awaited: 1, Step: "fan", Done: true}))
		says(t, why(t, h, a(2, task.Blocked)), tt.want...)
	}
}

// A wait that timed out points to no recorded value.
func TestStepWait(t *testing.T) {
	t.Parallel()
	timedOut := signalStep("manager", ago(time.Minute))
	timedOut.State = task.StepCompleted
	done := callStep("fan", 0)
	done.State = task.StepCompleted
	for _, tt := range []struct {
		step task.Step
		want string
	}{
		{signalStep("manager", time.Time{}), `waits for "approved"`},
		{signalStep("manager", in(time.Hour)), `waits for "approved" until 2026-11-20T13:00:00Z`},
		{timedOut, `no "approved" came`},
		{callStep("fan", 3), "3 of 10 children left"},
		{done, "10 children"},
		{task.Step{Kind: task.KindStep}, ""},
	} {
		if got := clock.StepWait(&tt.step); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.step.Name, got, tt.want)
		}
	}
}
