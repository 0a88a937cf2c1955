package rules_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestAcceptCheckpoint(t *testing.T) {
	t.Parallel()
	then, now := time.Unix(100, 0).UTC(), time.Unix(200, 0).UTC()
	id := task.ID{15: 1}
	stored := func(value string, attempt int, at time.Time) *task.Checkpoint {
		return &task.Checkpoint{TaskID: id, Name: "c", Value: json.RawMessage(value), AttemptNo: attempt, SavedAt: at}
	}
	for name, tc := range map[string]struct {
		stood *task.Checkpoint
		want  *task.Checkpoint
		same  bool
	}{
		"the first":            {nil, stored(`1`, 2, now), false},
		"another value":        {stored(`0`, 1, then), stored(`1`, 2, now), false},
		"the same value stays": {stored(`1`, 1, then), stored(`1`, 1, then), true},
	} {
		rec := &store.Record{Lease: task.Lease{Task: id}, Checkpoint: &task.Checkpoint{Name: "c", Value: json.RawMessage(`1`)}}
		got, same := rules.AcceptCheckpoint(tc.stood, rec, 2, now)
		if !reflect.DeepEqual(&got, tc.want) || same != tc.same {
			t.Errorf("%s: %+v, %t", name, got, same)
		}
	}
}
