package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var finishBatchCases = []testCase{
	{"a batch ends each task its own way", func(e *env) {
		ids := e.many(len(outcomes))
		cs := e.a.takeAll(ids...)
		var fs []store.Finish
		for i, o := range outcomes {
			fs = append(fs, o.end(cs[i]))
		}
		for i, r := range e.finishAll(fs...) {
			e.equal(outcomes[i].name, r, store.FinishResult{State: outcomes[i].state, Waiting: outcomes[i].waiting})
			e.is(ids[i], outcomes[i].state, outcomes[i].waiting)
		}
		e.equal("the answers to an empty batch", len(e.finishAll()), 0)
	}},
	{"of two needs in one batch the one that should have succeeded counts", func(e *env) {
		for _, nodes := range [][]string{{"a", "b", "c: a !b"}, {"b", "a", "c: a !b"}} {
			bothOrders(func(turn func(...store.Finish) []store.Finish) {
				g := e.job(nodes...)
				cs := e.a.takeAll(g.all("a", "b")...)
				e.finishAll(turn(dead(cs[0]), success(cs[1]))...)
				e.ended(g.id("c"), task.Cancelled, task.KindDependencyFailed)
				g.counts(task.JobFailed, 3, 0, 0, 2, 1)
			})
		}
	}},
	{"of two needs of a kind in one batch the oldest is named", func(e *env) {
		bothOrders(func(turn func(...store.Finish) []store.Finish) {
			g := e.job("a", "b", "c: b a", "d: !b !a")
			cs := e.a.takeAll(g.all("a", "b")...)
			e.finishAll(turn(dead(cs[0]), dead(cs[1]))...)
			t := e.ended(g.id("c"), task.Cancelled, task.KindDependencyFailed)
			e.equal("the text", t.Error.Message, `it needs task "a" (`+g.id("a").String()+`), which ended failed`)
			e.is(g.id("d"), task.Ready, task.WaitNone)
		})
		bothOrders(func(turn func(...store.Finish) []store.Finish) {
			g := e.job("a", "b", "c: !b !a")
			cs := e.a.takeAll(g.all("a", "b")...)
			e.finishAll(turn(success(cs[0]), success(cs[1]))...)
			t := e.ended(g.id("c"), task.Cancelled, task.KindNotNeeded)
			e.equal("the text", t.Error.Message, `not needed: it runs if task "a" (`+g.id("a").String()+`) or another of its needs fails, and none of them did`)
		})
	}},
	{"needs that ended in one batch are all counted", func(e *env) {
		g := e.job("a", "b", "late", "c: a b late")
		cs := e.a.takeAll(g.all("a", "b")...)
		e.finishAll(success(cs[0]), dead(cs[1]))
		e.ended(g.id("c"), task.Cancelled, task.KindDependencyFailed)
		e.equal("RemainingDeps", e.task(g.id("c")).RemainingDeps, 1)
		e.equal("the edges that are done", len(of(e.snap().Edges, func(r store.EdgeRow) bool { return r.Done })), 2)
	}},
	{"ends in one batch count for whatever waits for them: dependents, parents, tasks under repair", func(e *env) {
		g := e.job("a", "b", "c: a b", "d: *a *b", "over: a b", "also over: *a *b")
		e.operate(cancelOf(g.id("over")))
		e.operate(cancelOf(g.id("also over")))
		over := e.tasks(g.all("over", "also over")...)
		waiting, ends := e.many(4), g.all("a", "b")
		for _, id := range waiting[:2] {
			ends = append(ends, e.decomposed(id, task.JoinRerun, 2)...)
		}
		for _, id := range waiting[2:] {
			ends = append(ends, e.repair(id))
		}
		e.finishOK(mapped(e.a.takeAll(ends...), success)...)
		for _, id := range append(waiting, g.all("c", "d")...) {
			e.equal("the join", e.due(id).Join, task.JoinNone)
		}
		e.sameJSON("the tasks that had ended", e.tasks(g.all("over", "also over")...), over)
	}},
	{"of failures that several wait for, the later ones count for nothing", func(e *env) {
		g := e.job("a", "b", "late", "c: !a !b late", "d: !a !b late")
		e.fail(g.id("a"), g.id("b"))
		for _, id := range g.all("c", "d") {
			e.equal("RemainingDeps", e.is(id, task.Pending, task.WaitDeps).RemainingDeps, 1)
		}
		e.succeed(g.id("late"))
		for _, id := range g.all("c", "d") {
			e.due(id)
		}
	}},
	{"what ends by a batch ends those that depend on it", func(e *env) {
		// c sees the end of b, which follows from that of a, one round after x.
		g := e.job("a", "x", "b: a", "c: b x", "d: *c")
		cs := e.a.takeAll(g.all("a", "x")...)
		e.finishAll(dead(cs[0]), success(cs[1]))
		e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
		e.ended(g.id("c"), task.Cancelled, task.KindDependencyFailed)
		e.is(g.id("d"), task.Ready, task.WaitNone)
		g.counts(task.JobRunning, 5, 1, 1, 3, 1)
	}},
	{"holders that return in one batch queue behind the waiters", func(e *env) {
		ids := e.many(2, key("k", 2))
		cs := e.a.gets(ids)
		e.pass(time.Second)
		waiters := e.many(2, key("k", 2))
		e.b.getsNothing()
		e.pass(time.Second)
		e.finishAll(released(cs[0]), retry(cs[1], 0))
		e.all(task.Ready, task.WaitNone, waiters...)
		e.b.gets(waiters)
		e.a.getsNothing()
	}},
	{"a batch that frees several keys wakes one waiter of each", func(e *env) {
		var first, rest []task.ID
		for _, name := range []string{"x", "y", "z"} {
			ids := e.many(3, key(name, 1))
			first, rest = append(first, ids[0]), append(rest, ids[1:]...)
		}
		cs := e.a.takeAll(first...)
		e.b.getsNothing()
		e.finishAll(success(cs[0]), retry(cs[1], time.Minute), dead(cs[2]))
		e.b.gets([]task.ID{rest[0], rest[2], rest[4]})
	}},
	{"a batch says which state a job got by it, and nothing of one that keeps its state", func(e *env) {
		g, other := e.job("a", "b", "c", "d: b"), e.job("x")
		cs := e.a.takeAll(append(g.all("a", "b", "c"), other.id("x"))...)
		states := func(fs ...store.Finish) (states []task.JobState) {
			return mapped(e.finishAll(fs...), func(r store.FinishResult) task.JobState { return r.Job })
		}
		e.equal("its own state", states(retry(cs[0], 0)), []task.JobState{""})
		e.equal("the states by a batch for two jobs", states(success(cs[3]), success(cs[2])), []task.JobState{task.JobSucceeded, ""})
		e.equal("the state by a report made again", states(success(cs[3])), []task.JobState{""})
		e.equal("its state by a block while others can move", states(block(e.a.take(g.id("a")))), []task.JobState{""})
		e.equal("its state by the end of the last that can move, by its dependent's", states(dead(cs[1])), []task.JobState{task.JobBlocked})
		e.operate(cancelOf(g.id("a")))
		e.equal("the job", g.read().State, task.JobFailed)
	}},
	{"R-15 the last two parents in one batch release the child once", func(e *env) {
		for _, first := range outcomes {
			for _, second := range outcomes {
				if !first.state.Terminal() || !second.state.Terminal() {
					continue
				}
				g := e.job("a", "b", "child: *a *b")
				cs := e.a.takeAll(g.all("a", "b")...)
				e.finishOK(first.end(cs[0]), second.end(cs[1]))
				e.readyOnce(g.id("child"))
				e.check(g.read().State.Terminal(), "%s and %s: the job has not ended", first.name, second.name)
			}
		}
	}},
	{"R-15 a need that is skipped and one that finishes in one batch release the child once", func(e *env) {
		for _, order := range [][2]int{{0, 1}, {1, 0}} {
			// The failure of bad also ends skipped; the child waits for skipped and good.
			g := e.job("bad", "good", "skipped: bad", "child: *skipped good", "late: *bad *good *skipped")
			cs := e.a.takeAll(g.all("bad", "good")...)
			fs := []store.Finish{dead(cs[0]), success(cs[1])}
			e.finishAll(fs[order[0]], fs[order[1]])
			e.ended(g.id("skipped"), task.Cancelled, task.KindDependencyFailed)
			e.readyOnce(g.id("child"))
			e.readyOnce(g.id("late"))
			g.counts(task.JobFailed, 5, 0, 0, 2, 3)
		}
	}},
	{"R-15 many parents of many children in one batch release each child once", func(e *env) {
		const parents, children = 12, 12
		var spec, names []string
		for i := range parents {
			names = append(names, fmt.Sprintf("p%d", i))
		}
		spec = append(spec, names...)
		for i := range children {
			needs := ""
			for j := range parents {
				if j%(i+1) == 0 {
					needs += " *" + names[j]
				}
			}
			spec = append(spec, fmt.Sprintf("c%d:%s", i, needs))
		}
		g := e.job(spec...)
		var fs []store.Finish
		for i, c := range e.a.takeAll(g.all(names...)...) {
			f := success(c)
			if i%3 == 1 {
				f = dead(c)
			}
			fs = append(fs, f)
		}
		e.finishAll(fs...)
		for i := range children {
			e.readyOnce(g.id(fmt.Sprintf("c%d", i)))
		}
		g.counts(task.JobFailed, parents+children, 0, 0, 4, 8+children)
	}},
}

// bothOrders runs a check for each order of two elements.
func bothOrders(check func(turn func(fs ...store.Finish) []store.Finish)) {
	check(func(fs ...store.Finish) []store.Finish { return fs })
	check(func(fs ...store.Finish) []store.Finish {
		slices.Reverse(fs)
		return fs
	})
}
