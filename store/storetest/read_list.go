package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var listCases = []testCase{
	{"List returns the newest first, by id", func(e *env) {
		var ids []task.ID
		for range 4 {
			ids = append(ids, e.many(3)...)
			e.pass(10 * time.Millisecond)
		}
		e.lists(store.Filter{}, ids...)
		tasks, _, err := e.s.List(e.Context(), e.ns, store.Filter{})
		e.require(err == nil, "List: %v", err)
		for _, t := range tasks {
			e.equal("a task listed", t, e.task(t.ID))
		}
	}},
	{"List filters by state, as derived", func(e *env) {
		by := e.everySituation("x")
		for _, states := range append([][]task.State{
			{task.Ready, task.Failed, task.Pending}, {task.Running, task.Blocked}, task.States(),
		}, each(task.States())...) {
			var want []task.ID
			for _, s := range states {
				e.check(len(by[s]) > 0, "no task is %s", s)
				want = append(want, by[s]...)
			}
			e.lists(store.Filter{States: states}, want...)
		}
	}},
	{"List filters by type, queue, job and labels", func(e *env) {
		a := e.one(typed(alpha), queue("x"), labels("team", "red", "tier", "1"))
		b := e.one(typed(beta), queue("x"), labels("team", "red"))
		c := e.one(typed(beta), queue("y"), labels("team", "blue", "tier", "1"))
		g := e.job("n", "m: n")
		e.lists(store.Filter{Types: []string{beta}}, b, c)
		e.lists(store.Filter{Types: []string{beta, alpha, "acme.test.none.v1"}}, a, b, c, g.id("n"), g.id("m"))
		e.lists(store.Filter{Types: []string{"acme.test.none.v1"}})
		e.lists(store.Filter{Queue: "x"}, a, b)
		e.lists(store.Filter{Queue: "none"})
		e.lists(store.Filter{Job: g.sub.Job.ID}, g.id("n"), g.id("m"))
		e.lists(store.Filter{Job: e.newID()})
		e.lists(store.Filter{Labels: map[string]string{"team": "red"}}, a, b)
		e.lists(store.Filter{Labels: map[string]string{"team": "red", "tier": "1"}}, a)
		e.lists(store.Filter{Labels: map[string]string{"tier": "1"}}, a, c)
		e.lists(store.Filter{Labels: map[string]string{"tier": "2"}})
		e.lists(store.Filter{Labels: map[string]string{"tier": ""}})
		e.lists(store.Filter{Labels: map[string]string{"none": "1"}})
	}},
	{"filters combine", func(e *env) {
		want := e.one(typed(beta), queue("x"), labels("team", "red"))
		e.one(typed(alpha), queue("x"), labels("team", "red"))
		e.one(typed(beta), queue("y"), labels("team", "red"))
		e.one(typed(beta), queue("x"), labels("team", "blue"))
		e.succeed(e.one(typed(beta), queue("x"), labels("team", "red")))
		e.lists(store.Filter{
			States: []task.State{task.Ready, task.Pending}, Types: []string{beta}, Queue: "x", Labels: map[string]string{"team": "red"},
		}, want)
	}},
	{"a page has the size asked for", func(e *env) {
		e.many(1005)
		for limit, want := range map[int]int{0: 50, -3: 50, 1: 1, 50: 50, 1000: 1000, 5000: 1000} {
			got, next := e.list(store.Filter{Limit: limit})
			e.check(len(got) == want && next != "", "a page of %d has %d tasks and the cursor %q, want %d", limit, len(got), next, want)
		}
	}},
	{"paging shows every task once", func(e *env) {
		ids := e.many(250)
		for _, limit := range []int{1, 7, 50, 249, 250, 251} {
			e.pagesShow(store.Filter{Limit: limit}, ids...)
		}
	}},
	{"paging goes on where it was while the store changes", func(e *env) {
		want := e.many(250)
		slices.Reverse(want)
		got := e.pages(store.Filter{Limit: 20}, func(page []task.ID) {
			e.many(3) // newer than every page to come
			last := page[len(page)-1]
			e.succeed(last)
			e.operate(deleteOf(last))
		})
		e.check(slices.Equal(got, want), "pages show %d tasks, want each of %d once, newest first", len(got), len(want))
	}},
	{"paging under every filter shows every task once", func(e *env) {
		g := e.graph()
		var drafts []task.New
		for i := range 250 {
			switch i % 5 {
			case 0:
				drafts = append(drafts, e.draft(after(time.Minute), typed(beta), labels("team", "red")))
			case 1:
				drafts = append(drafts, e.draft(queue("paused"), labels("team", "red", "tier", "1")))
			case 2:
				drafts = append(drafts, e.draft(labels("tier", "1")))
				g.sub.Tasks = append(g.sub.Tasks, e.draft())
			default:
				drafts = append(drafts, e.draft(after(time.Duration(i%3)*time.Second/2)))
			}
		}
		e.enqueue(drafts...)
		g.submit()
		e.operate(pauseOf("paused"))
		e.pass(2 * time.Second)
		all := e.snap().Tasks
		for what, c := range map[string]struct {
			filter  store.Filter
			count   int
			belongs func(t task.Task) bool
		}{
			"ready":   {store.Filter{States: []task.State{task.Ready}}, 200, func(t task.Task) bool { return t.Type == alpha && t.Queue != "paused" }},
			"pending": {store.Filter{States: []task.State{task.Pending}}, 100, func(t task.Task) bool { return t.Type == beta || t.Queue == "paused" }},
			"beta":    {store.Filter{Types: []string{beta}}, 50, func(t task.Task) bool { return t.Type == beta }},
			"paused":  {store.Filter{Queue: "paused"}, 50, func(t task.Task) bool { return t.Queue == "paused" }},
			"red":     {store.Filter{Labels: map[string]string{"team": "red"}}, 100, func(t task.Task) bool { return t.Labels["team"] == "red" }},
			"tier 1":  {store.Filter{Labels: map[string]string{"team": "red", "tier": "1"}}, 50, func(t task.Task) bool { return t.Queue == "paused" }},
			"job":     {store.Filter{Job: g.sub.Job.ID}, 50, func(t task.Task) bool { return !t.JobID.IsZero() }},
		} {
			want := mapped(of(all, c.belongs), idOf)
			e.equal("the "+what+" tasks", len(want), c.count)
			c.filter.Limit = 13
			e.pagesShow(c.filter, want...)
		}
	}},
	{"paging by state shows every task once", func(e *env) {
		want := map[task.State][]task.ID{}
		ends := []func(store.Claimed) store.Finish{success, dead, block, cancelled, nil}
		states := []task.State{task.Succeeded, task.Failed, task.Blocked, task.Cancelled, task.Running}
		var fs []store.Finish
		for i, c := range e.a.takeAll(e.many(100)...) {
			if end := ends[i%len(ends)]; end != nil {
				fs = append(fs, end(c))
			}
			want[states[i%len(ends)]] = append(want[states[i%len(ends)]], c.Task.ID)
		}
		e.finishAll(fs...)
		for _, asked := range append(each(states), []task.State{task.Running, task.Failed}) {
			var ids []task.ID
			for _, s := range asked {
				ids = append(ids, want[s]...)
			}
			e.pagesShow(store.Filter{States: asked, Limit: 3}, ids...)
		}
	}},
	{"a foreign cursor is refused", func(e *env) {
		e.many(3)
		_, good := e.list(store.Filter{Limit: 1})
		for _, cursor := range []string{"garbage", "0", "'", good + "x", good[:len(good)-1], "\x00\xff"} {
			_, _, err := e.s.List(e.Context(), e.ns, store.Filter{After: cursor})
			e.wantErr(fmt.Sprintf("List after %q", cursor), err, store.ErrBadCursor)
			_, _, err = e.s.Jobs(e.Context(), e.ns, store.JobFilter{After: cursor})
			e.wantErr(fmt.Sprintf("Jobs after %q", cursor), err, store.ErrBadCursor)
		}
	}},
	{"a page after an id holds what is older, whether or not that id is one's", func(e *env) {
		g := e.job("a", "b")
		older, id := e.one(), e.newID()
		newer := e.one()
		all := []task.ID{newer, older, g.id("b"), g.id("a")}
		for _, limit := range []int{0, 10} {
			got, _ := e.list(store.Filter{Limit: limit, After: id.String()})
			e.check(slices.Equal(got, all[1:]), "after an id that no task has: %v, want %v", got, all[1:])
			got, _ = e.list(store.Filter{Limit: limit, After: newer.String()})
			e.check(slices.Equal(got, all[1:]), "after a task's id: %v, want %v", got, all[1:])
			got, _ = e.list(store.Filter{Limit: limit, After: "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"})
			e.check(slices.Equal(got, all), "after the last id there can be: %v, want %v", got, all)
		}
		for after, want := range map[task.ID]int{id: 1, g.sub.Job.ID: 0} {
			jobs, _, err := e.s.Jobs(e.Context(), e.ns, store.JobFilter{After: after.String()})
			e.check(err == nil && len(jobs) == want, "Jobs after %s: %d jobs, %v; want %d", after, len(jobs), err, want)
		}
	}},
	{"Jobs returns the newest first and filters", func(e *env) {
		named := func(name string, nodes ...string) *graph {
			g := e.graph(nodes...)
			g.sub.Job.Name = name
			return g.submit()
		}
		running, done, failed := named("x", "a"), named("x", "a"), named("y", "a")
		blocked, cancelled := named("y", "a"), named("z", "a")
		e.succeed(done.id("a"))
		e.fail(failed.id("a"))
		e.blockTask(blocked.id("a"))
		cancelled.cancelsJob()
		e.jobsList(store.JobFilter{}, cancelled, blocked, failed, done, running)
		e.jobsList(store.JobFilter{Name: "x"}, done, running)
		e.jobsList(store.JobFilter{Name: "none"})
		e.jobsList(store.JobFilter{States: []task.JobState{task.JobFailed, task.JobRunning}}, failed, running)
		e.jobsList(store.JobFilter{States: []task.JobState{task.JobBlocked}}, blocked)
		e.jobsList(store.JobFilter{States: []task.JobState{task.JobCancelled}}, cancelled)
		e.jobsList(store.JobFilter{States: []task.JobState{task.JobSucceeded}, Name: "x"}, done)
		e.jobsList(store.JobFilter{States: []task.JobState{task.JobSucceeded}, Name: "y"})
	}},
	{"paging shows every job once", func(e *env) {
		var want []task.ID
		for range 60 {
			want = append(want, e.job("a").sub.Job.ID)
		}
		slices.Reverse(want)
		for _, limit := range []int{1, 7, 59, 60} {
			var got []task.ID
			f := store.JobFilter{Limit: limit}
			for range 100 {
				page, next, err := e.s.Jobs(e.Context(), e.ns, f)
				e.require(err == nil, "Jobs: %v", err)
				got = append(got, mapped(page, jobIDOf)...)
				if f.After = next; next == "" {
					break
				}
			}
			e.check(slices.Equal(got, want), "pages of %d show %d jobs, want each of %d once, newest first", limit, len(got), len(want))
		}
		got, next, err := e.s.Jobs(e.Context(), e.ns, store.JobFilter{})
		e.check(err == nil && len(got) == 50 && next != "", "a page without a limit has %d jobs and the cursor %q, %v", len(got), next, err)
	}},
}

// list returns one page of ids.
func (e *env) list(f store.Filter) ([]task.ID, string) {
	e.Helper()
	got, next, err := e.s.List(e.Context(), e.ns, f)
	e.require(err == nil, "List(%+v): %v", f, err)
	return mapped(got, idOf), next
}

// lists expects a filter to select exactly these tasks, newest first.
func (e *env) lists(f store.Filter, want ...task.ID) {
	e.Helper()
	slices.SortFunc(want, func(x, y task.ID) int { return y.Compare(x) })
	got, next := e.list(f)
	e.check(slices.Equal(got, want) && next == "", "List(%+v) = %v, %q, want %v", f, got, next, want)
}

// pages follows the cursor to the end.
func (e *env) pages(f store.Filter, each func(page []task.ID)) []task.ID {
	e.Helper()
	var all []task.ID
	for range 1000 {
		page, next := e.list(f)
		e.require(len(page) <= store.PageLimit(f.Limit), "a page of %d has %d tasks", f.Limit, len(page))
		all = append(all, page...)
		if next == "" {
			return all
		}
		f.After = next
		if each != nil {
			each(page)
		}
	}
	e.Fatalf("List does not come to an end")
	return nil
}

// pagesShow expects the pages of a filter to show exactly these tasks once,
// newest first.
func (e *env) pagesShow(f store.Filter, want ...task.ID) {
	e.Helper()
	slices.SortFunc(want, func(x, y task.ID) int { return y.Compare(x) })
	got := e.pages(f, nil)
	e.check(slices.Equal(got, want), "the pages of %+v show %d tasks, want each of %d once, newest first", f, len(got), len(want))
}

// everySituation enqueues one task per situation and returns the IDs by the state that readers see.
func (e *env) everySituation(name string) map[task.State][]task.ID {
	e.Helper()
	var ids []task.ID
	for _, st := range situations {
		s := &subject{queue: name + "/" + st.name}
		st.reach(e, s)
		for _, id := range []task.ID{s.id, s.need, s.other, s.holder.Task.ID} {
			if !id.IsZero() {
				ids = append(ids, id)
			}
		}
	}
	by := map[task.State][]task.ID{}
	for _, t := range e.tasks(ids...) {
		by[t.State] = append(by[t.State], t.ID)
	}
	return by
}

// jobsList expects a filter to select exactly these jobs, in this order.
func (e *env) jobsList(f store.JobFilter, want ...*graph) {
	e.Helper()
	got, next, err := e.s.Jobs(e.Context(), e.ns, f)
	e.require(err == nil && next == "", "Jobs(%+v): cursor %q, %v", f, next, err)
	wanted := mapped(want, func(g *graph) task.ID { return g.sub.Job.ID })
	e.equal(fmt.Sprintf("Jobs(%+v)", f), mapped(got, jobIDOf), wanted)
}

func jobIDOf(j task.Job) task.ID { return j.ID }

// each wraps every element in a list.
func each[T any](all []T) [][]T {
	var out [][]T
	for i := range all {
		out = append(out, all[i:i+1:i+1])
	}
	return out
}
