package memstore

import (
	"maps"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// pausedTask is the pause of one task.
type pausedTask struct {
	store.AuditEntry
	due time.Time // of its suspended dispatch row; zero without one
}

// pauseOf returns the kind of pause that stops a lane: of its type or of its queue.
func (sp *space) pauseOf(queue, taskType string) task.PauseKind {
	if _, ok := sp.pausedType[taskType]; ok {
		return task.PauseType
	}
	if _, ok := sp.paused[queue]; ok {
		return task.PauseQueue
	}
	return task.PauseNone
}

// pauseLanes stops claims from queues or types: paused is the map for either. Their due
// rows no longer count toward the limits of their keys, so waiters of other lanes may
// proceed.
func (o *op) pauseLanes(paused map[string]store.AuditEntry, a store.Audit, verb, name string, of func(d store.DispatchRow) bool) {
	e := o.note(a, verb, name)
	if _, ok := paused[name]; ok {
		return
	}
	paused[name] = e
	for _, d := range o.dispatch {
		if d.ConcurrencyKey != "" && of(d) {
			o.freed[d.ConcurrencyKey] = true
		}
	}
}

// resumeLanes ends a pause.
func (o *op) resumeLanes(paused map[string]store.AuditEntry, a store.Audit, verb, name string) {
	o.note(a, verb, name)
	delete(paused, name)
	o.notice.Due = true
}

// pauseTask removes a task's dispatch row and suspends later ones.
func (o *op) pauseTask(cmd store.PauseTask) store.CommandResult {
	r, res := o.find(cmd.Task, cmd.Seen)
	if res.Err != nil {
		return res
	}
	if err := rules.CheckPause(r.ID, r.State); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	e := o.note(cmd.Audit, "pause_task", r.ID.String())
	if o.pausedTask[r.ID] != nil {
		return res
	}
	due := o.dispatch[r.ID].AvailableAt
	if w, waits := o.waiters[r.ID]; waits {
		due = w.DueAt
	}
	if !due.IsZero() {
		o.unschedule(r)
	}
	o.pausedTask[r.ID] = &pausedTask{AuditEntry: e, due: due}
	return res
}

// resumeTask restores a task's suspended dispatch row.
func (o *op) resumeTask(cmd store.ResumeTask) store.CommandResult {
	r, res := o.find(cmd.Task, cmd.Seen)
	if res.Err != nil {
		return res
	}
	o.note(cmd.Audit, "resume_task", r.ID.String())
	p := o.pausedTask[r.ID]
	delete(o.pausedTask, r.ID)
	if p != nil && !p.due.IsZero() {
		o.ready = append(o.ready, r.dispatchRow(p.due))
	}
	return res
}

func (r *row) dispatchRow(at time.Time) store.DispatchRow {
	return store.DispatchRow{Task: r.ID, Queue: r.Queue, Type: r.Type, Group: groupOf(r), Priority: r.Priority, AvailableAt: at, ConcurrencyKey: r.DispatchKey()}
}

// park stores the due time of a paused task instead of its dispatch row, and reports
// whether the task is paused.
func (o *op) park(d store.DispatchRow) bool {
	p, paused := o.pausedTask[d.Task]
	if paused {
		p.due = d.AvailableAt
	}
	return paused
}

// pausedTasks returns the pauses of tasks, as in snapshots.
func (sp *space) pausedTasks() []store.PausedTask {
	var list []store.PausedTask
	for _, id := range slices.SortedFunc(maps.Keys(sp.pausedTask), task.ID.Compare) {
		list = append(list, store.PausedTask{Task: id, DueAt: sp.pausedTask[id].due})
	}
	return list
}
