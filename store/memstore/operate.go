package memstore

import (
	"context"
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Operate implements store.Producer.
func (s *Store) Operate(ctx context.Context, ns string, cmds ...store.Command) ([]store.CommandResult, error) {
	out := make([]store.CommandResult, len(cmds))
	err := s.do(ctx, ns, func(o *op) {
		for i, cmd := range cmds {
			out[i] = o.operate(cmd)
			o.propagate()
		}
	})
	return out, err
}

// operate applies one command.
func (o *op) operate(cmd store.Command) store.CommandResult {
	switch cmd := cmd.(type) {
	case store.CancelTask:
		return o.cancel(cmd)
	case store.CancelJob:
		return o.cancelJob(cmd)
	case store.RetryTask:
		return o.retry(cmd)
	case store.UnblockTask:
		return o.unblock(cmd)
	case store.RescheduleTask:
		return o.reschedule(cmd)
	case store.SendSignal:
		return o.sendSignal(cmd)
	case store.DeleteTask:
		return o.delete(cmd)
	case store.PauseQueue:
		o.pause(cmd)
		return store.CommandResult{}
	case store.ResumeQueue:
		o.resume(cmd)
		return store.CommandResult{}
	case store.Restored:
		o.restored(cmd)
		return store.CommandResult{}
	}
	return store.CommandResult{Err: rules.UnknownCommand(cmd)}
}

// note writes the audit entry of a verb.
func (o *op) note(a store.Audit, verb, target string) store.AuditEntry {
	e := store.AuditEntry{At: o.now, Actor: a.By, Verb: verb, Target: target, Reason: a.Reason}
	o.audit = append(o.audit, e)
	return e
}

// find returns the task of a command, if it is still the one that was seen.
func (o *op) find(id task.ID, seen store.Seen) (*row, store.CommandResult) {
	r, ok := o.tasks[id]
	if !ok {
		return nil, store.CommandResult{Err: rules.NotFound(id)}
	}
	return r, store.CommandResult{State: r.State, Err: rules.CheckSeen(id, seen, r.Epoch)}
}

// unblock lets a blocked task go on, with one attempt at least.
func (o *op) unblock(cmd store.UnblockTask) store.CommandResult {
	r, res := o.find(cmd.Task, cmd.Seen)
	if res.Err != nil {
		return res
	}
	if err := rules.CheckUnblock(&cmd, r.State, r.Error); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	r.AttemptCount = rules.UnblockedAttempts(r.AttemptCount, r.MaxAttempts)
	r.UnblockInput, r.UnblockFor = copyRaw(cmd.Input), rules.UnblockFor(&cmd, r.Error)
	o.makeReady(r, o.now, task.WaitNone, r.Error)
	o.note(cmd.Audit, "unblock", r.ID.String())
	return store.CommandResult{State: r.State}
}

// delete removes a task and everything recorded about it, except the audit.
func (o *op) delete(cmd store.DeleteTask) store.CommandResult {
	r, res := o.find(cmd.Task, cmd.Seen)
	if res.Err != nil {
		return res
	}
	var waiting, child task.ID
	for _, e := range o.dependents[r.ID] {
		if !e.Done || e.Awaited > 0 && !o.tasks[e.Task].State.Terminal() {
			waiting = e.Task
			break
		}
	}
	for _, e := range o.children(r) {
		if !e.Done {
			child = e.Needs
			break
		}
	}
	if err := rules.CheckDelete(r.ID, r.State, r.JobID, waiting, child); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	o.unlink(r.ID)
	delete(o.tasks, r.ID)
	if r.IdempotencyKey != "" {
		delete(o.idempotent, idempotency{r.Type, r.IdempotencyKey})
	}
	delete(o.attempts, r.ID)
	delete(o.decisions, r.ID)
	delete(o.steps, r.ID)
	delete(o.signals, r.ID)
	o.note(cmd.Audit, "delete", r.ID.String())
	return store.CommandResult{}
}

// unlink removes the edges at both sides of a task.
func (sp *space) unlink(id task.ID) {
	touches := func(e *store.EdgeRow) bool { return e.Task == id || e.Needs == id }
	for _, e := range sp.needs[id] {
		sp.dependents[e.Needs] = slices.DeleteFunc(sp.dependents[e.Needs], touches)
	}
	for _, e := range sp.dependents[id] {
		sp.needs[e.Task] = slices.DeleteFunc(sp.needs[e.Task], touches)
	}
	delete(sp.needs, id)
	delete(sp.dependents, id)
}

// pause keeps a queue from being claimed from. Its due rows no longer fill
// the limits of their keys, so waiters of other queues may come forward.
func (o *op) pause(cmd store.PauseQueue) {
	e := o.note(cmd.Audit, "pause", cmd.Queue)
	if _, ok := o.paused[cmd.Queue]; ok {
		return
	}
	o.paused[cmd.Queue] = e
	for _, key := range o.keysIn(cmd.Queue) {
		o.freed[key] = true
	}
}

// keysIn returns the keys of a queue's dispatch rows.
func (sp *space) keysIn(queue string) []string {
	var keys []string
	for _, d := range sp.dispatch {
		if d.Queue == queue && d.ConcurrencyKey != "" {
			keys = append(keys, d.ConcurrencyKey)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// resume ends a pause.
func (o *op) resume(cmd store.ResumeQueue) {
	o.note(cmd.Audit, "resume", cmd.Queue)
	delete(o.paused, cmd.Queue)
	o.notice.Due = true
}

// restored begins another life of the store: no lease of the one before is
// worth anything. The tasks come back as their leases expire.
func (o *op) restored(cmd store.Restored) {
	o.note(cmd.Audit, "restored", "")
	o.generation = newGeneration()
	for _, r := range o.sorted(func(r *row) bool { return r.State == task.Running }) {
		o.notice.Cancels = append(o.notice.Cancels, r.ID)
	}
}
