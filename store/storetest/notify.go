package storetest

import (
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var notifyCases = []testCase{
	{"due work is announced", func(e *env) {
		l := e.listen()
		due := func(what string, do func()) {
			e.Helper()
			got := l.during(do)
			e.check(got.Due, "%s: nothing due was announced: %+v", what, got)
		}
		g := e.graph("a", "b: a")
		due("an enqueue", func() { g.submit() })
		due("an enqueue for later", func() { e.one(after(time.Second)) })
		due("the release of a dependent", func() { e.succeed(g.id("a")) })
		id := e.one()
		c := e.a.take(id)
		due("a retry", func() { e.finish(retry(c, time.Second)) })
		e.pass(2 * time.Second)
		c = e.a.take(id)
		due("a release", func() { e.finish(released(c)) })
		c = e.a.take(id)
		due("a reap", func() { e.expire(c) })
		e.blockTask(id)
		due("an unblock", func() { e.operate(unblockOf(id, "")) })
		e.fail(id)
		due("an operator's retry", func() { e.operate(retryOf(id)) })
		e.operate(pauseOf(task.DefaultQueue))
		due("a resume", func() { e.operate(resumeOf(task.DefaultQueue)) })
		holder, waiter := e.one(key("k", 1)), e.one(key("k", 1))
		c = e.a.take(holder)
		e.a.getsNothing(only(waiter))
		due("a freed key", func() { e.finish(success(c)) })
		c = e.b.take(waiter)
		due("a start", func() { e.record(start(c, "s", e.draft())) })
	}},
	{"an end is announced", func(e *env) {
		l := e.listen()
		ended := func(what string, id task.ID, do func()) {
			e.Helper()
			got := l.during(do)
			e.check(slices.Contains(got.Tasks, id), "%s: the end was not announced: %+v", what, got)
		}
		for _, o := range outcomes {
			if id := e.one(); o.state.Terminal() || o.state == task.Blocked {
				c := e.a.take(id)
				ended(o.name, id, func() { e.finish(o.end(c)) })
			}
		}
		id := e.one()
		ended("a cancel", id, func() { e.operate(cancelOf(id)) })
		id = e.one()
		e.a.take(id)
		ended("force", id, func() { e.operate(forceOf(id)) })
		g := e.job("a", "b: a")
		ended("a failed need", g.id("b"), func() { e.fail(g.id("a")) })
		id = e.one(expires(time.Second))
		e.pass(2 * time.Second)
		ended("a deadline", id, func() { e.reap() })
		id = e.one()
		e.crash(id, 2)
		c := e.worker("doomed").take(id)
		ended("poison", id, func() { e.expire(c) })
	}},
	{"what nothing waits for is announced too", func(e *env) {
		l := e.listen()
		changed := func(what string, do func()) {
			e.Helper()
			got := l.during(do)
			e.check(got.Changed, "%s was not announced: %+v", what, got)
		}
		id := e.one()
		var c store.Claimed
		changed("a claim", func() { c = e.a.take(id) })
		changed("a step", func() { e.record(start(c, "s", e.draft())) })
		changed("a pause", func() { e.operate(pauseOf("other")) })
		changed("a worker that joins", func() {
			e.check(e.s.Join(e.Context(), e.ns, store.WorkerInfo{ID: "new", Name: "new", TTL: time.Minute}) == nil, "Join")
		})
		changed("a worker that leaves", func() { e.check(e.s.Leave(e.Context(), e.ns, "new") == nil, "Leave") })
		got := l.during(func() { e.a.getsNothing(only(id)) })
		e.check(!got.Changed, "a claim that found nothing was announced: %+v", got)
	}},
	{"a deadline is announced, of several the soonest", func(e *env) {
		l := e.listen()
		set := func(what string, want time.Duration, do func()) {
			e.Helper()
			got := l.during(do)
			least := want - 2*slack
			if e.h.Live != nil { // a passing look may announce an earlier change
				least = 0
			}
			e.check(got.Deadline <= want && got.Deadline > least, "%s: the deadline announced is %v away, want %v", what, got.Deadline, want)
		}
		none := func(what string, do func()) {
			e.Helper()
			if got := l.during(do); e.h.Live == nil {
				e.equal(what+": the deadline announced", got.Deadline, time.Duration(0))
			}
		}
		none("an enqueue without", func() { e.one() })
		set("an enqueue", time.Second, func() { e.one(expires(time.Second)) })
		set("an enqueue of three", 20*time.Second, func() {
			e.submit(store.Submission{Tasks: []task.New{e.draft(expires(time.Minute)), e.draft(expires(20 * time.Second)), e.draft(expires(time.Hour))}})
		})
		g := e.graph("a", "b: a").with("b", expires(30*time.Second))
		set("a task that needs another", 30*time.Second, func() { g.submit() })
		g = e.graph("a", "b: a")
		g.sub.Job.Budget.MaxDuration = 40 * time.Second
		set("a job", 40*time.Second, func() { g.submit() })
		c := e.a.take(e.one())
		set("a start", 50*time.Second, func() { e.record(start(c, "s", e.draft(expires(50*time.Second)))) })
		id := e.one(expires(time.Minute))
		e.fail(id)
		e.pass(10 * time.Second)
		set("a retry", 50*time.Second, func() { e.operate(retryOf(id)) })
		id = e.one(expires(time.Second))
		e.pass(2 * time.Second)
		e.reap()
		none("a retry after the deadline", func() { e.operate(retryOf(id)) })
	}},
	{"a job whose state changes is announced", func(e *env) {
		l := e.listen()
		changes := func(what string, g *graph, do func()) {
			e.Helper()
			got := l.during(do)
			e.check(slices.Contains(got.Jobs, g.sub.Job.ID), "%s: the job was not announced: %+v", what, got)
		}
		g := e.job("a", "b: a")
		e.succeed(g.id("a"))
		changes("the last success", g, func() { e.succeed(g.id("b")) })
		g = e.job("a")
		changes("a failure", g, func() { e.fail(g.id("a")) })
		changes("a retry", g, func() { e.operate(retryOf(g.id("a"))) })
		changes("a cancel", g, func() { g.cancelsJob() })
		g = e.job("a")
		c := e.a.take(g.id("a"))
		changes("a question", g, func() { e.finish(decided(task.OutcomeBlocked, task.KindHandler, task.DecideBlock, 0)(c)) })
	}},
	{"a cancel is announced for running tasks", func(e *env) {
		l := e.listen()
		asked := func(what string, id task.ID, do func()) {
			e.Helper()
			got := l.during(do)
			e.check(slices.Contains(got.Cancels, id), "%s: the running task was not announced: %+v", what, got)
		}
		id := e.one()
		e.a.take(id)
		asked("a cancel", id, func() { e.operate(cancelOf(id)) })
		asked("force", id, func() { e.operate(forceOf(id)) })
		g := e.job("a")
		e.a.take(g.id("a"))
		asked("a job's cancel", g.id("a"), func() { g.cancelsJob() })
		id = e.one(expires(time.Second))
		e.a.claim(only(id), claimTTL(time.Minute))
		e.pass(2 * time.Second)
		asked("a deadline", id, func() { e.reap() })
		id = e.one()
		c := e.a.take(id)
		asked("a reap", id, func() { e.expire(c) })
	}},
	{"a restore is announced for running tasks", func(e *env) {
		l := e.listen()
		c := e.a.take(e.one())
		got := l.during(func() { e.operate(store.Restored{Audit: admin}) })
		e.check(slices.Contains(got.Cancels, c.Task.ID), "a restore announced %+v, want a cancel of the running task", got)
	}},
	{"what did not happen is not announced", func(e *env) {
		l := e.listen()
		id := e.one()
		c := e.a.take(id)
		quiet := func(what string, do func()) {
			e.Helper()
			got := l.during(do)
			e.check(!got.Due && len(got.Tasks) == 0 && len(got.Cancels) == 0, "%s announced %+v", what, got)
		}
		quiet("a beat", func() { e.a.beat(c.Lease) })
		quiet("a step", func() { e.record(step(c, "s", `1`)) })
		quiet("an empty claim", func() { e.b.getsNothing() })
		quiet("an idle reap", func() { e.reap() })
		forged := c
		forged.Lease.ID = task.NewLeaseID()
		quiet("a refused finish", func() { e.finishRefused(success(forged), store.ErrLeaseLost) })
		quiet("a refused retry", func() { e.commandRefused(retryOf(id), store.ErrState) })
	}},
	{"a command or a collection that changes nothing is not announced", func(e *env) {
		tells := func(what string, want bool, do func()) {
			e.Helper()
			l := e.listen()
			defer l.stop() // days pass faster without a listener
			got := l.during(do)
			e.check(got.Changed == want, "%s announced %+v, want Changed %v", what, got, want)
		}
		id := e.one()
		tells("a refused retry", false, func() { e.commandRefused(retryOf(id), store.ErrState) })
		tells("a cancel of no task", false, func() { e.commandRefused(cancelOf(e.draft().ID), store.ErrNotFound) })
		tells("a signal", true, func() { e.operate(signalOf(id, "s", "k", `1`)) })
		tells("a signal that was sent before", false, func() { e.operate(signalOf(id, "s", "k", `1`)) })
		tells("a question for the bucket", false, func() { e.operate(store.AcceptBucket{Check: true}) })
		tells("one command of two", true, func() {
			got, err := e.s.Operate(e.Context(), e.ns, retryOf(id), pauseOf("other"))
			e.check(err == nil && len(got) == 2 && got[0].Err != nil && got[1].Err == nil, "Operate: %+v, %v", got, err)
		})
		e.succeed(id)

		collect := func(retain store.Retention, dry bool) func() {
			return func() { e.collectWith(store.CollectRequest{Retain: []store.Retention{retain}, DryRun: dry}) }
		}
		tells("a collection of what is young", false, collect(afterDays(1), false))
		e.silence(2 * day)
		tells("a dry run", false, collect(afterDays(1), true))
		tells("a collection of values", true, collect(valuesAfter(1), false))
		tells("a collection", true, collect(afterDays(1), false))
		e.collected(id)

		needed := e.one()
		e.succeed(needed)
		e.asksFor(e.one(), needed)
		e.silence(2 * day)
		tells("a collection of what another task needs", false, collect(afterDays(1), false))
	}},
	{"another namespace is not announced", func(e *env) {
		other := e.in(otherNamespace)
		l := e.listen()
		got := l.during(func() { other.succeed(other.one()) })
		e.check(!got.Due && len(got.Tasks) == 0, "another namespace's work announced %+v", got)
	}},
	{"stop ends the notices", func(e *env) {
		l := e.listen()
		l.stop()
		got := l.during(func() { e.succeed(e.one()) })
		e.equal("what was notified after stop", got, store.Notice{})
	}},
	{"every listener is notified", func(e *env) {
		x, y := e.listen(), e.listen()
		for _, l := range []*listener{x, y} {
			e.check(l.during(func() { e.one() }).Due, "a listener beside another one got nothing")
		}
		x.stop()
		e.check(y.during(func() { e.one() }).Due, "the second listener got nothing after the first stopped")
	}},
}

var notifyOtherCases = []testCase{
	{"another handle's work is announced", func(e *env) {
		other := e.second()
		l := e.listen()
		n := e.draft()
		e.a.getsNothing() // idle workers are notified
		time.Sleep(2 * time.Second)
		got := l.during(func() {
			_, err := other.Enqueue(e.Context(), e.ns, nil, store.Submission{Tasks: []task.New{n}})
			e.check(err == nil, "Enqueue: %v", err)
		})
		e.check(got.Due || got.External, "the other handle's enqueue announced %+v, want Due or External", got)
		e.a.gets([]task.ID{n.ID})
	}},
}

// isTold expects an idle worker to be notified of a task enqueued by another handle. It uses real time, because
// nothing shows when the other handles know that the worker is idle.
func (e *env) isTold() {
	other, l := e.second(), e.listen()
	e.a.getsNothing()
	var ids []task.ID
	for late := time.After(time.Minute); !l.heardOfWork(); {
		n := e.draft()
		_, err := other.Enqueue(e.Context(), e.ns, nil, store.Submission{Tasks: []task.New{n}})
		e.require(err == nil, "Enqueue: %v", err)
		ids = append(ids, n.ID)
		select {
		case <-late:
			e.Fatalf("%d tasks of the other handle were not announced within a minute", len(ids))
		case <-time.After(20 * time.Millisecond):
		}
	}
	e.a.takeAll(ids...)
}

// listener collects notices.
type listener struct {
	e    *env
	mu   sync.Mutex
	all  []store.Notice
	stop func()
}

// listen subscribes to notices of the namespace.
func (e *env) listen() *listener {
	r := &listener{e: e}
	stop, _ := e.s.Notify(e.ns, nil, func(n store.Notice) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, n)
	})
	r.stop = sync.OnceFunc(stop)
	e.Cleanup(r.stop)
	return r
}

// during runs do and returns the notices that it caused, merged into one.
func (r *listener) during(do func()) store.Notice {
	r.e.Helper()
	r.mu.Lock()
	r.all = nil
	r.mu.Unlock()
	do()
	// Notices arrive shortly after the commit.
	time.Sleep(slack)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	var sum store.Notice
	for _, n := range r.all {
		sum.Due = sum.Due || n.Due
		sum.External = sum.External || n.External
		sum.Changed = sum.Changed || n.Changed
		if n.Deadline > 0 {
			sum.DeadlineIn(n.Deadline)
		}
		sum.Tasks = append(sum.Tasks, n.Tasks...)
		sum.Jobs = append(sum.Jobs, n.Jobs...)
		sum.Cancels = append(sum.Cancels, n.Cancels...)
	}
	return sum
}

// heardOfWork reports whether any notice arrived.
func (r *listener) heardOfWork() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.all, func(n store.Notice) bool { return n.Due })
}
