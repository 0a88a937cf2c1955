package memstore

import (
	"context"
	"maps"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Overview implements store.Observe.
func (s *Store) Overview(ctx context.Context, ns string, req store.OverviewRequest) (store.Overview, error) {
	var out store.Overview
	err := s.do(ctx, ns, func(o *op) {
		out = store.Overview{At: o.now}
		if req.Parts&store.OverviewCounts != 0 {
			out.Counts = o.counts()
		}
		if req.Parts&store.OverviewQueues != 0 {
			out.Queues = o.queues()
		}
		if req.Parts&store.OverviewWorkers != 0 {
			out.Workers = o.statuses()
		}
		if req.Parts&store.OverviewJob != 0 {
			out.Job = o.countJob(req.Job)
		}
		if req.Parts&store.OverviewHints != 0 {
			out.Hints = o.hints()
		}
	})
	return out, err
}

func (o *op) countJob(job task.ID) (counts store.JobCounts) {
	for _, r := range o.sorted(func(r *row) bool { return r.JobID == job && !job.IsZero() }) {
		t := o.derived(r, o.now)
		counts.Add(&t, 1)
	}
	counts.Sort()
	return counts
}

func (o *op) counts() store.Counts {
	c := store.Counts{States: map[task.State]store.Count{}, Types: map[string]store.Count{}, Queues: map[string]store.Count{}}
	for _, state := range task.States() {
		c.States[state] = store.Count{}
	}
	one := store.CountOf(1)
	for _, r := range o.tasks {
		t := o.derived(r, o.now)
		state := t.State
		if t.Waiting == task.WaitUndo && state == task.Pending && !t.ReadyAt.After(o.now) {
			state = task.Ready
		}
		c.States[state] = c.States[state].Plus(one)
		c.Types[t.Type] = c.Types[t.Type].Plus(one)
		c.Queues[t.Queue] = c.Queues[t.Queue].Plus(one)
	}
	return c
}

func (o *op) queues() []store.Queue {
	var lanes []store.Lane
	one := store.CountOf(1)
	for _, d := range o.dispatch {
		if d.AvailableAt.After(o.now) {
			lanes = append(lanes, store.Lane{Queue: d.Queue, Type: d.Type, Later: one})
		} else {
			lanes = append(lanes, store.Lane{Queue: d.Queue, Type: d.Type, Due: one, OldestDue: d.AvailableAt})
		}
	}
	for _, r := range o.tasks {
		if r.State == task.Running {
			lanes = append(lanes, store.Lane{Queue: r.Queue, Type: r.Type, Running: one})
		}
	}
	return store.QueuesOf(lanes, slices.Collect(maps.Values(o.paused)), slices.Collect(maps.Values(o.pausedType)))
}

func (o *op) statuses() []store.WorkerStatus {
	var out []store.WorkerStatus
	running := map[store.WorkerID]int{}
	for _, r := range o.tasks {
		if r.State == task.Running {
			running[r.worker]++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(o.workers)) {
		w := o.workers[id]
		status := store.WorkerStatus{
			WorkerInfo: w.info, LastSeen: w.LastSeen, Running: store.CountOf(running[id]),
			Silent: o.now.Sub(w.LastSeen) > w.TTL, Dead: o.seenDead(id),
		}
		status.ID, status.TTL, status.Types, status.Queues = id, w.TTL, slices.Clone(w.info.Types), slices.Clone(w.info.Queues)
		out = append(out, status)
	}
	return out
}
