package commit

import (
	"github.com/goweaver/weaver/internal/batch"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
)

// publish announces the effects of committed operations.
func (w *Writer) publish(ops []*batch.Op[*Op], claims []*WaitingClaim) {
	external := w.external
	w.external = false
	for _, o := range ops {
		if o.Err != nil {
			continue
		}
		w.Apply(&o.Do.fx)
		if o.Do.waiting != nil {
			w.waiting.add(o.Do.waiting)
		}
	}
	for _, c := range claims {
		w.Apply(&c.op.fx)
	}
	if external {
		w.cfg.NotifyAll(store.Notice{External: true})
	}
}

// Apply announces the effects of one committed operation. It may run concurrently with the
// leader for the effects of a caller's transaction, which claims and ends nothing.
func (w *Writer) Apply(fx *sqlstore.Effects) {
	fx.ApplyLanes(w.cfg.Lanes)
	w.memory.Apply(fx)
	if n := &fx.Notice; n.Due || n.Chores || n.Schedule || n.Changed || n.Deadline > 0 || len(n.Tasks) > 0 || len(n.Jobs) > 0 || len(n.Cancels) > 0 || len(n.Events) > 0 {
		w.cfg.Notify(fx.NS, *n)
	}
}
