package simulation_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The transactions of a process, of its user and of steps, take turns with the calls of its engine, as on SQLite (ADR
// 0019). They run one at a time, and waiting calls go before the next transaction.

// takeTurn waits for the write turn of a process. It returns false when ctx ended first or the process is dead.
func (p *process) takeTurn(ctx context.Context, name string) bool {
	waited := false
	it := &item{proc: p, name: "turn " + name, ctx: ctx, ready: func() bool {
		free := ctx.Err() != nil || !p.inTx.Load() && !p.sim.callWaits(p)
		waited = waited || !free
		return free
	}}
	if p.sim.park(it) == gone || ctx.Err() != nil {
		return false
	}
	if waited {
		p.sim.count("transactions waited", 1)
	}
	p.inTx.Store(true)
	return true
}

// callWaits reports whether a call of a process is ready to run.
func (sim *simulation) callWaits(p *process) bool {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return slices.ContainsFunc(sim.waiting, func(it *item) bool {
		return it.proc == p && it.call && it.scheduled && !it.gone && !it.at.After(time.Now())
	})
}

// The ends of a transaction of the user.
const (
	txCommitted  = "committed"
	txRolledBack = "rolled back"
	txRefused    = "refused by the store"
	txUnknown    = "committed, and its answer is lost"
)

var txEnds = []string{txCommitted, txCommitted, txRolledBack, txRefused, txUnknown}

// transact makes a process run a transaction of its user. The transaction enqueues tasks and takes a while.
func (sim *simulation) transact() {
	p := sim.anyProcess()
	if p.dead.Load() || p.over.Load() {
		return
	}
	var subs []store.Submission
	for range 1 + sim.rnd.IntN(2) {
		subs = append(subs, store.Submission{Tasks: []task.New{sim.draft()}})
	}
	sim.txs++
	name := fmt.Sprintf("user %d", sim.txs)
	open := time.Duration(sim.rnd.Int64N(int64(sim.ttl / 8)))
	end := txEnds[sim.rnd.IntN(len(txEnds))]
	for _, sub := range subs {
		for i := range sub.Tasks {
			sim.never[sub.Tasks[i].ID] = true
			sim.result(" " + sim.label(sub.Tasks[i].ID))
		}
	}
	sim.result(" by " + p.name + " to be " + end)
	sim.openTxs.Add(1)
	sim.running.Go(func() {
		defer sim.signal()
		defer sim.openTxs.Add(-1)
		if !p.takeTurn(context.Background(), name) {
			return
		}
		defer p.inTx.Store(false)
		if p.point(context.Background(), open, "open "+name) && p.point(context.Background(), 0, "end "+name) {
			sim.endTx(subs, end)
		}
	})
}

// endTx ends a transaction: all of it happens at once, or nothing.
func (sim *simulation) endTx(subs []store.Submission, end string) {
	sim.count("transactions "+end, 1)
	sim.result(" " + end)
	if end == txRolledBack || end == txRefused {
		return
	}
	for _, sub := range subs {
		got, err := sim.mem.Enqueue(context.Background(), ns, nil, sub)
		if err != nil {
			sim.failf("enqueue in a transaction: %v", err)
		}
		sim.mu.Lock()
		for _, g := range got {
			delete(sim.never, g.ID)
			sim.acked[g.ID] = true
			sim.tasks = append(sim.tasks, g.ID)
		}
		sim.mu.Unlock()
	}
}

// unservedType is the type of tasks that no engine knows.
const unservedType = "systemtest.simulation.unserved.v1"

// submitUnserved enqueues a task that no engine knows, with a high priority and a key of other tasks.
func (sim *simulation) submitUnserved() {
	n := sim.draft()
	k := sim.rnd.IntN(3)
	n.Type, n.Priority, n.Delay, n.ExpireAfter = unservedType, 1, 0, 0
	n.ConcurrencyKey, n.ConcurrencyLimit = fmt.Sprintf("k%d", k), 1+k
	sim.result(" unserved " + sim.label(n.ID))
	if _, err := sim.mem.Enqueue(context.Background(), ns, nil, store.Submission{Tasks: []task.New{n}}); err != nil {
		sim.failf("enqueue: %v", err)
	}
	sim.acked[n.ID] = true
	sim.unserved = append(sim.unserved, n.ID)
}

// submitQueue enqueues tasks whose step transactions wait for each other.
func (sim *simulation) submitQueue() {
	var sub store.Submission
	for range 3 + sim.rnd.IntN(3) {
		n := sim.draft()
		n.Delay, n.ConcurrencyKey, n.ConcurrencyLimit = 0, "", 0
		n.Input = fmt.Appendf(nil, `{"do":[{"what":"tx","for":%d},{"what":"tx","for":%d}]}`,
			1+sim.rnd.IntN(int(sim.ttl.Milliseconds()/12)), 1+sim.rnd.IntN(int(sim.ttl.Milliseconds()/12)))
		sub.Tasks = append(sub.Tasks, n)
	}
	sim.enqueue(sub)
}

// leafMark begins the part of a step's value that names the task enqueued by its transaction.
const leafMark = " with "

// leafOf returns the task named by a recorded value of a step, or "".
func leafOf(value string) string {
	const length = 26 // of an ID
	_, id, _ := strings.Cut(value, leafMark)
	return id[:min(len(id), length)]
}

// enqueuedInStep records a task enqueued by a step's transaction, before the end of that transaction.
func (sim *simulation) enqueuedInStep(leaf, parent task.ID, step string) {
	key := sim.label(parent) + " " + step
	sim.label(leaf)
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.leaves[leaf] = key
}

// checkTransactions checks three things. Rolled back tasks do not exist (I2). A step's transaction left exactly the
// task named by the step's value. Tasks of a type that no engine knows are untouched.
func (sim *simulation) checkTransactions(now map[task.ID]task.Task) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for id := range sim.never {
		if _, ok := now[id]; ok {
			sim.failLocked("I2: %s is there, whose transaction was not committed", sim.names[id])
		}
	}
	for id, key := range sim.leaves {
		_, ok := now[id]
		switch named := leafOf(sim.values[key]) == id.String(); {
		case ok && !named:
			sim.failLocked("I2: %s is there, which a transaction of step %s enqueued that did not record its value", sim.names[id], key)
		case !ok && named && !sim.deleted[id]:
			sim.failLocked("I1: %s is not there, which the transaction of step %s enqueued that recorded its value", sim.names[id], key)
		}
	}
	for _, id := range sim.unserved {
		if t := now[id]; t.AttemptNo > 0 || t.State == task.Running {
			sim.failLocked("%s is %s after %d attempts, and no engine knows its type", sim.names[id], t.State, t.AttemptNo)
		}
	}
}
