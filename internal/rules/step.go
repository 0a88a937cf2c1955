package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// checkRecord refuses a malformed record. No engine sends one.
func checkRecord(rec *store.Record) error {
	if err := checkEvents(&rec.Lease, rec.Events); err != nil {
		return err
	}
	for i := range rec.Artifacts {
		if a := &rec.Artifacts[i]; len(a.Link) > 0 && (!json.Valid(a.Link) || a.Blob != task.Blob{}) {
			return fmt.Errorf("record for task %v: the artifact %q is a link that is not JSON, or has a blob too", rec.Lease.Task, a.Name)
		}
	}
	switch {
	case len(rec.Artifacts) > 0 && (rec.Step == nil || rec.Step.State != task.StepCompleted || IsWait(rec)):
		return fmt.Errorf("record for task %v: artifacts are recorded with a completed step, and there is none", rec.Lease.Task)
	case rec.Checkpoint != nil && (rec.Step != nil || len(rec.Tasks) > 0):
		return fmt.Errorf("record for task %v: the checkpoint %q comes with a step or with tasks", rec.Lease.Task, rec.Checkpoint.Name)
	case rec.Checkpoint != nil && (rec.Checkpoint.Name == "" || !json.Valid(rec.Checkpoint.Value)):
		return fmt.Errorf("record for task %v: the checkpoint %q has no name, or a value that is not JSON", rec.Lease.Task, rec.Checkpoint.Name)
	case rec.Step == nil && len(rec.Tasks) > 0:
		return fmt.Errorf("record for task %v: tasks are started by a step, and there is none", rec.Lease.Task)
	case rec.Step != nil && rec.Step.Cost < 0:
		return fmt.Errorf("record for task %v: step %q has the cost %d, which is negative", rec.Lease.Task, rec.Step.Name, rec.Step.Cost)
	case rec.Step == nil:
		return nil
	case !rec.UndoOf.IsZero() && rec.Step.Kind != task.KindUndo:
		return fmt.Errorf("record for task %v: step %q is of task %v, and only undos are", rec.Lease.Task, rec.Step.Name, rec.UndoOf)
	case slices.ContainsFunc(rec.Tasks, func(n task.New) bool { return !n.UndoOf.IsZero() }) && !StartsUndo(rec):
		return fmt.Errorf("record for task %v: step %q starts an undo task, but it is not an undo", rec.Lease.Task, rec.Step.Name)
	case OfUndo(rec.Step) && !IsWait(rec):
		return checkUndoRecord(rec)
	case rec.Step.State == task.StepFailed:
		return nil
	case rec.Step.State != task.StepCompleted && rec.Step.State != task.StepWaiting:
		return fmt.Errorf("record for task %v: step %q has state %q", rec.Lease.Task, rec.Step.Name, rec.Step.State)
	}
	return checkWait(rec)
}

// StoredStep returns the step of a record as it is stored, with the fields that only the store
// knows: the attempt, and the instants by its clock.
func StoredStep(rec *store.Record, attemptNo int, now time.Time) task.Step {
	step := *rec.Step
	step.TaskID, step.AttemptNo = rec.Lease.Task, attemptNo
	step.StartedAt, step.CompletedAt = Instant(now.Add(-rec.Elapsed)), now
	if step.State == task.StepWaiting || step.State == task.StepBegun {
		step.CompletedAt = time.Time{}
	}
	if step.Kind == task.KindSleep && step.WakeAt.IsZero() {
		step.WakeAt = now.Add(rec.Sleep)
	}
	if step.Kind == task.KindSignal && step.WakeAt.IsZero() && rec.Timeout > 0 {
		step.WakeAt = now.Add(rec.Timeout)
	}
	step.WakeAt = Instant(step.WakeAt)
	return step
}

// StartsByKey reports whether a record starts a task whose idempotency key may belong to an
// existing task. Then the existing task's ID is the step's value ([StartedValue]).
func StartsByKey(rec *store.Record) bool {
	return rec.Step != nil && rec.Step.Kind == task.KindStart && len(rec.Tasks) > 0 && rec.Tasks[0].IdempotencyKey != ""
}

// StartedValue returns the value of a step that started a task.
func StartedValue(id task.ID) json.RawMessage {
	value, _ := json.Marshal(id) // an ID is text
	return value
}

// Unwanted reports whether a new step is not stored because its task was asked to cancel.
// Cleanups and undos are stored, because they undo earlier effects.
func Unwanted(step *task.Step, cancelRequested bool) bool {
	return cancelRequested && step.Kind != task.KindCleanup && step.Kind != task.KindUndo
}

// AcceptStep decides about a step that completed, or that begins with an undo (R10). stored is
// the step recorded under its name, or nil. A new step is stored. A repetition has the same
// attempt and the same content, at another time. A step that begins is new once. A step that
// only began takes its value ([EndOfBegun]) even if its task was asked to cancel, because its
// effect exists. Errors: [store.ErrStepConflict], and [store.ErrCancelRequested] for a new
// step that is [Unwanted].
func AcceptStep(stored, step *task.Step, cancelRequested bool) (repeated bool, err error) {
	switch {
	case stored != nil && stored.State == task.StepBegun && stored.Kind == step.Kind:
		return step.State == task.StepBegun, nil
	case stored == nil && Unwanted(step, cancelRequested):
		return false, fmt.Errorf("step %q of task %v: %w", step.Name, step.TaskID, store.ErrCancelRequested)
	case stored == nil:
		return false, nil
	case stored.AttemptNo != step.AttemptNo || stored.Kind != step.Kind || stored.State != step.State ||
		!bytes.Equal(stored.Value, step.Value) || !reflect.DeepEqual(stored.Error, step.Error):
		return false, fmt.Errorf("step %q of task %v: %w: attempt %d recorded it", step.Name, step.TaskID, store.ErrStepConflict, stored.AttemptNo)
	}
	return true, nil
}
