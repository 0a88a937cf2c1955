package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var publishCases = []testCase{
	{"due tasks are published in claim order, each once until its mark ends", func(e *env) {
		late, first, second := e.one(priority(2)), e.one(priority(1)), e.one(priority(1), queue("x"))
		later := e.one(after(time.Minute))
		got := e.publish(10)
		e.equal("the unsent tasks", got.ids(), []task.ID{first, second, late})
		e.equal("their lanes", []string{got.Tasks[0].Queue + got.Tasks[0].Type, got.Tasks[1].Queue + got.Tasks[1].Type}, []string{e.task(first).Queue + alpha, "x" + alpha})
		e.near("the mark", got.Mark, e.now().Add(2*time.Second))
		e.equal("again", e.publish(10).ids(), none)
		e.nearly("the next", e.publish(10).Next, 2*time.Second)
		e.pass(3 * time.Second)
		again := e.publish(10)
		e.equal("after the mark", again.ids(), []task.ID{first, second, late})
		e.equal("attempts", again.Tasks[0].Attempts, 2)
		e.pushed(again, 30*time.Second, "")
		e.nearly("the next of rows that were pushed", e.publish(10).Next, 30*time.Second)
		e.equal("of another namespace", e.in(otherNamespace).publish(10).ids(), none)
		e.pass(29 * time.Second)
		e.equal("before RedeliverAfter", e.publish(10).ids(), none)
		e.pass(2 * time.Second)
		e.equal("after RedeliverAfter", e.publish(10).ids(), []task.ID{first, second, late})
		e.pass(time.Minute)
		e.check(slices.Contains(e.publish(10).ids(), later), "a task that became due is not published")
	}},
	{"a publisher is told of the rest, and of none", func(e *env) {
		e.equal("without tasks", e.publish(3).Next, time.Duration(-1))
		ids := e.many(5)
		got := e.publish(3)
		e.equal("the unsent tasks", got.ids(), ids[:3])
		e.equal("the next", got.Next, time.Duration(0))
		e.equal("the rest", e.publish(3).ids(), ids[3:])
		e.a.takeAll(ids...)
		e.equal("of running tasks", e.publish(3).ids(), none)
		e.one(after(time.Hour))
		e.nearly("the next due", e.publish(3).Next, time.Hour)
	}},
	{"a publisher reads the first rows of each lane only", func(e *env) {
		ids := e.many(300)
		e.equal("the unsent tasks", e.publish(1000).ids(), ids[:256])
		other := e.one(queue("x"), priority(9))
		e.equal("those of another lane", e.publish(1000).ids(), []task.ID{other})
		e.a.takeAll(ids[:10]...)
		e.equal("those that follow", e.publish(1000).ids(), ids[256:266])
	}},
	{"paused queues and types are not published", func(e *env) {
		e.one(queue("x"))
		e.one(typed(beta))
		e.operate(pauseOf("x"))
		e.operate(pauseTypeOf(beta))
		id := e.one()
		e.equal("the unsent tasks", e.publish(10).ids(), []task.ID{id})
		e.operate(resumeOf("x"))
		e.equal("after the pause", len(e.publish(10).Tasks), 1)
	}},
	{"a claim of a lane leaves sent tasks unless no other is due", func(e *env) {
		sent := e.many(2)
		e.pushed(e.publish(10), 30*time.Second, "")
		e.pass(time.Second)
		unsent := e.one()
		e.a.gets([]task.ID{unsent}, leaveSent)
		e.a.gets(sent, leaveSent)
		id := e.one()
		e.publish(10)
		e.a.gets([]task.ID{id}, leaveSent, only(id))
		taken := e.one()
		e.publish(10)
		other := e.one()
		e.a.gets([]task.ID{taken, other})
	}},
	{"a claim leaves no task whose hint was refused, or sent twice", func(e *env) {
		refused := e.one()
		e.pushed(e.publish(10), time.Hour, "the name is too long")
		row := e.dispatch(refused)[0]
		e.check(row.LastError == "the name is too long" && row.Attempts == 1, "the row is %+v", row)
		e.near("SentUntil", row.SentUntil, e.now().Add(time.Hour))
		twice := e.one()
		e.pushed(e.publish(10), time.Second, "")
		e.pass(2 * time.Second)
		got := e.publish(10)
		e.equal("sent twice", got.ids(), []task.ID{twice})
		e.pushed(got, time.Hour, "")
		e.pass(time.Second)
		unsent := e.one()
		e.a.gets([]task.ID{refused, twice, unsent}, leaveSent)
	}},
	{"an outcome counts only while its mark stands", func(e *env) {
		id := e.one()
		old := e.publish(10)
		c := e.a.take(id)
		e.pushed(old, time.Hour, "")
		e.check(len(e.dispatch(id)) == 0, "a running task has a dispatch row")
		e.finish(retry(c, 0))
		e.pushed(old, time.Hour, "late")
		row := e.dispatch(id)[0]
		e.check(row.SentUntil.IsZero() && row.Attempts == 0 && row.LastError == "", "the new row has the outcome of the old: %+v", row)
		one := e.publish(10)
		e.equal("the new row", one.ids(), []task.ID{id})
		e.pass(3 * time.Second)
		two := e.publish(10)
		e.pushed(one, time.Hour, "from a publisher that was too slow")
		e.check(e.dispatch(id)[0].LastError == "", "a publisher without the mark wrote %+v", e.dispatch(id)[0])
		e.pushed(two, time.Second, "refused")
		e.pass(2 * time.Second)
		e.pushed(e.publish(10), time.Hour, "")
		e.equal("the error after a push", e.dispatch(id)[0].LastError, "")
	}},
	{"unsent and refused hints are counted", func(e *env) {
		hints := func() store.HintsOverview { return e.overview(store.OverviewHints).Hints }
		e.equal("without tasks", hints(), store.HintsOverview{})
		e.one(after(time.Hour))
		e.one(queue("x"))
		e.operate(pauseOf("x"))
		first := e.one()
		e.pass(10 * time.Second)
		e.one(typed(beta))
		got := hints()
		e.equal("the unsent", got.Unsent, n(2))
		e.near("the oldest", got.Since, e.task(first).ReadyAt)
		e.pushed(e.publish(1), time.Hour, store.HintRefused+"too long")
		e.pushed(e.publish(1), time.Minute, "away")
		e.equal("after the pushes", hints(), store.HintsOverview{Refused: n(1)})
		e.check(e.dispatch(first)[0].Refused(), "the row is not refused: %+v", e.dispatch(first)[0])
		e.pass(time.Minute + 20*time.Second)
		got = hints()
		e.equal("the unsent after a minute", got.Unsent, n(1))
		e.near("their oldest", got.Since, e.now().Add(-20*time.Second))
		e.many(300)
		e.equal("those that publishers read", hints().Unsent, n(1+255)) // one of beta, and those after the refused one of alpha
		e.equal("of another namespace", e.in(otherNamespace).overview(store.OverviewHints).Hints, store.HintsOverview{})
	}},
	{"each hint goes to one of the publishers that run together", func(e *env) {
		ids := e.many(120)
		c := e.a.takeAll(ids[:5]...)
		got := make([]publication, 4)
		fns := []func(){func() { e.finishOK(mapped(c, func(c store.Claimed) store.Finish { return retry(c, 0) })...) }}
		for i := range got {
			fns = append(fns, func() {
				for range 3 {
					p := e.publish(50)
					got[i].Tasks = append(got[i].Tasks, p.Tasks...)
				}
			})
		}
		e.together(fns...)
		times := make(map[task.ID]int)
		for _, p := range got {
			for _, id := range p.ids() {
				times[id]++
			}
		}
		for _, id := range ids[5:] {
			e.check(times[id] <= 1, "%v was published %d times", id, times[id])
		}
		e.pass(3 * time.Second)
		e.equal("the tasks after the marks", len(e.publish(1000).Tasks), len(ids))
		e.equal("the claimed tasks", len(e.a.claim().Tasks), len(ids))
	}},
	{"claims and publishers that run together lose no task", func(e *env) {
		ids := e.many(200)
		var fns []func()
		claimed := make([][]store.Claimed, 3)
		for i := range claimed {
			fns = append(fns, func() {
				for range 10 {
					asks := []ask{limit(10)}
					if i > 0 {
						asks = append(asks, leaveSent)
					}
					claimed[i] = append(claimed[i], e.a.claim(asks...).Tasks...)
				}
			}, func() {
				for range 10 {
					e.pushed(e.publish(20), 0, "")
				}
			})
		}
		e.together(fns...)
		all := slices.Concat(claimed...)
		for len(all) < len(ids) {
			rest := e.a.claim().Tasks
			e.require(len(rest) > 0, "%d of %d tasks are claimed", len(all), len(ids))
			all = append(all, rest...)
		}
		e.finishOK(mapped(all, success)...)
		e.all(task.Succeeded, task.WaitNone, ids...)
	}},
}

func leaveSent(r *store.ClaimRequest) { r.LeaveSent = true }

// publication is the answer to a publisher.
type publication struct{ store.PublishResult }

func (p publication) ids() []task.ID {
	return append(none, mapped(p.Tasks, func(t store.UnsentTask) task.ID { return t.Task })...)
}

func (e *env) publish(limit int) publication {
	e.Helper()
	got, err := e.s.Publish(e.Context(), e.ns, store.PublishRequest{Limit: limit})
	e.require(err == nil, "Publish: %v", err)
	return publication{got}
}

// pushed records the outcome of the push of all published hints.
func (e *env) pushed(p publication, span time.Duration, refused string) {
	e.Helper()
	rows := mapped(p.Tasks, func(t store.UnsentTask) store.Pushed {
		return store.Pushed{Task: t.Task, Mark: p.Mark, For: span, Error: refused}
	})
	got, err := e.s.Publish(e.Context(), e.ns, store.PublishRequest{Pushed: rows})
	e.require(err == nil && len(got.Tasks) == 0, "Publish of outcomes: %v, %v", fmt.Sprint(got.Tasks), err)
}
