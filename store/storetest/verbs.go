package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var verbCases = []testCase{
	{"I3 every verb in every situation makes legal moves only", func(e *env) {
		seen := map[move]bool{}
		for _, st := range situations {
			here := e.in(st.name)
			for _, v := range verbs {
				s := &subject{queue: v.name}
				st.reach(here, s)
				stored, read := here.states(s.id)
				v.do(here, s)
				storedAfter, readAfter := here.states(s.id)
				what := fmt.Sprintf("%s on a task that is %s", v.name, st.name)
				for _, m := range []move{{stored, storedAfter}, {read, readAfter}} {
					seen[m] = true
					switch {
					case m.to == "" && !(v.name == "delete" && m.from.Terminal()):
						e.Errorf("%s: a %s task is gone", what, m.from)
					case m.to != "" && m.from != m.to && !task.CanMove(m.from, m.to):
						e.Errorf("%s: %s became %s", what, m.from, m.to)
					}
				}
			}
			here.close()
		}
		// Nothing in this port blocks a task that does not run.
		unused := map[move]bool{{task.Pending, task.Blocked}: true, {task.Ready, task.Blocked}: true}
		for _, from := range task.States() {
			for _, to := range task.States() {
				if m := (move{from, to}); task.CanMove(from, to) && !seen[m] && !unused[m] {
					e.Errorf("no operation moved a task from %s to %s", from, to)
				}
			}
		}
	}},
	{"I3 a terminal task changes by an operator only", func(e *env) {
		for _, st := range situations {
			s := &subject{queue: "terminal/" + st.name}
			st.reach(e, s)
			before := e.task(s.id)
			if !before.State.Terminal() {
				continue
			}
			for _, v := range verbs {
				switch v.name {
				case "retry", "retry the need", "delete", "restored", "time", "reap":
					continue
				}
				v.do(e, s)
				e.equal("a terminal task after "+v.name, e.task(s.id), before)
			}
		}
	}},
	{"a call whose context has ended changes nothing", func(e *env) {
		c := e.a.take(e.one())
		e.one()
		ctx, cancel := context.WithCancel(e.Context())
		cancel()
		for what, call := range map[string]func() error{
			"Enqueue": func() error {
				_, err := e.s.Enqueue(ctx, e.ns, nil, store.Submission{Tasks: []task.New{e.draft()}})
				return err
			},
			"Claim": func() error { _, err := e.s.Claim(ctx, e.ns, e.b.request()); return err },
			"Heartbeat": func() error {
				_, err := e.s.Heartbeat(ctx, e.ns, store.HeartbeatRequest{Worker: e.a.id, TTL: time.Hour, Leases: []task.Lease{c.Lease}})
				return err
			},
			"Record":  func() error { _, err := e.s.Record(ctx, e.ns, step(c, "s", `1`)); return err },
			"Finish":  func() error { _, err := e.s.Finish(ctx, e.ns, success(c)); return err },
			"Operate": func() error { _, err := e.s.Operate(ctx, e.ns, cancelOf(c.Task.ID)); return err },
		} {
			e.unchanged(what+" after the end of its context", func() {
				e.check(call() != nil, "%s answered no error", what)
			})
		}
	}},
	{"W1 whatever makes a task claimable leaves one dispatch row", func(e *env) {
		id := e.one(attempts(100))
		enter := []func(){
			func() { e.finish(retry(e.a.take(id), 0)) },
			func() { e.finish(released(e.a.take(id))) },
			func() { e.finish(suspend(e.a.take(id), e.now())) },
			func() { e.expire(e.a.take(id)) },
			func() { e.operate(cancelOf(id)); e.operate(retryOf(id)) },
			func() { e.blockTask(id); e.operate(unblockOf(id, "")) },
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
	}},
	{"R1 the epoch grows at every claim and every revocation", func(e *env) {
		id := e.one(attempts(100))
		last := e.task(id).Epoch
		grows := func(what string, do func()) {
			e.Helper()
			do()
			e.equal("the epoch after "+what, e.task(id).Epoch, last+1)
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
	}},
}

// move is a change of state.
type move struct{ from, to task.State }

// states returns a task's stored state and the one that readers see, "" when
// it is gone.
func (e *env) states(id task.ID) (stored, read task.State) {
	e.Helper()
	for _, t := range e.snap().Tasks {
		if t.ID == id {
			stored = t.State
		}
	}
	got, err := e.s.Tasks(e.Context(), e.ns, id)
	e.require(err == nil, "Tasks: %v", err)
	if len(got) == 1 {
		read = got[0].State
	}
	return stored, read
}
