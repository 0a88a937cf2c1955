package storetest

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// keyCapScenes are about how long the cap of a key is known: as long as
// somebody holds or awaits it, and no longer.
var keyCapScenes = []scene{
	{"of a key that is awaited, though nobody holds it", capOfTheAwaited},
	{"of a key that is awaited, though another is not", capBesideAnother},
	{"of a key that nobody awaits, though another is awaited", capOfTheForgotten},
	{"Next counts whom a raised cap let in", nextAfterRaisedCap},
}

// wokenWithCap makes two tasks of a key with a cap of two due, of which none
// runs, while a third one waits. It returns them in this order.
func (e *env) wokenWithCap(name string) []task.ID {
	e.Helper()
	ids := e.many(5, key(name, 2))
	cs := e.a.takeAll(ids[:2]...)
	e.b.getsNothing(only(ids...))
	e.finishAll(success(cs[0]), success(cs[1]))
	e.is(ids[2], task.Ready, task.WaitNone)
	e.is(ids[3], task.Ready, task.WaitNone)
	e.is(ids[4], task.Pending, task.WaitConcurrency)
	return ids[2:]
}

// capKept expects that the cap was not forgotten: who waits takes the place of
// one that goes away, beside the one that is still due.
func (e *env) capKept(ids []task.ID) {
	e.Helper()
	e.operate(cancelOf(ids[0]))
	e.is(ids[2], task.Ready, task.WaitNone)
	e.b.takeAll(ids[1:]...)
}

func capOfTheAwaited(e *env) { e.capKept(e.wokenWithCap("k")) }

func capBesideAnother(e *env) {
	ids := e.wokenWithCap("x")
	e.succeed(e.one(key("y", 1)))
	e.capKept(ids)
}

func capOfTheForgotten(e *env) {
	e.wokenWithCap("x")
	e.succeed(e.one(key("y", 1)))
	var keys []string
	for _, k := range e.snap().Keys {
		keys = append(keys, k.Key)
	}
	e.equal("keys with a row", keys, []string{"x"})
}

func nextAfterRaisedCap(e *env) {
	c := e.a.take(e.one(key("k", 1)))
	waiter := e.one(key("k", 1))
	e.b.getsNothing()
	raises := e.one(key("k", 2))
	e.finish(success(c)) // who raises the cap is due already: nobody is woken
	e.is(waiter, task.Pending, task.WaitConcurrency)
	got := e.a.claim()
	e.equal("the claimed", claimedIDs(got.Tasks), []task.ID{raises})
	e.equal("the time until it is worth to ask again", got.Next, time.Duration(0))
	e.b.gets([]task.ID{waiter})
}
