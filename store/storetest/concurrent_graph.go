package storetest

import (
	"fmt"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var concurrentGraphCases = []testCase{
	{"R-15 the last two parents at the same instant release the child once", func(e *env) {
		e.atOnce([2]string{"a", "b"}, [2]func(store.Claimed) store.Finish{success, success}, []string{"a", "b", "child: a b"},
			func(g *graph) {
				e.readyOnce(g.id("child"))
				g.counts(task.JobSucceeded, 3, 0, 0, 0, 3)
			})
	}},
	{"R-15 a skipped parent and one that finishes at the same instant release the child once", func(e *env) {
		e.atOnce([2]string{"bad", "good"}, [2]func(store.Claimed) store.Finish{dead, success},
			[]string{"bad", "good", "skipped: bad", "child: *skipped good"},
			func(g *graph) {
				e.readyOnce(g.id("child"))
				g.counts(task.JobFailed, 4, 0, 0, 2, 2)
			})
	}},
	{"R-15 R-16 the last two children at the same instant make their parent claimable once", func(e *env) {
		for _, join := range []task.Join{task.JoinRerun, task.JoinComplete} {
			e.childrenAtOnce(join, func(parent task.ID) []store.Command { return nil }, func(parent task.ID) {
				if join == task.JoinRerun {
					e.readyOnce(parent)
				}
				e.is(parent, task.Succeeded, task.WaitNone)
			})
		}
	}},
	{"R-18 a parent that is cancelled while its last children end has ended once, and so have they", func(e *env) {
		e.childrenAtOnce(task.JoinComplete, func(parent task.ID) []store.Command { return []store.Command{cancelOf(parent)} }, func(parent task.ID) {
			t := e.task(parent)
			e.check(t.State == task.Succeeded || t.State == task.Cancelled, "the parent is %s", t.State)
		})
	}},
	{"R-17 pause, claim and resume at once leave one row or one lease", func(e *env) {
		both := e.stores()
		for round := range e.batches(10) {
			q := fmt.Sprint("q", round)
			ids := e.many(10, queue(q))
			var claimed []store.Claimed
			operate := func(s store.Store, cmds ...store.Command) {
				for _, cmd := range cmds {
					_, err := s.Operate(e.Context(), e.ns, cmd)
					e.check(err == nil, "Operate: %v", err)
				}
			}
			e.together(
				func() { operate(both[0], pauseOf(q), resumeOf(q)) },
				func() { operate(both[1], pauseOf(q), resumeOf(q)) },
				func() {
					for range 5 {
						claimed = append(claimed, e.claimOn(both[1], queues(map[string]int{q: 2}))...)
					}
				},
			)
			e.operate(resumeOf(q))
			rows := map[task.ID]int{}
			for _, d := range e.snap().Dispatch {
				rows[d.Task]++
			}
			for _, c := range claimed {
				rows[c.Task.ID] += 1
				e.equal("the lease of a claimed task", e.task(c.Task.ID).LeaseID, c.Lease.ID)
			}
			for _, id := range ids {
				e.check(rows[id] == 1, "a task has %d dispatch rows and leases, want one", rows[id])
			}
		}
	}},
	{"R-19 finishers with crossing children and a CancelJob end every task", func(e *env) {
		const width = 6
		both := e.stores()
		for range e.batches(20) {
			var spec []string
			for i := range width {
				spec = append(spec, fmt.Sprintf("p%d", i))
			}
			for i := range width {
				spec = append(spec, fmt.Sprintf("c%d: *p%d *p%d p%d", i, i, (i+1)%width, (i+3)%width))
			}
			g := e.job(spec...)
			cs := e.a.takeAll(g.all(spec[:width]...)...)
			var got [2][]store.FinishResult
			var cancel []store.CommandResult
			e.together(
				func() { got[0] = e.finishEach(both[0], finishes(cs[:width/2], success)) },
				func() { got[1] = e.finishEach(both[1], finishes(cs[width/2:], dead)) },
				func() {
					var err error
					cancel, err = both[0].Operate(e.Context(), e.ns, cancelJobOf(g.sub.Job.ID))
					e.check(err == nil, "Operate: %v", err)
				},
			)
			for _, half := range got {
				for _, r := range half {
					e.check(r.Err == nil && r.State.Terminal(), "Finish answered %+v", r)
				}
			}
			e.check(len(cancel) == 1 && cancel[0].Err == nil && cancel[0].Cancelled+cancel[0].AskedTasks+cancel[0].AlreadyDone == 2*width, "CancelJob of %d tasks answered %+v", 2*width, cancel)
			var sum task.JobCounters
			for _, t := range e.tasks(mapped(g.sub.Tasks, draftID)...) {
				sum = sum.Add(task.Count(t.End(), t.Waiting, t.Join, !t.ReadyAt.IsZero()))
				e.check(t.State.Terminal(), "a task of the cancelled job is %s/%s", t.State, t.Waiting)
			}
			j := g.read()
			e.check(j.Counters == sum && j.State.Terminal(), "the job is %s with %+v, its tasks add up to %+v", j.State, j.Counters, sum)
		}
	}},
}

// atOnce runs graphs in which the tasks of two nodes finish at the same instant, on two handles.
func (e *env) atOnce(nodes [2]string, ends [2]func(store.Claimed) store.Finish, spec []string, then func(g *graph)) {
	e.Helper()
	both := e.stores()
	for range e.batches(20) {
		var graphs []*graph
		var fs [2][]store.Finish
		for range 10 {
			g := e.job(spec...)
			graphs = append(graphs, g)
			for i, n := range nodes {
				fs[i] = append(fs[i], ends[i](e.a.take(g.id(n))))
			}
		}
		var got [2][]store.FinishResult
		e.together(
			func() { got[0] = e.finishEach(both[0], fs[0]) },
			func() { got[1] = e.finishEach(both[1], fs[1]) },
		)
		for i, g := range graphs {
			for _, half := range got {
				e.check(half[i].Err == nil, "Finish: %v", half[i].Err)
			}
			then(g)
		}
	}
}

// childrenAtOnce ends the two children of tasks at the same instant on two handles, while commands act on the
// parents. It then checks each parent.
func (e *env) childrenAtOnce(join task.Join, cmds func(parent task.ID) []store.Command, then func(parent task.ID)) {
	e.Helper()
	both := e.stores()
	for range e.batches(20) {
		var parents []task.ID
		var fs [2][]store.Finish
		for range 10 {
			parents = append(parents, e.one())
			kids := e.decomposed(parents[len(parents)-1], join, 2)
			for i := range kids {
				fs[i] = append(fs[i], success(e.a.take(kids[i])))
			}
		}
		var got [2][]store.FinishResult
		e.together(
			func() { got[0] = e.finishEach(both[0], fs[0]) },
			func() { got[1] = e.finishEach(both[1], fs[1]) },
			func() {
				for _, p := range parents {
					if list := cmds(p); len(list) > 0 {
						_, err := both[1].Operate(e.Context(), e.ns, list...)
						e.check(err == nil, "Operate: %v", err)
					}
				}
			},
		)
		for i, p := range parents {
			for _, half := range got {
				e.check(half[i].Err == nil && half[i].State == task.Succeeded, "a child ended %s, %v", half[i].State, half[i].Err)
			}
			then(p)
		}
	}
}
