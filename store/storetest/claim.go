package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var claimCases = []testCase{
	{"a claim hands out a lease and all that a handler needs", func(e *env) {
		n := e.draft(labels("a", "b"), input(`{"x":1}`), expires(time.Minute))
		n.Metadata = map[string]string{"trace": "t"}
		e.enqueue(n)
		e.pass(time.Second)
		before := e.task(n.ID)
		lease := task.NewLeaseID()
		now := e.now()
		got := e.a.claim(under(lease), types(map[string]int{alpha: 12}))
		e.near("Now", got.Now, now)
		e.require(len(got.Tasks) == 1, "claimed %d tasks, want 1", len(got.Tasks))
		c := got.Tasks[0]
		e.equal("the lease", c.Lease, task.Lease{Task: n.ID, Epoch: before.Epoch + 1, ID: lease, Generation: e.snap().Generation})
		e.check(c.Lease.Generation != "", "the lease has no generation")
		e.near("LeaseExpiresAt", c.Task.LeaseExpiresAt, now.Add(ttl))
		e.near("StartedAt", c.Task.StartedAt, now)
		e.near("UpdatedAt", c.Task.UpdatedAt, now)
		e.nearly("Left", c.TimeLeft, 59*time.Second)
		e.nearly("Waited", c.Waited, time.Second)
		e.check(c.Steps == nil && !c.Quarantined, "a first attempt has steps %v and is quarantined: %v", c.Steps, c.Quarantined)
		want := before
		want.State, want.ReadyAt, want.AttemptNo, want.Epoch, want.LeaseID = task.Running, time.Time{}, 1, before.Epoch+1, lease
		want.LeasedBy, want.StartedVersion = "A", 12
		want.LeaseExpiresAt, want.StartedAt, want.UpdatedAt = c.Task.LeaseExpiresAt, c.Task.StartedAt, c.Task.UpdatedAt
		c.Task.ReadyAt = time.Time{}
		e.equal("the task handed out", c.Task, want)
		e.equal("the task as read", e.task(n.ID), want)
	}},
	{"a claim hands out the task as it reads", func(e *env) {
		child := e.draft()
		e.record(start(e.a.take(e.one()), "s", child))
		ids := map[string]task.ID{
			"a plain task":                           e.one(),
			"a task with an idempotency key":         e.one(once("once")),
			"a task with a concurrency key":          e.one(key("k", 2)),
			"a task with labels":                     e.one(labels("a", "b")),
			"a task with a deadline":                 e.one(expires(time.Hour)),
			"a task with a big input":                e.one(input(`"` + strings.Repeat("x", 2000) + `"`)),
			"a task that another one's step started": child.ID,
			"a task of a job":                        e.job("a", "b: a").id("a"),
		}
		for what, id := range ids {
			e.equal(what, e.a.take(id).Task, e.task(id))
		}
	}},
	{"R1 every claim raises the epoch and the attempt number", func(e *env) {
		id := e.one()
		epoch := e.task(id).Epoch
		for no := 1; no <= 5; no++ {
			c := e.a.take(id)
			e.check(c.Task.AttemptNo == no && c.Task.AttemptCount == no-1, "claim %d: AttemptNo = %d, AttemptCount = %d", no, c.Task.AttemptNo, c.Task.AttemptCount)
			e.check(c.Lease.Epoch > epoch && c.Task.Epoch == c.Lease.Epoch, "claim %d: epoch %d after %d, the task says %d", no, c.Lease.Epoch, epoch, c.Task.Epoch)
			epoch = c.Lease.Epoch
			e.finish(retry(c, 0))
		}
	}},
	{"the code version of the first attempt is kept", func(e *env) {
		id := e.one()
		for version := 3; version <= 5; version++ {
			c := e.a.claim(types(map[string]int{alpha: version})).Tasks[0]
			e.equal("StartedVersion", c.Task.StartedVersion, 3)
			e.finish(retry(c, 0))
		}
		e.equal("StartedVersion", e.task(id).StartedVersion, 3)
	}},
	{"a claim deletes the dispatch row", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.notDispatched(id)
		e.b.getsNothing()
		e.b.getsNothing(only(id))
		e.finish(success(c))
		e.notDispatched(id)
		e.b.getsNothing()
	}},
	{"a claim obeys its limit", func(e *env) {
		ids := e.many(5)
		e.a.gets(ids[:2], limit(2))
		e.b.gets(ids[2:3], limit(1))
		e.a.gets(ids[3:], limit(1000))
	}},
	{"a lease lasts for the TTL of its claim", func(e *env) {
		id := e.one()
		c := e.a.claim(claimTTL(time.Minute)).Tasks[0]
		e.near("LeaseExpiresAt", c.Task.LeaseExpiresAt, e.now().Add(time.Minute))
		e.pass(2 * ttl)
		e.reapsNothing()
		e.finish(success(c))
		e.is(id, task.Succeeded, task.WaitNone)
	}},
	{"a claim without a lease id is refused", func(e *env) {
		e.one()
		e.unchanged("a claim without a lease id", func() {
			_, err := e.s.Claim(e.Context(), e.ns, e.a.request(under(task.LeaseID{})))
			e.check(err != nil, "a claim without a lease id answered no error")
		})
	}},
	{"R-13 a claim with an unknown outcome is looked up by its lease", func(e *env) {
		ids := e.many(3)
		lease := task.NewLeaseID()
		first := e.a.claim(under(lease)).Tasks
		other, ready := e.one(), e.one()
		c := e.b.take(other)
		again := e.a.gets(ids, lookUp(lease))
		for i := range again {
			e.equal("the lease", again[i].Lease, first[i].Lease)
			e.equal("AttemptNo", again[i].Task.AttemptNo, 1)
		}
		e.b.gets([]task.ID{other}, lookUp(c.Lease.ID))
		e.a.getsNothing(lookUp(task.NewLeaseID()))
		e.is(ready, task.Ready, task.WaitNone)

		e.record(step(first[2], "s", `1`))
		e.finish(success(first[0]))
		e.operate(forceOf(ids[1]))
		again = e.a.gets(ids[2:], lookUp(lease))
		e.equal("the steps looked up", len(again[0].Steps), 1)
		e.expire(first[2])
		e.a.getsNothing(lookUp(lease))
	}},
	{"a task past its deadline is not started", func(e *env) {
		id, other := e.one(expires(2*time.Second)), e.one()
		e.pass(3 * time.Second)
		e.a.gets([]task.ID{other})
		e.a.getsNothing(only(id))
		e.next(-1)
		e.reap()
		e.ended(id, task.Cancelled, task.KindDeadline)
	}},
	{"R-23 a hint starts nothing early", func(e *env) {
		id := e.one()
		e.finish(retry(e.a.take(id), 5*time.Second))
		late := e.one(after(5 * time.Second))
		e.a.getsNothing(only(id, late))
		e.all(task.Pending, task.WaitRetry, id)
		e.all(task.Pending, task.WaitDelay, late)
		e.pass(6 * time.Second)
		e.a.gets([]task.ID{id, late}, only(late, id))
	}},
	{"a hint claims nothing that is not claimable", func(e *env) {
		running, ended, blocked := e.one(), e.one(), e.one()
		c := e.a.take(running)
		e.succeed(ended)
		e.blockTask(blocked)
		g := e.job("a", "b: a")
		e.b.getsNothing(only(running, ended, blocked, g.id("b"), e.newID()))
		e.is(g.id("a"), task.Ready, task.WaitNone)
		e.finish(success(c))
	}},
	{"hints obey lanes, limits and free slots", func(e *env) {
		ids := e.many(4)
		unknown, other := e.one(typed("acme.test.unknown.v1")), e.one(queue("other"))
		hints := only(append(slices.Clone(ids), unknown, other)...)
		free := func(n int) ask { return queues(map[string]int{task.DefaultQueue: n}) }
		e.a.gets(ids[:2], hints, limit(2), free(5))
		e.a.gets(ids[2:3], hints, free(1))
		e.a.gets(ids[3:], hints, free(5))
		e.a.gets([]task.ID{other}, hints)
	}},
	{"a hint that comes twice starts its task once", func(e *env) {
		x, y := e.one(), e.one()
		e.a.gets([]task.ID{x, y}, only(y, x, x, y))
	}},
	{"thousands of hints are one claim", func(e *env) {
		ids := e.many(500)
		hints := slices.Clone(ids)
		for range 4500 {
			hints = append(hints, e.newID())
		}
		e.equal("the tasks claimed", len(e.a.claim(only(hints...)).Tasks), 500)
	}},
}

var claimLaneCases = []testCase{
	{"R3 a claim takes the highest priority, then the oldest due, then the oldest id, over all lanes", func(e *env) {
		for _, lanes := range [][2]string{{"x", "x"}, {"x", "y"}} {
			x, y := queue(lanes[0]), queue(lanes[1])
			low := e.one(x, priority(9))
			lateFirst := e.one(y, priority(1), after(2*time.Second))
			e.pass(time.Second)
			earlier := e.one(y, after(time.Second/2))
			middle := e.one(x)
			first := e.one(x, priority(1))
			second := e.one(y, priority(1))
			e.pass(2 * time.Second)
			e.a.gets([]task.ID{first, second, lateFirst, middle, earlier, low})
		}
	}},
	{"a retry goes behind those due before it", func(e *env) {
		ids := e.many(3)
		c := e.a.gets(ids[:1], limit(1))[0]
		e.pass(time.Second)
		e.finish(retry(c, 0))
		e.a.gets([]task.ID{ids[1], ids[2], ids[0]})
	}},
	{"a released dependent is as old as its release", func(e *env) {
		g := e.job("a", "b: a")
		e.pass(time.Second)
		between := e.one()
		e.pass(time.Second)
		e.succeed(g.id("a"))
		e.a.gets([]task.ID{between, g.id("b")})
	}},
	{"a task of an unknown type is left alone", func(e *env) {
		id := e.one(typed("acme.test.unknown.v1"))
		known := e.one(typed(beta))
		r := e.a.claim(types(map[string]int{alpha: 1}))
		e.check(len(r.Tasks) == 0 && r.Next < 0, "a claim of one type got %v, next %v", claimedIDs(r.Tasks), r.Next)
		e.a.gets([]task.ID{known})
		e.a.getsNothing(only(id))
		e.a.getsNothing(types(nil))
		e.is(id, task.Ready, task.WaitNone)
		e.dueAt(id, e.now())
	}},
	{"a queue that is not served is left alone", func(e *env) {
		e.one(queue("other"))
		id := e.one(queue("billing"))
		e.a.getsNothing(queues(map[string]int{}))
		e.a.gets([]task.ID{id}, queues(map[string]int{"billing": 5, "empty": 5}))
		e.next(-1, queues(map[string]int{"billing": 5}))
	}},
	{"the free slots of each queue are obeyed", func(e *env) {
		x, y, z := e.many(3, queue("x")), e.many(3, queue("y")), e.many(3, queue("z"))
		free := map[string]int{"x": 1, "y": 2, "z": 0}
		got := claimedIDs(e.a.claim(queues(free)).Tasks)
		slices.SortFunc(got, task.ID.Compare)
		e.equal("the tasks claimed", got, []task.ID{x[0], y[0], y[1]})
		e.all(task.Ready, task.WaitNone, z...)
		free = map[string]int{"x": 10, "y": 10, "z": 10}
		e.equal("the number claimed under a limit", len(e.a.claim(queues(free), limit(4)).Tasks), 4)
	}},
	{"a worker may serve hundreds of types and queues", func(e *env) {
		known, free := map[string]int{}, map[string]int{}
		var want []task.ID
		for i := range 300 {
			name, q := fmt.Sprintf("acme.test.type%d.v1", i), fmt.Sprintf("queue-%d", i)
			known[name], free[q] = i+1, 1
			if i%10 == 0 {
				want = append(want, e.one(typed(name), queue(q)))
				e.one(typed(name), queue("unserved"))
				e.one(typed("acme.test.unknown.v1"), queue(q))
			}
		}
		got := e.a.gets(want, types(known), queues(free))
		e.equal("the version of the last", got[len(got)-1].Task.StartedVersion, 291)
	}},
	{"Next is negative when nothing is left, and zero when a limit left something", func(e *env) {
		e.next(-1)
		e.many(3)
		e.one(after(5 * time.Second))
		e.next(0, limit(1))
		e.next(5*time.Second, limit(2))
	}},
	{"Next is the time to the earliest row of these lanes", func(e *env) {
		e.one(after(9 * time.Second))
		e.one(after(5*time.Second), priority(9))
		e.one(after(time.Second), queue("other"))
		e.one(after(2*time.Second), typed(beta))
		e.one(after(time.Second/2), queue("paused"))
		e.operate(pauseOf("paused"))
		e.next(5*time.Second, queues(map[string]int{task.DefaultQueue: 9}), types(map[string]int{alpha: 1}))
		e.next(2*time.Second, queues(map[string]int{task.DefaultQueue: 9}))
		e.next(time.Second)
	}},
	{"Next does not count what waits for a key", func(e *env) {
		e.many(3, key("k", 1))
		e.a.claim()
		e.next(-1)
		ids := e.many(2, key("j", 1))
		got := e.a.claim(limit(1))
		e.equal("the tasks claimed", claimedIDs(got.Tasks), ids[:1])
		e.check(got.Next < 0, "Next = %v, and the other task waits for its key", got.Next)
	}},
}

// claimAgain rebuilds the Claimed of a running attempt, for a case that did not keep it.
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

// next checks the time until the next due row in the answer of a claim.
func (e *env) next(want time.Duration, asks ...ask) {
	e.Helper()
	got := e.a.claim(asks...).Next
	e.check((want >= 0 || got < 0) && (want != 0 || got == 0), "Next = %v, want %v", got, want)
	if want > 0 {
		e.nearly("Next", got, want)
	}
}
