package memstore

import (
	"context"
	"maps"
	"slices"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/rules"
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
		if req.Parts&store.OverviewLine != 0 {
			out.Line = o.line(req.Task)
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

// line returns the line of a task; nil if it is not due.
func (o *op) line(id task.ID) *store.Line {
	r, found := o.tasks[id]
	own, due := o.dispatch[id]
	if !found || !due {
		return nil
	}
	t := o.derived(r, o.now)
	if t.State != task.Ready {
		return nil
	}
	turns := 0
	before := func(d *store.DispatchRow) (yes bool, most int) {
		b := rules.BoundOf(&own, d, turns, o.now)
		at := d.AvailableAt.Compare(b.At)
		return at < 0 || at == 0 && d.Task.Compare(b.ID) < 0, b.Most
	}
	for _, d := range o.dispatch {
		if keyOf(&d) == keyOf(&own) {
			if yes, _ := before(&d); yes {
				turns++
			}
		}
	}
	of := make(map[lane.Key]rules.LaneAhead)
	for _, d := range o.dispatch {
		if _, paused := o.pausedType[d.Type]; d.Queue != own.Queue || paused {
			continue
		}
		l := of[keyOf(&d)]
		yes, most := before(&d)
		if !yes {
			continue
		}
		if l.N == 0 || d.AvailableAt.Before(l.First) {
			l.First = d.AvailableAt
		}
		of[keyOf(&d)] = rules.LaneAhead{Type: d.Type, Group: d.Group, N: min(l.N+1, most), First: l.First}
	}
	return rules.LineOf(&t, &own, slices.Collect(maps.Values(of)), false, o.limitsOf(r), o.now)
}
