package decide_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/task"
)

func TestDefaultRepairs(t *testing.T) {
	in := decide.Input{Task: task.Task{ID: task.ID{1}, MaxAttempts: 5, MaxRepairs: 2, RepairCount: 1}, Outcome: task.OutcomeDecodeFailed, CanRepair: true}
	if got := (decide.Default{}).Decide(in); got.Kind != task.DecideRepair || !strings.Contains(got.Reason.Text, "repair 2 of 2") {
		t.Errorf("got %s: %s", got.Kind, got.Reason.Text)
	}
	in.CanRepair, in.Task.RepairCount = false, 2
	got := (decide.Default{}).Decide(in)
	for _, part := range []string{"2 of 2 repairs (max_repairs) did not help", "weaver task repair " + in.Task.ID.String(), "weaver task unblock"} {
		if got.Kind != task.DecideBlock || !strings.Contains(got.Reason.Text, part) {
			t.Errorf("got %s: %s, want block with %q", got.Kind, got.Reason.Text, part)
		}
	}
	in.Task.RepairCount = 0
	if got := (decide.Default{}).Decide(in); got.Kind != task.DecideBlock || strings.Contains(got.Reason.Text, "did not help") {
		t.Errorf("got %s: %s", got.Kind, got.Reason.Text)
	}
	in.CanRepair, in.Outcome, in.Error = true, task.OutcomeFailure, task.Error{Kind: task.KindHandler}
	if got := (decide.Default{}).Decide(in); got.Kind != task.DecideRetry {
		t.Errorf("a failure: got %s, want retry", got.Kind)
	}
}

func TestDefaultHint(t *testing.T) {
	in := decide.RepairInput{Error: task.Error{Message: "no number"}}
	if got := (decide.DefaultHint{}).Hint(in); got != "error: no number" {
		t.Errorf("got %q", got)
	}
	in.Path, in.Before, in.Schema = "cents", &task.Error{Message: "no JSON"}, json.RawMessage(`{"type":"object"}`)
	want := "error: no number\npath: cents\nthe repair before this one failed: no JSON\nexpected: {\"type\":\"object\"}"
	if got := (decide.DefaultHint{}).Hint(in); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
