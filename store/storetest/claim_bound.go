package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// looks returns the maximum number of due rows that a claim with this limit reads.
func looks(limit int) int { return 4*limit + 256 }

var claimBoundCases = []testCase{
	{"one claim moves no more rows over a cap than it may look at, and the next ones go on", func(e *env) {
		holder := e.a.take(e.one(key("k", 1)))
		rows := 3*looks(1) + 10
		e.many(rows, key("k", 1))
		e.pass(time.Second)
		behind := e.one()
		for n := 1; n <= 3; n++ {
			got := e.b.claim(limit(1))
			e.equal("the tasks claimed", len(got.Tasks), 0)
			e.equal("the waiters", len(e.snap().Waiters), n*looks(1))
			e.check(got.Stopped && got.Next == 0 && got.Behind == store.ClaimPlace{}, "the claim answered stopped %v, Next %v, behind %v; want it to ask for another one", got.Stopped, got.Next, got.Behind)
		}
		got := e.b.claim(limit(1))
		e.equal("the tasks claimed", claimedIDs(got.Tasks), []task.ID{behind})
		e.check(!got.Stopped, "a claim that got all it asked for stopped")
		e.equal("the waiters", len(e.snap().Waiters), rows)
		e.finish(success(holder))
	}},
	{"rows that may not run hide nothing behind them", func(e *env) {
		for _, hides := range []struct {
			what string
			do   func(n int)
		}{
			{"past their deadline", func(n int) { e.many(n, expires(time.Second)) }},
			{"quarantined", func(n int) {
				e.reap() // tasks past their deadline
				ids := e.many(n)
				for range 2 {
					doomed := e.worker("doomed")
					e.equal("the tasks lost", len(doomed.claim(only(ids...)).Tasks), n)
					e.reapExpired()
				}
			}},
		} {
			hides.do(2*looks(1) + 10)
			e.pass(2 * time.Second)
			behind := e.one()
			var got store.ClaimResult
			for n := range 3 {
				got = e.b.claim(limit(1), slots(8, 1), behindOf(got))
				e.check(got.Stopped == (n < 2) && (got.Behind != store.ClaimPlace{}) == got.Stopped, "%s: claim %d answered stopped %v, behind %v", hides.what, n, got.Stopped, got.Behind)
				e.check(!got.Stopped || got.Next == 0, "%s: Next of claim %d, which stopped, is %v", hides.what, n, got.Next)
			}
			e.require(len(got.Tasks) == 1 && got.Tasks[0].Task.ID == behind, "%s: the last claim got %v, want %v", hides.what, claimedIDs(got.Tasks), behind)
			e.finish(success(got.Tasks[0]))
		}
	}},
	{"a claim goes on behind a place in the order of all lanes", func(e *env) {
		urgent, x := e.one(priority(1)), e.one(queue("x"))
		e.pass(time.Second)
		y, low := e.one(queue("y"), typed(beta)), e.one(priority(9))
		place := store.ClaimPlace{Priority: task.DefaultPriority, Due: e.dispatch(x)[0].AvailableAt, Task: x}
		e.a.gets([]task.ID{y, low}, func(r *store.ClaimRequest) { r.Behind = place })
		e.a.gets([]task.ID{urgent, x})
	}},
	{"a claim that looks at as many rows as it may, and no more are due, has not stopped", func(e *env) {
		e.a.take(e.one(key("k", 1)))
		e.many(looks(2), key("k", 1))
		got := e.b.claim(limit(2))
		e.check(!got.Stopped && got.Next < 0, "the claim answered stopped %v, Next %v; nothing is left", got.Stopped, got.Next)
		e.equal("the waiters", len(e.snap().Waiters), looks(2))
	}},
	{"hints are looked at up to the same bound", func(e *env) {
		e.a.take(e.one(key("k", 1)))
		ids := e.many(looks(1)+1, key("k", 1))
		got := e.b.claim(only(ids...), limit(1))
		e.check(got.Stopped && got.Next == 0, "the claim answered stopped %v, Next %v", got.Stopped, got.Next)
		e.equal("the waiters", len(e.snap().Waiters), looks(1))
	}},
	{"rows of a queue without a free slot do not count", func(e *env) {
		e.many(looks(1)+10, queue("x"), priority(1))
		id := e.one(queue("y"))
		e.a.gets([]task.ID{id}, limit(1), queues(map[string]int{"x": 0, "y": 1}))
		first := e.a.claim(limit(2), queues(map[string]int{"x": 1, "y": 1}))
		e.check(len(first.Tasks) == 1 && !first.Stopped, "the claim got %d tasks and stopped %v", len(first.Tasks), first.Stopped)
	}},
}

// behindOf makes a claim continue after the last row of the previous claim.
func behindOf(got store.ClaimResult) ask {
	return func(r *store.ClaimRequest) { r.Behind = got.Behind }
}
