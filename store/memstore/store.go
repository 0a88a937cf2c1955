// Package memstore is a store in memory and the executable model of the other stores. It
// implements package store and docs/leases.md as plainly as possible, over maps under one
// mutex. Random tests compare the real stores with it, and tests of the engine run on it.
// Like them it takes the meaning of a move from internal/rules. It orders the moves of
// one batch in its own way, so that it stays an independent oracle of their SQL.
//
// Invariants: an operation happens completely or not at all, because it is resolved
// before it writes. No caller shares memory with the store, because every value is copied
// on its way in and out.
//
// It keeps nothing when the process ends, is not optimized for speed, and is not meant
// for production.
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
	store.Unsupported // features that memory does not need: a schema, sessions, files

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

// Kill declares the process of a worker dead, like the free lock on its file in SQLite:
// from now on Reap takes its leases at once, and each counts as a crash.
func (s *Store) Kill(id store.WorkerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead[id] = true
}

// ShiftClock shifts the store's clock by d, for tests: back if d is negative.
func (s *Store) ShiftClock(d time.Duration) { s.clock.Shift(d) }

// Ready implements store.Core. Memory is always ready.
func (s *Store) Ready(ctx context.Context) error { return ctx.Err() }

// op is one operation. It has exclusive access to the namespace and a single time of now,
// and collects the consequences of its moves (propagate).
type op struct {
	*space
	dead    map[store.WorkerID]bool
	now     time.Time
	freed   map[string]bool             // keys that may have room for waiters
	ready   []store.DispatchRow         // tasks that are claimable again
	ended   []*row                      // ended tasks whose dependents are not resolved yet
	undone  []*row                      // tasks whose undo phase begins
	counted []*task.Job                 // jobs whose counters changed
	jobWas  map[*task.Job]task.JobState // resolved jobs with their states before the operation
	notice  store.Notice                // for the listeners, after the commit
}

func newOp(sp *space, dead map[store.WorkerID]bool, now time.Time) *op {
	return &op{space: sp, dead: dead, now: now, freed: map[string]bool{}, jobWas: map[*task.Job]task.JobState{}}
}

// do runs fn as one operation and then notifies the listeners. A context that has ended
// prevents the operation; later its end has no effect.
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

// result returns the notice of the operation.
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

// space returns a namespace and creates a missing one.
func (s *Store) space(ns string) *space {
	sp, ok := s.spaces[ns]
	if !ok {
		sp = newSpace()
		s.spaces[ns] = sp
	}
	return sp
}

// newGeneration returns a new generation ID of a store (R17).
func newGeneration() string { return rand.Text() }

// later returns the later of two instants.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// until returns the time until an instant, at least 0; -1 means never.
func until(t, now time.Time) time.Duration {
	if t.IsZero() {
		return -1
	}
	return max(0, t.Sub(now))
}

// name returns the name of a task in messages.
func (r *row) name() string { return rules.TaskName(r.Node, r.ID) }
