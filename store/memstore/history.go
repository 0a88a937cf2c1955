package memstore

import (
	"context"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// History implements store.Observe.
func (s *Store) History(ctx context.Context, ns string, id task.ID) (store.History, error) {
	var h store.History
	found := false
	err := s.do(ctx, ns, func(o *op) {
		var r *row
		if r, found = o.tasks[id]; found {
			h = o.history(r)
		}
	})
	if err == nil && !found {
		err = rules.NotFound(id)
	}
	return h, err
}

func (o *op) history(r *row) store.History {
	h := store.History{
		Task:      o.derived(r, o.now),
		Attempts:  copyAll(o.attempts[r.ID], copyAttempt),
		Decisions: copyAll(o.decisions[r.ID], storedDecision),
		Steps:     copyAll(o.steps[r.ID], copyStep),
		Signals:   copyAll(o.signals[r.ID], copySignal),
		Artifacts: copyList(o.artifacts[r.ID]),

		Checkpoints: copyAll(o.checkpoints[r.ID], copyCheckpoint),
	}
	if r.State == task.Running {
		h.Attempts = append(h.Attempts, r.attempt())
	}
	for _, e := range o.needs[r.ID] {
		h.Needs = append(h.Needs, o.need(e.Needs, e))
	}
	for _, e := range o.dependents[r.ID] {
		h.Dependents = append(h.Dependents, o.need(e.Task, e))
	}
	for _, e := range o.audit {
		if e.Target == r.ID.String() {
			h.Audit = append(h.Audit, e)
		}
	}
	if h.Task.Waiting == task.WaitConcurrency {
		h.Holders, h.Ahead = o.holders(r.ConcurrencyKey), o.ahead(r)
	}
	limits := o.limitsOf(r)
	rules.ClosedLimits(&h, limits, o.now)
	if d, ok := o.dispatch[r.ID]; ok && h.Task.State == task.Ready {
		h.Line = o.line(&d, limits)
	}
	if e, ok := o.paused[r.Queue]; ok && !r.State.Terminal() {
		h.QueuePause = &e
	}
	if e, ok := o.pausedType[r.Type]; ok && !r.State.Terminal() {
		h.TypePause = &e
	}
	if p, ok := o.pausedTask[r.ID]; ok {
		e := p.AuditEntry
		h.TaskPause = &e
	}
	return h
}

// need returns the task at one end of an edge.
func (o *op) need(id task.ID, e *store.EdgeRow) store.Need {
	n := store.Need{ID: id, Kind: e.Kind, Done: e.Done, Step: e.Step, Awaited: e.Awaited, EndedState: e.EndedState, EndedError: copyPtr(e.EndedError)}
	if r, ok := o.tasks[id]; ok {
		n.Node, n.State, n.AllowFailure = r.Node, o.derived(r, o.now).State, r.AllowFailure
		if r.State.Terminal() {
			n.ErrorKind = r.End().Kind
		}
	}
	return n
}

// line returns the line of a due task.
func (o *op) line(own *store.DispatchRow, limits []store.LimitRow) *store.Line {
	type key struct {
		group, kind string
		priority    int
	}
	rows := make(map[key][]store.DispatchRow)
	for _, d := range o.dispatch {
		if _, paused := o.pausedType[d.Type]; d.Queue == own.Queue && !paused {
			k := key{d.Group, d.Type, d.Priority}
			rows[k] = append(rows[k], d)
		}
	}
	turns := 0
	ahead := func(k key) rules.LaneAhead {
		l := rules.LaneAhead{Type: k.kind, Group: k.group}
		b := rules.BoundOf(own, &rows[k][0], turns, o.now)
		for _, d := range rows[k] {
			if at := d.AvailableAt.Compare(b.At); at > 0 || at == 0 && d.Task.Compare(b.ID) >= 0 {
				continue
			}
			if l.N == 0 || d.AvailableAt.Before(l.First) {
				l.First = d.AvailableAt
			}
			l.N++
		}
		l.N = min(l.N, b.Most)
		return l
	}
	turns = ahead(key{own.Group, own.Type, own.Priority}).N
	var lanes []rules.LaneAhead
	for k := range rows {
		lanes = append(lanes, ahead(k))
	}
	return rules.LineOf(own, lanes, false, limits, o.now)
}
