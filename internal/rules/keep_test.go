package rules_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestFirstCleanup(t *testing.T) {
	t.Parallel()
	id := task.ID{1}
	steps := []task.Step{
		{TaskID: id, Name: "a", Kind: task.KindStep, State: task.StepCompleted},
		{TaskID: id, Name: "b", Kind: task.KindCleanup, State: task.StepFailed},
		{TaskID: id, Name: "c", Kind: task.KindCleanup, State: task.StepCompleted, Undo: task.UndoSkipped},
	}
	if got := rules.FirstCleanup(steps); got != nil {
		t.Errorf("FirstCleanup = %+v of steps without one", got)
	}
	for _, name := range []string{"d", "e"} {
		steps = append(steps, task.Step{TaskID: id, Name: name, Kind: task.KindCleanup, State: task.StepCompleted})
	}
	if got := rules.FirstCleanup(steps); got == nil || *got != (rules.CleanedUp{Task: id, Step: "d"}) {
		t.Errorf("FirstCleanup = %+v, want d", got)
	}
}

func TestCheckCleanedUp(t *testing.T) {
	t.Parallel()
	id, other := task.ID{1}, task.ID{2}
	own, foreign := &rules.CleanedUp{Task: id, Step: "refund"}, &rules.CleanedUp{Task: other, Step: "refund"}
	child, need := []rules.Need{{Awaited: 1}}, []rules.Need{{Awaited: 1}, {}}
	for _, tc := range []struct {
		name  string
		needs []rules.Need
		ran   *rules.CleanedUp
		want  []string
	}{
		{"none", need, nil, nil},
		{"its own", nil, own, []string{id.String() + " is failed, but its cleanup \"refund\" ran", "count as done: rerun it, or retry with --keep-steps (KeepSteps)"}},
		{"of a task with children", child, own, []string{"rerun it"}},
		{"of a task with needs", need, own, []string{"submit its job again"}},
		{"of another task", nil, foreign, []string{id.String() + " is failed", "bring back task " + other.String() + ", whose cleanup \"refund\" ran"}},
	} {
		err := rules.CheckCleanedUp(id, task.Failed, tc.needs, tc.ran)
		if tc.want == nil {
			if err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
			continue
		}
		if !errors.Is(err, store.ErrState) {
			t.Fatalf("%s: %v, want %v", tc.name, err, store.ErrState)
		}
		for _, part := range tc.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not contain %q", tc.name, err, part)
			}
		}
	}
	if err := rules.CheckRerunCleanedUp(id, task.Succeeded, nil); err != nil {
		t.Errorf("a rerun without a cleanup: %v", err)
	}
	if err := rules.CheckRerunCleanedUp(id, task.Succeeded, own); !errors.Is(err, store.ErrState) || !strings.Contains(err.Error(), "from the beginning") {
		t.Errorf("a rerun after a cleanup: %v", err)
	}
}

func TestKeepNote(t *testing.T) {
	t.Parallel()
	id, other := task.ID{15: 1}, task.ID{15: 2}
	for _, tc := range []struct {
		ran          *rules.CleanedUp
		reason, want string
	}{
		{nil, "why", "why"},
		{&rules.CleanedUp{Task: id, Step: "refund"}, "", `steps kept though the cleanup "refund" ran`},
		{&rules.CleanedUp{Task: other, Step: "refund"}, "why", `steps kept though the cleanup "refund" of task 00000000000000000000000002 ran: why`},
	} {
		if got := rules.KeepNote(id, tc.ran, tc.reason); got != tc.want {
			t.Errorf("KeepNote = %q, want %q", got, tc.want)
		}
	}
}

// EndedByNeeds holds for every dependent that RevivesDependent may revive.
func TestEndedByNeeds(t *testing.T) {
	t.Parallel()
	for _, s := range task.States() {
		for _, kind := range task.ErrorKinds() {
			for _, join := range []task.Join{task.JoinNone, task.JoinRerun, task.JoinComplete} {
				if rules.RevivesDependent(s, kind, join, nil) != rules.EndedByNeeds(s, kind, join) {
					t.Errorf("%s, %s, join %q: EndedByNeeds = %v", s, kind, join, rules.EndedByNeeds(s, kind, join))
				}
			}
		}
	}
}
