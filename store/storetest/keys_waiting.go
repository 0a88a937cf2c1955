package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// keyWaitingCases test tasks that stop waiting for their key before it has room.
var keyWaitingCases = []testCase{
	{"a task whose wait ends while its key is full has one row", func(e *env) {
		for name, begin := range map[string]func(c store.Claimed) (end func()){
			"a signal": func(c store.Claimed) func() {
				s := e.record(wait(c, "w", "s", time.Second)).Step
				e.finish(suspended(c, task.WaitSignal, s.WakeAt))
				return func() { e.operate(signalOf(c.Task.ID, "s", "k", `1`)) }
			},
			"a call": func(c store.Claimed) func() {
				kids := e.calls(c, "build", 1)
				nap := e.record(sleep(c, "nap", time.Second)).Step
				e.finish(suspended(c, task.WaitSleep, nap.WakeAt))
				return func() { e.succeed(kids...) }
			},
		} {
			k := key(name, 1)
			id := e.one(k)
			end := begin(e.a.take(id))
			e.pass(time.Second)
			holder := e.a.take(e.one(k))
			e.pass(time.Second)
			e.b.getsNothing(only(id))
			e.check(e.waits(id), "%s: it does not wait for its key", name)
			end()
			e.due(id)
			e.check(!e.waits(id), "%s: it is due and waits for its key", name)
			e.b.getsNothing(only(id))
			e.check(e.waits(id), "%s: it does not wait for its key again", name)
			e.finish(success(holder))
			e.succeed(id)
		}
	}},
}
