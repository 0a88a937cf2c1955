package simtest_test

import (
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"

	"pgregory.net/rapid"
)

func (p *pair) reap(*rapid.T) {
	p.askReap(pick(p, modelWorkers, "worker"), pick(p, []time.Duration{modelTTL, time.Hour}, "ttl"))
}

// beatAndReap lets time pass as it does for a keeper that never falls silent,
// and reaps.
func (p *pair) beatAndReap(*rapid.T) {
	for range 1 + p.number(6, "beats") {
		p.beat(modelWorkers[0])
		time.Sleep(modelTTL / 3)
	}
	p.askReap(modelWorkers[0], modelTTL)
}

func (p *pair) askReap(w store.WorkerID, ttl time.Duration) {
	p.avoidDependents()
	req := store.ReapRequest{Worker: w, TTL: ttl, CrashBudget: pick(p, []int{3, 1, -1}, "budget")}
	got := askAs(p, told("Reap", req), func(_ int, s store.Store) (store.ReapResult, error) {
		return s.Reap(p.Context(), modelNamespace, req)
	}, reapComparable)
	// A store may ask to be called early: SQLite keeps the first end of the
	// leases of a claim, and looks again then. It must not be late.
	if model, other := got[0].Next, got[1].Next; model >= 0 && (other < 0 || other > model) {
		p.Fatalf("Reap: the next lease or deadline ends in %v, sqlite says in %v", model, other)
	}
	for _, r := range got[0].Reaped {
		if i := slices.IndexFunc(p.held, func(c store.Claimed) bool { return c.Task.ID == r.Task }); i >= 0 {
			p.letGo(p.held[i].Lease)
		}
	}
}

// reapComparable puts a reap's answer into an order, for the port sets none,
// and leaves out when to reap next.
func reapComparable(r store.ReapResult) store.ReapResult {
	r.Next = 0
	r.Reaped, r.Expired = slices.Clone(r.Reaped), slices.Clone(r.Expired)
	slices.SortFunc(r.Reaped, func(a, b store.Reaped) int { return a.Task.Compare(b.Task) })
	slices.SortFunc(r.Expired, task.ID.Compare)
	return r
}

// pass lets time go by: a little, past a lease, past every deadline. Nobody
// beats meanwhile.
func (p *pair) pass(*rapid.T) {
	time.Sleep(pick(p, []time.Duration{
		time.Millisecond, 300 * time.Millisecond, time.Second, 2 * time.Second, modelTTL, modelTTL + time.Second, 40 * time.Second, 5 * time.Minute,
	}, "time"))
}

// avoidDependents keeps out of the play what stems from the order in which one
// reap works. The model tells the dependents of each task that ends at
// once; SQLite takes all leases, then looks for deadlines, and then tells
// dependents, so that
//
//   - a dependent that is past its own deadline ends dependency_failed or
//     not_needed in the one, with kind deadline (and named in Expired) in the
//     other, whose order among deadlines is that of the model;
//   - a dependent with a key that is released counts, or does not yet count,
//     among those due when another task of this reap frees the key: as in
//     finishSome and enqueueJob.
//
// Nor does the port set the order in which one reap takes leases, and of two
// with one key it decides whether the first counts among those due when the
// second frees the key: a waiter more or less is woken, both within the law.
// Of two of one job it decides what kind of end a dependent has (finishSome).
//
// A task whose end could show any of it is cancelled before the reap.
func (p *pair) avoidDependents() {
	snap := p.snapshots()[0]
	over := func(at time.Time) bool { return !at.IsZero() && !at.After(snap.Now) }
	var going []task.Task // that the reap ends, or may end
	keyed, taken := 0, map[string]bool{}
	for _, t := range snap.Tasks {
		if t.State == task.Running && over(t.LeaseExpiresAt) || !t.State.Terminal() && t.State != task.Running && over(t.DeadlineAt) {
			going = append(going, t)
			if t.ConcurrencyKey != "" {
				keyed++
			}
		}
	}
	for _, g := range going {
		second := g.State == task.Running && (taken[g.ConcurrencyKey] || taken[g.JobID.String()])
		if g.State == task.Running && !g.JobID.IsZero() {
			taken[g.JobID.String()] = true
		}
		taken[g.ConcurrencyKey] = g.State == task.Running && g.ConcurrencyKey != "" || taken[g.ConcurrencyKey]
		if second || !g.JobID.IsZero() && slices.ContainsFunc(snap.Tasks, func(t task.Task) bool {
			return t.JobID == g.JobID && t.ID != g.ID && !t.State.Terminal() && t.State != task.Running &&
				(g.State == task.Running && over(t.DeadlineAt) || keyed > 0 && t.ConcurrencyKey != "" && t.RemainingDeps > 0)
		}) {
			p.operate(store.CancelTask{Task: g.ID, Force: true})
		}
	}
}
