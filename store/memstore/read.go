package memstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Tasks implements store.Observe.
func (s *Store) Tasks(ctx context.Context, ns string, ids ...task.ID) ([]task.Task, error) {
	var out []task.Task
	err := s.do(ctx, ns, func(o *op) {
		for _, id := range ids {
			if r, ok := o.tasks[id]; ok {
				out = append(out, o.derived(r, o.now))
			}
		}
	})
	return out, err
}

// List implements store.Observe.
func (s *Store) List(ctx context.Context, ns string, f store.Filter) ([]task.Task, string, error) {
	before, err := parseCursor(f.After)
	if err != nil {
		return nil, "", err
	}
	var found []task.Task
	err = s.do(ctx, ns, func(o *op) {
		for _, r := range o.tasks {
			if t := o.derived(r, o.now); f.Selects(&t) && (f.After == "" || t.ID.Compare(before) < 0) {
				found = append(found, t)
			}
		}
	})
	out, next := page(found, f.Limit, func(t task.Task) task.ID { return t.ID })
	return out, next, err
}

// parseCursor parses the ID after which a page begins; zero means the newest.
func parseCursor(after string) (task.ID, error) {
	if after == "" {
		return task.ID{}, nil
	}
	id, err := task.ParseID(after)
	if err != nil {
		return task.ID{}, fmt.Errorf("%w: %q did not come from a list", store.ErrBadCursor, after)
	}
	return id, nil
}

// page sorts rows newest first and cuts them to a page. The cursor is the last ID of the
// page, if another page follows.
func page[T any](rows []T, limit int, id func(T) task.ID) ([]T, string) {
	slices.SortFunc(rows, func(a, b T) int { return id(b).Compare(id(a)) })
	size := store.PageLimit(limit)
	if len(rows) <= size {
		return rows, ""
	}
	rows = rows[:size]
	return rows, id(rows[size-1]).String()
}

// Needs implements store.Flow.
func (s *Store) Needs(ctx context.Context, ns string, id task.ID) ([]store.Need, error) {
	var needs []store.Need
	err := s.do(ctx, ns, func(o *op) {
		for _, e := range o.needs[id] {
			needs = append(needs, o.need(e.Needs, e))
		}
	})
	return needs, err
}

// Jobs implements store.Flow.
func (s *Store) Jobs(ctx context.Context, ns string, f store.JobFilter) ([]task.Job, string, error) {
	before, err := parseCursor(f.After)
	if err != nil {
		return nil, "", err
	}
	var found []task.Job
	err = s.do(ctx, ns, func(o *op) {
		for _, j := range o.jobs {
			if !f.ID.IsZero() {
				if f.ID == j.ID {
					found = append(found, copyJob(j))
				}
				continue
			}
			if (f.After == "" || j.ID.Compare(before) < 0) &&
				(f.Name == "" || f.Name == j.Name) &&
				(len(f.States) == 0 || slices.Contains(f.States, j.State)) {
				found = append(found, copyJob(j))
			}
		}
	})
	out, next := page(found, f.Limit, func(j task.Job) task.ID { return j.ID })
	return out, next, err
}

// Snapshot implements store.Data.
func (s *Store) Snapshot(ctx context.Context, ns string) (*store.Snapshot, error) {
	var snap *store.Snapshot
	err := s.do(ctx, ns, func(o *op) { snap = o.snapshot() })
	return snap, err
}

func (o *op) snapshot() *store.Snapshot {
	snap := &store.Snapshot{
		Now: o.now, Generation: o.generation,
		Audit:  copyList(o.audit),
		Paused: slices.Sorted(maps.Keys(o.paused)), PausedTypes: slices.Sorted(maps.Keys(o.pausedType)), PausedTasks: o.pausedTasks(),
		Types: o.announced(nil),
	}
	for _, r := range o.sorted(func(*row) bool { return true }) {
		snap.Tasks = append(snap.Tasks, copyTask(&r.Task))
		for _, e := range o.needs[r.ID] {
			snap.Edges = append(snap.Edges, copyEdge(e))
		}
		snap.Attempts = append(snap.Attempts, copyAll(o.attempts[r.ID], copyAttempt)...)
		snap.Decisions = append(snap.Decisions, copyAll(o.decisions[r.ID], storedDecision)...)
		snap.Steps = append(snap.Steps, copyAll(o.steps[r.ID], copyStep)...)
		snap.Signals = append(snap.Signals, copyAll(o.signals[r.ID], copySignal)...)
		snap.Checkpoints = append(snap.Checkpoints, copyAll(o.checkpoints[r.ID], copyCheckpoint)...)
		if d, ok := o.dispatch[r.ID]; ok {
			snap.Dispatch = append(snap.Dispatch, d)
		}
	}
	o.snapBlobs(snap)
	o.snapSchedules(snap)
	for _, j := range o.jobs {
		snap.Jobs = append(snap.Jobs, copyJob(j))
	}
	slices.SortFunc(snap.Jobs, func(a, b task.Job) int { return a.ID.Compare(b.ID) })
	for _, k := range o.keys {
		snap.Keys = append(snap.Keys, *k)
	}
	slices.SortFunc(snap.Keys, func(a, b store.KeyRow) int { return cmp.Compare(a.Key, b.Key) })
	snap.Waiters = slices.SortedFunc(maps.Values(o.waiters), byWaiter)
	return snap
}
