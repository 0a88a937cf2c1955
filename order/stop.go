package order

import (
	"context"
	"time"
)

// stopLimit bounds each call with which a stopping worker gives orders back, and leaves.
const stopLimit = 5 * time.Second

// StopNow makes Run stop without waiting for sends: it claims no more, gives all orders back and
// ends the contexts of sends that run. An order whose send runs is unknown and due at once, and no
// attempt counts. StopNow does not wait; Run returns when the adapter has. Without a Run it has no effect.
func (w *Worker) StopNow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != nil {
		w.stop()
	}
}

// until returns a context that ends with ctx or by StopNow, and a channel that StopNow closes.
func (w *Worker) until(ctx context.Context) (context.Context, <-chan struct{}, context.CancelFunc) {
	now, stop := context.WithCancel(context.Background())
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(now, cancel)
	w.mu.Lock()
	w.stop = stop
	w.mu.Unlock()
	return ctx, now.Done(), func() {
		w.mu.Lock()
		w.stop = nil
		w.mu.Unlock()
		unhook()
		stop()
		cancel()
	}
}

// giveBack releases claimed rows whose send has not begun; with all also those whose sends run.
// It returns an error if the rows still have their leases.
// Crash here: the leases end, or the death of this process is proven.
func (w *Worker) giveBack(ctx context.Context, all bool) error {
	var list []Settlement
	w.mu.Lock()
	back := w.queue
	w.queue = nil
	for _, h := range back {
		delete(w.held, h.row.Key)
	}
	if all {
		for _, h := range w.held {
			back = append(back, h)
		}
	}
	for _, h := range back {
		end := Settlement{Lease: h.lease(), Digest: h.row.Digest, Verdict: VerdictRelease}
		if h.sent {
			end.Verdict, end.Unknown = VerdictRetry, true
			end.Code, end.Message = string(ReasonTimeout), "its worker stopped before the partner answered"
		}
		list = append(list, end)
	}
	w.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	_, err := w.cfg.Store.SettleOrders(ctx, w.cfg.Namespace, list...)
	if err != nil {
		w.cfg.Logger.Warn("order worker: claimed orders could not be given back", "orders", len(list), "error", err)
	}
	return err
}

// outlive returns a context that ends d after ctx.
func outlive(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
	return longer, func() { unhook(); cancel() }
}
