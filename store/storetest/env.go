package storetest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// ttl is the lease duration in the suite. Reapers run every TTL/3.
const ttl = 3 * time.Second

// slack is the tolerance for instants: a store may let (fake) time pass while it gathers a group. All times of the
// suite differ by a second or more.
const slack = 100 * time.Millisecond

// env is the fixture of one case: an empty store, two workers A and B that hold leases, and a reaping worker that
// never misses a heartbeat.
type env struct {
	*testing.T
	h  Harness
	s  store.Store
	ns string

	sqlTx bool // functions of StepTx want a *sql.Tx

	a, b   *worker
	reaper *worker
	alive  *[]*worker // send heartbeats while time passes; shared by all namespaces

	others  []*env // the same fixture in other namespaces
	closed  bool   // verified and no longer used
	workers int
	mu      sync.Mutex       // guards the fields below
	known   map[task.ID]bool // acknowledged tasks that were not deleted
	ids     *task.IDs
	drawn   []task.ID      // ids drawn so far
	leases  []task.LeaseID // lease ids drawn so far
	copies  *env           // draws the same IDs in the same order
}

// Cases run in namespace and must not affect otherNamespace.
const (
	namespace      = "acme-test"
	otherNamespace = "acme-prod"
)

func newEnv(t *testing.T, h Harness) *env {
	t.Helper()
	e := &env{T: t, h: h, ids: task.NewIDs(nil), alive: new([]*worker)}
	return e.on(h.Open(t), namespace)
}

// on returns the same fixture on a store and namespace, with its own workers. The workers' IDs are the same
// everywhere.
func (e *env) on(s store.Store, ns string) *env {
	e.Helper()
	other := &env{T: e.T, h: e.h, s: s, ns: ns, ids: e.ids, known: map[task.ID]bool{}, alive: e.alive}
	e.others = append(e.others, other)
	err := s.Ready(e.Context())
	e.require(err == nil, "Ready of a fresh %s: %v", e.h.Name, err)
	other.reaper = other.worker("reaper")
	other.reaper.stay()
	other.a, other.b = other.worker("A"), other.worker("B")
	return other
}

// in returns the same fixture in another namespace.
func (e *env) in(ns string) *env {
	e.Helper()
	return e.on(e.s, ns)
}

// sameIDs returns the same fixture in another namespace. It draws the same IDs in the same order.
func (e *env) sameIDs() *env {
	e.Helper()
	other := e.in(otherNamespace)
	other.follow(e)
	return other
}

// follow makes this fixture draw the IDs that other draws from now on. The same calls then make the same IDs in both
// namespaces.
func (e *env) follow(other *env) {
	e.copies = other
	e.drawn, e.leases = slices.Clone(other.drawn), slices.Clone(other.leases)
}

// newID draws a task ID.
func (e *env) newID() task.ID {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := e.ids.New()
	if n := len(e.drawn); e.copies != nil {
		id = e.copies.drawn[n]
	}
	e.drawn = append(e.drawn, id)
	return id
}

// newLease draws a lease ID.
func (e *env) newLease() task.LeaseID {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := task.NewLeaseID()
	if n := len(e.leases); e.copies != nil {
		id = e.copies.leases[n]
	}
	e.leases = append(e.leases, id)
	return id
}

// second returns another handle on the store.
func (e *env) second() store.Store {
	e.Helper()
	if e.h.Second == nil {
		return e.s
	}
	return e.h.Second(e.T, e.s)
}

// stores returns both handles.
func (e *env) stores() [2]store.Store { return [2]store.Store{e.s, e.second()} }

// pass advances time while the reaper and the workers that stay send heartbeats, every TTL/3.
func (e *env) pass(d time.Duration) {
	e.Helper()
	for d > 0 {
		step := min(d, ttl/3)
		time.Sleep(step)
		d -= step
		for _, w := range *e.alive {
			w.beat()
		}
	}
}

// silence advances time while no worker reaches the store.
func (e *env) silence(d time.Duration) { time.Sleep(d) }

// together runs all functions concurrently and waits for them. They run in their own goroutines and must not call
// Fatal.
func (e *env) together(fns ...func()) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for _, fn := range fns {
		wg.Go(func() {
			<-start
			fn()
		})
	}
	close(start)
	wg.Wait()
}

// snap returns everything the store holds for the namespace.
func (e *env) snap() *store.Snapshot {
	e.Helper()
	snap, err := e.s.Snapshot(e.Context(), e.ns)
	e.require(err == nil, "Snapshot: %v", err)
	return snap
}

// remember marks a task as acknowledged.
func (e *env) remember(id task.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known[id] = true
}

// forget marks a task as deleted.
func (e *env) forget(id task.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.known, id)
}

// close verifies a fixture of another namespace before its case ends.
func (e *env) close() {
	e.Helper()
	e.reap()
	e.verify()
	e.reaper.quiet()
	e.closed = true
}

// verify ends every case. It checks that the stored rows are consistent, that no acknowledged task is missing, and
// that readers return the state derived from the rows.
func (e *env) verify() {
	e.Helper()
	snap := e.snap()
	for _, v := range store.Check(snap) {
		e.Errorf("store.Check: %v", v)
	}
	stored := make(map[task.ID]bool, len(snap.Tasks))
	for _, t := range snap.Tasks {
		stored[t.ID] = true
	}
	for id := range e.known {
		e.check(stored[id], "task %v was acknowledged and is gone", id)
	}
	e.readsAsDerived(snap)
	if !testing.Short() && e.h.Repeat >= 20 { // smaller values mean a reduced size, as under the race detector
		e.scanAgrees(snap)
		for _, i := range []int{0, len(snap.Tasks) - 1} {
			if i >= 0 && i < len(snap.Tasks) {
				e.readersAgree(snap, snap.Tasks[i].ID)
			}
		}
	}
	for _, o := range e.others {
		if !o.closed {
			o.verify()
		}
	}
}
