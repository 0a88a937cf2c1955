package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/task"
)

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
	{"Next is negative when nothing is left", func(e *env) {
		e.next(-1)
		e.one()
		e.next(-1)
	}},
	{"Next is zero when a limit left something", func(e *env) {
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

// next expects what a claim says about the row after it.
func (e *env) next(want time.Duration, asks ...ask) {
	e.Helper()
	got := e.a.claim(asks...).Next
	e.check((want >= 0 || got < 0) && (want != 0 || got == 0), "Next = %v, want %v", got, want)
	if want > 0 {
		e.nearly("Next", got, want)
	}
}
