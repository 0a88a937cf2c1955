package simulation_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// reaping checks a reap against the rows before it.
type reaping struct {
	sim    *simulation
	before []task.Task // running ones
}

func (sim *simulation) beforeReap() *reaping {
	return &reaping{sim: sim, before: sim.list(task.Running)}
}

// reap checks that only expired leases and leases of processes declared dead are taken, and that a loss counts
// against the task only if its process had been cut off.
func (c *reaping) reap(res store.ReapResult) string {
	sim, now := c.sim, store.Now()
	var b strings.Builder
	fmt.Fprintf(&b, " paused=%v next=%v", res.WarmingUp, res.Next)
	for _, r := range res.Reaped {
		fmt.Fprintf(&b, " %s→%s", sim.label(r.Task), r.State)
		for i := range c.before {
			t := &c.before[i]
			if t.ID != r.Task {
				continue
			}
			known := sim.known(task.Lease{Task: t.ID, Epoch: t.Epoch})
			p := known.proc
			if t.LeaseExpiresAt.After(now) && !sim.declared[p.worker] {
				sim.failf("reap: the lease of %s/%d is taken from %s %v before its end", sim.label(t.ID), t.Epoch, p.name, t.LeaseExpiresAt.Sub(now))
			}
			ends := p.dead.Load() || p.over.Load() || p.stopping
			troubled := p.faultUntil.After(t.LeaseExpiresAt.Add(-sim.ttl * 4 / 3))
			silent := p.seen.Before(t.LeaseExpiresAt.Add(-sim.ttl / 2))
			excused := known.orphan || known.revoked || p.dead.Load() || p.stopping
			for _, since := range []time.Time{p.faultUntil, p.frozen, sim.outage} {
				excused = excused || since.After(known.claimed)
			}
			if known.answered.IsZero() && !excused && !sim.wasRepeated(t.LeaseID) {
				sim.failf("claim: the answer that claimed %s/%d was lost, and %s never asked again", sim.label(t.ID), t.Epoch, p.name)
			}
			if sim.unnamed(known) {
				sim.failf("heartbeat: %s no longer names its lease of %s/%d", p.name, sim.label(t.ID), t.Epoch)
			}
			if r.Crash && !ends && !(troubled && silent) {
				sim.failf("reap: the loss of %s/%d counts as a crash of %s, which runs undisturbed", sim.label(t.ID), t.Epoch, p.name)
			}
			lost := known.answered.IsZero() || known.knownLost || known.revoked || known.Generation != sim.gen
			if !ends && !troubled && !lost {
				sim.failf("reap: the lease of %s/%d is taken from %s, which runs undisturbed", sim.label(t.ID), t.Epoch, p.name)
			}
			sim.count("leases reaped", 1)
			if r.Crash {
				sim.count("crashes", 1)
				sim.crashes[t.ID]++
			}
		}
	}
	for _, id := range res.Expired {
		sim.count("deadlines passed", 1)
		b.WriteString(" expired " + sim.label(id))
	}
	return b.String()
}

// beats records the arrival of a heartbeat at the store.
func (p *process) beats(leases []task.Lease, asked time.Time) {
	p.seen = store.Now()
	if asked.After(p.beat) {
		p.beat = asked
	}
	for _, l := range leases {
		if known := p.sim.known(l); asked.After(known.beat) {
			known.beat = asked
		}
	}
}

// unnamed reports whether a living process stopped naming a lease in its heartbeats although the attempt has not
// ended.
func (sim *simulation) unnamed(known *lease) bool {
	p := known.proc
	if known.answered.IsZero() || known.knownLost || known.revoked || p.dead.Load() || p.stopping {
		return false
	}
	return p.beat.After(known.answered) && p.beat.After(known.beat)
}

// checkContexts checks that the context of every handler ends with the local validity of its lease. A frozen process
// notices only when it continues.
func (sim *simulation) checkContexts() {
	const slack = 100 * time.Millisecond
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for key, ctx := range sim.handlers {
		known := sim.leases[key]
		since := known.validUntil
		if frozen := known.proc.frozen; frozen.After(since) {
			since = frozen
		}
		if over := time.Since(since); over > slack && ctx.Err() == nil && !known.proc.dead.Load() {
			sim.failLocked("lease validity: the handler of %s/%d goes on %v after the local validity of its lease", sim.names[key.task], key.epoch, over)
			return
		}
	}
}

// watch registers a handler with checkContexts until done is called.
func (sim *simulation) watch(ctx context.Context, t *task.Task) (done func()) {
	key := leaseKey{t.ID, t.Epoch}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.handlers[key] = ctx
	return func() {
		sim.mu.Lock()
		defer sim.mu.Unlock()
		delete(sim.handlers, key)
	}
}

// checkStore checks the whole store.
func (sim *simulation) checkStore() {
	snap, err := sim.mem.Snapshot(context.Background(), ns)
	if err != nil {
		sim.failf("snapshot: %v", err)
		return
	}
	sim.count("looks", 1)
	sim.mu.Lock()
	sim.gen = snap.Generation
	sim.mu.Unlock()
	for _, v := range store.Check(snap) {
		sim.failf("%s", v)
	}
	now := make(map[task.ID]task.Task, len(snap.Tasks))
	running := map[string]int{}
	for i := range snap.Tasks {
		t := &snap.Tasks[i]
		now[t.ID] = *t
		sim.compare(t)
		if t.State == task.Running && t.ConcurrencyKey != "" {
			running[t.ConcurrencyKey]++
			if n := running[t.ConcurrencyKey]; n > t.ConcurrencyLimit {
				sim.failf("I11: %d tasks run with key %s, of which %d may", n, t.ConcurrencyKey, t.ConcurrencyLimit)
			}
		}
		poisoned := t.State == task.Failed && t.Error != nil && t.Error.Kind == task.KindPoison
		if poisoned && sim.before[t.ID].State != task.Failed {
			sim.count("tasks poisoned", 1)
			if sim.kills+sim.poison+sim.freezes+sim.stops == 0 {
				sim.failf("reap: %s is poisoned, and no process ever stopped", sim.label(t.ID))
			}
			if sim.onlyPoison && !sim.deadly[t.ID] {
				sim.failf("reap: %s is marked as poison for crashes beside it", sim.label(t.ID))
			}
		}
		if poisoned && sim.crashes[t.ID] < crashBudget {
			sim.failf("reap: %s is poisoned after %d crashes", sim.label(t.ID), sim.crashes[t.ID])
		}
	}
	sim.checkTransactions(now)
	sim.checkWaits(snap)
	for id := range sim.acked {
		if _, ok := now[id]; !ok && !sim.deleted[id] {
			sim.failf("I1: %s was acknowledged and is gone", sim.label(id))
		}
	}
	for _, s := range snap.Steps {
		if s.State == task.StepCompleted {
			sim.value(s.TaskID, s)
		}
	}
	sim.before, sim.retried = now, false
}

// compare checks the invariants between two snapshots of a task (I3, I4).
func (sim *simulation) compare(t *task.Task) {
	b, ok := sim.before[t.ID]
	if !ok {
		return
	}
	if t.Epoch < b.Epoch || t.AttemptNo < b.AttemptNo {
		sim.failf("I4: %s went from epoch %d, attempt %d back to %d, %d", sim.label(t.ID), b.Epoch, b.AttemptNo, t.Epoch, t.AttemptNo)
	}
	if b.State.Terminal() && !sim.retried && (t.State != b.State || !t.FinishedAt.Equal(b.FinishedAt) || string(t.Output) != string(b.Output)) {
		sim.failf("I3: %s had ended %s and became %s", sim.label(t.ID), b.State, t.State)
	}
	if b.State == task.Succeeded && t.State != task.Succeeded {
		sim.failf("I3: %s had succeeded and became %s", sim.label(t.ID), t.State)
	}
}

// unfinished lists the tasks that have not ended.
func (sim *simulation) unfinished() []string {
	snap, err := sim.mem.Snapshot(context.Background(), ns)
	if err != nil {
		return []string{err.Error()}
	}
	var names []string
	for i := range snap.Tasks {
		if t := &snap.Tasks[i]; !t.State.Terminal() && t.Type != unservedType {
			names = append(names, fmt.Sprintf("%s %s/%s queue=%s key=%q epoch=%d lease until %v", sim.label(t.ID), t.State, t.Waiting, t.Queue, t.ConcurrencyKey, t.Epoch, t.LeaseExpiresAt.Format(time.TimeOnly)))
		}
	}
	return names
}
