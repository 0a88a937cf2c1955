package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// wait lets a client, in a process of its own, wait for a task to end. What
// it is told must be so.
func (w *world) wait() {
	id := w.tasks[w.rnd.IntN(len(w.tasks))]
	p := &process{
		w: w, name: fmt.Sprintf("c%d", len(w.waiters)), lossy: w.rnd.IntN(2) == 0,
		streams: map[string]*rand.Rand{}, firstAsk: map[task.LeaseID]time.Time{},
	}
	client, err := weaver.NewClient(&port{Store: w.mem, p: p}, weaver.ClientConfig{Namespace: ns, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.failf("new client: %v", err)
		return
	}
	w.result(" " + p.name + " waits for " + w.label(id))
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	w.waiters = append(w.waiters, p)
	w.running.Go(func() {
		defer w.signal()
		defer p.over.Store(true)
		defer cancel()
		for !p.dead.Load() {
			info, err := client.Wait(ctx, id, weaver.WaitThroughBlocked())
			if !errors.Is(err, errFault) {
				w.answered(p, id, info, err)
				return
			}
			p.point(ctx, time.Second, "pause")
		}
	})
}

// answered judges what a waiter was told.
func (w *world) answered(p *process, id task.ID, info weaver.TaskInfo, err error) {
	var failed *weaver.TaskError
	switch {
	case p.dead.Load():
	case errors.Is(err, store.ErrNotFound):
		if !w.deleted[id] {
			w.failf("%s: %s is not found", p.name, w.label(id))
		}
	case err == nil && info.State == task.Succeeded:
	case errors.As(err, &failed) && (info.State == task.Failed || info.State == task.Cancelled):
	default:
		w.failf("%s: the wait for %s, which is %s, ended with %v", p.name, w.label(id), info.State, err)
	}
}
