package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func rated(key string, starts int, per time.Duration, burst int) opt {
	return func(n *task.New) { n.RateLimit = task.Rate{Key: key, Starts: starts, Per: per, Burst: burst} }
}

func tenant(name string) opt {
	return func(n *task.New) { n.FairBy, n.Labels = "tenant", map[string]string{"tenant": name} }
}

var limitCases = []testCase{
	{"a limit is set, changed, listed with its use, and deleted", func(e *env) {
		e.operate(store.SetLimit{Audit: admin, Name: "queue:billing", Limit: store.Limit{Running: 2, Pending: 3}})
		e.operate(store.SetLimit{Name: "label:tenant=acme", Limit: store.Limit{Weight: 3}})
		for range 6 {
			e.one(queue("billing"))
		}
		e.a.claim(limit(10))
		got := e.limits(store.LimitFilter{})
		e.equal("the names", names(got), []string{"label:tenant=acme", "queue:billing"})
		l := got[1]
		e.equal("the limit", l.Limit, store.Limit{Running: 2, Pending: 3})
		e.equal("its use", []int{l.InUse, l.Waiting}, []int{2, 4})
		e.check(l.Set, "a limit that was set is not")
		e.near("its change", l.UpdatedAt, e.now())
		e.equal("who set it", []string{l.By, l.Reason}, []string{admin.By, admin.Reason})
		e.equal("one by name", names(e.limits(store.LimitFilter{Names: []string{"queue:billing", "type:none"}})), []string{"queue:billing", "type:none"})
		e.equal("the next page", names(e.limits(store.LimitFilter{After: "label:tenant=acme", Limit: 1})), []string{"queue:billing"})
		e.equal("of another namespace", len(e.in(otherNamespace).limits(store.LimitFilter{})), 0)

		e.operate(store.SetLimit{Audit: admin, Name: "queue:billing", Limit: store.Limit{Running: 3}})
		e.equal("claimed after it was raised", len(e.a.claim(limit(10)).Tasks), 1)
		e.operate(store.SetLimit{Audit: admin, Name: "queue:billing", Delete: true})
		e.equal("claimed without it", len(e.a.claim(limit(10)).Tasks), 3)
		e.commandRefused(store.SetLimit{Name: "queue:billing", Delete: true}, store.ErrNotFound)
		var verbs []string
		for _, a := range e.snap().Audit {
			verbs = append(verbs, a.Verb+" "+a.Target)
		}
		e.equal("the audit", verbs, []string{"set_limit limit/queue:billing", "set_limit limit/label:tenant=acme", "set_limit limit/queue:billing", "delete_limit limit/queue:billing"})
	}},
	{"a wrong limit is refused and says why", func(e *env) {
		for want, cmd := range map[string]store.Command{
			"want queue:NAME":      store.SetLimit{Name: "billing", Limit: store.Limit{Running: 1}},
			"names nothing":        store.SetLimit{Name: "queue:", Limit: store.Limit{Running: 1}},
			"label:KEY=VALUE":      store.SetLimit{Name: "label:tenant", Limit: store.Limit{Running: 1}},
			"limits nothing":       store.SetLimit{Name: "queue:q"},
			"only a queue":         store.SetLimit{Name: "type:t", Limit: store.Limit{Pending: 1}},
			"only the value":       store.SetLimit{Name: "queue:q", Limit: store.Limit{Weight: 1}},
			"a concurrency key":    store.SetLimit{Name: "rate:k", Limit: store.Limit{Running: 1}},
			"at most one per":      store.SetLimit{Name: "queue:q", Limit: store.Limit{Starts: 10, Per: time.Microsecond}},
			"must not be negative": store.SetLimit{Name: "queue:q", Limit: store.Limit{Starts: 1, Per: time.Second, Burst: -1}},
			"without starts":       store.SetLimit{Name: "queue:q", Limit: store.Limit{Running: 1, Per: time.Second}},
			"cannot rest":          store.Rest{Name: "queue:q"},
		} {
			err := e.command(cmd).Err
			e.check(err != nil && strings.Contains(err.Error(), want), "%+v: %v, want %q", cmd, err, want)
		}
		e.equal("limits", len(e.limits(store.LimitFilter{})), 0)
	}},
	{"tasks with a rate start evenly, after a pause up to the burst, whatever their lane", func(e *env) {
		e.many(10, rated("k", 10, time.Second, 3))
		e.many(10, rated("k", 10, time.Second, 3), typed(beta), queue("other"), priority(1))
		other := e.one()
		got := e.a.claim(limit(20))
		e.equal("claimed at first", len(got.Tasks), 4)
		e.equal("one without a rate", got.Tasks[3].Task.ID, other)
		e.check(got.Next > 0 && got.Next <= 100*time.Millisecond, "the next claim is useful in %s", got.Next)
		e.equal("claimed again at once", len(e.a.claim(limit(20)).Tasks), 0)
		for range 3 {
			e.pass(100 * time.Millisecond)
			e.equal("claimed after a tenth of a second", len(e.a.claim(limit(20)).Tasks), 1)
		}
		e.pass(10 * time.Second)
		e.equal("claimed after a pause", len(e.a.claim(limit(20)).Tasks), 3)
		e.equal("by its id", len(e.a.claim(limit(20), only(e.one(rated("k", 10, time.Second, 3)))).Tasks), 0)
		e.equal("another key", len(e.a.claim(limit(20), only(e.one(rated("l", 1, time.Second, 1)))).Tasks), 1)
	}},
	{"a set rate replaces the one that tasks bring along", func(e *env) {
		e.many(20, rated("k", 1, time.Hour, 1))
		e.equal("claimed", len(e.a.claim(limit(20)).Tasks), 1)
		e.operate(store.SetLimit{Name: "rate:k", Limit: store.Limit{Starts: 100, Per: time.Second, Burst: 5}})
		e.pass(time.Second)
		e.equal("claimed under the new one", len(e.a.claim(limit(20)).Tasks), 5)
		e.operate(store.SetLimit{Name: "rate:k", Delete: true})
		e.pass(time.Minute)
		e.equal("claimed under their own", len(e.a.claim(limit(20)).Tasks), 1)
	}},
	{"limits of a queue, a type and a label hold together", func(e *env) {
		for name, n := range map[string]int{"queue:q": 5, "type:" + alpha: 4, "label:tenant=a": 2} {
			e.operate(store.SetLimit{Name: name, Limit: store.Limit{Running: n}})
		}
		e.many(10, queue("q"), tenant("a"))
		e.many(10, queue("q"), tenant("b"))
		e.many(10, queue("q"), typed(beta))
		got := e.a.claim(limit(30)).Tasks
		count := map[string]int{}
		for i := range got {
			count[got[i].Task.Type]++
			count[got[i].Task.Labels["tenant"]]++
		}
		e.equal("claimed", len(got), 5)
		e.check(count["a"] <= 2 && count[alpha] <= 4, "claimed %v", count)
		e.equal("claimed again", len(e.b.claim(limit(30)).Tasks), 0)
		e.finishOK(success(got[0]))
		again := e.b.claim(limit(30)).Tasks
		e.equal("claimed after one has ended", len(again), 1)
		e.equal("use", e.limits(store.LimitFilter{Names: []string{"queue:q"}})[0].InUse, 5)
	}},
	{"a limit that is lowered under running tasks lets them run, and none start", func(e *env) {
		e.operate(store.SetLimit{Name: "queue:q", Limit: store.Limit{Running: 4}})
		e.many(10, queue("q"))
		got := e.a.claim(limit(10)).Tasks
		e.equal("claimed", len(got), 4)
		e.operate(store.SetLimit{Name: "queue:q", Limit: store.Limit{Running: 2}})
		e.finishOK(success(got[0]))
		e.finishOK(success(got[1]))
		e.equal("claimed while two run", len(e.a.claim(limit(10)).Tasks), 0)
		e.finishOK(success(got[2]))
		e.equal("claimed while one runs", len(e.a.claim(limit(10)).Tasks), 1)
	}},
	{"a limit counts what runs already when it is set, and no task that lost its lease", func(e *env) {
		e.many(6, queue("q"))
		got := e.a.claim(limit(2)).Tasks
		e.operate(store.SetLimit{Name: "queue:q", Limit: store.Limit{Running: 2}})
		e.equal("claimed", len(e.b.claim(limit(10)).Tasks), 0)
		e.operate(store.CancelTask{Task: got[0].Task.ID, Force: true})
		e.equal("claimed after a forced cancel", len(e.b.claim(limit(10)).Tasks), 1)
	}},
	{"a rest keeps the tasks of a key or a queue from starting, also those of other processes", func(e *env) {
		e.many(3, rated("k", 1000, time.Second, 100))
		e.operate(store.Rest{Name: "rate:k", For: 10 * time.Second})
		e.operate(store.Rest{Name: "rate:k", For: time.Second}) // the longer one stays
		e.operate(store.Rest{Name: "queue:q", For: 5 * time.Second})
		e.many(2, queue("q"))
		got := e.a.claim(limit(10))
		e.equal("claimed", len(got.Tasks), 0)
		e.check(got.Next > 4*time.Second && got.Next <= 5*time.Second, "the next claim is useful in %s", got.Next)
		e.near("its rest", e.limits(store.LimitFilter{Names: []string{"rate:k"}})[0].RestUntil, e.now().Add(10*time.Second))
		e.pass(5 * time.Second)
		e.equal("claimed from the queue", len(e.b.claim(limit(10)).Tasks), 2)
		e.pass(5 * time.Second)
		e.equal("claimed of the key", len(e.b.claim(limit(10)).Tasks), 3)
	}},
	{"a rest leaves who set the limit, and when", func(e *env) {
		e.operate(store.SetLimit{Audit: admin, Name: "queue:q", Limit: store.Limit{Running: 2}})
		set := e.now()
		e.pass(time.Minute)
		e.operate(store.Rest{Name: "queue:q", For: time.Second})
		l := e.limits(store.LimitFilter{Names: []string{"queue:q"}})[0]
		e.equal("who set it", []string{l.By, l.Reason}, []string{admin.By, admin.Reason})
		e.near("when", l.UpdatedAt, set)
	}},
	{"tasks have their own rate again after a set one that rested is deleted", func(e *env) {
		e.operate(store.SetLimit{Name: "rate:k", Limit: store.Limit{Starts: 100, Per: time.Second, Burst: 5}})
		e.operate(store.Rest{Name: "rate:k", For: time.Second})
		e.operate(store.SetLimit{Name: "rate:k", Delete: true})
		e.many(10, rated("k", 1, time.Minute, 2))
		e.equal("claimed while it rests", len(e.a.claim(limit(10)).Tasks), 0)
		e.pass(time.Second)
		e.equal("claimed", len(e.a.claim(limit(10)).Tasks), 2)
	}},
	{"a task over a concurrency key uses up no start of its rate", func(e *env) {
		opts := []opt{rated("k", 1, time.Minute, 2), key("one", 1)}
		ids := e.many(3, opts...)
		first := e.a.claim(limit(10)).Tasks
		e.equal("claimed", len(first), 1)
		e.finishOK(success(first[0]))
		second := e.a.claim(limit(10)).Tasks
		e.require(len(second) == 1 && second[0].Task.ID == ids[1], "claimed %d: the second start of the burst was used up", len(second))
	}},
	{"tenants take turns, by their weights, within a priority", func(e *env) {
		e.operate(store.SetLimit{Name: "label:tenant=b", Limit: store.Limit{Weight: 2}})
		e.many(30, tenant("a"))
		e.many(30, tenant("b"))
		e.many(30, tenant("c"))
		first := e.one(tenant("c"), priority(1))
		got := e.a.claim(limit(1)).Tasks
		e.equal("first by priority", got[0].Task.ID, first)
		count := map[string]int{}
		for range 20 {
			got := e.a.claim(limit(2)).Tasks
			for i := range got {
				count[got[i].Task.Labels["tenant"]]++
			}
		}
		e.equal("by tenant", count, map[string]int{"a": 10, "b": 20, "c": 10})
		for range 5 {
			got := e.a.claim(limit(4)).Tasks
			for i := range got {
				count[got[i].Task.Labels["tenant"]]++
			}
		}
		e.equal("by tenant", count, map[string]int{"a": 15, "b": 30, "c": 15})
		e.one(tenant("d"))
		got = e.a.claim(limit(3)).Tasks
		e.check(slices.ContainsFunc(got, func(c store.Claimed) bool { return c.Task.Labels["tenant"] == "d" }), "a new tenant waits for more than a turn of the others")
		e.equal("the rest", len(e.a.claim(limit(100)).Tasks), 28)
	}},
	{"tasks in turns keep their order, and types with and without them take turns too", func(e *env) {
		plain := e.many(6, typed(beta))
		var of [2][]task.ID
		for i := range of {
			of[i] = e.many(3, tenant(fmt.Sprint(i)))
		}
		var got []task.ID
		for range 12 {
			c := e.a.claim(limit(1)).Tasks
			e.require(len(c) == 1, "claimed %d", len(c))
			got = append(got, c[0].Task.ID)
		}
		for _, ids := range [][]task.ID{plain, of[0], of[1]} {
			e.equal("their order", slices.DeleteFunc(slices.Clone(got), func(id task.ID) bool { return !slices.Contains(ids, id) }), ids)
		}
		turns := 0
		for _, id := range got[:6] {
			if slices.Contains(plain, id) {
				turns++
			}
		}
		e.equal("of the type without turns, among the first six", turns, 3)
	}},
	{"a lane full of tasks that may not run delays no other in the same class", func(e *env) {
		e.many(400, tenant("a"), expires(time.Second))
		e.pass(2 * time.Second)
		id := e.one(tenant("b"))
		got := e.a.claim(limit(1)).Tasks
		e.require(len(got) == 1 && got[0].Task.ID == id, "claimed %d tasks, want the one that may run", len(got))
	}},
	{"a task of a group that is retried, paused or reaped goes back to its lane", func(e *env) {
		opts := []opt{tenant("a"), rated("k", 1000, time.Second, 1000)}
		failed, paused, lost := e.one(opts...), e.one(opts...), e.one(opts...)
		e.operate(store.PauseTask{Task: paused})
		e.fail(failed)
		e.operate(store.RetryTask{Task: failed})
		e.operate(store.ResumeTask{Task: paused})
		e.expire(e.a.take(lost))
		e.pass(time.Hour)
		want := store.LaneGroup(task.Options{FairBy: "tenant", RateLimit: task.Rate{Key: "k"}}, map[string]string{"tenant": "a"})
		for _, id := range []task.ID{failed, paused, lost} {
			e.equal("its group", e.dispatch(id)[0].Group, want)
		}
		e.equal("claimed", len(e.a.claim(limit(10)).Tasks), 3)
	}},
}

func names(list []store.LimitRow) (names []string) {
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names
}

func (e *env) limits(f store.LimitFilter) []store.LimitRow {
	e.Helper()
	page, err := e.s.Limits(e.Context(), e.ns, f)
	e.require(err == nil, "Limits: %v", err)
	e.near("the page's time", page.Now, e.now())
	return page.Limits
}
