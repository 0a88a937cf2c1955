package linearizability_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	namespace    = "linearizability"
	leaseType    = "systemtest.lease.v1"
	leaseTasks   = 8
	leaseClients = 32
	leasesKept   = 6 // leases of a task kept by clients, including lost ones
)

// workload records one history. Clients share their leases of a few tasks, so each also uses leases of others and
// lost leases.
type workload struct {
	t     *testing.T
	ids   []task.ID
	clock atomic.Int64 // ticks at every call and return, to order them without a real clock
	// successes is the number of successes in ten finishes. With many, first attempts succeed, for which stores have
	// a fast path. With few, tasks go through many leases.
	successes int

	mu      sync.Mutex // guards the fields below
	known   map[task.ID][]task.Lease
	history []porcupine.Operation
}

// recordHistory runs the clients on an empty store, each on one of its handles, and returns the history. It must run
// in a bubble: the store's clock stands still, so a lease of length 0 is expired at once and a lease of an hour never
// expires.
func recordHistory(t *testing.T, seed uint64, stores ...store.Store) []porcupine.Operation {
	t.Helper()
	g := &workload{t: t, known: map[task.ID][]task.Lease{}, successes: 1 + 2*int(seed%2)}
	g.enqueue(stores[0])
	start := make(chan struct{})
	var wg sync.WaitGroup
	var clients []*client
	for i := range leaseClients {
		c := &client{
			workload: g, no: i, s: stores[i%len(stores)], rng: rand.New(rand.NewPCG(seed, uint64(i))),
			id: store.WorkerID(fmt.Sprint("worker", i)), reaper: store.WorkerID(fmt.Sprint("reaper", i)),
		}
		clients = append(clients, c)
	}
	g.join(clients)
	for _, c := range clients {
		wg.Go(func() {
			<-start
			for range callsPerClient {
				c.callOnce()
			}
		})
	}
	close(start)
	wg.Wait()
	snap, err := stores[0].Snapshot(t.Context(), namespace)
	if err != nil {
		t.Fatalf("Snapshot: %v", err)
	}
	for _, v := range store.Check(snap) {
		t.Errorf("store.Check: %v", v)
	}
	return g.history
}

// join joins every worker and keeps the reapers alive for their warm-up.
func (g *workload) join(clients []*client) {
	g.t.Helper()
	const ttl = time.Hour
	for i := range 3 {
		time.Sleep(time.Duration(min(i, 1)) * ttl / 2)
		for _, c := range clients {
			for _, id := range []store.WorkerID{c.id, c.reaper} {
				if err := c.s.Join(g.t.Context(), namespace, store.WorkerInfo{ID: id, Name: "linearizability", TTL: ttl}); err != nil {
					g.t.Fatalf("Join: %v", err)
				}
			}
		}
	}
}

func (g *workload) enqueue(s store.Store) {
	g.t.Helper()
	ids := task.NewIDs(nil)
	var sub store.Submission
	for range leaseTasks {
		id := ids.New()
		g.ids = append(g.ids, id)
		sub.Tasks = append(sub.Tasks, task.New{
			ID: id, Type: leaseType, Queue: task.DefaultQueue, Input: json.RawMessage(`1`), SchemaVersion: 1,
			Priority: task.DefaultPriority, MaxAttempts: 1 << 20, Backoff: task.DefaultBackoff, BackoffMax: task.DefaultBackoffMax,
		})
	}
	if _, err := s.Enqueue(g.t.Context(), namespace, nil, sub); err != nil {
		g.t.Fatalf("Enqueue: %v", err)
	}
}

// client is one goroutine. It reaps as another worker, because a worker with short heartbeats is not eligible to
// reap.
type client struct {
	*workload
	no         int
	s          store.Store
	rng        *rand.Rand
	id, reaper store.WorkerID
}

// callOnce makes one call.
func (c *client) callOnce() {
	switch n := c.rng.IntN(100); {
	case n < 28:
		c.claim(1, c.ids[c.rng.IntN(leaseTasks)])
	case n < 36:
		c.claim(1 + c.rng.IntN(3))
	case n < 62:
		c.finish()
	case n < 74:
		c.beat()
	case n < 78:
		c.reap()
	case n < 81:
		c.operate(leaseForce)
	case n < 83:
		c.operate(leaseCancel)
	case n < 92:
		c.operate(leaseRetry)
	default:
		c.read()
	}
}

// leaseEvent is the part of a call about one task.
type leaseEvent struct {
	call  leaseCall
	reply leaseReply
}

// timed makes a call and records one operation per task, all with the interval of the call.
func (c *client) timed(do func() []leaseEvent) {
	began := c.clock.Add(1)
	events := do()
	ended := c.clock.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range events {
		c.history = append(c.history, porcupine.Operation{ClientId: c.no, Input: e.call, Call: began, Output: e.reply, Return: ended})
		if e.call.verb == leaseClaim && !e.reply.none {
			all := append(c.known[e.call.task], e.reply.lease)
			c.known[e.call.task] = all[max(0, len(all)-leasesKept):]
		}
	}
}

// ttl is an hour for one lease in n, and zero for the others.
func (c *client) ttl(n int) (ttl time.Duration, long bool) {
	if c.rng.IntN(n) == 0 {
		return time.Hour, true
	}
	return 0, false
}

// leases returns leases of at most n tasks: the latest known, an earlier one or, rarely, the latest with a forged
// epoch or ID.
func (c *client) leases(n int) []task.Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	var some []task.Lease
	for _, i := range c.rng.Perm(leaseTasks)[:n] {
		known := c.known[c.ids[i]]
		switch last := len(known) - 1; {
		case last < 0:
		case c.rng.IntN(3) == 0:
			some = append(some, known[c.rng.IntN(len(known))])
		case c.rng.IntN(16) == 0:
			forged := known[last]
			forged.Epoch += forgedEpoch
			some = append(some, forged)
		case c.rng.IntN(10) == 0:
			forged := known[last]
			forged.ID = task.NewLeaseID()
			some = append(some, forged)
		default:
			some = append(some, known[last])
		}
	}
	return some
}

// claim asks for one task by its ID, or for any task. An empty answer says something about a task only if the claim
// named it.
func (c *client) claim(limit int, ids ...task.ID) {
	ttl, long := c.ttl(3)
	// The number of slots is large, so that tasks with lost leases are not quarantined.
	req := store.ClaimRequest{
		Worker: c.id, Name: "linearizability", LeaseID: task.NewLeaseID(), TTL: ttl, Limit: limit,
		Types: map[string]int{leaseType: 1}, IDs: ids, Slots: 1 << 30,
	}
	c.timed(func() (events []leaseEvent) {
		res, err := c.s.Claim(c.t.Context(), namespace, req)
		if err != nil {
			c.t.Errorf("Claim: %v", err)
			return nil
		}
		call := leaseCall{verb: leaseClaim, lease: task.Lease{ID: req.LeaseID}, long: long}
		for _, c := range res.Tasks {
			call.task = c.Task.ID
			events = append(events, leaseEvent{call, leaseReply{lease: c.Lease, state: c.Task.State}})
		}
		if len(events) == 0 && len(ids) == 1 {
			call.task = ids[0]
			events = append(events, leaseEvent{call, leaseReply{none: true}})
		}
		return events
	})
}

func (c *client) finish() {
	leases := c.leases(1 + c.rng.IntN(2))
	var fins []store.Finish
	for _, l := range leases {
		f := store.Finish{Lease: l, Outcome: task.OutcomeReleased, CodeVersion: 1}
		switch n := c.rng.IntN(10); {
		case n < c.successes:
			f.Outcome, f.Output = task.OutcomeSuccess, json.RawMessage(`"done"`)
		case n < 7:
			f.Outcome, f.Error = task.OutcomeFailure, &task.Error{Kind: task.KindHandler, Message: "no luck"}
			f.Decision = &task.Decision{Kind: task.DecideRetry, Reason: task.Reason{Policy: "linearizability", Version: 1, Text: "again"}}
		}
		fins = append(fins, f)
	}
	if len(fins) == 0 {
		return
	}
	c.timed(func() (events []leaseEvent) {
		res, err := c.s.Finish(c.t.Context(), namespace, fins...)
		if err != nil {
			c.t.Errorf("Finish: %v", err)
			return nil
		}
		for i, f := range fins {
			call := leaseCall{verb: leaseFinish, task: f.Lease.Task, lease: f.Lease, outcome: f.Outcome}
			events = append(events, leaseEvent{call, leaseReply{err: c.refusal(res[i].Err), state: res[i].State}})
		}
		return events
	})
}

func (c *client) beat() {
	ttl, long := c.ttl(5)
	req := store.HeartbeatRequest{Worker: c.id, TTL: ttl, Leases: c.leases(1 + c.rng.IntN(3))}
	c.timed(func() (events []leaseEvent) {
		beats, err := c.s.Heartbeat(c.t.Context(), namespace, req)
		if err != nil {
			c.t.Errorf("Heartbeat: %v", err)
			return nil
		}
		for i, b := range beats {
			if b.Retry {
				continue // it says nothing about the task
			}
			reply := leaseReply{asked: b.Cancel != task.KindNone}
			if b.Lost {
				reply.err = leaseLost
			}
			call := leaseCall{verb: leaseBeat, task: req.Leases[i].Task, lease: req.Leases[i], long: long}
			events = append(events, leaseEvent{call, reply})
		}
		return events
	})
}

// reap is an operation on every task: expired leases must be taken, and leases not taken were not expired.
func (c *client) reap() {
	c.timed(func() (events []leaseEvent) {
		res, err := c.s.Reap(c.t.Context(), namespace, store.ReapRequest{Worker: c.reaper, TTL: time.Hour, CrashBudget: -1})
		if err != nil || res.WarmingUp {
			c.t.Errorf("Reap: paused %t, %v", res.WarmingUp, err)
			return nil
		}
		for _, id := range c.ids {
			reply := leaseReply{none: true}
			if i := slices.IndexFunc(res.Reaped, func(r store.Reaped) bool { return r.Task == id }); i >= 0 {
				reply = leaseReply{state: res.Reaped[i].State}
			}
			events = append(events, leaseEvent{leaseCall{verb: leaseReap, task: id}, reply})
		}
		return events
	})
}

func (c *client) operate(verb leaseVerb) {
	id := c.ids[c.rng.IntN(leaseTasks)]
	var cmd store.Command = store.CancelTask{Task: id, Force: verb == leaseForce}
	if verb == leaseRetry {
		cmd = store.RetryTask{Task: id}
	}
	c.timed(func() []leaseEvent {
		res, err := c.s.Operate(c.t.Context(), namespace, cmd)
		if err != nil {
			c.t.Errorf("Operate: %v", err)
			return nil
		}
		return []leaseEvent{{leaseCall{verb: verb, task: id}, leaseReply{err: c.refusal(res[0].Err), state: res[0].State, asked: res[0].Asked}}}
	})
}

func (c *client) read() {
	two := c.rng.Perm(leaseTasks)[:2]
	c.timed(func() (events []leaseEvent) {
		tasks, err := c.s.Tasks(c.t.Context(), namespace, c.ids[two[0]], c.ids[two[1]])
		if err != nil || len(tasks) != len(two) {
			c.t.Errorf("Tasks: %d of %d, %v", len(tasks), len(two), err)
			return nil
		}
		for _, t := range tasks {
			reply := leaseReply{state: t.State, lease: task.Lease{Epoch: t.Epoch, ID: t.LeaseID}}
			events = append(events, leaseEvent{leaseCall{verb: leaseRead, task: t.ID}, reply})
		}
		return events
	})
}

// refusal returns the sentinel of an error.
func (c *client) refusal(err error) leaseError {
	switch {
	case err == nil:
		return leaseAccepted
	case errors.Is(err, store.ErrLeaseLost):
		return leaseLost
	case errors.Is(err, store.ErrConflict):
		return leaseConflict
	case errors.Is(err, store.ErrState):
		return leaseState
	}
	c.t.Errorf("an answer that no call here can get: %v", err)
	return leaseError(err.Error())
}
