package memstore

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// replaceInput replaces a task's input.
func (o *op) replaceInput(cmd store.ReplaceInput) store.CommandResult {
	r, res := o.find(cmd.Task, cmd.Seen)
	if res.Err != nil {
		return res
	}
	was := rules.Holder{State: r.State, Waiting: r.Waiting, Hash: task.PayloadHash(r.Input), Schema: r.SchemaVersion}
	if res.Existing, res.Err = rules.CheckReplace(&cmd, was); res.Existing || res.Err != nil {
		return res
	}
	if res.Err = o.usable(rules.ReplaceBlobs(&cmd)); res.Err != nil {
		return res
	}
	o.setInput(r, cmd.Input, cmd.SchemaVersion)
	o.watchExpiry(r, r.Expire)
	r.IdleAttempts = 0
	o.note(rules.RepairNote(&cmd, was), rules.RepairVerb, r.ID.String())
	if !cmd.Repair.IsZero() {
		return res
	}
	r.RepairCount = 0
	if r.State == task.Blocked {
		r.AttemptCount = rules.UnblockedAttempts(r.AttemptCount, r.MaxAttempts)
		o.makeReady(r, o.now, task.WaitNone, r.Error)
	} else {
		o.cancelRepair(r)
		o.propagate()
	}
	return store.CommandResult{State: r.State}
}

// cancelRepair ends the repair that a task waits for, or requests its end.
func (o *op) cancelRepair(r *row) {
	for _, e := range o.children(r) {
		if child := o.tasks[e.Needs]; !e.Done && e.Step == "" && !child.State.Terminal() && child.Undo == nil {
			if child.State == task.Running {
				o.ask(child, task.KindCancelled, store.Audit{Reason: rules.RepairNotNeeded().Message})
			} else {
				o.fail(child, task.Cancelled, rules.RepairNotNeeded())
			}
		}
	}
}
