package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// TTL of every lease in the suite. Reapers run every TTL/3.
const ttl = 3 * time.Second

// slack is how far an instant may be from the one expected: a store may let
// (fake) time pass while it gathers a group. All times of the suite differ by
// a second or more.
const slack = 100 * time.Millisecond

// env is the stage of one scene: an empty store, two workers A and B that
// hold leases, and a keeper that reaps and never falls silent.
type env struct {
	*testing.T
	h  Harness
	s  store.Store
	ns string

	a, b   *worker
	keeper *worker
	alive  *[]*worker // beat while time passes; shared by all namespaces

	others  []*env // the same stage in other namespaces
	closed  bool   // verified, and left alone since
	workers int
	mu      sync.Mutex       // guards the rest
	known   map[task.ID]bool // acknowledged tasks that nobody deleted
	ids     *task.IDs
	drawn   []task.ID      // ids drawn so far
	leases  []task.LeaseID // lease ids drawn so far
	copies  *env           // draw what this stage drew, in the same order
}

// namespace is where scenes play; otherNamespace must never notice.
const (
	namespace      = "acme-test"
	otherNamespace = "acme-prod"
)

func newEnv(t *testing.T, h Harness) *env {
	t.Helper()
	e := &env{T: t, h: h, s: h.Open(t), ns: namespace, ids: task.NewIDs(nil), known: map[task.ID]bool{}, alive: new([]*worker)}
	if err := e.s.Ready(t.Context()); err != nil {
		t.Fatalf("Ready of a fresh %s: %v", h.Name, err)
	}
	e.staff()
	return e
}

// staff joins the keeper and the two workers.
func (e *env) staff() {
	e.Helper()
	e.keeper = e.worker("keeper")
	e.keeper.stay()
	e.a, e.b = e.worker("A"), e.worker("B")
}

// newID draws a task's id.
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

// newLease draws a lease's id.
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

// follow makes this stage draw from now on what the other one will draw, so
// that the same play gives the same ids in both namespaces.
func (e *env) follow(other *env) {
	e.copies = other
	e.drawn, e.leases = slices.Clone(other.drawn), slices.Clone(other.leases)
}

// second returns another handle on the store.
func (e *env) second() store.Store {
	e.Helper()
	if e.h.Second == nil {
		return e.s
	}
	return e.h.Second(e.T, e.s)
}

// pass lets time go by while the keeper and the workers that stay beat, as
// they would: every TTL/3.
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

// silence lets time go by while nobody reaches the store.
func (e *env) silence(d time.Duration) { time.Sleep(d) }

// together starts all functions at the same moment and waits for them. They
// run on goroutines of their own, so they must not call Fatal.
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
	if err != nil {
		e.Fatalf("Snapshot: %v", err)
	}
	return snap
}

// in returns the same stage, set in another namespace, with its own workers.
func (e *env) in(ns string) *env {
	e.Helper()
	other := &env{T: e.T, h: e.h, s: e.s, ns: ns, ids: e.ids, known: map[task.ID]bool{}, alive: e.alive}
	other.staff()
	e.others = append(e.others, other)
	return other
}

// close ends a stage in a namespace of its own before its scene is over.
func (e *env) close() {
	e.Helper()
	e.reap()
	e.verify()
	e.keeper.quiet()
	e.closed = true
}

// verify is the end of every scene: what is stored is in order, nothing
// acknowledged is missing, and readers see what is stored, as the law derives
// it.
func (e *env) verify() {
	e.Helper()
	snap := e.snap()
	for _, v := range store.Check(snap) {
		e.Errorf("store.Check: %v", v)
	}
	stored := make(map[task.ID]task.Task, len(snap.Tasks))
	for _, t := range snap.Tasks {
		stored[t.ID] = t
	}
	for id := range e.known {
		if _, ok := stored[id]; !ok {
			e.Errorf("task %v was acknowledged and is gone", id)
		}
	}
	e.readsAsDerived(snap)
	for _, i := range []int{0, len(snap.Tasks) - 1} {
		if i >= 0 && i < len(snap.Tasks) {
			e.readersAgree(snap, snap.Tasks[i].ID)
		}
	}
	for _, o := range e.others {
		if !o.closed {
			o.verify()
		}
	}
}

// readsAsDerived compares the Reader with store.Derive over the snapshot.
func (e *env) readsAsDerived(snap *store.Snapshot) {
	e.Helper()
	standing := make(map[task.ID]store.Availability, len(snap.Dispatch))
	for _, d := range snap.Dispatch {
		standing[d.Task] = store.Availability{Dispatch: d.AvailableAt, Paused: slices.Contains(snap.Paused, d.Queue)}
	}
	for _, w := range snap.Waiters {
		s := standing[w.Task]
		s.Waiter = w.DueAt
		standing[w.Task] = s
	}
	var ids []task.ID
	for _, t := range snap.Tasks {
		ids = append(ids, t.ID)
	}
	for i, got := range e.tasks(ids...) {
		want := snap.Tasks[i]
		store.Derive(&want, standing[want.ID], snap.Now)
		if !reflect.DeepEqual(got, want) {
			e.Errorf("Tasks and Snapshot with Derive differ:\n got %s\nwant %s", show(got), show(want))
			return
		}
	}
}

// show prints a task for a message, without its bulk.
func show(t task.Task) string {
	if len(t.Input) > 100 {
		t.Input = nil
	}
	return fmt.Sprintf("%+v", t)
}
