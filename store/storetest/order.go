package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var orderScenes = []scene{
	{"priority first, then oldest due, then oldest id", claimOrder},
	{"a retry goes behind those due before it", retryGoesBehind},
	{"a woken dependent is as old as its release", releasedDependentOrder},
	{"Next is nothing when nothing is left", nextNone},
	{"Next is zero when a limit left something", nextZero},
	{"Next is the time to the earliest row of these lanes", nextFuture},
	{"Next does not count what waits for a key", nextIgnoresWaiters},
}

func claimOrder(e *env) {
	low := e.one(priority(9))
	lateFirst := e.one(priority(1), after(2*time.Second))
	e.pass(time.Second)
	earlier := e.one(after(time.Second / 2))
	middle := e.one()
	first := e.one(priority(1))
	second := e.one(priority(1))
	e.pass(2 * time.Second)
	e.a.gets([]task.ID{first, second, lateFirst, middle, earlier, low})
}

func retryGoesBehind(e *env) {
	ids := e.many(3)
	c := e.a.gets(ids[:1], limit(1))[0]
	e.pass(time.Second)
	e.finish(retry(c, 0))
	e.a.gets([]task.ID{ids[1], ids[2], ids[0]})
}

func releasedDependentOrder(e *env) {
	g := e.job("a", "b: a")
	e.pass(time.Second)
	between := e.one()
	e.pass(time.Second)
	e.succeed(g.id("a"))
	e.a.gets([]task.ID{between, g.id("b")})
}

// next expects what a claim says about the row after it.
func (e *env) next(want time.Duration, asks ...ask) {
	e.Helper()
	got := e.a.claim(asks...).Next
	if want < 0 && got >= 0 || want == 0 && got != 0 {
		e.Errorf("Next = %v, want %v", got, want)
	}
	if want > 0 {
		e.nearly("Next", got, want)
	}
}

func nextNone(e *env) {
	e.next(-1)
	e.one()
	e.next(-1)
}

func nextZero(e *env) {
	e.many(3)
	e.one(after(5 * time.Second))
	e.next(0, limit(1))
	e.next(5*time.Second, limit(2))
}

func nextFuture(e *env) {
	e.one(after(9 * time.Second))
	e.one(after(5*time.Second), priority(9))
	e.one(after(time.Second), queue("other"))
	e.one(after(2*time.Second), typed(beta))
	e.one(after(time.Second/2), queue("paused"))
	e.operate(store.PauseQueue{Audit: admin, Queue: "paused"})
	e.next(5*time.Second, queues(map[string]int{task.DefaultQueue: 9}), types(map[string]int{alpha: 1}))
	e.next(2*time.Second, queues(map[string]int{task.DefaultQueue: 9}))
	e.next(time.Second)
}

func nextIgnoresWaiters(e *env) {
	e.many(3, key("k", 1))
	e.a.claim()
	e.next(-1)
}
