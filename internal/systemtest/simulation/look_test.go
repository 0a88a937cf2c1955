package simulation_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// reaping judges a reap against how things stood before it.
type reaping struct {
	w      *world
	before []task.Task // that run
}

func (w *world) beforeReap() *reaping {
	return &reaping{w: w, before: w.list(task.Running)}
}

// reap judges that only leases that are over, or of processes declared dead,
// are taken, and that a loss counts against the task only if its process had
// been cut off.
func (c *reaping) reap(res store.ReapResult) string {
	w, now := c.w, store.Now()
	var b strings.Builder
	fmt.Fprintf(&b, " paused=%v next=%v", res.WarmingUp, res.Next)
	for _, r := range res.Reaped {
		fmt.Fprintf(&b, " %s→%s", w.label(r.Task), r.State)
		for i := range c.before {
			t := &c.before[i]
			if t.ID != r.Task {
				continue
			}
			known := w.known(task.Lease{Task: t.ID, Epoch: t.Epoch})
			p := known.proc
			if t.LeaseExpiresAt.After(now) && !w.declared[p.worker] {
				w.failf("R7: the lease of %s/%d is taken from %s %v before its end", w.label(t.ID), t.Epoch, p.name, t.LeaseExpiresAt.Sub(now))
			}
			ends := p.dead.Load() || p.over.Load() || p.stopping
			troubled := p.trouble.After(t.LeaseExpiresAt.Add(-w.ttl * 4 / 3))
			silent := p.seen.Before(t.LeaseExpiresAt.Add(-w.ttl / 2))
			excused := known.orphan || known.revoked || p.dead.Load() || p.stopping
			for _, since := range []time.Time{p.trouble, p.frozen, w.outage} {
				excused = excused || since.After(known.claimed)
			}
			if known.heard.IsZero() && !excused && !w.lookedUp(t.LeaseID) {
				w.failf("R3: the answer that claimed %s/%d was lost, and %s never asked again", w.label(t.ID), t.Epoch, p.name)
			}
			if w.forgotten(known) {
				w.failf("R6: %s forgot its lease of %s/%d", p.name, w.label(t.ID), t.Epoch)
			}
			if r.Crash && !ends && !(troubled && silent) {
				w.failf("R7: the loss of %s/%d counts as a crash of %s, which is well", w.label(t.ID), t.Epoch, p.name)
			}
			lost := known.heard.IsZero() || known.told || known.revoked || known.Generation != w.gen
			if !ends && !troubled && !lost {
				w.failf("R7: the lease of %s/%d is taken from %s, which is well", w.label(t.ID), t.Epoch, p.name)
			}
			w.count("leases reaped", 1)
			if r.Crash {
				w.count("crashes", 1)
				w.crashes[t.ID]++
			}
		}
	}
	for _, id := range res.Expired {
		w.count("deadlines passed", 1)
		b.WriteString(" expired " + w.label(id))
	}
	return b.String()
}

// beats notes that a heartbeat reached the store.
func (p *process) beats(leases []task.Lease, asked time.Time) {
	p.seen = store.Now()
	if asked.After(p.beat) {
		p.beat = asked
	}
	for _, l := range leases {
		if known := p.w.known(l); asked.After(known.beat) {
			known.beat = asked
		}
	}
}

// forgotten judges that a living process names its leases in each heartbeat
// until their attempts have ended.
func (w *world) forgotten(known *lease) bool {
	p := known.proc
	if known.heard.IsZero() || known.told || known.revoked || p.dead.Load() || p.stopping {
		return false
	}
	return p.beat.After(known.heard) && p.beat.After(known.beat)
}

// heeds judges that no handler goes on under a lease that can no longer be
// trusted: its context ends (R5). A frozen process learns of it when it goes
// on.
func (w *world) heeds() {
	const slack = 100 * time.Millisecond
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, ctx := range w.handlers {
		known := w.leases[key]
		since := known.trusted
		if frozen := known.proc.frozen; frozen.After(since) {
			since = frozen
		}
		if over := time.Since(since); over > slack && ctx.Err() == nil && !known.proc.dead.Load() {
			w.failLocked("R5: the handler of %s/%d goes on %v after its lease could be trusted", w.names[key.task], key.epoch, over)
			return
		}
	}
}

// attend has heeds watch a handler until done is called.
func (w *world) attend(ctx context.Context, t *task.Task) (done func()) {
	key := leaseKey{t.ID, t.Epoch}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handlers[key] = ctx
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.handlers, key)
	}
}

// look judges the whole store.
func (w *world) look() {
	snap, err := w.mem.Snapshot(context.Background(), ns)
	if err != nil {
		w.failf("snapshot: %v", err)
		return
	}
	w.count("looks", 1)
	w.mu.Lock()
	w.gen = snap.Generation
	w.mu.Unlock()
	for _, v := range store.Check(snap) {
		w.failf("%s", v)
	}
	now := make(map[task.ID]task.Task, len(snap.Tasks))
	running := map[string]int{}
	for i := range snap.Tasks {
		t := &snap.Tasks[i]
		now[t.ID] = *t
		w.compare(t)
		if t.State == task.Running && t.ConcurrencyKey != "" {
			running[t.ConcurrencyKey]++
			if n := running[t.ConcurrencyKey]; n > t.ConcurrencyLimit {
				w.failf("I11: %d tasks run with key %s, of which %d may", n, t.ConcurrencyKey, t.ConcurrencyLimit)
			}
		}
		poisoned := t.State == task.Failed && t.Error != nil && t.Error.Kind == task.KindPoison
		if poisoned && w.before[t.ID].State != task.Failed {
			w.count("tasks poisoned", 1)
			if w.kills+w.poison+w.freezes+w.stops == 0 {
				w.failf("R7: %s is poisoned, and no process ever stopped", w.label(t.ID))
			}
			if w.pure && !w.deadly[t.ID] {
				w.failf("R7: %s is poisoned by the company it had", w.label(t.ID))
			}
		}
		if poisoned && w.crashes[t.ID] < crashBudget {
			w.failf("R7: %s is poisoned after %d crashes", w.label(t.ID), w.crashes[t.ID])
		}
	}
	for id := range w.acked {
		if _, ok := now[id]; !ok && !w.deleted[id] {
			w.failf("I1: %s was acknowledged and is gone", w.label(id))
		}
	}
	for _, s := range snap.Steps {
		if s.State == task.StepCompleted {
			w.value(s.TaskID, s)
		}
	}
	w.before, w.retried = now, false
}

// compare judges what two looks at a task must have in common (I3, I4).
func (w *world) compare(t *task.Task) {
	b, ok := w.before[t.ID]
	if !ok {
		return
	}
	if t.Epoch < b.Epoch || t.AttemptNo < b.AttemptNo {
		w.failf("I4: %s went from epoch %d, attempt %d back to %d, %d", w.label(t.ID), b.Epoch, b.AttemptNo, t.Epoch, t.AttemptNo)
	}
	if b.State.Terminal() && !w.retried && (t.State != b.State || !t.FinishedAt.Equal(b.FinishedAt) || string(t.Output) != string(b.Output)) {
		w.failf("I3: %s had ended %s and became %s", w.label(t.ID), b.State, t.State)
	}
	if b.State == task.Succeeded && t.State != task.Succeeded {
		w.failf("I3: %s had succeeded and became %s", w.label(t.ID), t.State)
	}
}

// unfinished lists the tasks that have not ended.
func (w *world) unfinished() []string {
	snap, err := w.mem.Snapshot(context.Background(), ns)
	if err != nil {
		return []string{err.Error()}
	}
	var names []string
	for i := range snap.Tasks {
		if t := &snap.Tasks[i]; !t.State.Terminal() {
			names = append(names, fmt.Sprintf("%s %s/%s queue=%s key=%q epoch=%d lease until %v", w.label(t.ID), t.State, t.Waiting, t.Queue, t.ConcurrencyKey, t.Epoch, t.LeaseExpiresAt.Format(time.TimeOnly)))
		}
	}
	return names
}
