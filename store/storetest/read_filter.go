package storetest

import (
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var listFilterCases = []testCase{
	{"List filters by what a task waits for, as derived", func(e *env) {
		all := e.everyWait()
		by := map[task.Waiting][]task.ID{}
		for _, t := range all {
			by[t.Waiting] = append(by[t.Waiting], t.ID)
		}
		for _, w := range task.Waitings() {
			if w != task.WaitDeadline && w != task.WaitRate { // these reasons do not occur
				e.check(len(by[w]) > 0, "no task waits for %s", w)
			}
			e.lists(store.Filter{Waiting: []task.Waiting{w}}, slices.Clone(by[w])...)
		}
		e.lists(store.Filter{Waiting: []task.Waiting{task.WaitNone}, Limit: 1000}, slices.Clone(by[task.WaitNone])...)
		e.lists(store.Filter{Waiting: []task.Waiting{task.WaitSignal, task.WaitManual, task.WaitDelay}},
			slices.Concat(by[task.WaitSignal], by[task.WaitManual], by[task.WaitDelay])...)
		for _, state := range task.States() {
			for _, w := range []task.Waiting{task.WaitPaused, task.WaitManual, task.WaitNone} {
				want := of(all, func(t task.Task) bool { return t.State == state && t.Waiting == w })
				e.lists(store.Filter{States: []task.State{state}, Waiting: []task.Waiting{w}}, mapped(want, idOf)...)
			}
		}
	}},
	{"List filters by the kind of the last error", func(e *env) {
		all := e.everyWait()
		by := map[task.ErrorKind][]task.ID{}
		for _, t := range all {
			by[t.End().Kind] = append(by[t.End().Kind], t.ID)
		}
		e.check(len(by) >= 4, "the tasks have errors of %d kinds", len(by))
		for _, k := range append(task.ErrorKinds(), task.KindNone) {
			e.lists(store.Filter{ErrorKinds: []task.ErrorKind{k}, Limit: 1000}, slices.Clone(by[k])...)
		}
		e.lists(store.Filter{ErrorKinds: []task.ErrorKind{task.KindHandler, task.KindCancelled}}, slices.Concat(by[task.KindHandler], by[task.KindCancelled])...)
		for _, state := range task.States() {
			want := of(all, func(t task.Task) bool { return t.State == state && t.End().Kind == task.KindHandler })
			e.check(len(want) > 0 || state != task.Failed && state != task.Blocked && state != task.Pending, "no task is %s with an error of a handler", state)
			e.lists(store.Filter{States: []task.State{state}, ErrorKinds: []task.ErrorKind{task.KindHandler}}, mapped(want, idOf)...)
		}
	}},
	{"List filters by parent: children, and what steps started", func(e *env) {
		parent, other := e.one(), e.one()
		c := e.a.take(parent)
		started := e.drafts(3, labels("team", "red"))
		e.record(start(c, "fan out", started...))
		want := mapped(started, func(n task.New) task.ID { return n.ID })
		want = append(want, e.calls(c, "call", 2)...)
		e.finish(suspended(c, task.WaitChildren, time.Time{}))
		kids := e.decomposed(other, task.JoinRerun, 2)
		e.lists(store.Filter{Parent: parent}, slices.Clone(want)...)
		e.lists(store.Filter{Parent: other}, slices.Clone(kids)...)
		e.lists(store.Filter{Parent: kids[0]})
		e.lists(store.Filter{Parent: e.newID()})
		e.succeed(kids[0])
		e.lists(store.Filter{Parent: other, States: []task.State{task.Succeeded}}, kids[0])
		e.lists(store.Filter{Parent: parent, Labels: map[string]string{"team": "red"}}, want[:3]...)
		e.pagesShow(store.Filter{Parent: parent, Limit: 2}, want...)
	}},
	{"List filters by the time of the enqueue: from, and up to but without the end", func(e *env) {
		var ids []task.ID
		for range 5 {
			ids = append(ids, e.many(2, labels("team", "red"))...)
			e.pass(10 * time.Millisecond)
		}
		g := e.job("a", "b")
		at := func(i int) time.Time { return e.task(ids[i]).CreatedAt }
		e.lists(store.Filter{CreatedAfter: at(4)}, append([]task.ID{g.id("a"), g.id("b")}, ids[4:]...)...)
		e.lists(store.Filter{CreatedBefore: at(4)}, slices.Clone(ids[:4])...)
		e.lists(store.Filter{CreatedAfter: at(2), CreatedBefore: at(6)}, slices.Clone(ids[2:6])...)
		e.lists(store.Filter{CreatedAfter: at(2).Add(1), CreatedBefore: at(6).Add(1)}, slices.Clone(ids[4:8])...)
		e.lists(store.Filter{CreatedAfter: at(4), CreatedBefore: at(4)})
		e.lists(store.Filter{CreatedAfter: at(6), CreatedBefore: at(2)})
		e.lists(store.Filter{CreatedAfter: e.now().Add(time.Hour)})
		e.lists(store.Filter{CreatedAfter: time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC)})
		e.lists(store.Filter{CreatedBefore: time.Date(1, 2, 1, 0, 0, 0, 0, time.UTC)})
		every := append([]task.ID{g.id("a"), g.id("b")}, ids...)
		e.lists(store.Filter{CreatedAfter: time.Date(1, 2, 1, 0, 0, 0, 0, time.UTC), CreatedBefore: time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC)}, slices.Clone(every)...)
		e.pagesShow(store.Filter{CreatedAfter: at(2), CreatedBefore: at(8), Limit: 1}, slices.Clone(ids[2:8])...)
	}},
	{"the time of the enqueue holds with every other filter", func(e *env) {
		old := e.everyWait()
		g := e.job("a")
		labelled := e.one(labels("team", "red"))
		parent := e.one()
		e.decomposed(parent, task.JoinRerun, 2)
		e.pass(10 * time.Millisecond)
		between := e.now()
		recent := of(e.everyWait(), func(t task.Task) bool { return !t.CreatedAt.Before(between) })
		for _, state := range task.States() {
			e.lists(store.Filter{States: []task.State{state}, CreatedAfter: between, Limit: 1000}, mapped(of(recent, func(t task.Task) bool { return t.State == state }), idOf)...)
		}
		for _, w := range task.Waitings() {
			e.lists(store.Filter{Waiting: []task.Waiting{w}, CreatedAfter: between}, mapped(of(recent, func(t task.Task) bool { return t.Waiting == w }), idOf)...)
		}
		e.check(len(old) > 0 && len(recent) > 0, "%d old tasks, %d new ones", len(old), len(recent))
		for _, f := range []store.Filter{{Job: g.sub.Job.ID}, {Labels: map[string]string{"team": "red"}}, {Parent: parent}} {
			f.CreatedBefore = between
			got, _ := e.list(f)
			e.check(len(got) > 0, "List(%+v) is empty", f)
			f.CreatedBefore, f.CreatedAfter = time.Time{}, between
			e.lists(f)
		}
		e.lists(store.Filter{Labels: map[string]string{"team": "red"}, CreatedBefore: between}, labelled)
	}},
	{"List filters by the beginning of types", func(e *env) {
		a, b := e.one(typed("acme.billing.charge.v1")), e.one(typed("acme.billing.charge.v2"))
		c, d := e.one(typed("acme.billings.charge.v1"), after(time.Minute)), e.one(typed("acme.mail.send.v1"))
		e.lists(store.Filter{Types: []string{"acme.billing.*"}}, a, b)
		e.lists(store.Filter{Types: []string{"acme.billing.charge.*", "acme.mail.send.v1"}}, a, b, d)
		e.lists(store.Filter{Types: []string{"acme.*"}}, a, b, c, d)
		e.lists(store.Filter{Types: []string{"acme.*"}, States: []task.State{task.Pending}}, c)
		for _, none := range []string{"acme.billing*", "*", "acme.billing", "acme.billing.charge.v1.*", "Acme.*", "acme.b*.*"} {
			e.lists(store.Filter{Types: []string{none}})
		}
	}},
}

// everyWait enqueues tasks in every situation and returns all existing tasks as readers see them.
func (e *env) everyWait() []task.Task {
	e.Helper()
	e.everySituation(e.newID().String())
	e.one(after(time.Hour))
	e.finish(retry(e.a.take(e.one()), time.Hour))
	e.finish(suspend(e.a.take(e.one()), e.now().Add(time.Hour)))
	typePaused := e.one(typed("acme.test.paused.v1"))
	e.operate(pauseTypeOf("acme.test.paused.v1"))
	e.is(typePaused, task.Pending, task.WaitPaused)
	parked := e.one()
	e.operate(store.PauseTask{Audit: admin, Task: parked})
	e.is(parked, task.Pending, task.WaitPaused)
	c := e.a.take(e.one())
	e.record(wait(c, "answer", "approve", 0))
	e.finish(suspended(c, task.WaitSignal, time.Time{}))
	c = e.a.take(e.one())
	e.record(wait(c, "answer", "approve", time.Hour))
	e.finish(suspended(c, task.WaitSignal, e.now().Add(time.Hour)))
	e.undoing()
	e.waitsForCall(e.one(), "call", 2)
	e.finish(suspended(e.a.take(e.one()), task.WaitChildren, e.now().Add(time.Hour)))
	e.decomposed(e.one(), task.JoinRerun, 2)
	e.repair(e.one())
	f := block(e.a.take(e.one()))
	f.Waiting = task.WaitBudget
	e.finish(f)
	var all []task.Task
	for cursor := ""; ; {
		page, next, err := e.s.List(e.Context(), e.ns, store.Filter{Limit: 1000, After: cursor})
		e.require(err == nil, "List: %v", err)
		all = append(all, page...)
		if cursor = next; next == "" {
			return all
		}
	}
}
