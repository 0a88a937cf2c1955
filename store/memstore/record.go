package memstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Record implements store.Worker.
func (s *Store) Record(ctx context.Context, ns string, recs ...store.Record) ([]store.RecordResult, error) {
	out := make([]store.RecordResult, len(recs))
	err := s.do(ctx, ns, func(o *op) {
		for i := range recs {
			out[i] = o.record(&recs[i])
		}
	})
	return out, err
}

// record writes one record, if its lease still stands.
func (o *op) record(rec *store.Record) store.RecordResult {
	r, ok := o.guard(rec.Lease)
	if !ok {
		return store.RecordResult{Err: store.ErrLeaseLost}
	}
	res := o.recordStep(r, rec)
	// A task that is to be cancelled may still say how far it came.
	if rec.Progress != nil && (res.Err == nil || r.CancelRequested) {
		r.Progress = copyPtr(rec.Progress)
	}
	return res
}

// recordStep writes the step of a record and what it starts.
func (o *op) recordStep(r *row, rec *store.Record) store.RecordResult {
	if rec.Step == nil {
		if len(rec.Tasks) > 0 {
			return store.RecordResult{Err: fmt.Errorf("record for task %s: tasks are started by a step, and there is none", r.ID)}
		}
		return store.RecordResult{}
	}
	step := o.asStored(r, rec)
	switch step.State {
	case task.StepFailed:
		return o.failedTry(r, step)
	case task.StepCompleted:
		return o.completed(r, step, rec.Tasks)
	}
	return store.RecordResult{Err: fmt.Errorf("record for task %s: step %q has state %q", r.ID, step.Name, step.State)}
}

// asStored fills in what the store knows about a step.
func (o *op) asStored(r *row, rec *store.Record) task.Step {
	step := copyStep(*rec.Step)
	step.TaskID, step.AttemptNo = r.ID, r.AttemptNo
	step.StartedAt, step.CompletedAt = instant(o.now.Add(-rec.Elapsed)), o.now
	step.WakeAt = instant(step.WakeAt)
	if step.Kind == task.KindSleep && step.WakeAt.IsZero() {
		step.WakeAt = instant(o.now.Add(rec.Sleep))
	}
	if step.Kind == task.KindStart && len(rec.Tasks) > 0 && rec.Tasks[0].IdempotencyKey != "" {
		started := rec.Tasks[0].ID
		if known, ok := o.known(&rec.Tasks[0]); ok {
			started = known.ID
		}
		step.Value, _ = json.Marshal(started) // an id is text
	}
	return step
}

// failedTry keeps a try that failed. It counts for nothing.
func (o *op) failedTry(r *row, step task.Step) store.RecordResult {
	for _, s := range o.steps[r.ID] {
		if s.State == task.StepFailed && s.Name == step.Name && s.AttemptNo == step.AttemptNo && s.Try == step.Try {
			return store.RecordResult{Step: copyStep(s)}
		}
	}
	o.addStep(step)
	return store.RecordResult{Step: copyStep(step)}
}

// completed keeps the value of a step, once and for all (R10).
func (o *op) completed(r *row, step task.Step, start []task.New) store.RecordResult {
	for _, s := range o.steps[r.ID] {
		if s.State != task.StepCompleted || s.Name != step.Name {
			continue
		}
		if !sameValue(s, step) {
			return store.RecordResult{Step: copyStep(s), Err: fmt.Errorf("step %q of task %s: %w", step.Name, r.ID, store.ErrStepConflict)}
		}
		return store.RecordResult{Step: copyStep(s), Enqueued: o.startedBefore(start)}
	}
	if r.CancelRequested {
		return store.RecordResult{Err: store.ErrCancelRequested}
	}
	o.addStep(step)
	r.StepCount++
	r.CrashCount, r.QuarantineLosses = 0, 0
	res := store.RecordResult{Step: copyStep(step)}
	if len(start) > 0 {
		res.Enqueued = o.enqueue(store.Submission{Tasks: start}, r.ID)
	}
	return res
}

// startedBefore answers for tasks that were enqueued with their step.
func (o *op) startedBefore(start []task.New) []store.Enqueued {
	var out []store.Enqueued
	for i := range start {
		known, ok := o.known(&start[i])
		if !ok { // it was deleted since
			known = store.Enqueued{ID: start[i].ID, Disposition: store.DispositionCreated}
		}
		out = append(out, known)
	}
	return out
}

// sameValue reports whether a record repeats the one that stands: same
// attempt and same content. The clock moves on between the two.
func sameValue(stored, again task.Step) bool {
	return stored.AttemptNo == again.AttemptNo && stored.Kind == again.Kind &&
		bytes.Equal(stored.Value, again.Value) && reflect.DeepEqual(stored.Error, again.Error)
}

func (o *op) addStep(step task.Step) {
	o.steps[step.TaskID] = append(o.steps[step.TaskID], step)
	slices.SortFunc(o.steps[step.TaskID], byStep)
}
