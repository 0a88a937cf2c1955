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
	leaseNamespace = "simtest"
	leaseType      = "simtest.lease.v1"
	leaseTasks     = 8
	leasePlayers   = 32
	leaseMemory    = 6 // leases of a task that players remember, lost ones among them
)

// leaseGame is one history in the making: players who share what they know
// about a few tasks, so that everybody also uses leases of others and leases
// long lost.
type leaseGame struct {
	t     *testing.T
	ids   []task.ID
	clock atomic.Int64 // ticks at every call and return: orders them without trusting a clock
	// successes of ten finishes: many, and first attempts end well, which
	// stores have a faster way for; few, and tasks live through many leases.
	successes int

	mu      sync.Mutex // guards the rest
	known   map[task.ID][]task.Lease
	history []porcupine.Operation
}

// playLeases lets the players loose on an empty store, each on one of the
// given handles of it, and returns what happened. In a bubble, so that the
// store's clock stands still and a lease of length 0 is over at once while
// one of an hour never is.
func playLeases(t *testing.T, seed uint64, stores ...store.Store) []porcupine.Operation {
	t.Helper()
	g := &leaseGame{t: t, known: map[task.ID][]task.Lease{}, successes: 1 + 2*int(seed%2)}
	g.enqueue(stores[0])
	start := make(chan struct{})
	var wg sync.WaitGroup
	var players []*leasePlayer
	for i := range leasePlayers {
		p := &leasePlayer{
			leaseGame: g, no: i, s: stores[i%len(stores)], rng: rand.New(rand.NewPCG(seed, uint64(i))),
			id: store.WorkerID(fmt.Sprint("worker", i)), reaper: store.WorkerID(fmt.Sprint("reaper", i)),
		}
		players = append(players, p)
	}
	g.join(players)
	for _, p := range players {
		wg.Go(func() {
			<-start
			for range leaseMoves {
				p.move()
			}
		})
	}
	close(start)
	wg.Wait()
	snap, err := stores[0].Snapshot(t.Context(), leaseNamespace)
	if err != nil {
		t.Fatalf("Snapshot: %v", err)
	}
	for _, v := range store.Check(snap) {
		t.Errorf("store.Check: %v", v)
	}
	return g.history
}

// join announces everybody, and has the reapers seen for as long as it takes
// to be steady.
func (g *leaseGame) join(players []*leasePlayer) {
	g.t.Helper()
	const ttl = time.Hour
	for i := range 3 {
		time.Sleep(time.Duration(min(i, 1)) * ttl / 2)
		for _, p := range players {
			for _, id := range []store.WorkerID{p.id, p.reaper} {
				if err := p.s.Join(g.t.Context(), leaseNamespace, store.WorkerInfo{ID: id, Name: "simtest", TTL: ttl}); err != nil {
					g.t.Fatalf("Join: %v", err)
				}
			}
		}
	}
}

func (g *leaseGame) enqueue(s store.Store) {
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
	if _, err := s.Enqueue(g.t.Context(), leaseNamespace, nil, sub); err != nil {
		g.t.Fatalf("Enqueue: %v", err)
	}
}

// leasePlayer is one goroutine. It reaps under another name, because short
// heartbeats make a worker look unsteady, and such may not reap.
type leasePlayer struct {
	*leaseGame
	no         int
	s          store.Store
	rng        *rand.Rand
	id, reaper store.WorkerID
}

// move makes one call.
func (p *leasePlayer) move() {
	switch n := p.rng.IntN(100); {
	case n < 28:
		p.claim(1, p.ids[p.rng.IntN(leaseTasks)])
	case n < 36:
		p.claim(1 + p.rng.IntN(3))
	case n < 62:
		p.finish()
	case n < 74:
		p.beat()
	case n < 78:
		p.reap()
	case n < 81:
		p.operate(leaseForce)
	case n < 83:
		p.operate(leaseCancel)
	case n < 92:
		p.operate(leaseRetry)
	default:
		p.read()
	}
}

// leaseEvent is one task's part in a call.
type leaseEvent struct {
	call  leaseCall
	reply leaseReply
}

// timed makes a call and records what it meant for each task: an operation
// per task, all with the call's interval.
func (p *leasePlayer) timed(do func() []leaseEvent) {
	began := p.clock.Add(1)
	events := do()
	ended := p.clock.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range events {
		p.history = append(p.history, porcupine.Operation{ClientId: p.no, Input: e.call, Call: began, Output: e.reply, Return: ended})
		if e.call.verb == leaseClaim && !e.reply.none {
			all := append(p.known[e.call.task], e.reply.lease)
			p.known[e.call.task] = all[max(0, len(all)-leaseMemory):]
		}
	}
}

// ttl is an hour for one in n, and nothing for the others.
func (p *leasePlayer) ttl(n int) (ttl time.Duration, long bool) {
	if p.rng.IntN(n) == 0 {
		return time.Hour, true
	}
	return 0, false
}

// leases returns leases of n tasks at most: the latest known, or one from
// before, or, rarely, the latest with an epoch or an id that it never had.
func (p *leasePlayer) leases(n int) []task.Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	var some []task.Lease
	for _, i := range p.rng.Perm(leaseTasks)[:n] {
		known := p.known[p.ids[i]]
		switch last := len(known) - 1; {
		case last < 0:
		case p.rng.IntN(3) == 0:
			some = append(some, known[p.rng.IntN(len(known))])
		case p.rng.IntN(16) == 0:
			forged := known[last]
			forged.Epoch += leaseForged
			some = append(some, forged)
		case p.rng.IntN(10) == 0:
			forged := known[last]
			forged.ID = task.NewLeaseID()
			some = append(some, forged)
		default:
			some = append(some, known[last])
		}
	}
	return some
}

// claim asks for one task by its id, or for any. Only a claim by id says
// something about a task when it gets nothing.
func (p *leasePlayer) claim(limit int, ids ...task.ID) {
	ttl, long := p.ttl(3)
	// Very many slots: a task whose leases were lost is no suspect here.
	req := store.ClaimRequest{
		Worker: p.id, Name: "simtest", LeaseID: task.NewLeaseID(), TTL: ttl, Limit: limit,
		Types: map[string]int{leaseType: 1}, IDs: ids, Slots: 1 << 30,
	}
	p.timed(func() (events []leaseEvent) {
		res, err := p.s.Claim(p.t.Context(), leaseNamespace, req)
		if err != nil {
			p.t.Errorf("Claim: %v", err)
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

func (p *leasePlayer) finish() {
	leases := p.leases(1 + p.rng.IntN(2))
	var fins []store.Finish
	for _, l := range leases {
		f := store.Finish{Lease: l, Outcome: task.OutcomeReleased, CodeVersion: 1}
		switch n := p.rng.IntN(10); {
		case n < p.successes:
			f.Outcome, f.Output = task.OutcomeSuccess, json.RawMessage(`"done"`)
		case n < 7:
			f.Outcome, f.Error = task.OutcomeFailure, &task.Error{Kind: task.KindHandler, Message: "no luck"}
			f.Decision = &task.Decision{Kind: task.DecideRetry, Reason: task.Reason{Policy: "simtest", Version: 1, Text: "again"}}
		}
		fins = append(fins, f)
	}
	if len(fins) == 0 {
		return
	}
	p.timed(func() (events []leaseEvent) {
		res, err := p.s.Finish(p.t.Context(), leaseNamespace, fins...)
		if err != nil {
			p.t.Errorf("Finish: %v", err)
			return nil
		}
		for i, f := range fins {
			call := leaseCall{verb: leaseFinish, task: f.Lease.Task, lease: f.Lease, outcome: f.Outcome}
			events = append(events, leaseEvent{call, leaseReply{err: p.refusal(res[i].Err), state: res[i].State}})
		}
		return events
	})
}

func (p *leasePlayer) beat() {
	ttl, long := p.ttl(5)
	req := store.HeartbeatRequest{Worker: p.id, TTL: ttl, Leases: p.leases(1 + p.rng.IntN(3))}
	p.timed(func() (events []leaseEvent) {
		beats, err := p.s.Heartbeat(p.t.Context(), leaseNamespace, req)
		if err != nil {
			p.t.Errorf("Heartbeat: %v", err)
			return nil
		}
		for i, b := range beats {
			if b.Retry {
				continue // it says nothing
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

// reap is an operation on every task: what is over must be taken, and what is
// not taken was not over.
func (p *leasePlayer) reap() {
	p.timed(func() (events []leaseEvent) {
		res, err := p.s.Reap(p.t.Context(), leaseNamespace, store.ReapRequest{Worker: p.reaper, TTL: time.Hour, CrashBudget: -1})
		if err != nil || res.WarmingUp {
			p.t.Errorf("Reap: paused %t, %v", res.WarmingUp, err)
			return nil
		}
		for _, id := range p.ids {
			reply := leaseReply{none: true}
			if i := slices.IndexFunc(res.Reaped, func(r store.Reaped) bool { return r.Task == id }); i >= 0 {
				reply = leaseReply{state: res.Reaped[i].State}
			}
			events = append(events, leaseEvent{leaseCall{verb: leaseReap, task: id}, reply})
		}
		return events
	})
}

func (p *leasePlayer) operate(verb leaseVerb) {
	id := p.ids[p.rng.IntN(leaseTasks)]
	var cmd store.Command = store.CancelTask{Task: id, Force: verb == leaseForce}
	if verb == leaseRetry {
		cmd = store.RetryTask{Task: id}
	}
	p.timed(func() []leaseEvent {
		res, err := p.s.Operate(p.t.Context(), leaseNamespace, cmd)
		if err != nil {
			p.t.Errorf("Operate: %v", err)
			return nil
		}
		return []leaseEvent{{leaseCall{verb: verb, task: id}, leaseReply{err: p.refusal(res[0].Err), state: res[0].State, asked: res[0].Asked}}}
	})
}

func (p *leasePlayer) read() {
	two := p.rng.Perm(leaseTasks)[:2]
	p.timed(func() (events []leaseEvent) {
		tasks, err := p.s.Tasks(p.t.Context(), leaseNamespace, p.ids[two[0]], p.ids[two[1]])
		if err != nil || len(tasks) != len(two) {
			p.t.Errorf("Tasks: %d of %d, %v", len(tasks), len(two), err)
			return nil
		}
		for _, t := range tasks {
			reply := leaseReply{state: t.State, lease: task.Lease{Epoch: t.Epoch, ID: t.LeaseID}}
			events = append(events, leaseEvent{leaseCall{verb: leaseRead, task: t.ID}, reply})
		}
		return events
	})
}

// refusal names the sentinel of an answer.
func (p *leasePlayer) refusal(err error) leaseError {
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
	p.t.Errorf("an answer that no call here can get: %v", err)
	return leaseError(err.Error())
}
