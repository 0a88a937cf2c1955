package explainread

import (
	"context"
	"errors"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// pace reads the recent work at the lane and the queue of a due task.
func (r Reader) pace(ctx context.Context, h *store.History, running []task.Task) (*explain.Pace, error) {
	if h.Task.State != task.Ready {
		return nil, nil
	}
	o, err := r.Overview(ctx, store.OverviewRequest{Parts: store.OverviewLine | store.OverviewWorkers, Task: h.Task.ID})
	if err != nil || o.Line == nil {
		return nil, err
	}
	p := &explain.Pace{At: o.At, Line: o.Line, Workers: o.Workers, Running: running}
	req := ops.StatsRequest{From: o.At.Add(-explain.PaceSpan), To: o.At.Add(store.StatsSlot), Step: store.StatsSlot, Queue: h.Task.Queue}
	if p.Queue, err = r.paceSlots(ctx, req); err != nil || len(p.Queue) == 0 {
		return p, err
	}
	req.Type = h.Task.Type
	p.Lane, err = r.paceSlots(ctx, req)
	return p, err
}

// paceSlots reads statistics; a store that keeps none has no slots.
func (r Reader) paceSlots(ctx context.Context, req ops.StatsRequest) (slots []explain.PaceSlot, err error) {
	st, err := r.Stats(ctx, req)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	for i := range st.Rows {
		row := &st.Rows[i]
		slots = append(slots, explain.PaceSlot{From: row.From, Ended: row.Count, Run: row.Run.Mean})
	}
	return slots, err
}
