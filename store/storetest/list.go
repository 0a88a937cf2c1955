package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var listScenes = []scene{
	{"newest first, by id", newestFirst},
	{"filters by state, as derived", byState},
	{"filters by several states at once", byStates},
	{"filters by type, queue, job and labels", byAttributes},
	{"filters combine", byAll},
	{"page sizes", pageSizes},
	{"paging shows every task once", everyTaskOnce},
	{"paging goes on where it was while the store changes", pagingWhileChanging},
	{"paging under every filter", pagingFiltered},
	{"a foreign cursor is refused", badCursor},
	{"jobs are listed newest first and filtered", jobFilters},
	{"paging shows every job once", everyJobOnce},
}

// list returns one page of ids.
func (e *env) list(f store.Filter) ([]task.ID, string) {
	e.Helper()
	got, next, err := e.s.List(e.Context(), e.ns, f)
	if err != nil {
		e.Fatalf("List(%+v): %v", f, err)
	}
	var ids []task.ID
	for _, t := range got {
		ids = append(ids, t.ID)
	}
	return ids, next
}

// lists expects a filter to select exactly these, newest first.
func (e *env) lists(f store.Filter, want ...task.ID) {
	e.Helper()
	slices.SortFunc(want, func(x, y task.ID) int { return y.Compare(x) })
	got, next := e.list(f)
	if !slices.Equal(got, want) || next != "" {
		e.Errorf("List(%+v) = %v, %q, want %v", f, got, next, want)
	}
}

// pages follows the cursor to the end.
func (e *env) pages(f store.Filter, each func(page []task.ID)) []task.ID {
	e.Helper()
	var all []task.ID
	for range 1000 {
		page, next := e.list(f)
		if len(page) > store.PageLimit(f.Limit) {
			e.Fatalf("a page of %d has %d tasks", f.Limit, len(page))
		}
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

func newestFirst(e *env) {
	var ids []task.ID
	for range 4 {
		ids = append(ids, e.many(3)...)
		e.pass(10 * time.Millisecond)
	}
	e.lists(store.Filter{}, ids...)
	tasks, _, err := e.s.List(e.Context(), e.ns, store.Filter{})
	if err != nil {
		e.Fatalf("List: %v", err)
	}
	for _, t := range tasks {
		e.equal("a task listed", t, e.task(t.ID))
	}
}

// cast enqueues one task of every stance and returns the ids by the state
// that readers see.
func (e *env) cast(name string) map[task.State][]task.ID {
	e.Helper()
	var ids []task.ID
	for _, st := range stances {
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

func byState(e *env) {
	by := e.cast("x")
	for _, state := range task.States() {
		if len(by[state]) == 0 {
			e.Errorf("no task is %s", state)
		}
		e.lists(store.Filter{States: []task.State{state}}, by[state]...)
	}
}

func byStates(e *env) {
	by := e.cast("x")
	want := slices.Concat(by[task.Ready], by[task.Failed], by[task.Pending])
	e.lists(store.Filter{States: []task.State{task.Ready, task.Failed, task.Pending}}, want...)
	want = slices.Concat(by[task.Running], by[task.Blocked])
	e.lists(store.Filter{States: []task.State{task.Running, task.Blocked}}, want...)
	var all []task.ID
	for _, ids := range by {
		all = append(all, ids...)
	}
	e.lists(store.Filter{States: task.States()}, all...)
}

func byAttributes(e *env) {
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
}

func byAll(e *env) {
	want := e.one(typed(beta), queue("x"), labels("team", "red"))
	e.one(typed(alpha), queue("x"), labels("team", "red"))
	e.one(typed(beta), queue("y"), labels("team", "red"))
	e.one(typed(beta), queue("x"), labels("team", "blue"))
	e.succeed(e.one(typed(beta), queue("x"), labels("team", "red")))
	e.lists(store.Filter{
		States: []task.State{task.Ready, task.Pending}, Types: []string{beta}, Queue: "x", Labels: map[string]string{"team": "red"},
	}, want)
}

func pageSizes(e *env) {
	e.many(1005)
	for limit, want := range map[int]int{0: 50, -3: 50, 1: 1, 50: 50, 1000: 1000, 5000: 1000} {
		got, next := e.list(store.Filter{Limit: limit})
		if len(got) != want || next == "" {
			e.Errorf("a page of %d has %d tasks and the cursor %q, want %d", limit, len(got), next, want)
		}
	}
}

func everyTaskOnce(e *env) {
	want := e.many(250)
	slices.Reverse(want)
	for _, limit := range []int{1, 7, 50, 249, 250, 251} {
		if got := e.pages(store.Filter{Limit: limit}, nil); !slices.Equal(got, want) {
			e.Errorf("pages of %d show %d tasks, want each of %d once, newest first", limit, len(got), len(want))
		}
	}
}

func pagingWhileChanging(e *env) {
	want := e.many(250)
	slices.Reverse(want)
	got := e.pages(store.Filter{Limit: 20}, func(page []task.ID) {
		e.many(3) // newer than every page to come
		last := page[len(page)-1]
		e.succeed(last)
		e.operate(store.DeleteTask{Task: last})
	})
	if !slices.Equal(got, want) {
		e.Errorf("pages show %d tasks, want each of %d once, newest first", len(got), len(want))
	}
}

func pagingFiltered(e *env) {
	want := map[string][]task.ID{}
	g := e.graph()
	var drafts []task.New
	for i := range 250 {
		switch i % 5 {
		case 0:
			drafts = append(drafts, e.draft(after(time.Minute), typed(beta), labels("team", "red")))
			want["beta"] = append(want["beta"], drafts[i].ID)
			want["red"] = append(want["red"], drafts[i].ID)
		case 1:
			drafts = append(drafts, e.draft(queue("paused"), labels("team", "red", "tier", "1")))
			want["paused"] = append(want["paused"], drafts[i].ID)
			want["red"] = append(want["red"], drafts[i].ID)
			want["tier 1"] = append(want["tier 1"], drafts[i].ID)
		case 2:
			drafts = append(drafts, e.draft(labels("tier", "1")))
			want["ready"] = append(want["ready"], drafts[i].ID)
			g.sub.Tasks = append(g.sub.Tasks, e.draft())
			want["job"] = append(want["job"], g.sub.Tasks[len(g.sub.Tasks)-1].ID)
		default:
			drafts = append(drafts, e.draft(after(time.Duration(i%3)*time.Second/2)))
			want["ready"] = append(want["ready"], drafts[i].ID)
		}
	}
	e.enqueue(drafts...)
	g.submit()
	e.operate(store.PauseQueue{Queue: "paused"})
	e.pass(2 * time.Second)
	for _, t := range e.tasks(want["job"]...) {
		want["ready"] = append(want["ready"], t.ID)
	}
	filters := map[string]store.Filter{
		"ready":  {States: []task.State{task.Ready}},
		"beta":   {Types: []string{beta}},
		"paused": {Queue: "paused"},
		"red":    {Labels: map[string]string{"team": "red"}},
		"tier 1": {Labels: map[string]string{"team": "red", "tier": "1"}},
		"job":    {Job: g.sub.Job.ID},
	}
	for what, f := range filters {
		f.Limit = 13
		slices.SortFunc(want[what], func(x, y task.ID) int { return y.Compare(x) })
		if got := e.pages(f, nil); !slices.Equal(got, want[what]) {
			e.Errorf("pages of %s tasks show %d, want each of %d once, newest first", what, len(got), len(want[what]))
		}
	}
	if got := e.pages(store.Filter{States: []task.State{task.Pending}, Limit: 13}, nil); len(got) != 100 {
		e.Errorf("pages of pending tasks show %d, want 100", len(got))
	}
	e.endStates()
}

// endStates pages through tasks that ended, failed, block or run.
func (e *env) endStates() {
	e.Helper()
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
	for state, ids := range want {
		slices.Reverse(ids)
		if got := e.pages(store.Filter{States: []task.State{state}, Limit: 3}, nil); !slices.Equal(got, ids) {
			e.Errorf("pages of %s tasks show %d, want each of %d once, newest first", state, len(got), len(ids))
		}
	}
	both := append(slices.Clone(want[task.Failed]), want[task.Running]...)
	slices.SortFunc(both, func(x, y task.ID) int { return y.Compare(x) })
	if got := e.pages(store.Filter{States: []task.State{task.Running, task.Failed}, Limit: 3}, nil); !slices.Equal(got, both) {
		e.Errorf("pages of two states show %d tasks, want each of %d once, newest first", len(got), len(both))
	}
}

func badCursor(e *env) {
	e.many(3)
	_, good := e.list(store.Filter{Limit: 1})
	for _, cursor := range []string{"garbage", "0", "'", good + "x", good[:len(good)-1], "\x00\xff"} {
		if _, _, err := e.s.List(e.Context(), e.ns, store.Filter{After: cursor}); !errors.Is(err, store.ErrBadCursor) {
			e.Errorf("List after %q: %v, want %q", cursor, err, store.ErrBadCursor)
		}
		if _, _, err := e.s.Jobs(e.Context(), e.ns, store.JobFilter{After: cursor}); !errors.Is(err, store.ErrBadCursor) {
			e.Errorf("Jobs after %q: %v, want %q", cursor, err, store.ErrBadCursor)
		}
	}
}

// jobsList expects a filter to select exactly these jobs, in this order.
func (e *env) jobsList(f store.JobFilter, want ...*graph) {
	e.Helper()
	got, next, err := e.s.Jobs(e.Context(), e.ns, f)
	if err != nil || next != "" {
		e.Fatalf("Jobs(%+v): cursor %q, %v", f, next, err)
	}
	var names, wanted []string
	for _, j := range got {
		names = append(names, j.ID.String())
	}
	for _, g := range want {
		wanted = append(wanted, g.sub.Job.ID.String())
	}
	e.equal(fmt.Sprintf("Jobs(%+v)", f), names, wanted)
}

func jobFilters(e *env) {
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
}

func everyJobOnce(e *env) {
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
			if err != nil {
				e.Fatalf("Jobs: %v", err)
			}
			for _, j := range page {
				got = append(got, j.ID)
			}
			if f.After = next; next == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			e.Errorf("pages of %d show %d jobs, want each of %d once, newest first", limit, len(got), len(want))
		}
	}
	if got, next, err := e.s.Jobs(e.Context(), e.ns, store.JobFilter{}); err != nil || len(got) != 50 || next == "" {
		e.Errorf("a page without a limit has %d jobs and the cursor %q, %v", len(got), next, err)
	}
}
