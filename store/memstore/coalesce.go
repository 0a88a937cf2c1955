package memstore

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// takesInput gives the input of a new task to one that has not started and has its
// key; nil: there is none. existing is the task with its idempotency key.
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

// setInput gives a task another input.
func (o *op) setInput(r *row, input json.RawMessage, schemaVersion int) {
	o.refs[r.ID] = slices.DeleteFunc(o.refs[r.ID], func(r ref) bool { return r.kind == refInput })
	o.refer(r.ID, refInput, "", input)
	r.Input, r.SchemaVersion, r.UpdatedAt = copyRaw(input), schemaVersion, o.now
}

// oldestUnstarted returns the task of a new one's type, queue and concurrency key
// that takes its input and is due first.
func (o *op) oldestUnstarted(n *task.New) *row {
	of := func(key, queue, taskType string) bool {
		return key == n.ConcurrencyKey && queue == n.Queue && taskType == n.Type
	}
	var due, waiting []store.DispatchRow
	for _, d := range o.dispatch {
		if of(d.ConcurrencyKey, d.Queue, d.Type) {
			due = append(due, d)
		}
	}
	for _, d := range o.ready { // of this submission
		if of(d.ConcurrencyKey, d.Queue, d.Type) {
			due = append(due, d)
		}
	}
	for _, w := range o.waiters {
		if of(w.Key, w.Queue, w.Type) {
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
