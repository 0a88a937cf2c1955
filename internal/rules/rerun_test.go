package rules_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestCheckRerun(t *testing.T) {
	t.Parallel()
	for _, s := range task.States() {
		if err := rules.CheckRerun(task.ID{1}, s, false, "", "", task.MaxRerunSteps); err != nil {
			t.Errorf("a %s task: %v", s, err)
		}
	}
	if err := rules.CheckRerun(task.ID{1}, task.Failed, true, "", "", 0); !errors.Is(err, store.ErrState) || !strings.Contains(err.Error(), "needs other tasks") {
		t.Errorf("a task with needs: %v", err)
	}
	if err := rules.CheckRerun(task.ID{1}, task.Failed, false, "fan", "", 0); !errors.Is(err, store.ErrState) || !strings.Contains(err.Error(), `"fan"`) {
		t.Errorf("a step that called: %v", err)
	}
	if err := rules.CheckRerun(task.ID{1}, task.Blocked, false, "", "charge", 1); !errors.Is(err, store.ErrState) || !strings.Contains(err.Error(), `"charge" may still be undone`) {
		t.Errorf("a step that may be undone: %v", err)
	}
	if err := rules.CheckRerun(task.ID{1}, task.Succeeded, false, "", "charge", 1); err != nil {
		t.Errorf("a step of a task that succeeded: %v", err)
	}
	if err := rules.CheckRerun(task.ID{1}, task.Failed, false, "", "", task.MaxRerunSteps+1); !errors.Is(err, store.ErrState) || !strings.Contains(err.Error(), "not 1001") {
		t.Errorf("many steps: %v", err)
	}
	if got := rules.RerunReason(task.ID{15: 1}, ""); got != "as 00000000000000000000000001" {
		t.Errorf("RerunReason = %q", got)
	}
	if got := rules.RerunReason(task.ID{15: 1}, "why"); got != "as 00000000000000000000000001: why" {
		t.Errorf("RerunReason = %q", got)
	}
}

func TestTakesOver(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		step task.Step
		want bool
	}{
		{task.Step{State: task.StepCompleted, Index: 1, Kind: task.KindStep}, true},
		{task.Step{State: task.StepCompleted, Index: 2, Kind: task.KindStep}, false},
		{task.Step{State: task.StepFailed, Index: 0, Kind: task.KindStep}, false},
		{task.Step{State: task.StepWaiting, Index: 0, Kind: task.KindSignal}, false},
		{task.Step{State: task.StepCompleted, Index: 0, Kind: task.KindCleanup}, false},
		{task.Step{State: task.StepCompleted, Index: 0, Kind: task.KindStart}, true},
	} {
		if got := rules.TakesOver(&tc.step, 2); got != tc.want {
			t.Errorf("TakesOver(%+v) = %v", tc.step, got)
		}
	}
}
