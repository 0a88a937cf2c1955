package memstore

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// takesInput passes the input of a new task to an unstarted task with the same key, and
// returns that task, or nil. existing is the task with the same idempotency key.
func (o *op) takesInput(n *task.New, existing task.ID) *row {
	var found *row
	switch r := o.tasks[existing]; {
	case r != nil:
		if o.pausedTask[r.ID] == nil && rules.TakesInput(&r.Task) {
			found = r
		}
	case n.IdempotencyKey == "" && n.ConcurrencyKey != "":
		found = o.oldestUnstarted(n)
	}
	if found != nil {
		o.setInput(found, n.Input, n.SchemaVersion)
		o.watchExpiry(found, n.Expire)
	}
	return found
}

// setInput replaces a task's input.
func (o *op) setInput(r *row, input json.RawMessage, schemaVersion int) {
	o.refs[r.ID] = slices.DeleteFunc(o.refs[r.ID], func(r ref) bool { return r.kind == refInput })
	o.refer(r.ID, refInput, "", input)
	r.Input, r.SchemaVersion, r.UpdatedAt = copyRaw(input), schemaVersion, o.now
}

// oldestUnstarted returns the earliest due task with a new task's type, queue and
// concurrency key that accepts its input.
func (o *op) oldestUnstarted(n *task.New) *row {
	group := store.LaneGroup(n.Options, n.Labels)
	of := func(key, queue, taskType, g string) bool {
		return key == n.ConcurrencyKey && queue == n.Queue && taskType == n.Type && g == group
	}
	var due, waiting []store.DispatchRow
	for _, d := range o.dispatch {
		if of(d.ConcurrencyKey, d.Queue, d.Type, d.Group) {
			due = append(due, d)
		}
	}
	for _, d := range o.ready { // tasks of this submission
		if of(d.ConcurrencyKey, d.Queue, d.Type, d.Group) {
			due = append(due, d)
		}
	}
	for _, w := range o.waiters {
		if of(w.Key, w.Queue, w.Type, w.Group) {
			waiting = append(waiting, store.DispatchRow{Task: w.Task, AvailableAt: w.DueAt})
		}
	}
	var first []store.DispatchRow
	for _, rows := range [][]store.DispatchRow{due, waiting} {
		slices.SortFunc(rows, byDue)
		for _, d := range rows[:min(len(rows), rules.CoalesceLooks)] {
			if rules.TakesInput(&o.tasks[d.Task].Task) {
				first = append(first, d)
				break
			}
		}
	}
	if len(first) == 0 {
		return nil
	}
	return o.tasks[slices.MinFunc(first, byDue).Task]
}

func byDue(a, b store.DispatchRow) int {
	return cmp.Or(a.AvailableAt.Compare(b.AvailableAt), a.Task.Compare(b.Task))
}
