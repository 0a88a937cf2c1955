package rules_test

import (
	"errors"
	"testing"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestTakesInput(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		task task.Task
		want bool
	}{
		{"ready", task.Task{State: task.Ready}, true},
		{"delayed", task.Task{State: task.Pending, Waiting: task.WaitDelay}, true},
		{"running", task.Task{State: task.Running, AttemptNo: 1}, false},
		{"to be retried", task.Task{State: task.Pending, AttemptNo: 1}, false},
		{"ended", task.Task{State: task.Cancelled}, false},
		{"of a job", task.Task{State: task.Ready, JobID: task.ID{1}}, false},
		{"a child", task.Task{State: task.Ready, Depth: 1}, false},
		{"to cancel", task.Task{State: task.Ready, CancelRequested: true}, false},
	} {
		if got := rules.TakesInput(&tc.task); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func TestCheckCoalesce(t *testing.T) {
	t.Parallel()
	sub := store.Submission{Tasks: []task.New{{}, {}}}
	if err := rules.CheckCoalesce(&sub); err != nil {
		t.Errorf("without: %v", err)
	}
	sub.Tasks[1].Coalesce = true
	if err := rules.CheckCoalesce(&sub); !errors.Is(err, store.ErrState) {
		t.Errorf("with: %v", err)
	}
}
