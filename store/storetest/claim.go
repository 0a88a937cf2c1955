package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var claimScenes = []scene{
	{"a claim hands out a lease and everything a handler needs", claimContent},
	{"R1 every claim raises the epoch and the attempt number", claimNumbers},
	{"the code version of the first attempt is kept", firstVersionKept},
	{"a claim deletes the dispatch row", claimDeletesDispatch},
	{"unknown types are left alone", unknownTypes},
	{"queues that are not served are left alone", unservedQueues},
	{"free slots per queue are obeyed", queueLimits},
	{"paused queues are left alone", pausedQueues},
	{"a limit is obeyed", claimLimit},
	{"R-13 a claim with an unknown end is looked up by its lease", lookUpClaim},
	{"a lookup claims nothing new", lookUpClaimsNothing},
	{"R-23 a hint starts nothing early", hintNeverEarly},
	{"hints claim nothing that is not claimable", hintsOfOthers},
	{"hints obey lanes and limits", hintsObeyLanes},
	{"a task past its deadline is not started", pastDeadline},
	{"a lease may be longer than the suite's", ownTTL},
	{"a caller that gave up can look its claim up", gaveUpClaim},
}

// claimAgain returns what the running attempt of a task would have been
// handed, for a scene that did not keep it.
func (w *worker) claimAgain(id task.ID) store.Claimed {
	w.e.Helper()
	t := w.e.task(id)
	for _, c := range w.claim(lookUp(t.LeaseID)).Tasks {
		if c.Task.ID == id {
			return c
		}
	}
	w.e.Fatalf("the lease of %v cannot be looked up", id)
	return store.Claimed{}
}

func claimContent(e *env) {
	n := e.draft(labels("a", "b"), input(`{"x":1}`), expires(time.Minute))
	n.Metadata = map[string]string{"trace": "t"}
	e.enqueue(n)
	e.pass(time.Second)
	before := e.task(n.ID)
	lease := task.NewLeaseID()
	now := e.now()
	got := e.a.claim(under(lease), types(map[string]int{alpha: 12}))
	e.near("Now", got.Now, now)
	if len(got.Tasks) != 1 {
		e.Fatalf("claimed %d tasks, want 1", len(got.Tasks))
	}
	c := got.Tasks[0]
	e.equal("the lease", c.Lease, task.Lease{Task: n.ID, Epoch: before.Epoch + 1, ID: lease, Generation: e.snap().Generation})
	if c.Lease.Generation == "" {
		e.Errorf("the lease has no generation")
	}
	e.near("LeaseExpiresAt", c.Task.LeaseExpiresAt, now.Add(ttl))
	e.near("StartedAt", c.Task.StartedAt, now)
	e.near("UpdatedAt", c.Task.UpdatedAt, now)
	e.nearly("Left", c.TimeLeft, 59*time.Second)
	if c.Steps != nil || c.Quarantined {
		e.Errorf("a first attempt has steps %v and is a suspect: %v", c.Steps, c.Quarantined)
	}
	want := before
	want.State, want.ReadyAt, want.AttemptNo, want.Epoch, want.LeaseID = task.Running, time.Time{}, 1, before.Epoch+1, lease
	want.LeasedBy, want.StartedVersion = "A", 12
	want.LeaseExpiresAt, want.StartedAt, want.UpdatedAt = c.Task.LeaseExpiresAt, c.Task.StartedAt, c.Task.UpdatedAt
	c.Task.ReadyAt = time.Time{}
	e.equal("the task handed out", c.Task, want)
	e.equal("the task as read", e.task(n.ID), want)
}

func claimNumbers(e *env) {
	id := e.one()
	epoch := e.task(id).Epoch
	for no := 1; no <= 5; no++ {
		c := e.a.take(id)
		if c.Task.AttemptNo != no || c.Task.AttemptCount != no-1 {
			e.Errorf("claim %d: AttemptNo = %d, AttemptCount = %d", no, c.Task.AttemptNo, c.Task.AttemptCount)
		}
		if c.Lease.Epoch <= epoch || c.Task.Epoch != c.Lease.Epoch {
			e.Errorf("claim %d: epoch %d after %d, the task says %d", no, c.Lease.Epoch, epoch, c.Task.Epoch)
		}
		epoch = c.Lease.Epoch
		e.finish(retry(c, 0))
	}
}

func firstVersionKept(e *env) {
	id := e.one()
	for version := 3; version <= 5; version++ {
		c := e.a.claim(types(map[string]int{alpha: version})).Tasks[0]
		e.equal("StartedVersion", c.Task.StartedVersion, 3)
		e.finish(retry(c, 0))
	}
	e.equal("StartedVersion", e.task(id).StartedVersion, 3)
}

func claimDeletesDispatch(e *env) {
	id := e.one()
	c := e.a.take(id)
	e.notDispatched(id)
	e.b.getsNothing()
	e.b.getsNothing(only(id))
	e.finish(success(c))
	e.notDispatched(id)
	e.b.getsNothing()
}

func unknownTypes(e *env) {
	id := e.one(typed("acme.test.unknown.v1"))
	known := e.one(typed(beta))
	r := e.a.claim(types(map[string]int{alpha: 1}))
	if len(r.Tasks) != 0 || r.Next >= 0 {
		e.Errorf("a claim of one type got %v, next %v", claimedIDs(r.Tasks), r.Next)
	}
	e.a.gets([]task.ID{known})
	e.a.getsNothing(only(id))
	e.a.getsNothing(types(nil))
	e.is(id, task.Ready, task.WaitNone)
	e.dueAt(id, e.now())
}

func unservedQueues(e *env) {
	e.one(queue("other"))
	id := e.one(queue("billing"))
	e.a.getsNothing(queues(map[string]int{}))
	e.a.gets([]task.ID{id}, queues(map[string]int{"billing": 5, "empty": 5}))
	if r := e.a.claim(queues(map[string]int{"billing": 5})); r.Next >= 0 {
		e.Errorf("nothing is left in the queues asked for and Next = %v", r.Next)
	}
}

func queueLimits(e *env) {
	x, y, z := e.many(3, queue("x")), e.many(3, queue("y")), e.many(3, queue("z"))
	free := map[string]int{"x": 1, "y": 2, "z": 0}
	got := claimedIDs(e.a.claim(queues(free)).Tasks)
	slices.SortFunc(got, task.ID.Compare)
	e.equal("the tasks claimed", got, []task.ID{x[0], y[0], y[1]})
	e.all(task.Ready, task.WaitNone, z...)
	free = map[string]int{"x": 10, "y": 10, "z": 10}
	e.equal("the number claimed under a limit", len(e.a.claim(queues(free), limit(4)).Tasks), 4)
}

func pausedQueues(e *env) {
	paused, other := e.one(queue("slow"), priority(1)), e.one(queue("fast"))
	e.operate(store.PauseQueue{Audit: admin, Queue: "slow"})
	later := e.one(queue("slow"))
	e.a.gets([]task.ID{other})
	r := e.a.claim(only(paused, later))
	if len(r.Tasks) != 0 {
		e.Errorf("claimed %v of a paused queue", claimedIDs(r.Tasks))
	}
	if r := e.a.claim(); r.Next >= 0 {
		e.Errorf("only paused rows are left and Next = %v", r.Next)
	}
	e.all(task.Pending, task.WaitPaused, paused, later)
	e.operate(store.ResumeQueue{Audit: admin, Queue: "slow"})
	e.all(task.Ready, task.WaitNone, paused, later)
	e.a.gets([]task.ID{paused, later})
}

func claimLimit(e *env) {
	ids := e.many(5)
	e.a.gets(ids[:2], limit(2))
	e.b.gets(ids[2:3], limit(1))
	e.a.gets(ids[3:], limit(1000))
}

func lookUpClaim(e *env) {
	ids := e.many(3)
	lease := task.NewLeaseID()
	first := e.a.claim(under(lease)).Tasks
	other := e.one()
	again := e.a.claim(lookUp(lease)).Tasks
	byID := func(x, y store.Claimed) int { return x.Task.ID.Compare(y.Task.ID) }
	slices.SortFunc(again, byID)
	slices.SortFunc(first, byID)
	e.equal("the tasks looked up", claimedIDs(again), ids)
	for i := range again {
		e.equal("the lease", again[i].Lease, first[i].Lease)
		e.equal("AttemptNo", again[i].Task.AttemptNo, 1)
	}
	e.is(other, task.Ready, task.WaitNone)

	e.record(step(first[2], "s", `1`))
	e.finish(success(first[0]))
	e.operate(forceOf(ids[1]))
	again = e.a.claim(lookUp(lease)).Tasks
	e.equal("the tasks still held", claimedIDs(again), ids[2:])
	e.equal("the steps looked up", len(again[0].Steps), 1)
	e.expire(first[2])
	e.equal("the tasks held after a reap", len(e.a.claim(lookUp(lease)).Tasks), 0)
}

func lookUpClaimsNothing(e *env) {
	id := e.one()
	if got := e.a.claim(lookUp(task.NewLeaseID())).Tasks; len(got) != 0 {
		e.Errorf("a lookup of an unknown lease got %v", claimedIDs(got))
	}
	e.is(id, task.Ready, task.WaitNone)
}

func hintNeverEarly(e *env) {
	id := e.one()
	e.finish(retry(e.a.take(id), 5*time.Second))
	late := e.one(after(5 * time.Second))
	e.a.getsNothing(only(id, late))
	e.all(task.Pending, task.WaitRetry, id)
	e.all(task.Pending, task.WaitDelay, late)
	e.pass(6 * time.Second)
	e.a.gets([]task.ID{id, late}, only(late, id))
}

func hintsOfOthers(e *env) {
	running, ended, blocked := e.one(), e.one(), e.one()
	c := e.a.take(running)
	e.succeed(ended)
	e.blockTask(blocked)
	g := e.job("a", "b: a")
	e.b.getsNothing(only(running, ended, blocked, g.id("b"), e.newID()))
	e.is(g.id("a"), task.Ready, task.WaitNone)
	e.finish(success(c))
}

func hintsObeyLanes(e *env) {
	ids := e.many(3)
	strange, elsewhere := e.one(typed("acme.test.unknown.v1")), e.one(queue("other"))
	hints := only(append(slices.Clone(ids), strange, elsewhere)...)
	e.a.gets(ids[:2], hints, limit(2), queues(map[string]int{task.DefaultQueue: 5}))
	e.a.gets(ids[2:], hints, queues(map[string]int{task.DefaultQueue: 5}))
	e.a.gets([]task.ID{elsewhere}, hints)
}

func pastDeadline(e *env) {
	id, other := e.one(expires(2*time.Second)), e.one()
	e.pass(3 * time.Second)
	e.a.gets([]task.ID{other})
	e.a.getsNothing(only(id))
	e.reap()
	e.ended(id, task.Cancelled, task.KindDeadline)
}

func ownTTL(e *env) {
	id := e.one()
	c := e.a.claim(claimTTL(time.Minute)).Tasks[0]
	e.near("LeaseExpiresAt", c.Task.LeaseExpiresAt, e.now().Add(time.Minute))
	e.pass(2 * ttl)
	if got := e.reap().Reaped; len(got) != 0 {
		e.Errorf("reaped %v before the lease's end", got)
	}
	e.finish(success(c))
	e.is(id, task.Succeeded, task.WaitNone)
}

func gaveUpClaim(e *env) {
	ids := e.many(5)
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	r := e.a.request()
	got, err := e.s.Claim(ctx, e.ns, r)
	held := e.a.claim(lookUp(r.LeaseID)).Tasks
	if err == nil && len(got.Tasks) != len(held) {
		e.Errorf("a claim handed out %d tasks and holds %d", len(got.Tasks), len(held))
	}
	for _, c := range held {
		e.finish(success(c))
	}
	rest := e.a.claim().Tasks
	e.equal("the tasks claimed in all", len(held)+len(rest), len(ids))
}
