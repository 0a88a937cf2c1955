package storetest

import (
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var pauseTypeCases = []testCase{
	{"a paused type is left alone until it resumes", func(e *env) {
		paused, other := e.one(typed(beta), priority(1)), e.one(typed(alpha))
		e.operate(pauseTypeOf(beta))
		later := e.one(typed(beta), queue("elsewhere"))
		e.a.gets([]task.ID{other})
		e.a.getsNothing(only(paused, later))
		e.next(-1)
		e.all(task.Pending, task.WaitPaused, paused, later)
		e.equal("what is paused", e.task(paused).Pause, task.PauseType)
		e.operate(resumeTypeOf(beta))
		e.all(task.Ready, task.WaitNone, paused, later)
		e.equal("what is paused", e.task(paused).Pause, task.PauseNone)
		e.a.gets([]task.ID{paused, later})
	}},
	{"a pause of a type shows its actor and reason, and the first one stays on record", func(e *env) {
		id := e.one(typed(beta))
		e.operate(pauseTypeOf(beta))
		e.operate(store.PauseType{Audit: store.Audit{By: "second"}, Type: beta})
		p := e.history(id).TypePause
		e.require(p != nil && p.Actor == admin.By && p.Reason == admin.Reason && p.Target == beta, "the history says %+v about the pause", p)
		e.near("the pause", p.At, e.now())
		e.equal("the paused types", e.snap().PausedTypes, []string{beta})
		e.equal("the paused queues", len(e.snap().Paused), 0)
		e.operate(pauseOf("slow"))
		want := []store.Queue{{Name: task.DefaultQueue, Due: n(1)}, {Name: "slow", Paused: true}, {Type: beta, Due: n(1), Paused: true}}
		got := mapped(e.overview(store.OverviewQueues).Queues, depth)
		e.check(slices.Equal(got, want), "the queues are %+v, want %+v", got, want)
		e.operate(resumeOf("slow"))
		for range 2 {
			e.operate(resumeTypeOf(beta))
			e.is(id, task.Ready, task.WaitNone)
		}
		e.check(e.history(id).TypePause == nil, "the history still shows a pause")
		e.equal("the verbs on record", verbsOf(e.snap().Audit), []string{"pause_type", "pause_type", "pause", "resume", "resume_type", "resume_type"})
	}},
	{"a lane runs when neither its queue nor its type is paused", func(e *env) {
		id := e.one(typed(beta), queue("slow"))
		e.operate(pauseTypeOf(beta))
		e.operate(pauseOf("slow"))
		e.equal("what is paused", e.task(id).Pause, task.PauseType)
		e.operate(resumeTypeOf(beta))
		e.is(id, task.Pending, task.WaitPaused)
		e.equal("what is paused", e.task(id).Pause, task.PauseQueue)
		e.a.getsNothing()
		e.operate(resumeOf("slow"))
		e.a.gets([]task.ID{id})
	}},
	{"due rows of a type do not fill the limit of their key once it is paused", func(e *env) {
		c := e.a.take(e.one(key("k", 1)))
		first := e.one(key("k", 1), typed(beta))
		e.pass(time.Second)
		next := e.one(key("k", 1))
		e.b.getsNothing() // both wait
		e.finish(released(c))
		e.operate(cancelOf(c.Task.ID))
		e.operate(pauseTypeOf(beta))
		e.b.gets([]task.ID{next})
		e.is(first, task.Pending, task.WaitPaused)
	}},
	{"of a paused type one waiter is woken, and the others leave their places", func(e *env) {
		cs := e.a.takeAll(e.many(2, key("k", 2))...)
		e.many(3, key("k", 2), typed(beta))
		e.pass(time.Second)
		next := e.many(2, key("k", 2))
		e.b.getsNothing()
		e.operate(pauseTypeOf(beta))
		e.finishOK(finishes(cs, success)...)
		c := e.b.gets(next)[0]
		e.operate(resumeTypeOf(beta))
		e.finish(success(c))
		e.equal("the tasks of the resumed type that start", len(e.b.claim().Tasks), 1)
	}},
	{"R-17 pause of a type, claim and resume in every order leave one row or one lease", func(e *env) {
		for _, order := range permutations("pause", "claim", "resume", "cancel") {
			id := e.one(typed(beta))
			for _, op := range order {
				switch op {
				case "pause":
					e.operate(pauseTypeOf(beta))
				case "resume":
					e.operate(resumeTypeOf(beta))
				case "claim":
					e.a.claim(only(id))
				case "cancel":
					e.operate(cancelOf(id))
				}
			}
			e.operate(resumeTypeOf(beta))
			if t := e.task(id); t.State == task.Ready {
				e.a.take(id)
			}
		}
	}},
}

func verbsOf(audit []store.AuditEntry) []string {
	return mapped(audit, func(a store.AuditEntry) string { return a.Verb })
}
