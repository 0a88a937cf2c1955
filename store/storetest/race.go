package storetest

import (
	"fmt"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Interleavings of the lease law that can be played step by step and have no
// place in the file of one operation.
var raceScenes = []scene{
	{"R-10 a finish comes between expiry and reap: the reap takes nothing", finishThenReap},
	{"R-15 the last two parents finish in one batch", lastParentsInBatch},
	{"R-15 the last two parents finish one after the other", lastParentsInTurn},
	{"R-15 one parent is skipped while the other finishes, in one batch", skipAndFinish},
	{"R-15 many parents of many children in one batch", crossingBatch},
	{"R-17 pause, claim, resume in every order", pauseClaimResume},
	{"R-22 key holders in every order of leaving and claiming", keyOrders},
	{"W1 leaving and entering claimable keeps one dispatch row", oneDispatchRow},
	{"R1 the epoch grows at every claim and every revocation", epochGrows},
}

func finishThenReap(e *env) {
	ids := e.many(len(outcomes))
	cs := e.a.takeAll(ids...)
	e.pass(ttl + ttl/3)
	for i, o := range outcomes {
		e.finish(o.end(cs[i]))
	}
	e.unchanged("a reap after the finish", func() {
		if got := e.reap(); len(got.Reaped) != 0 || len(got.Expired) != 0 {
			e.Errorf("reaped %v, ended %v", got.Reaped, got.Expired)
		}
	})
}

// readyOnce expects a task to be ready exactly once: one dispatch row, one
// lease for all who ask.
func (e *env) readyOnce(id task.ID) {
	e.Helper()
	e.equal("RemainingDeps", e.is(id, task.Ready, task.WaitNone).RemainingDeps, 0)
	e.equal("the number of its dispatch rows", len(e.dispatch(id)), 1)
	c := e.a.take(id)
	e.b.getsNothing(only(id))
	e.finish(success(c))
	e.b.getsNothing(only(id))
}

func lastParentsInBatch(e *env) {
	for _, first := range outcomes {
		for _, second := range outcomes {
			if !first.state.Terminal() || !second.state.Terminal() {
				continue
			}
			g := e.job("a", "b", "child: *a *b")
			cs := e.a.takeAll(g.all("a", "b")...)
			for _, r := range e.finishAll(first.end(cs[0]), second.end(cs[1])) {
				if r.Err != nil {
					e.Fatalf("Finish: %v", r.Err)
				}
			}
			e.readyOnce(g.id("child"))
			if j := g.read(); !j.State.Terminal() {
				e.Errorf("%s and %s: the job is %s", first.name, second.name, j.State)
			}
		}
	}
}

func lastParentsInTurn(e *env) {
	g := e.job("a", "b", "child: a b")
	cs := e.a.takeAll(g.all("a", "b")...)
	e.finish(success(cs[1]))
	e.notDispatched(g.id("child"))
	e.finish(success(cs[0]))
	e.readyOnce(g.id("child"))
}

func skipAndFinish(e *env) {
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		// bad takes skipped down with it; the child waits for skipped and good.
		g := e.job("bad", "good", "skipped: bad", "child: *skipped good", "late: *bad *good *skipped")
		cs := e.a.takeAll(g.all("bad", "good")...)
		fs := []store.Finish{dead(cs[0]), success(cs[1])}
		e.finishAll(fs[order[0]], fs[order[1]])
		e.ended(g.id("skipped"), task.Cancelled, task.KindDependencyFailed)
		e.readyOnce(g.id("child"))
		e.readyOnce(g.id("late"))
		g.counts(task.JobFailed, 5, 0, 0, 2, 3)
	}
}

func crossingBatch(e *env) {
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
}

func pauseClaimResume(e *env) {
	ops := map[string]func(q string, id task.ID){
		"pause":  func(q string, _ task.ID) { e.operate(store.PauseQueue{Queue: q}) },
		"resume": func(q string, _ task.ID) { e.operate(store.ResumeQueue{Queue: q}) },
		"claim":  func(_ string, id task.ID) { e.a.claim(only(id)) },
		"cancel": func(_ string, id task.ID) { e.operate(cancelOf(id)) },
	}
	for _, order := range permutations([]string{"pause", "claim", "resume"}) {
		e.oneRowOrLease(order, ops)
	}
	for _, order := range permutations([]string{"pause", "claim", "resume", "cancel"}) {
		e.oneRowOrLease(order, ops)
	}
}

// oneRowOrLease plays operations on a fresh task in a queue of its own.
func (e *env) oneRowOrLease(order []string, ops map[string]func(q string, id task.ID)) {
	e.Helper()
	q := fmt.Sprint(order)
	id := e.one(queue(q))
	for _, op := range order {
		ops[op](q, id)
		t := e.task(id)
		rows, want := len(e.dispatch(id)), 1
		if t.State == task.Running || t.State.Terminal() {
			want = 0
		}
		if rows != want {
			e.Errorf("%v: after %s the task is %s with %d dispatch rows, want %d", order, op, t.State, rows, want)
		}
	}
	e.operate(store.ResumeQueue{Queue: q})
	if t := e.task(id); t.State == task.Ready {
		e.a.take(id)
	}
}

// permutations returns every order of the given names.
func permutations(names []string) [][]string {
	if len(names) == 0 {
		return [][]string{nil}
	}
	var out [][]string
	for i, first := range names {
		rest := append(append([]string(nil), names[:i]...), names[i+1:]...)
		for _, p := range permutations(rest) {
			out = append(out, append([]string{first}, p...))
		}
	}
	return out
}

func keyOrders(e *env) {
	// Two holders at most; every order of claims and leavings of four tasks.
	for round, order := range permutations([]string{"claim", "finish", "retry", "cancel waiter"}) {
		k := key(fmt.Sprint("k", round), 2)
		ids := e.many(5, k)
		running := e.a.takeAll(ids[:2]...)
		e.b.getsNothing(only(ids[2:]...))
		for _, op := range order {
			switch op {
			case "claim":
				running = append(running, e.b.claim(only(ids...)).Tasks...)
			case "finish":
				e.finish(success(running[0]))
				running = running[1:]
			case "retry":
				e.finish(retry(running[0], 0))
				running = running[1:]
			case "cancel waiter":
				if t := e.task(ids[4]); t.State != task.Running {
					e.operate(cancelOf(ids[4]))
				}
			}
			if held, _ := e.keyRow(fmt.Sprint("k", round)); held != len(running) || held > 2 {
				e.Errorf("%v: after %s the key is held by %d, %d run", order, op, held, len(running))
			}
		}
		// Whatever is left runs to its end.
		for range 6 {
			for _, c := range running {
				e.finish(success(c))
			}
			running = e.a.claim(only(ids...)).Tasks
		}
		for _, t := range e.tasks(ids...) {
			if !t.State.Terminal() {
				e.Errorf("%v: task %v was dropped: %s/%s", order, t.ID, t.State, t.Waiting)
			}
		}
	}
}

func oneDispatchRow(e *env) {
	id := e.one(attempts(100))
	enter := []func(){
		func() { e.finish(retry(e.a.take(id), 0)) },
		func() { e.finish(released(e.a.take(id))) },
		func() { e.finish(suspend(e.a.take(id), e.now())) },
		func() { e.expire(e.a.take(id)) },
		func() { e.operate(cancelOf(id)); e.operate(retryOf(id)) },
		func() { e.blockTask(id); e.operate(store.UnblockTask{Task: id}) },
		func() { e.fail(id); e.operate(retryOf(id)) },
		func() { e.finish(internalError(e.a.take(id), 0)) },
	}
	for range 2 {
		for _, do := range enter {
			do()
			e.dueAt(id, e.now())
		}
	}
	e.succeed(id)
}

func epochGrows(e *env) {
	id := e.one(attempts(100))
	last := e.task(id).Epoch
	grows := func(what string, do func()) {
		e.Helper()
		do()
		if now := e.task(id).Epoch; now != last+1 {
			e.Errorf("%s: the epoch is %d after %d, want one more", what, now, last)
		}
		last = e.task(id).Epoch
	}
	var c store.Claimed
	claim := func() { c = e.a.take(id) }
	grows("a claim", claim)
	grows("a reap", func() { e.expire(c) })
	grows("a claim", claim)
	grows("a release", func() { e.finish(released(c)) })
	grows("a claim", claim)
	grows("a forced cancel", func() { e.operate(forceOf(id)) })
	grows("an operator's retry", func() { e.operate(retryOf(id)) })
	grows("a claim", claim)
	e.finish(retry(c, 0))
	e.equal("the epoch after a retry", e.task(id).Epoch, last)
}
