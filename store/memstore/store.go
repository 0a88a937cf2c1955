// Package memstore is a store in memory, and the executable model of all others:
// what package store and docs/leases.md say, written down as plainly as possible
// over maps under one mutex. Random tests compare the real stores with it, and
// tests of the engine run on it. What a move means it takes from internal/rules,
// as they do; how moves of one batch follow each other it does in its own way,
// so that it stays an independent oracle of their SQL.
//
// Two things always hold: an operation happens wholly or not at all, because it
// is resolved before it writes, and no caller shares memory with the store,
// because every value is copied on its way in and out.
//
// It keeps nothing when the process ends, makes no attempt to be fast, and is
// not meant for production.
package memstore

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/goweaver/weaver/internal/clock"
	"github.com/goweaver/weaver/internal/notify"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Store is a store in this process's memory.
type Store struct {
	store.Unsupported // what memory has no use for: a schema, sessions, files

	clock  clock.Clock
	mu     sync.Mutex // guards spaces and dead
	spaces map[string]*space
	dead   map[store.WorkerID]bool // workers whose processes were declared dead

	listeners notify.Listeners
}

var (
	_ store.Store = (*Store)(nil)
	_ store.Tx    = (*Tx)(nil)
)

// New returns an empty store.
func New() *Store {
	return &Store{spaces: map[string]*space{}, dead: map[store.WorkerID]bool{}}
}

// Capabilities implements store.Core.
func (s *Store) Capabilities() store.Capabilities {
	return store.AllCapabilities &^ (store.CanWait | store.CanScan | store.CanScrub)
}

// Kill declares the process of a worker dead, as the free lock on its file
// does for SQLite: from now on Reap takes its leases at once, and each counts
// as a crash.
func (s *Store) Kill(id store.WorkerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead[id] = true
}

// ShiftClock makes the machine's clock, as this store reads it, jump by d, for
// tests: back if d is negative.
func (s *Store) ShiftClock(d time.Duration) { s.clock.Shift(d) }

// Ready implements store.Core. Memory is always ready.
func (s *Store) Ready(ctx context.Context) error { return ctx.Err() }

// op is one operation: it has the namespace to itself, one instant that is
// now for all it does, and lists of what its moves lead to (propagate).
type op struct {
	*space
	dead    map[store.WorkerID]bool
	now     time.Time
	freed   map[string]bool             // keys that may have room for waiters
	ready   []store.DispatchRow         // of tasks that are claimable again
	ended   []*row                      // tasks that ended and whose dependents are yet to be looked at
	undone  []*row                      // tasks whose undo phase begins
	counted []*task.Job                 // whose counters changed
	jobWas  map[*task.Job]task.JobState // that were resolved, with their states before the operation
	notice  store.Notice                // for the listeners, after the commit
}

func newOp(sp *space, dead map[store.WorkerID]bool, now time.Time) *op {
	return &op{space: sp, dead: dead, now: now, freed: map[string]bool{}, jobWas: map[*task.Job]task.JobState{}}
}

// do runs fn as one operation and then notifies the listeners. A context that
// has ended stops it before it begins; after that nothing does.
func (s *Store) do(ctx context.Context, ns string, fn func(o *op)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.listeners.Notify(ns, s.locked(ns, fn))
	return nil
}

func (s *Store) locked(ns string, fn func(o *op)) store.Notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := newOp(s.space(ns), s.dead, s.clock.Now())
	fn(o)
	o.propagate()
	return o.result()
}

// result is the notice of the operation.
func (o *op) result() store.Notice {
	o.tellJobs()
	n := o.notice
	for j, was := range o.jobWas {
		if j.State != was {
			n.Jobs = append(n.Jobs, j.ID)
		}
	}
	slices.SortFunc(n.Jobs, task.ID.Compare)
	n.Jobs = slices.Compact(n.Jobs)
	return n
}

// space returns a namespace, which exists as soon as it is named.
func (s *Store) space(ns string) *space {
	sp, ok := s.spaces[ns]
	if !ok {
		sp = newSpace()
		s.spaces[ns] = sp
	}
	return sp
}

// newGeneration names a life of a store (R17).
func newGeneration() string { return rand.Text() }

// later returns the later of two instants.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// until returns the time to an instant, at least 0, and -1 for never.
func until(t, now time.Time) time.Duration {
	if t.IsZero() {
		return -1
	}
	return max(0, t.Sub(now))
}

// name names a task in a message.
func (r *row) name() string { return rules.TaskName(r.Node, r.ID) }
