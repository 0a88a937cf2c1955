package memstore

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
)

// forgetTask erases the inputs, results and texts of a finished task.
func (o *op) forgetTask(cmd store.ForgetTask) store.CommandResult {
	r, res := o.find(cmd.Task, store.Seen{})
	if res.Err != nil {
		return res
	}
	if r.Forgotten {
		return store.CommandResult{State: r.State, Existing: true}
	}
	if err := rules.CheckStands(r.ID, r.State, r.Undo); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	if err := rules.CheckForget(r.ID, r.State, false); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	rules.ForgetTask(&r.Task)
	r.joinOutput = nil
	for i := range o.attempts[r.ID] {
		rules.ForgetAttempt(&o.attempts[r.ID][i])
	}
	for i := range o.decisions[r.ID] {
		d := &o.decisions[r.ID][i]
		d.Reason = rules.ForgetReason(&d.Reason)
	}
	for i := range o.steps[r.ID] {
		rules.ForgetStep(&o.steps[r.ID][i])
	}
	for i := range o.signals[r.ID] {
		rules.ForgetSignal(&o.signals[r.ID][i])
	}
	for _, e := range o.dependents[r.ID] {
		rules.ForgetEdge(e)
	}
	for _, b := range o.blobs {
		if b.of == r.ID && !b.used && !o.referred(b.ID) {
			b.deleting = true
		}
	}
	if j := o.jobs[r.JobID]; j != nil && len(o.sorted(func(t *row) bool { return t.JobID == j.ID && !t.Forgotten })) == 0 {
		j.Meta = rules.ForgetMeta(j.Meta)
	}
	delete(o.refs, r.ID)
	delete(o.artifacts, r.ID)
	delete(o.checkpoints, r.ID)
	delete(o.events, r.ID)
	for i := range o.audit {
		if e := &o.audit[i]; e.Target == r.ID.String() {
			rules.ForgetAudit(e.Verb, &e.Reason)
		}
	}
	o.note(cmd.Audit, "forget", r.ID.String())
	return store.CommandResult{State: r.State}
}
