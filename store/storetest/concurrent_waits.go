package storetest

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// concurrentWaitCases test suspensions, signals and ends of children at the same instant, on two handles.
var concurrentWaitCases = []testCase{
	{"W3 R-18 a signal and the suspension for it at the same instant leave the task claimable", func(e *env) {
		both := e.stores()
		for round := range e.batches(20) {
			ids := e.many(10)
			cs := e.a.takeAll(ids...)
			var cmds []store.Command
			for _, c := range cs {
				e.record(wait(c, "w", "s", 0))
				cmds = append(cmds, signalOf(c.Task.ID, "s", fmt.Sprint(round), `1`))
			}
			var got []store.FinishResult
			e.together(
				func() {
					got = e.finishEach(both[0], finishes(cs, func(c store.Claimed) store.Finish { return suspended(c, task.WaitSignal, time.Time{}) }))
				},
				func() {
					for _, cmd := range cmds {
						res, err := both[1].Operate(e.Context(), e.ns, cmd)
						e.check(err == nil && res[0].Err == nil, "Operate: %v, %v", res, err)
					}
				},
			)
			for i, id := range ids {
				e.check(got[i].Err == nil, "Finish: %v", got[i].Err)
				e.due(id)
			}
			for _, c := range e.a.takeAll(ids...) {
				e.equal("the value", string(c.Steps[0].Value), `1`)
				e.finish(success(c))
			}
		}
	}},
	{"the same signal from two senders at once is one, and each wait takes one of several", func(e *env) {
		both := e.stores()
		for range e.batches(20) {
			id := e.one()
			c := e.a.take(id)
			send := func(s store.Store) (existing int) {
				for k := range 6 {
					res, err := s.Operate(e.Context(), e.ns, signalOf(id, "s", fmt.Sprint(k), fmt.Sprint(k)))
					e.check(err == nil && res[0].Err == nil, "Operate: %v, %v", res, err)
					if err == nil && res[0].Existing {
						existing++
					}
				}
				return existing
			}
			var existing [2]int
			e.together(
				func() { existing[0] = send(both[0]) },
				func() { existing[1] = send(both[1]) },
				func() {
					for i := range 4 {
						got, err := both[1].Record(e.Context(), e.ns, wait(c, fmt.Sprint("w", i), "s", 0))
						e.check(err == nil && got[0].Err == nil, "Record: %v, %v", got, err)
					}
				},
			)
			e.equal("signals that were sent before", existing[0]+existing[1], 6)
			taken := map[string]bool{}
			for _, s := range e.history(id).Signals {
				if s.Step != "" {
					taken[s.Step] = true
				}
			}
			e.equal("waits that took one", len(taken), 4)
			e.equal("StepCount", e.task(id).StepCount, 4)
			e.finish(success(c))
		}
	}},
	{"R-15 R-16 the last two children and the suspension at the same instant make the caller claimable once", func(e *env) {
		e.callsAtOnce(nil, func(c store.Claimed, suspend store.FinishResult) {
			e.check(suspend.Err == nil, "Finish: %v", suspend.Err)
			e.equal("the dispatch rows", len(e.dispatch(c.Task.ID)), 1)
			e.over(c.Task.ID, "build", 2)
			again := e.a.take(c.Task.ID)
			e.equal("wake_seq", again.Task.WakeSeq, 1)
			e.finish(success(again))
		})
	}},
	{"R-19 a caller that is cancelled while its last children end has ended once, and so have they", func(e *env) {
		e.callsAtOnce(func(c store.Claimed) store.Command { return forceOf(c.Task.ID) }, func(c store.Claimed, _ store.FinishResult) {
			e.is(c.Task.ID, task.Cancelled, task.WaitNone)
			e.notDispatched(c.Task.ID)
		})
	}},
}

// callsAtOnce ends the two children of calls, and the attempts that wait for them, at the same instant on two
// handles. A command, if not nil, runs concurrently. It then checks each caller.
func (e *env) callsAtOnce(command func(store.Claimed) store.Command, then func(c store.Claimed, suspend store.FinishResult)) {
	e.Helper()
	both := e.stores()
	for range e.batches(20) {
		var callers []store.Claimed
		var fs [3][]store.Finish
		for range 5 {
			c := e.a.take(e.one())
			callers = append(callers, c)
			for i, kid := range e.calls(c, "build", 2) {
				fs[i] = append(fs[i], []func(store.Claimed) store.Finish{success, dead}[i](e.b.take(kid)))
			}
			fs[2] = append(fs[2], suspended(c, task.WaitChildren, time.Time{}))
		}
		var got [3][]store.FinishResult
		e.together(
			func() { got[0] = e.finishEach(both[0], fs[0]) },
			func() { got[1] = e.finishEach(both[1], fs[1]) },
			func() { got[2] = e.finishEach(both[0], fs[2]) },
			func() {
				for _, c := range callers {
					if command == nil {
						return
					}
					_, err := both[1].Operate(e.Context(), e.ns, command(c))
					e.check(err == nil, "Operate: %v", err)
				}
			},
		)
		for i, c := range callers {
			for _, children := range got[:2] {
				e.check(children[i].Err == nil && children[i].State.Terminal(), "a child ended %s, %v", children[i].State, children[i].Err)
			}
			then(c, got[2][i])
		}
	}
}
