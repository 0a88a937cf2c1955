package storetest

import (
	"slices"

	"github.com/goweaver/weaver/task"
)

var readOrphanCases = []testCase{
	{"running tasks of a dead process are orphans until they are reaped", func(e *env) {
		dead, alive := e.worker("dead"), e.worker("alive")
		ids := e.many(5)
		dead.takeAll(ids[0], ids[1])
		cs := dead.takeAll(ids[2])
		c := alive.take(ids[3])
		e.finish(success(cs[0]))
		e.equal("the orphans of living processes", e.orphans(ids...), none)
		if !dead.die() {
			return // this kind of store does not detect dead processes
		}
		before := e.snap()
		e.equal("the orphans", e.orphans(ids[4], ids[3], ids[2], ids[1], ids[0], e.newID()), []task.ID{ids[1], ids[0]})
		e.equal("those of none that is named", e.orphans(ids[3], ids[4]), none)
		e.equal("those in another namespace", e.in(otherNamespace).orphans(ids...), none)
		e.check(slices.EqualFunc(before.Tasks, e.snap().Tasks, func(a, b task.Task) bool { return a.State == b.State && a.Epoch == b.Epoch }), "a look at orphans changed tasks")

		// The look changes nothing for a reaper.
		e.equal("the number reaped", len(e.reap().Reaped), 2)
		e.equal("the orphans after a reap", e.orphans(ids...), none)
		again := alive.take(ids[0])
		e.equal("the orphans that another worker took", e.orphans(ids...), none)
		e.finish(success(again))
		e.finish(success(c))
	}},
	{"a process that joined again has no orphans", func(e *env) {
		w := e.worker("again")
		c := w.take(e.one())
		w.die()
		w.join(ttl)
		e.equal("the orphans", e.orphans(c.Task.ID), none)
		e.finish(success(c))
	}},
}

func (e *env) orphans(ids ...task.ID) []task.ID {
	e.Helper()
	orphans, err := e.s.Orphans(e.Context(), e.ns, ids...)
	e.require(err == nil, "Orphans: %v", err)
	return append(none, orphans...)
}

var none = []task.ID{}
