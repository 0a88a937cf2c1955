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

func TestAcceptStep(t *testing.T) {
	t.Parallel()
	with := func(change func(*task.Step)) *task.Step {
		s := &task.Step{Name: "s", Kind: task.KindStep, State: task.StepCompleted, AttemptNo: 2, Value: json.RawMessage(`1`), CompletedAt: now}
		if change != nil {
			change(s)
		}
		return s
	}
	for _, tc := range []struct {
		name     string
		stored   *task.Step
		cancel   bool
		repeated bool
		err      error
	}{
		{"nothing is stored", nil, false, false, nil},
		{"nothing is stored and a cancel was asked for", nil, true, false, store.ErrCancelRequested},
		{"the same is stored", with(nil), false, true, nil},
		{"the same is stored, at another time", with(func(s *task.Step) { s.CompletedAt = now.Add(time.Hour) }), false, true, nil},
		{"the same is stored and a cancel was asked for", with(nil), true, true, nil},
		{"another value is stored", with(func(s *task.Step) { s.Value = json.RawMessage(`2`) }), false, false, store.ErrStepConflict},
		{"another attempt stored it", with(func(s *task.Step) { s.AttemptNo = 1 }), false, false, store.ErrStepConflict},
		{"another kind is stored", with(func(s *task.Step) { s.Kind = task.KindSleep }), false, false, store.ErrStepConflict},
		{"an error is stored", with(func(s *task.Step) { s.Error = failure }), false, false, store.ErrStepConflict},
	} {
		repeated, err := rules.AcceptStep(tc.stored, with(nil), tc.cancel)
		if repeated != tc.repeated || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
			t.Errorf("%s: AcceptStep = %v, %v; want %v, %v", tc.name, repeated, err, tc.repeated, tc.err)
		}
	}
}

// A cleanup undoes effects of a task even after a cancel request.
func TestAcceptStepOfACleanup(t *testing.T) {
	t.Parallel()
	step := &task.Step{Name: "s", Kind: task.KindCleanup, State: task.StepCompleted}
	if repeated, err := rules.AcceptStep(nil, step, true); repeated || err != nil {
		t.Errorf("AcceptStep = %v, %v", repeated, err)
	}
}

func TestStoredStep(t *testing.T) {
	t.Parallel()
	id := task.ID{1}
	rec := store.Record{
		Lease: task.Lease{Task: id}, Elapsed: time.Second, Sleep: time.Hour,
		Step: &task.Step{Name: "s", Kind: task.KindSleep, State: task.StepCompleted},
	}
	got := rules.StoredStep(&rec, 3, now)
	if got.TaskID != id || got.AttemptNo != 3 || got.StartedAt != now.Add(-time.Second) || got.CompletedAt != now || got.WakeAt != now.Add(time.Hour) {
		t.Errorf("StoredStep = %+v", got)
	}
	rec.Step.WakeAt = now.Add(time.Minute + time.Nanosecond)
	if got := rules.StoredStep(&rec, 3, now); got.WakeAt != now.Add(time.Minute) {
		t.Errorf("a sleep until an instant wakes at %v", got.WakeAt)
	}
	rec.Step = &task.Step{Name: "s", Kind: task.KindStep, State: task.StepCompleted}
	if got := rules.StoredStep(&rec, 3, now); !got.WakeAt.IsZero() {
		t.Errorf("a plain step wakes at %v", got.WakeAt)
	}
}

func TestCheckRecord(t *testing.T) {
	t.Parallel()
	start := []task.New{{IdempotencyKey: "k"}}
	for _, tc := range []struct {
		name  string
		rec   store.Record
		ok    bool
		byKey bool
	}{
		{"progress", store.Record{}, true, false},
		{"a completed step", store.Record{Step: &task.Step{State: task.StepCompleted}}, true, false},
		{"a failed try", store.Record{Step: &task.Step{State: task.StepFailed}}, true, false},
		{"a step without a state", store.Record{Step: &task.Step{}}, false, false},
		{"tasks without a step", store.Record{Tasks: start}, false, false},
		{"a start by key", store.Record{Step: &task.Step{State: task.StepCompleted, Kind: task.KindStart}, Tasks: start}, true, true},
		{"a start of nothing", store.Record{Step: &task.Step{State: task.StepCompleted, Kind: task.KindStart}}, true, false},
		{"a start without a key", store.Record{Step: &task.Step{State: task.StepCompleted, Kind: task.KindStart}, Tasks: []task.New{{}}}, true, false},
	} {
		if err := rules.CheckRecord(&tc.rec); (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got := rules.StartsByKey(&tc.rec); got != tc.byKey {
			t.Errorf("%s: StartsByKey = %v", tc.name, got)
		}
	}
	id := task.ID{7}
	if got := string(rules.StartedValue(id)); got != `"`+id.String()+`"` {
		t.Errorf("StartedValue = %s", got)
	}
}
