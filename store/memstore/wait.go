package memstore

import (
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// recordWait checks whether a wait is over, and registers it otherwise.
func (o *op) recordWait(r *row, rec *store.Record) store.RecordResult {
	step := copyStep(rules.StoredStep(rec, r.AttemptNo, o.now))
	stored := o.recordedStep(r.ID, step.Name)
	answered, err := rules.AcceptWait(stored, &step, r.toEnd())
	switch {
	case err != nil && stored == nil:
		return store.RecordResult{Err: err}
	case err != nil || answered:
		return store.RecordResult{Step: copyStep(*stored), Err: err}
	case step.Kind == task.KindCall:
		return o.recordCall(r, stored, step, rec.Tasks)
	}
	return o.recordSignalWait(r, stored, step)
}

// recordSignalWait completes a wait for a signal, or registers it.
func (o *op) recordSignalWait(r *row, stored *task.Step, step task.Step) store.RecordResult {
	withdrawn := step.State == task.StepCompleted
	if stored != nil {
		step = *stored
	}
	var signal *task.Signal
	if !withdrawn {
		signal = o.openSignal(r.ID, step.Signal)
	}
	over := rules.ResolveWait(&step, signal, withdrawn, o.now)
	if over && signal != nil {
		signal.Step = step.Name
	}
	if over {
		r.StepCount++
	}
	if over || stored == nil {
		r.CrashCount, r.QuarantineLosses = 0, 0
	}
	o.putStep(stored, step)
	return store.RecordResult{Step: copyStep(step)}
}

// putStep writes a step in place of its stored version, if any.
func (o *op) putStep(stored *task.Step, step task.Step) {
	if stored == nil {
		o.addStep(copyStep(step))
	} else {
		*stored = copyStep(step)
	}
}

// openSignal returns the oldest signal of a name that no wait has consumed, or nil.
func (sp *space) openSignal(id task.ID, name string) *task.Signal {
	for i := range sp.signals[id] {
		if s := &sp.signals[id][i]; s.Name == name && s.Step == "" {
			return s
		}
	}
	return nil
}

// sendSignal delivers a signal to a task.
func (o *op) sendSignal(cmd store.SendSignal) store.CommandResult {
	res := o.signal(cmd)
	if res.Err == nil && !res.Existing {
		o.note(cmd.Audit, "signal", cmd.Task.String())
	}
	return res
}

// signal is sendSignal without an audit entry.
func (o *op) signal(cmd store.SendSignal) store.CommandResult {
	if err := rules.CheckSignal(&cmd); err != nil {
		return store.CommandResult{Err: err}
	}
	r, res := o.find(cmd.Task, cmd.Seen)
	if res.Err != nil {
		return res
	}
	var stored *task.Signal
	kept := 0
	for i := range o.signals[r.ID] {
		s := &o.signals[r.ID][i]
		if s.Name == cmd.Name && s.Key == cmd.Key {
			stored = s
		}
		if s.Step == "" {
			kept++
		}
	}
	existing, err := rules.AcceptSignal(&cmd, r.State, stored)
	if err != nil || existing {
		return store.CommandResult{State: r.State, Existing: existing, Err: err}
	}
	s := task.Signal{
		TaskID: r.ID, Seq: len(o.signals[r.ID]) + 1, Name: cmd.Name, Key: cmd.Key,
		Payload: copyRaw(cmd.Payload), SentAt: o.now, Actor: cmd.By,
	}
	if wait := o.oldestWait(r.ID, cmd.Name); wait != nil && r.Undo == nil {
		rules.ResolveWait(wait, &s, false, o.now)
		s.Step = wait.Name
		o.waitEnded(r)
	} else if err := rules.KeepSignal(r.ID, kept); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	o.signals[r.ID] = append(o.signals[r.ID], s)
	return store.CommandResult{State: r.State}
}

// oldestWait returns the oldest wait for a signal, or nil.
func (sp *space) oldestWait(id task.ID, signal string) *task.Step {
	for i := range sp.steps[id] { // sorted by index
		if s := &sp.steps[id][i]; s.State == task.StepWaiting && s.Kind == task.KindSignal && s.Signal == signal {
			return s
		}
	}
	return nil
}

// waitEnded handles a task's wait that was completed from outside: a suspended task
// becomes claimable.
func (o *op) waitEnded(r *row) {
	r.WakeSeq++
	r.StepCount++
	if !rules.Suspended(r.State, r.Waiting, r.Join) {
		return
	}
	// A due row gives way to one of the same lane, so its key need not wake.
	delete(o.dispatch, r.ID)
	delete(o.waiters, r.ID)
	o.makeReady(r, o.now, task.WaitNone, r.Error)
	r.ReadyAt = time.Time{} // it counted before
}
