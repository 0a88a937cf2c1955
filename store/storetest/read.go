package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var readCases = []testCase{
	{"Tasks returns those that exist, in the order asked", func(e *env) {
		ids := e.many(5)
		asked := []task.ID{ids[3], e.newID(), ids[0], ids[4]}
		got, err := e.s.Tasks(e.Context(), e.ns, asked...)
		e.require(err == nil, "Tasks: %v", err)
		e.equal("the tasks", mapped(got, idOf), []task.ID{ids[3], ids[0], ids[4]})
		got, err = e.s.Tasks(e.Context(), e.ns)
		e.check(err == nil && len(got) == 0, "Tasks of nothing = %v, %v", got, err)
		all := e.many(1500)
		slices.Reverse(all)
		for i, t := range e.tasks(all...) {
			e.require(t.ID == all[i], "task %d of %d is %v, want %v", i, len(all), t.ID, all[i])
		}
	}},
	{"a history holds all that was recorded", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.record(step(c, "one", `1`))
		e.finish(retry(c, 0))
		e.expire(e.b.take(id))
		c = e.a.take(id)
		e.record(try(c, "two", 1))
		e.finish(block(c))
		e.operate(unblockOf(id, ""))
		e.succeed(id)
		h := e.history(id)
		attempts := mapped(h.Attempts, func(a task.Attempt) string { return fmt.Sprint(a.No, a.Outcome, a.Worker) })
		decisions := mapped(h.Decisions, func(d task.Decision) string { return fmt.Sprint(d.AttemptNo, d.Kind) })
		steps := mapped(h.Steps, func(s task.Step) string { return fmt.Sprint(s.Name, s.AttemptNo, s.State) })
		audit := mapped(h.Audit, func(a store.AuditEntry) string { return a.Verb + " " + a.Target })
		e.equal("the task", h.Task, e.task(id))
		e.equal("the attempts", attempts, []string{
			fmt.Sprint(1, task.OutcomeFailure, "A"), fmt.Sprint(2, task.OutcomeLeaseLost, "B"),
			fmt.Sprint(3, task.OutcomeFailure, "A"), fmt.Sprint(4, task.OutcomeSuccess, "A"),
		})
		e.equal("the decisions", decisions, []string{fmt.Sprint(1, task.DecideRetry), fmt.Sprint(3, task.DecideBlock)})
		e.equal("the steps", steps, []string{fmt.Sprint("one", 1, task.StepCompleted), fmt.Sprint("two", 3, task.StepFailed)})
		e.equal("the audit", audit, []string{"unblock " + id.String()})
		for i := 1; i < len(h.Attempts); i++ {
			e.check(h.Attempts[i].Epoch > h.Attempts[i-1].Epoch, "I4 the epochs of the attempts do not grow: %+v", h.Attempts)
		}
	}},
	{"a history shows the running attempt", func(e *env) {
		id := e.one()
		e.finish(retry(e.a.take(id), 0))
		c := e.b.take(id)
		h := e.history(id)
		e.require(len(h.Attempts) == 2, "%d attempts, want 2", len(h.Attempts))
		a := h.Attempts[1]
		e.equal("the running attempt", a, task.Attempt{
			TaskID: id, No: 2, Epoch: c.Lease.Epoch, LeaseID: c.Lease.ID, Worker: "B", CodeVersion: a.CodeVersion, StartedAt: c.Task.StartedAt,
		})
		e.equal("the attempts of the snapshot", len(e.snap().Attempts), 1)
	}},
	{"Job returns the job that Jobs lists", func(e *env) {
		g := e.job("a", "b: a")
		e.job("a")
		e.succeed(g.id("a"))
		list, _, err := e.s.Jobs(e.Context(), e.ns, store.JobFilter{})
		e.require(err == nil && len(list) == 2, "Jobs = %v, %v", list, err)
		e.equal("the job", g.read(), list[1])
	}},
	{"Job and History of an id that names none are not found", func(e *env) {
		g := e.job("a")
		for _, id := range []task.ID{e.newID(), g.id("a"), {}} {
			_, err := store.JobOf(e.Context(), e.s, e.ns, id)
			e.wantErr("Job", err, store.ErrNotFound)
		}
		for _, id := range []task.ID{e.newID(), g.sub.Job.ID, {}} {
			_, err := e.s.History(e.Context(), e.ns, id)
			e.wantErr("History", err, store.ErrNotFound)
		}
	}},
	{"Needs and a history return what a task needs, by ID", func(e *env) {
		g := e.job("a", "b", "c", "d", "e: *d !b a *c", "f: !e")
		e.succeed(g.id("a"))
		e.fail(g.id("b"))
		e.blockTask(g.id("c"))
		e.a.take(g.id("d"))
		want := []store.Need{
			{ID: g.id("a"), Node: "a", Kind: task.OnSuccess, State: task.Succeeded, Done: true},
			{ID: g.id("b"), Node: "b", Kind: task.OnFailed, State: task.Failed, Done: true, ErrorKind: task.KindHandler},
			{ID: g.id("c"), Node: "c", Kind: task.OnDone, State: task.Blocked},
			{ID: g.id("d"), Node: "d", Kind: task.OnDone, State: task.Running},
		}
		e.equal("the needs", e.needs(g.id("e")), want)
		h := e.history(g.id("e"))
		e.equal("the needs in the history", h.Needs, want)
		e.equal("the dependents", h.Dependents, []store.Need{{ID: g.id("f"), Node: "f", Kind: task.OnFailed, State: task.Pending}})
	}},
	{"Needs of tasks without a job have no node and the state that readers see", func(e *env) {
		paused, later, needy := e.draft(queue("paused")), e.draft(after(time.Second)), e.draft()
		needy.Needs = []task.Edge{{Needs: later.ID, Kind: task.OnSuccess}, {Needs: paused.ID, Kind: task.OnSuccess}}
		e.enqueue(paused, later, needy)
		e.operate(pauseOf("paused"))
		e.pass(2 * time.Second)
		e.equal("the needs", e.needs(needy.ID), []store.Need{
			{ID: paused.ID, Kind: task.OnSuccess, State: task.Pending}, {ID: later.ID, Kind: task.OnSuccess, State: task.Ready},
		})
	}},
	{"Needs is empty for a task without needs and for unknown ids", func(e *env) {
		g := e.job("a", "b: a")
		for _, id := range []task.ID{g.id("a"), e.one(), e.newID(), g.sub.Job.ID, {}} {
			e.equal("the number of needs", len(e.needs(id)), 0)
		}
	}},
	{"a queue counts what is due and what comes later", func(e *env) {
		e.many(3, queue("x"))
		e.many(2, queue("x"), typed(beta), priority(1))
		e.many(4, queue("x"), after(5*time.Second))
		e.many(2, queue("y"), after(time.Second))
		e.job("a", "b: a")
		e.operate(pauseOf("empty"))
		e.equal("the queues", e.queueList(), map[string]store.Queue{
			"x": {Name: "x", Due: n(5), Later: n(4)}, "y": {Name: "y", Later: n(2)},
			task.DefaultQueue: {Name: task.DefaultQueue, Due: n(1)}, "empty": {Name: "empty", Paused: true},
		})
		e.pass(2 * time.Second)
		e.a.claim(queues(map[string]int{"x": 1}))
		got := e.queueList()
		e.equal("queue x", got["x"], store.Queue{Name: "x", Due: n(4), Later: n(4), Running: n(1)})
		e.equal("queue y", got["y"], store.Queue{Name: "y", Due: n(2)})
	}},
	{"a queue without rows, running tasks or pause is not listed", func(e *env) {
		id := e.one(queue("x"))
		e.succeed(id)
		e.operate(pauseOf("y"))
		e.operate(resumeOf("y"))
		e.equal("the queues", e.queueList(), map[string]store.Queue{})
	}},
	{"a snapshot is sorted by key", func(e *env) {
		g := e.job("a", "b: a", "c: a b", "d: *a *b *c")
		for i := range 3 {
			ids := e.many(3, key(fmt.Sprintf("k%d", 2-i), 1), queue(fmt.Sprintf("q%d", 2-i)))
			c := e.a.take(ids[2])
			e.record(step(c, "y", `1`))
			e.record(step(c, "x", `1`))
			e.finish(retry(c, 0))
			e.a.take(ids[1])
			e.b.getsNothing(only(ids...))
			e.operate(pauseOf(fmt.Sprintf("q%d", 2-i)))
		}
		e.succeed(g.id("a"))
		s := e.snap()
		byTask := func(what string, n int, id func(i int) task.ID) {
			e.Helper()
			for i := 1; i < n; i++ {
				if id(i).Compare(id(i-1)) < 0 {
					e.Errorf("the %s are not sorted by task", what)
					return
				}
			}
		}
		byTask("tasks", len(s.Tasks), func(i int) task.ID { return s.Tasks[i].ID })
		byTask("edges", len(s.Edges), func(i int) task.ID { return s.Edges[i].Task })
		byTask("attempts", len(s.Attempts), func(i int) task.ID { return s.Attempts[i].TaskID })
		byTask("decisions", len(s.Decisions), func(i int) task.ID { return s.Decisions[i].TaskID })
		byTask("steps", len(s.Steps), func(i int) task.ID { return s.Steps[i].TaskID })
		byTask("dispatch rows", len(s.Dispatch), func(i int) task.ID { return s.Dispatch[i].Task })
		e.check(slices.IsSortedFunc(s.Keys, func(x, y store.KeyRow) int { return strings.Compare(x.Key, y.Key) }), "the keys are not sorted: %v", s.Keys)
		e.check(slices.IsSortedFunc(s.Waiters, func(x, y store.WaiterRow) int { return strings.Compare(x.Key, y.Key) }), "the waiters are not sorted by key: %v", s.Waiters)
		e.check(slices.IsSorted(s.Paused) && len(s.Paused) == 3 && len(s.Waiters) == 6 && len(s.Keys) == 3, "paused %v, waiters %v, keys %v; want 3, 6 and 3", s.Paused, s.Waiters, s.Keys)
		e.near("Now", s.Now, e.now())
	}},
	{"an empty store reads as empty", func(e *env) {
		s := e.snap()
		e.check(s.Generation != "" && len(s.Tasks)+len(s.Jobs)+len(s.Dispatch)+len(s.Audit) == 0, "the snapshot of an empty store is %+v", s)
		e.lists(store.Filter{})
		e.jobsList(store.JobFilter{})
		e.equal("the queues", e.queueList(), map[string]store.Queue{})
		e.a.getsNothing()
	}},
	{"reading changes nothing", func(e *env) {
		g := e.job("a", "b: a")
		id := e.one(after(time.Second))
		e.a.take(g.id("a"))
		e.pass(2 * time.Second)
		e.unchanged("reading", func() {
			e.is(id, task.Ready, task.WaitNone)
			e.history(id)
			e.history(g.id("a"))
			g.read()
			e.queueList()
			e.list(store.Filter{States: []task.State{task.Ready}})
		})
	}},
}

// needs returns the needs of a task.
func (e *env) needs(id task.ID) []store.Need {
	e.Helper()
	got, err := e.s.Needs(e.Context(), e.ns, id)
	e.require(err == nil, "Needs of %v: %v", id, err)
	return got
}
