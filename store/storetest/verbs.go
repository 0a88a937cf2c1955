package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// subject is a task in some state, with its related tasks and leases.
type subject struct {
	id     task.ID
	queue  string        // its own
	last   store.Claimed // latest lease, if it ever ran
	need   task.ID       // a task that it waits for, if any
	other  task.ID       // another need, which stays open
	job    task.ID       // of both, if there is one
	holder store.Claimed // the holder of its key, if it waits for the key
	full   bool          // with every optional property of a task
}

// lifetime is the deadline of full subjects.
const lifetime = 10 * time.Minute

// situation brings a subject into a state.
type situation struct {
	name  string
	reach func(e *env, s *subject)
}

// own enqueues the subject as a task in its own queue.
func (s *subject) own(e *env, opts ...opt) {
	if s.full {
		opts = append([]opt{labels("team", "red"), once(s.queue), expires(lifetime)}, opts...)
	}
	s.id = e.one(append(opts, queue(s.queue))...)
}

// run claims the subject.
func (s *subject) run(e *env) {
	s.last = e.a.take(s.id)
	if s.full {
		e.record(step(s.last, "done", `1`))
		e.record(try(s.last, "next", 1))
		e.record(checkpoint(s.last, "cursor", `7`))
	}
}

// ran claims the subject and ends the attempt.
func (s *subject) ran(e *env, end func(store.Claimed) store.Finish) {
	s.own(e)
	s.run(e)
	e.finish(end(s.last))
}

// needy enqueues the subject as a task that needs two others.
func (s *subject) needy(e *env) {
	g := e.graph("a", "b", "c: a *b")
	for _, node := range []string{"a", "b", "c"} {
		g.with(node, queue(s.queue))
	}
	g.submit()
	s.id, s.need, s.other, s.job = g.id("c"), g.id("a"), g.id("b"), g.sub.Job.ID
}

// late enqueues the subject as a task whose deadline has passed.
func (s *subject) late(e *env, running bool) {
	s.own(e, expires(time.Second))
	if running {
		s.last = e.a.claim(only(s.id), claimTTL(time.Minute)).Tasks[0]
	}
	e.pass(2 * time.Second)
}

// about reports whether a task is related to the subject.
func (s *subject) about(id task.ID) bool {
	return id == s.id || id == s.need || id == s.other || id == s.holder.Task.ID
}

// endNeed runs the need of the subject, if it can still run.
func (s *subject) endNeed(e *env, end func(store.Claimed) store.Finish) {
	for _, c := range e.b.claim(only(s.need)).Tasks {
		e.finish(end(c))
	}
}

func (s *subject) pause(e *env) { e.operate(pauseOf(s.queue)) }

var situations = []situation{
	{"delayed", func(e *env, s *subject) { s.own(e, after(3*time.Second)) }},
	{"delayed and due", func(e *env, s *subject) { s.own(e, after(time.Second)); e.pass(2 * time.Second) }},
	{"needy", func(e *env, s *subject) { s.needy(e) }},
	{"to be retried", func(e *env, s *subject) {
		s.ran(e, func(c store.Claimed) store.Finish { return retry(c, 3*time.Second) })
	}},
	{"asleep", func(e *env, s *subject) {
		s.ran(e, func(c store.Claimed) store.Finish { return suspend(c, e.now().Add(3*time.Second)) })
	}},
	{"paused", func(e *env, s *subject) { s.own(e); s.pause(e) }},
	{"waiting for its key", func(e *env, s *subject) {
		holder := e.one(key(s.queue, 1), queue(s.queue))
		s.own(e, key(s.queue, 1))
		s.holder = e.a.take(holder)
		e.a.getsNothing(only(s.id))
	}},
	{"ready", func(e *env, s *subject) { s.own(e) }},
	{"released", func(e *env, s *subject) { s.ran(e, released) }},
	{"running", func(e *env, s *subject) { s.own(e); s.run(e) }},
	{"running and to be cancelled", func(e *env, s *subject) { s.own(e); s.run(e); e.operate(cancelOf(s.id)) }},
	{"running in a paused queue", func(e *env, s *subject) { s.own(e); s.run(e); s.pause(e) }},
	{"running past its deadline", func(e *env, s *subject) { s.late(e, true) }},
	{"ready past its deadline", func(e *env, s *subject) { s.late(e, false) }},
	{"running with an expired lease", func(e *env, s *subject) { s.own(e); s.run(e); e.pass(ttl + ttl/3) }},
	{"succeeded", func(e *env, s *subject) { s.ran(e, success) }},
	{"failed", func(e *env, s *subject) { s.ran(e, dead) }},
	{"failed in a paused queue", func(e *env, s *subject) { s.ran(e, dead); s.pause(e) }},
	{"cancelled", func(e *env, s *subject) { s.own(e); e.operate(cancelOf(s.id)) }},
	{"cancelled while needy", func(e *env, s *subject) { s.needy(e); e.operate(cancelOf(s.id)) }},
	{"cancelled with its job", func(e *env, s *subject) { s.needy(e); e.operate(cancelJobOf(s.job)) }},
	{"blocked", func(e *env, s *subject) { s.ran(e, block) }},
	{"blocked in a paused queue", func(e *env, s *subject) { s.ran(e, block); s.pause(e) }},
}

// undoSituations are the situations of a task in its undo phase, or after the undo was given up.
var undoSituations = []situation{
	{"to be undone", func(e *env, s *subject) { s.ran(e, unclean) }},
	{"being undone", func(e *env, s *subject) { s.ran(e, unclean); s.last = e.a.take(s.id) }},
	{"blocked in its undo", func(e *env, s *subject) { s.undoEnds(e, blocksUndo) }},
	{"given up", func(e *env, s *subject) { s.undoEnds(e, givesUp) }},
}

// undoEnds runs the first attempt of the subject's undo phase and ends it.
func (s *subject) undoEnds(e *env, end func(store.Claimed) store.Finish) {
	s.ran(e, unclean)
	s.last = e.a.take(s.id)
	e.finish(end(s.last))
}

// verb is an operation on a subject. Most verbs are refused in most states.
type verb struct {
	name string
	do   func(e *env, s *subject)
}

// ending is a verb that finishes the subject's latest attempt.
func ending(name string, end func(store.Claimed) store.Finish) verb {
	return verb{name, func(e *env, s *subject) {
		f := end(s.last)
		f.Progress = &task.Progress{Current: 7, Message: name}
		e.finishAll(f)
	}}
}

// commanding is an operator's verb.
func commanding(name string, cmd func(s *subject) store.Command) verb {
	return verb{name, func(e *env, s *subject) {
		if e.command(cmd(s)).Err == nil && name == "delete" {
			e.forget(s.id)
		}
	}}
}

var verbs = []verb{
	{"claim", func(e *env, s *subject) { e.b.claim(queues(map[string]int{s.queue: 5})) }},
	{"hint", func(e *env, s *subject) { e.b.claim(only(s.id)) }},
	{"heartbeat", func(e *env, s *subject) { e.a.beat(s.last.Lease) }},
	{"time", func(e *env, _ *subject) { e.pass(ttl + ttl/3) }},
	{"reap", func(e *env, _ *subject) { e.reap() }},
	{"record", func(e *env, s *subject) { e.recordAll(step(s.last, "s", `1`)) }},
	{"record a failed try", func(e *env, s *subject) { e.recordAll(try(s.last, "s", 1)) }},
	{"record progress", func(e *env, s *subject) {
		e.recordAll(store.Record{Lease: s.last.Lease, Progress: &task.Progress{Current: 7}})
	}},
	ending("success", success),
	ending("retry at once", func(c store.Claimed) store.Finish { return retry(c, 0) }),
	ending("retry later", func(c store.Claimed) store.Finish { return retry(c, time.Minute) }),
	ending("mark dead", dead),
	ending("block", block),
	ending("internal", func(c store.Claimed) store.Finish { return internalError(c, time.Second) }),
	ending("suspend", func(c store.Claimed) store.Finish { return suspend(c, store.Now().Add(time.Minute)) }),
	ending("cancelled", cancelled),
	ending("released", released),
	commanding("cancel", func(s *subject) store.Command { return cancelOf(s.id) }),
	commanding("force", func(s *subject) store.Command { return forceOf(s.id) }),
	commanding("cancel the job", func(s *subject) store.Command { return cancelJobOf(s.job) }),
	commanding("retry", func(s *subject) store.Command { return retryOf(s.id) }),
	commanding("abandon", func(s *subject) store.Command { return abandonOf(s.id) }),
	commanding("retry the undo", func(s *subject) store.Command { return cleanupsOf(s.id) }),
	commanding("retry the need", func(s *subject) store.Command { return retryOf(s.need) }),
	commanding("unblock", func(s *subject) store.Command { return unblockOf(s.id, answer) }),
	commanding("run now", func(s *subject) store.Command { return runNowOf(s.id) }),
	commanding("reschedule", func(s *subject) store.Command { return rescheduleOf(s.id, store.Now().Add(time.Minute)) }),
	commanding("delete", func(s *subject) store.Command { return deleteOf(s.id) }),
	commanding("pause", func(s *subject) store.Command { return pauseOf(s.queue) }),
	commanding("resume", func(s *subject) store.Command { return resumeOf(s.queue) }),
	commanding("restored", func(*subject) store.Command { return store.Restored{} }),
	{"the need succeeds", func(e *env, s *subject) { s.endNeed(e, success) }},
	{"the need fails", func(e *env, s *subject) { s.endNeed(e, dead) }},
	{"the holder ends", func(e *env, s *subject) { e.finishAll(success(s.holder)) }},
}

// answer is the input of an unblock, large enough to be stored out of line.
var answer = `"` + strings.Repeat("yes ", 1<<10) + `"`

var verbCases = []testCase{
	{"I3 every verb in every situation makes legal moves only", func(e *env) {
		seen := map[move]bool{}
		for _, st := range slices.Concat(situations, undoSituations) {
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
		// No operation of this port blocks a task that does not run.
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
		for _, st := range slices.Concat(situations, undoSituations) {
			s := &subject{queue: "terminal/" + st.name}
			st.reach(e, s)
			before := e.task(s.id)
			if !before.State.Terminal() {
				continue
			}
			for _, v := range verbs {
				switch v.name {
				case "retry", "retry the need", "retry the undo", "abandon", "delete", "restored", "time", "reap":
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
			e.expire(e.a.take(id))
			e.dueAt(id, e.task(id).CreatedAt)
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

// move is a state transition.
type move struct{ from, to task.State }

// states returns the stored state of a task and the state that readers see, "" if it is deleted.
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
