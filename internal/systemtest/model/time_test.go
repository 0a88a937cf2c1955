package model_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"

	"pgregory.net/rapid"
)

func (p *pair) reap(*rapid.T) {
	p.askReap(pick(p, p.workers, "worker"), pick(p, []time.Duration{modelTTL, time.Hour}, "ttl"))
}

// beatAndReap advances time as for a reaper that never goes silent, and reaps.
func (p *pair) beatAndReap(*rapid.T) {
	for range 1 + p.number(6, "beats") {
		p.beat(p.workers[0])
		time.Sleep(modelTTL / 3)
	}
	p.askReap(p.workers[0], modelTTL)
}

func (p *pair) askReap(w store.WorkerID, ttl time.Duration) {
	req := store.ReapRequest{Worker: w, TTL: ttl, CrashBudget: pick(p, []int{3, 1, -1}, "budget")}
	got := askAs(p, describe("Reap", req), func(_ int, s store.Store) (store.ReapResult, error) {
		return s.Reap(p.Context(), namespace, req)
	}, reapComparable)
	// A store may ask to be called early: SQLite keeps the first end of the leases of a claim and checks at that
	// time. It must not be late.
	if model, other := got[0].Next, got[1].Next; model >= 0 && (other < 0 || other > model) {
		p.Fatalf("Reap: the next lease or deadline ends in %v, sqlite says in %v", model, other)
	}
	p.met.countReaped(p.read(), got[0].Reaped)
	for _, r := range got[0].Reaped {
		if i := slices.IndexFunc(p.held, func(c store.Claimed) bool { return c.Task.ID == r.Task }); i >= 0 {
			p.letGo(p.held[i].Lease)
		}
	}
}

// reapComparable sorts a reap's answer, which the port leaves unordered, and removes the time of the next reap.
func reapComparable(r store.ReapResult) store.ReapResult {
	r.Next = 0
	r.Reaped, r.Expired = slices.Clone(r.Reaped), slices.Clone(r.Expired)
	slices.SortFunc(r.Reaped, func(a, b store.Reaped) int { return a.Task.Compare(b.Task) })
	slices.SortFunc(r.Expired, task.ID.Compare)
	return r
}

// pass advances time: a little, past a lease, or past every deadline. No worker sends heartbeats meanwhile.
func (p *pair) pass(*rapid.T) {
	time.Sleep(pick(p, []time.Duration{
		time.Millisecond, 300 * time.Millisecond, time.Second, 2 * time.Second, modelTTL, modelTTL + time.Second, 40 * time.Second, 5 * time.Minute,
	}, "time"))
}

// killProcess ends the second process, with the worker that joined through it, and starts another one. A memory
// database has no second process.
func (p *pair) killProcess(*rapid.T) {
	if p.second == nil {
		return
	}
	last := len(p.workers) - 1
	p.Log("kill the process of " + string(p.workers[last]))
	// Closing releases the locks that prove the process alive, as the end of the process does.
	p.shut(p.second)
	p.mem.Kill(p.workers[last])
	p.dead++
	p.second, p.workers[last] = p.open(), store.WorkerID(fmt.Sprint("bob", p.dead))
	p.join(p.workers[last])
}
