package memstore

import (
	"context"
	"errors"
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Record implements store.Core.
func (s *Store) Record(ctx context.Context, ns string, recs ...store.Record) ([]store.RecordResult, error) {
	out := make([]store.RecordResult, len(recs))
	err := s.do(ctx, ns, func(o *op) {
		for i := range recs {
			if out[i] = o.record(&recs[i]); out[i].Err == nil {
				o.notice.Changed = true
				o.addEvents(recs[i].Lease, recs[i].Events)
			}
		}
	})
	return out, err
}

// record writes one record, if its lease is valid.
func (o *op) record(rec *store.Record) store.RecordResult {
	if err := rules.CheckRecord(rec); err != nil {
		return store.RecordResult{Err: err}
	}
	if err := o.usable(rules.RecordBlobs(rec)); err != nil {
		return store.RecordResult{Err: err}
	}
	r, err := o.guard(rec.Lease)
	if err != nil {
		return store.RecordResult{Err: err}
	}
	res := o.recordStep(r, rec)
	// A task whose cancellation was requested may still report its progress.
	if rec.Progress != nil && (res.Err == nil || errors.Is(res.Err, store.ErrCancelRequested)) {
		r.Progress = copyPtr(rec.Progress)
	}
	return res
}

// recordStep writes the step of a record and the tasks that it starts.
func (o *op) recordStep(r *row, rec *store.Record) store.RecordResult {
	if rec.Checkpoint != nil {
		return o.checkpoint(r, rec)
	}
	if rec.Step == nil {
		return store.RecordResult{}
	}
	if rules.IsWait(rec) {
		return o.recordWait(r, rec)
	}
	step := copyStep(rules.StoredStep(rec, r.AttemptNo, o.now))
	if rules.StartsByKey(rec) {
		started := rec.Tasks[0].ID
		if known, ok := o.known(&rec.Tasks[0]); ok {
			started = known.ID
		}
		step.Value = rules.StartedValue(started)
	}
	switch {
	case step.State == task.StepFailed:
		return o.failedTry(r, step)
	case rules.StartsUndo(rec):
		return o.startUndo(r, rec)
	case step.Kind == task.KindUndo:
		return o.recordUndo(r, rec.UndoOf, step)
	}
	return o.completed(r, step, rec)
}

// failedTry stores a failed try. Only its cost counts.
func (o *op) failedTry(r *row, step task.Step) store.RecordResult {
	for _, s := range o.steps[r.ID] {
		if s.State == task.StepFailed && s.Name == step.Name && s.AttemptNo == step.AttemptNo && s.Try == step.Try {
			return store.RecordResult{Step: copyStep(s)}
		}
	}
	o.addStep(step)
	return store.RecordResult{Asked: o.spend(r, step.Cost), Step: copyStep(step)}
}

// completed stores the final value of a step (R10), or its beginning.
func (o *op) completed(r *row, step task.Step, rec *store.Record) store.RecordResult {
	start := rec.Tasks
	stored := o.recordedStep(r.ID, step.Name)
	repeated, err := rules.AcceptStep(stored, &step, r.toEnd())
	switch {
	case err != nil && stored != nil:
		return store.RecordResult{Step: copyStep(*stored), Err: err}
	case err != nil:
		return store.RecordResult{Err: err}
	case repeated:
		return store.RecordResult{Step: copyStep(*stored), Enqueued: o.startedBefore(start)}
	}
	switch {
	case stored != nil: // it began
		step = copyStep(rules.EndOfBegun(stored, &step))
		*stored = copyStep(step)
	case step.Undo == task.UndoOpen:
		r.UndoOpen++
		r.UndoNo++
		step.UndoNo = r.UndoNo
		o.addStep(step)
	case step.Kind == task.KindPoint:
		step.UndoNo = r.UndoNo
		o.keepUndos(r)
		o.addStep(step)
	default:
		o.addStep(step)
	}
	if step.State == task.StepBegun {
		return store.RecordResult{Step: copyStep(step)}
	}
	o.refer(r.ID, refStep, step.Name, step.Value)
	o.addArtifacts(rec.Artifacts, &step)
	r.StepCount++
	r.progresses()
	res := store.RecordResult{Asked: o.spend(r, step.Cost), Step: copyStep(step)}
	if len(start) > 0 {
		res.Enqueued = o.enqueue(store.Submission{Tasks: start}, r.ID)
	}
	return res
}

// progresses resets the crash count, because a step was recorded.
func (r *row) progresses() {
	if r.Undo != nil {
		r.Undo.Crashes = 0
	} else {
		r.CrashCount = 0
	}
	r.QuarantineLosses = 0
}

// toEnd reports whether the end of a task was requested, or its undo has begun.
func (r *row) toEnd() bool { return r.CancelRequested || r.Undo != nil }

// recordedStep returns the completed or waiting step of a name, or nil.
func (o *op) recordedStep(id task.ID, name string) *task.Step {
	for i, s := range o.steps[id] {
		if s.State != task.StepFailed && s.Name == name && !s.Past() && s.Kind != task.KindUndo {
			return &o.steps[id][i]
		}
	}
	return nil
}

// startedBefore returns the results for tasks that were enqueued with their step.
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

func (o *op) addStep(step task.Step) {
	o.steps[step.TaskID] = append(o.steps[step.TaskID], step)
	slices.SortFunc(o.steps[step.TaskID], byStep)
}
