package rules_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestCheckReplace(t *testing.T) {
	hash := func(input string) string { return task.PayloadHash(json.RawMessage(input)) }
	by := task.ID{7}
	for name, tt := range map[string]struct {
		state    task.State
		waiting  task.Waiting
		has      string // its input; the schema version is 2
		cmd      store.ReplaceInput
		existing bool
		want     error
		text     string
	}{
		"a blocked task":                    {state: task.Blocked, has: `1`, cmd: store.ReplaceInput{OldHash: hash(`1`), OldSchema: 2}},
		"whatever it has":                   {state: task.Blocked, has: `1`},
		"one that waits for a repair":       {state: task.Pending, waiting: task.WaitRepair, has: `1`},
		"its repair":                        {state: task.Pending, waiting: task.WaitRepair, has: `1`, cmd: store.ReplaceInput{Repair: by, OldHash: hash(`1`)}},
		"another input by now":              {state: task.Blocked, has: `3`, cmd: store.ReplaceInput{OldHash: hash(`1`)}, want: store.ErrChanged, text: hash(`3`)},
		"another schema by now":             {state: task.Blocked, has: `1`, cmd: store.ReplaceInput{OldSchema: 1}, want: store.ErrChanged},
		"a repair that came later":          {state: task.Pending, waiting: task.WaitRepair, has: `3`, cmd: store.ReplaceInput{Repair: by, OldHash: hash(`1`)}, want: store.ErrChanged},
		"a repair of a blocked task":        {state: task.Blocked, has: `1`, cmd: store.ReplaceInput{Repair: by}, want: store.ErrState, text: "does not wait for a repair any more"},
		"a repair of one that runs":         {state: task.Running, has: `1`, cmd: store.ReplaceInput{Repair: by}, want: store.ErrState},
		"one that is due":                   {state: task.Ready, has: `1`, want: store.ErrState, text: "only blocked tasks"},
		"one that waits for its children":   {state: task.Pending, waiting: task.WaitChildren, has: `1`, want: store.ErrState},
		"one that failed":                   {state: task.Failed, has: `1`, want: store.ErrState, text: "a rerun"},
		"the same again":                    {state: task.Ready, has: `2`, existing: true},
		"the same of a repair, after all":   {state: task.Succeeded, has: `2`, cmd: store.ReplaceInput{Repair: by}, existing: true},
		"the same of a repair, and blocked": {state: task.Blocked, has: `2`, cmd: store.ReplaceInput{Repair: by}, existing: true},
		"the same for a blocked task":       {state: task.Blocked, has: `2`, want: store.ErrState, text: "has this input already: unblock it"},
	} {
		tt.cmd.Task, tt.cmd.Input, tt.cmd.SchemaVersion = task.ID{1}, json.RawMessage(`2`), 2
		existing, err := rules.CheckReplace(&tt.cmd, rules.Holder{State: tt.state, Waiting: tt.waiting, Hash: hash(tt.has), Schema: 2})
		if existing != tt.existing || !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: existing %v, error %v, want %v, %v, %q", name, existing, err, tt.existing, tt.want, tt.text)
		}
	}
	for name, cmd := range map[string]store.ReplaceInput{
		"no input":          {SchemaVersion: 1},
		"no schema version": {Input: json.RawMessage(`1`)},
	} {
		if _, err := rules.CheckReplace(&cmd, rules.Holder{State: task.Blocked}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestRepairNote(t *testing.T) {
	cmd := store.ReplaceInput{Audit: store.Audit{By: "ada"}, Input: json.RawMessage(`2`), SchemaVersion: 3}
	want := "input old (schema version 1) → " + task.PayloadHash(cmd.Input) + " (3)"
	if a := rules.RepairNote(&cmd, rules.Holder{Hash: "old", Schema: 1}); a.By != "ada" || a.Reason != want {
		t.Errorf("the note is %+v, want %q", a, want)
	}
	cmd.Reason = "a typo"
	if a := rules.RepairNote(&cmd, rules.Holder{Hash: "old", Schema: 1}); a.Reason != "a typo; "+want {
		t.Errorf("the note is %+v", a)
	}
}

func TestLane(t *testing.T) {
	req := store.ClaimRequest{Types: map[string]int{"a": 1, "b": 1}, Bound: map[string][]string{"b": {"q2", "q3"}}}
	limited := req
	limited.Queues = map[string]int{"q1": 1, "q2": 0, "q3": 2}
	for _, tt := range []struct {
		req   *store.ClaimRequest
		lane  [2]string
		asked bool
	}{
		{&req, [2]string{"q1", "a"}, true},
		{&req, [2]string{"q1", "c"}, false},
		{&req, [2]string{"q1", "b"}, false},
		{&req, [2]string{"q2", "b"}, true},
		{&req, [2]string{"q3", "b"}, true},
		{&limited, [2]string{"q1", "a"}, true},
		{&limited, [2]string{"q1", "b"}, false},
		{&limited, [2]string{"q2", "b"}, false},
		{&limited, [2]string{"q3", "b"}, true},
	} {
		if got := rules.Lane(tt.req, tt.lane[0], tt.lane[1]); got != tt.asked {
			t.Errorf("%v: %v, want %v", tt.lane, got, tt.asked)
		}
	}
}

func TestUnblockedRepairs(t *testing.T) {
	for _, tt := range [][3]int{{0, 2, 0}, {1, 2, 1}, {2, 2, 1}, {5, 2, 1}, {0, 0, 0}, {3, 0, 0}} {
		if got := rules.UnblockedRepairs(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%d of %d: %d, want %d", tt[0], tt[1], got, tt[2])
		}
	}
}
