package storetest

import (
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var notifyScenes = []scene{
	{"due work is announced", noticesDue},
	{"an end is announced", noticesSettled},
	{"a cancel is announced to the running", noticesCancel},
	{"what did not happen is not announced", noticesNothing},
	{"other namespaces are not announced", noticesElsewhere},
	{"stop ends the notices", noticesStop},
	{"every listener is told", noticesEverybody},
	{"another handle's work is announced", noticesOtherHandle},
}

// ear collects notices.
type ear struct {
	e    *env
	mu   sync.Mutex
	all  []store.Notice
	stop func()
}

// listen starts to collect notices of the namespace.
func (e *env) listen() *ear {
	r := &ear{e: e}
	stop, _ := e.s.(store.Notifier).Notify(e.ns, func(n store.Notice) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, n)
	})
	r.stop = sync.OnceFunc(stop)
	e.Cleanup(r.stop)
	return r
}

// hears does something and returns what was announced, as one notice.
func (r *ear) hears(do func()) store.Notice {
	r.e.Helper()
	r.mu.Lock()
	r.all = nil
	r.mu.Unlock()
	do()
	// Notices come after the commit, at the latest a moment later.
	time.Sleep(slack)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	var sum store.Notice
	for _, n := range r.all {
		sum.Due = sum.Due || n.Due
		sum.External = sum.External || n.External
		sum.Tasks = append(sum.Tasks, n.Tasks...)
		sum.Jobs = append(sum.Jobs, n.Jobs...)
		sum.Cancels = append(sum.Cancels, n.Cancels...)
	}
	return sum
}

func noticesDue(e *env) {
	ear := e.listen()
	due := func(what string, do func()) {
		e.Helper()
		if got := ear.hears(do); !got.Due {
			e.Errorf("%s: nothing due was announced: %+v", what, got)
		}
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
	due("an unblock", func() { e.operate(store.UnblockTask{Task: id}) })
	e.fail(id)
	due("an operator's retry", func() { e.operate(retryOf(id)) })
	e.operate(store.PauseQueue{Queue: task.DefaultQueue})
	due("a resume", func() { e.operate(store.ResumeQueue{Queue: task.DefaultQueue}) })
	holder, waiter := e.one(key("k", 1)), e.one(key("k", 1))
	c = e.a.take(holder)
	e.a.getsNothing(only(waiter))
	due("a freed key", func() { e.finish(success(c)) })
	c = e.b.take(waiter)
	due("a start", func() { e.record(start(c, "s", e.draft())) })
}

func noticesSettled(e *env) {
	ear := e.listen()
	settled := func(what string, id task.ID, do func()) {
		e.Helper()
		if got := ear.hears(do); !slices.Contains(got.Tasks, id) {
			e.Errorf("%s: the end was not announced: %+v", what, got)
		}
	}
	for _, o := range outcomes {
		if id := e.one(); o.state.Terminal() || o.state == task.Blocked {
			c := e.a.take(id)
			settled(o.name, id, func() { e.finish(o.end(c)) })
		}
	}
	id := e.one()
	settled("a cancel", id, func() { e.operate(cancelOf(id)) })
	id = e.one()
	e.a.take(id)
	settled("force", id, func() { e.operate(forceOf(id)) })
	g := e.job("a", "b: a")
	settled("a failed need", g.id("b"), func() { e.fail(g.id("a")) })
	id = e.one(expires(time.Second))
	e.pass(2 * time.Second)
	settled("a deadline", id, func() { e.reap() })
	id = e.one()
	e.crash(id, 2)
	c := e.worker("doomed").take(id)
	settled("poison", id, func() { e.expire(c) })
}

func noticesCancel(e *env) {
	ear := e.listen()
	asked := func(what string, id task.ID, do func()) {
		e.Helper()
		if got := ear.hears(do); !slices.Contains(got.Cancels, id) {
			e.Errorf("%s: the running task was not announced: %+v", what, got)
		}
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
}

func noticesNothing(e *env) {
	ear := e.listen()
	id := e.one()
	c := e.a.take(id)
	quiet := func(what string, do func()) {
		e.Helper()
		if got := ear.hears(do); got.Due || len(got.Tasks) != 0 || len(got.Cancels) != 0 {
			e.Errorf("%s announced %+v", what, got)
		}
	}
	quiet("a beat", func() { e.a.beat(c.Lease) })
	quiet("a step", func() { e.record(step(c, "s", `1`)) })
	quiet("an empty claim", func() { e.b.getsNothing() })
	quiet("an idle reap", func() { e.reap() })
	forged := c
	forged.Lease.ID = task.NewLeaseID()
	quiet("a refused finish", func() { e.refused(success(forged), store.ErrLeaseLost) })
	quiet("a refused retry", func() { e.turnedDown(retryOf(id), store.ErrState) })
}

func noticesElsewhere(e *env) {
	other := e.in(otherNamespace)
	ear := e.listen()
	got := ear.hears(func() { other.succeed(other.one()) })
	if got.Due || len(got.Tasks) != 0 {
		e.Errorf("another namespace's work announced %+v", got)
	}
}

func noticesStop(e *env) {
	ear := e.listen()
	ear.stop()
	got := ear.hears(func() { e.succeed(e.one()) })
	e.equal("what was heard after stop", got, store.Notice{})
}

func noticesEverybody(e *env) {
	x, y := e.listen(), e.listen()
	x.hears(func() { e.one() })
	y.mu.Lock()
	n := len(y.all)
	y.mu.Unlock()
	if n == 0 {
		e.Errorf("the second listener heard nothing")
	}
	x.stop()
	if got := y.hears(func() { e.one() }); !got.Due {
		e.Errorf("the second listener heard nothing after the first stopped")
	}
}

func noticesOtherHandle(e *env) {
	other := e.second()
	ear := e.listen()
	n := e.draft()
	got := ear.hears(func() {
		if _, err := other.Enqueue(e.Context(), e.ns, nil, store.Submission{Tasks: []task.New{n}}); err != nil {
			e.Errorf("Enqueue: %v", err)
		}
	})
	if !got.Due && !got.External {
		e.Errorf("the other handle's enqueue announced %+v, want Due or External", got)
	}
	e.a.gets([]task.ID{n.ID})
}
