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
	rules.ClosedLimits(&h, o.limitsOf(r), o.now)
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
