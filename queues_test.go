package weaver_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
)

// Waiting tasks, tasks by state, and workers.
func TestQueuesCountsWorkers(t *testing.T) {
	typ := weaver.Define[int, int]("engine.queues.run.v1", weaver.Queue("billing"))
	inBubble(t, func(fx *fixture) {
		g := newGate()
		eng := fx.start(fx.store, weaver.Config{Concurrency: 1, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, n int) (int, error) { return n, g.pass(ctx) })}})
		for range 3 {
			enqueue(fx, typ, 1)
		}
		enqueue(fx, typ, 1, weaver.Delay(time.Hour), weaver.Queue("night"))
		<-g.in
		fx.must(fx.client.PauseQueue(fx.Context(), "idle"))

		queues, err := fx.client.Queues(fx.Context())
		fx.must(err)
		one := store.Count{N: 1}
		want := []store.Queue{{Name: "billing", Due: store.Count{N: 2}, Running: one}, {Name: "idle", Paused: true}, {Name: "night", Later: one}}
		equal(fx, "the number of queues", len(queues), len(want))
		for i := range min(len(queues), len(want)) {
			got := queues[i]
			if got.Paused != (got.Pause != nil) || got.OldestDue.IsZero() != (got.Due.N == 0) {
				fx.Errorf("the queue is %+v", got)
			}
			got.Pause, got.OldestDue = nil, time.Time{}
			equal(fx, "queue", got, want[i])
		}
		counts, err := fx.client.Counts(fx.Context())
		fx.must(err)
		for state, n := range map[weaver.State]int{weaver.StateSucceeded: 0, weaver.StateRunning: 1, weaver.StateReady: 2, weaver.StatePending: 1, weaver.StateFailed: 0} {
			equal(fx, "tasks that are "+string(state), counts.States[state], store.Count{N: n})
		}
		workers, err := fx.client.Workers(fx.Context())
		fx.must(err)
		if len(workers) != 1 || workers[0].Running.N != 1 || len(workers[0].Types) != 1 || workers[0].Types[0] != typ.Name() || workers[0].Name == "" || workers[0].Host == "" || workers[0].PID != os.Getpid() || workers[0].Version == "" || workers[0].Slots != 1 || workers[0].Queues != nil || workers[0].LastSeen.IsZero() {
			fx.Errorf("the workers are %+v", workers)
		}
		eng.StopNow()
		fx.must(eng.stop())
		workers, err = fx.client.Workers(fx.Context())
		fx.must(err)
		equal(fx, "workers that are left", len(workers), 0)
	})
}
