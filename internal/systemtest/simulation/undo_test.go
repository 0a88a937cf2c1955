package simulation_test

import (
	"context"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// undo returns the undo of a step. It takes time and fails in every third attempt; for one task in eight it fails
// permanently.
func (y *attempt) undo(name string, long time.Duration) weaver.StepOption {
	return weaver.Undo(func(_ context.Context, u weaver.Undoing[string]) error {
		t := y.a.Task()
		y.p.sim.undoBegins(y.p, t, name, u)
		if !y.p.point(context.Background(), long, "undo "+y.tag+" "+name) {
			return errDead
		}
		switch {
		case t.ID[15]%8 == 7:
			return weaver.Permanent(errScripted)
		case t.AttemptNo%3 == 0:
			return errScripted
		}
		return nil
	})
}

// undoneSoFar returns the tasks that are or were in their undo phase. Their waits do not consume signals during it,
// and after a retry a wait consumes kept signals when it is reached.
func undoneSoFar(snap *store.Snapshot) map[task.ID]bool {
	is := make(map[task.ID]bool)
	for i := range snap.Tasks {
		if t := &snap.Tasks[i]; t.Undo != nil {
			is[t.ID] = true
		}
	}
	for _, a := range snap.Attempts {
		if a.Outcome == task.OutcomeUndone || a.Outcome == task.OutcomeUndoFailed {
			is[a.TaskID] = true
		}
	}
	return is
}

// undoBegins checks the start of an undo. Its lease is current, the step began and is not undone, and no handler of
// the task may still be in one of its steps.
func (sim *simulation) undoBegins(p *process, t *task.Task, step string, u weaver.Undoing[string]) {
	if p.dead.Load() {
		return
	}
	now := time.Now()
	got, err := sim.mem.History(context.Background(), ns, t.ID)
	if err != nil {
		sim.failf("undo: history: %v", err)
		return
	}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.tally["undos begun"]++
	known := *sim.leases[leaseKey{t.ID, t.Epoch}]
	name := fmt.Sprintf("undo: that of step %q of %s/%d", step, sim.names[t.ID], t.Epoch)
	if !now.Before(known.validUntil) {
		sim.failLocked("%s starts %v after the local validity of its lease", name, now.Sub(known.validUntil))
	}
	stands := got.Task.State == task.Running && got.Task.Epoch == t.Epoch && known.Generation == sim.gen
	if !stands && !known.revoked {
		sim.failLocked("%s starts under a lease that is not the current one: the task is %s at epoch %d", name, got.Task.State, got.Task.Epoch)
	}
	for key, ctx := range sim.handlers {
		other := sim.leases[key]
		if key.task == t.ID && key.epoch != t.Epoch && now.Before(other.validUntil) && !other.proc.dead.Load() && !other.knownLost {
			sim.failLocked("%s starts while the handler of epoch %d runs on a lease that is valid there (%v)", name, key.epoch, context.Cause(ctx))
		}
	}
	for _, s := range got.Steps {
		switch {
		case s.Name != step || s.Undo != task.UndoOpen || !stands:
		case u.Done != (s.State == task.StepCompleted && s.Error == nil):
			sim.failLocked("%s is told done=%v, and the step is %s", name, u.Done, s.State)
		default:
			return
		}
	}
	if stands {
		sim.failLocked("%s starts, and there is no such step to undo", name)
	}
}
