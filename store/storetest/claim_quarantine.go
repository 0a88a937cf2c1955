package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var claimQuarantineCases = []testCase{
	{"a task that crashed twice is quarantined", func(e *env) {
		id := e.one()
		for crashes := range 3 {
			c := e.worker("doomed").take(id)
			e.check(c.Task.CrashCount == crashes && c.Quarantined == (crashes >= 2), "after %d crashes CrashCount = %d, Quarantined = %v", crashes, c.Task.CrashCount, c.Quarantined)
			if crashes < 2 {
				e.expire(c)
			}
		}
	}},
	{"R7 a task that must run alone is claimed only by a worker that runs nothing", func(e *env) {
		// A process killed for another reason must not count against the task.
		id := e.quarantined(1)[0]
		for what, r := range map[string]store.ClaimResult{
			"a claim":         e.a.claim(slots(7, 0), running(1)),
			"a claim by hint": e.a.claim(slots(7, 0), running(1), only(id)),
		} {
			e.check(len(r.Tasks) == 0 && r.AloneDue && r.Next == -1 && !r.Stopped, "%s beside another task got %+v", what, r)
		}
		fresh := e.many(2)
		r := e.a.claim(slots(7, 0), running(1), limit(1))
		e.equal("the tasks claimed beside another", claimedIDs(r.Tasks), fresh[:1])
		e.check(r.AloneDue, "the claim does not say that it passed over a task that runs alone")
		e.finish(released(r.Tasks[0]))

		r = e.a.claim(slots(7, 0))
		e.equal("the tasks claimed by a worker that runs nothing", claimedIDs(r.Tasks), []task.ID{id})
		e.check(r.Next == -1 && !r.AloneDue && !r.Stopped && r.Tasks[0].Alone, "the claim of a task that runs alone answered %+v", r)
		e.a.getsNothing(slots(7, 1), alone)
		e.a.getsNothing(slots(7, 1), alone, only(fresh...))
		e.equal("the reaped", e.expire(r.Tasks[0]), store.Reaped{Task: id, State: task.Failed, Crash: true})
	}},
	{"R7 a task that must run alone waits for what comes before it", func(e *env) {
		id, first := e.quarantined(1)[0], e.one(priority(1))
		r := e.a.claim(slots(7, 0))
		e.equal("the tasks claimed", claimedIDs(r.Tasks), []task.ID{first})
		e.check(r.AloneDue && r.Next == -1, "the claim does not say that it passed over a task that runs alone: %+v", r)
		e.finish(success(r.Tasks[0]))
		e.a.gets([]task.ID{id}, slots(7, 0))
	}},
	{"R7 no loss beside another task counts against a quarantined one", func(e *env) {
		id := e.quarantined(1)[0]
		for losses, limit := range []int{4, 2, 1} {
			r := e.worker("doomed").claim(slots(32, 0), running(31))
			e.require(len(r.Tasks) == 1 && r.Tasks[0].QuarantineLimit == limit && !r.Tasks[0].Alone, "with 32 slots the claim got %+v", r)
			e.equal("the reaped", e.expire(r.Tasks[0]), store.Reaped{Task: id, State: task.Ready})
			t := e.task(id)
			e.check(t.CrashCount == 2 && t.QuarantineLosses == losses+1, "CrashCount = %d, QuarantineLosses = %d, want 2 and %d", t.CrashCount, t.QuarantineLosses, losses+1)
		}
		e.a.getsNothing(slots(32, 0), running(1))
		c := e.worker("doomed").gets([]task.ID{id}, slots(32, 0))[0]
		e.equal("the reaped", e.expire(c), store.Reaped{Task: id, State: task.Failed, Crash: true})
	}},
	{"a small worker runs one quarantined task at a time", func(e *env) {
		ids := e.quarantined(3)
		for _, n := range []int{0, 1, 8, 15} {
			got := e.a.claim(slots(n, 0)).Tasks
			e.require(len(got) == 1 && got[0].Quarantined, "a worker with %d slots claimed %d quarantined tasks, want 1", n, len(got))
			e.a.getsNothing(slots(n, 1))
			e.finish(released(got[0]))
		}
		e.all(task.Ready, task.WaitNone, ids...)
	}},
	{"a large worker runs quarantined tasks in an eighth of its slots", func(e *env) {
		e.quarantined(6)
		first := e.a.claim(slots(32, 1)).Tasks
		e.equal("the quarantined tasks claimed beside one, with 32 slots", len(first), 3)
		e.a.getsNothing(slots(32, 4))
		e.equal("the quarantined tasks claimed by another worker", len(e.b.claim(slots(16, 0)).Tasks), 2)
	}},
	{"a quarantined task that may not run holds up no other", func(e *env) {
		ids := e.quarantined(2)
		fresh := e.many(2)
		r := e.a.claim(slots(8, 1), limit(2))
		e.equal("the tasks claimed", claimedIDs(r.Tasks), fresh)
		e.all(task.Ready, task.WaitNone, ids...)
		e.next(-1, slots(8, 1))
		e.one(after(5 * time.Second))
		e.next(5*time.Second, slots(8, 1))
	}},
	{"a hint obeys the quarantine limit", func(e *env) {
		ids := e.quarantined(2)
		e.a.getsNothing(slots(8, 1), only(ids...))
		e.equal("the quarantined tasks claimed by hint", len(e.a.claim(slots(8, 0), only(ids...)).Tasks), 1)
	}},
	{"a loss among others halves the quarantine limit and is no crash", func(e *env) {
		id := e.quarantined(1)[0]
		for losses, allowed := range []int{4, 2, 1} {
			r := e.worker("doomed").claim(slots(32, allowed-1))
			e.require(len(r.Tasks) == 1, "after %d losses the task was not claimed beside %d others", losses, allowed-1)
			got := e.reapExpired().Reaped
			e.equal("the reaped", got, []store.Reaped{{Task: id, State: task.Ready}})
			t := e.task(id)
			e.require(t.CrashCount == 2 && t.QuarantineLosses == losses+1, "after a loss among others CrashCount = %d and QuarantineLosses = %d, want 2 and %d", t.CrashCount, t.QuarantineLosses, losses+1)
			e.a.getsNothing(slots(32, max(1, allowed/2)))
		}
		c := e.worker("doomed").claim(slots(32, 0)).Tasks[0]
		e.equal("the reaped", e.expire(c), store.Reaped{Task: id, State: task.Failed, Crash: true})
		t := e.ended(id, task.Failed, task.KindPoison)
		e.check(strings.Contains(t.Error.Message, "3"), "the message %q does not say that 3 leases were lost in a row", t.Error.Message)
	}},
	{"R7 the smallest limit of the quarantined tasks holds for all", func(e *env) {
		other, worn := e.quarantined(1)[0], e.quarantined(1)[0]
		e.loseAmongOthers(worn, 3)
		e.loseAmongOthers(worn, 1)
		c := e.a.claim(slots(32, 0), only(worn)).Tasks[0]
		e.check(c.QuarantineLimit == 1 && !c.Alone, "after two losses with 32 slots the limit is %d, alone %v", c.QuarantineLimit, c.Alone)
		e.a.getsNothing(slots(32, 1), quarantineLimit(1))
		e.next(-1, slots(32, 1), quarantineLimit(1))
		e.finish(released(c))

		c = e.a.gets([]task.ID{other}, slots(32, 0))[0]
		e.finish(released(c))
		c = e.b.gets([]task.ID{other}, slots(32, 2), quarantineLimit(4), only(other))[0]
		e.equal("the limit of the other", c.QuarantineLimit, 4)
	}},
	{"R7 a task that must run alone is the only one of its call", func(e *env) {
		e.quarantined(1)
		e.many(1)
		e.a.gets([]task.ID{e.worn(priority(1))}, slots(32, 0))
	}},
	{"success, a completed step and an operator's retry clear crashes and losses", func(e *env) {
		for what, clear := range map[string]func(id task.ID){
			"success":             func(id task.ID) { e.succeed(id) },
			"a completed step":    func(id task.ID) { e.record(step(e.a.take(id), "s", `1`)) },
			"an operator's retry": func(id task.ID) { e.operate(cancelOf(id)); e.operate(retryOf(id)) },
			"an operator's retry of a poison task": func(id task.ID) {
				e.crash(id, 1)
				e.ended(id, task.Failed, task.KindPoison)
				e.operate(retryOf(id))
				c := e.a.take(id)
				e.check(!c.Quarantined, "a retried task is quarantined")
				e.finish(released(c))
			},
		} {
			id := e.quarantined(1)[0]
			e.loseAmongOthers(id, 1)
			counts := func() [2]int { t := e.task(id); return [2]int{t.CrashCount, t.QuarantineLosses} }
			e.equal("the crashes and losses before "+what, counts(), [2]int{2, 1})
			clear(id)
			e.equal("the crashes and losses after "+what, counts(), [2]int{})
		}
	}},
	{"a poison task does not fail its neighbours", func(e *env) {
		const neighbours = 20
		poison := e.one(priority(1))
		others := e.many(neighbours)
		// A process of 16 slots dies whenever it runs the poison task. Each claim takes the maximum number of
		// quarantined tasks.
		for range 40 {
			if e.task(poison).State.Terminal() {
				break
			}
			w := e.worker("doomed")
			got := w.claim(slots(16, 0), limit(16)).Tasks
			if slices.Contains(claimedIDs(got), poison) {
				e.reapExpired()
				continue
			}
			e.finishOK(finishes(got, success)...)
		}
		e.ended(poison, task.Failed, task.KindPoison)
		for _, t := range e.tasks(others...) {
			e.check(t.State != task.Failed, "neighbour %v failed: %v", t.ID, t.Error)
		}
	}},
}

// quarantined makes tasks that have crashed twice.
func (e *env) quarantined(n int, opts ...opt) []task.ID {
	e.Helper()
	ids := e.many(n, opts...)
	for range 2 {
		e.worker("doomed").takeAll(ids...)
		e.reapExpired()
	}
	for _, t := range e.tasks(ids...) {
		e.require(t.State == task.Ready && t.CrashCount == 2, "task %v is %s with %d crashes, want ready with 2", t.ID, t.State, t.CrashCount)
	}
	return ids
}

// loseAmongOthers makes a process die that runs a quarantined task together with other tasks.
func (e *env) loseAmongOthers(id task.ID, others int) {
	e.Helper()
	got := e.worker("doomed").claim(only(id), slots(32, others)).Tasks
	e.require(len(got) == 1, "a quarantined task was not claimed beside %d others", others)
	e.expire(got[0])
}

// worn returns a quarantined task that must run alone in a worker of 32 slots.
func (e *env) worn(opts ...opt) task.ID {
	e.Helper()
	id := e.quarantined(1, opts...)[0]
	e.loseAmongOthers(id, 3)
	e.loseAmongOthers(id, 1)
	e.loseAmongOthers(id, 0)
	return id
}
