package engine

import (
	"context"
	"time"

	"github.com/goweaver/weaver/task"
)

// afterCancel is the time for handlers to return after their contexts ended.
const afterCancel = 2 * time.Second

// drain ends the attempts after claiming has stopped.
type drain struct {
	*env
	executor  *executor
	completer *completer
	hardStop  context.CancelCauseFunc // ends work
}

func newDrain(e *env, executor *executor, completer *completer, hardStop context.CancelCauseFunc) *drain {
	return &drain{env: e, executor: executor, completer: completer, hardStop: hardStop}
}

// run waits for the handlers, for DrainTimeout or until grace ends, and then ends their contexts. It releases the
// leases of those that still run and returns a *task.RunningError that lists them.
func (d *drain) run(grace context.Context) error {
	d.completer.drain()
	after := afterCancel
	if d.LeaveAtSteps {
		d.leaving.Store(true)
		after = 100 * time.Millisecond
	}
	if d.executor.idleWithin(grace, d.DrainTimeout) {
		return nil
	}
	for _, a := range d.slots.all() {
		a.end(ErrDraining)
	}
	if d.executor.idleWithin(d.work, after) {
		return nil
	}

	// These handlers ignore their context. Release their leases now, so that another worker can start at once; the
	// fence rejects their writes.
	stuck := &task.RunningError{}
	for _, a := range d.slots.all() {
		if !a.abandon() {
			continue
		}
		stuck.Tasks = append(stuck.Tasks, a.task.Type+" "+a.task.ID.String())
		fin := a.released()
		a.closeEvents(&fin)
		if res, again := d.completer.finish(fin, nil); res.Err != nil {
			d.Log.Warn("release the lease of a handler that does not return", "task_id", a.task.ID, "error", res.Err)
		} else {
			d.stats.count(a, &fin)
			d.completer.emitEnd(a, &fin, res)
			d.completer.emitSettled(a, res, again)
		}
		d.executor.release(a)
	}
	d.hardStop(ErrDraining)
	if len(stuck.Tasks) == 0 {
		return nil
	}
	return stuck
}
