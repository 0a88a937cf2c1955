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

// wait makes a client, in a process of its own, wait for a task to end. The client's result must be true.
func (sim *simulation) wait() {
	id := sim.tasks[sim.rnd.IntN(len(sim.tasks))]
	p := &process{
		sim: sim, name: fmt.Sprintf("c%d", len(sim.waiters)), lossy: sim.rnd.IntN(2) == 0,
		streams: map[string]*rand.Rand{}, firstAsk: map[task.LeaseID]time.Time{},
	}
	client, err := weaver.NewClient(&port{Store: sim.mem, p: p}, weaver.ClientConfig{Namespace: ns, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		sim.failf("new client: %v", err)
		return
	}
	sim.result(" " + p.name + " waits for " + sim.label(id))
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	sim.waiters = append(sim.waiters, p)
	sim.running.Go(func() {
		defer sim.signal()
		defer p.over.Store(true)
		defer cancel()
		for !p.dead.Load() {
			info, err := client.Wait(ctx, id, weaver.WaitThroughBlocked())
			if !errors.Is(err, errFault) {
				sim.answered(p, id, info, err)
				return
			}
			p.point(ctx, time.Second, "pause")
		}
	})
}

// answered checks the client's result.
func (sim *simulation) answered(p *process, id task.ID, info weaver.TaskInfo, err error) {
	var failed *weaver.TaskError
	switch {
	case p.dead.Load():
	case errors.Is(err, store.ErrNotFound):
		if !sim.deleted[id] {
			sim.failf("%s: %s is not found", p.name, sim.label(id))
		}
	case err == nil && info.State == task.Succeeded:
	case errors.As(err, &failed) && (info.State == task.Failed || info.State == task.Cancelled):
	default:
		sim.failf("%s: the wait for %s, which is %s, ended with %v", p.name, sim.label(id), info.State, err)
	}
}
