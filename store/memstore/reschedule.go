package memstore

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// reschedule changes the time at which a task becomes due.
func (o *op) reschedule(cmd store.RescheduleTask) store.CommandResult {
	r, res := o.find(cmd.Task, cmd.Seen)
	if res.Err != nil {
		return res
	}
	if err := rules.CheckReschedule(r.ID, r.State, r.Waiting, r.Undo != nil); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	o.note(cmd.Audit, "reschedule", r.ID.String())
	due := o.dispatch[r.ID].AvailableAt
	if w, waits := o.waiters[r.ID]; waits {
		due = w.DueAt
	}
	if p, paused := o.pausedTask[r.ID]; paused {
		due = p.due
	}
	v, ok := rules.Reschedule(r.Waiting, due, cmd.At, o.now)
	if !ok {
		return store.CommandResult{State: r.State}
	}
	if r.Waiting == task.WaitSleep {
		steps := o.steps[r.ID]
		for i := range steps {
			if s := &steps[i]; s.Kind == task.KindSleep && s.State == task.StepCompleted && s.WakeAt.Equal(r.ReadyAt) {
				s.WakeAt = v.Due
			}
		}
	}
	o.unschedule(r)
	r.ReadyAt = v.NotBefore
	o.makeReady(r, v.Due, v.Waiting, r.Error)
	return store.CommandResult{State: r.State}
}
