package storetest

import (
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var suspectScenes = []scene{
	{"a task that crashed twice is a suspect", twiceIsSuspect},
	{"a small worker runs one suspect at a time", oneSuspect},
	{"a large worker runs an eighth of its slots", eighthOfSlots},
	{"a suspect that may not run holds nobody up", suspectInFront},
	{"suspects are counted across lanes and hints", suspectHints},
	{"losses among others halve the company and convict nobody", lossesHalve},
	{"a suspect that must be alone gets no company", aloneIsAlone},
	{"a suspect that succeeds is cleared", suspectCleared},
	{"one poison task does not condemn its neighbours", poisonAlone},
}

// suspects makes tasks that have crashed twice.
func (e *env) suspects(n int) []task.ID {
	e.Helper()
	ids := e.many(n)
	for range 2 {
		e.worker("doomed").takeAll(ids...)
		e.pass(ttl + ttl/3)
		e.reap()
	}
	for _, t := range e.tasks(ids...) {
		if t.State != task.Ready || t.CrashCount != 2 {
			e.Fatalf("task %v is %s with %d crashes, want ready with 2", t.ID, t.State, t.CrashCount)
		}
	}
	return ids
}

func twiceIsSuspect(e *env) {
	id := e.one()
	for crashes := range 3 {
		c := e.worker("doomed").take(id)
		if c.Task.CrashCount != crashes || c.Quarantined != (crashes >= 2) {
			e.Errorf("after %d crashes CrashCount = %d, Suspect = %v", crashes, c.Task.CrashCount, c.Quarantined)
		}
		if crashes < 2 {
			e.expire(c)
		}
	}
}

func oneSuspect(e *env) {
	ids := e.suspects(3)
	for _, n := range []int{0, 1, 8, 15} {
		got := e.a.claim(slots(n, 0)).Tasks
		if len(got) != 1 || !got[0].Quarantined {
			e.Fatalf("a worker with %d slots claimed %d suspects, want 1", n, len(got))
		}
		e.a.getsNothing(slots(n, 1))
		e.finish(released(got[0]))
	}
	e.all(task.Ready, task.WaitNone, ids...)
}

func eighthOfSlots(e *env) {
	e.suspects(6)
	first := e.a.claim(slots(32, 1)).Tasks
	e.equal("the suspects claimed beside one, with 32 slots", len(first), 3)
	e.a.getsNothing(slots(32, 4))
	e.equal("the suspects claimed by another worker", len(e.b.claim(slots(16, 0)).Tasks), 2)
}

func suspectInFront(e *env) {
	ids := e.suspects(2)
	fresh := e.many(2)
	r := e.a.claim(slots(8, 1), limit(2))
	e.equal("the tasks claimed", claimedIDs(r.Tasks), fresh)
	e.all(task.Ready, task.WaitNone, ids...)
	e.next(-1, slots(8, 1))
	e.one(after(5 * time.Second))
	e.next(5*time.Second, slots(8, 1))
}

func suspectHints(e *env) {
	ids := e.suspects(2)
	e.a.getsNothing(slots(8, 1), only(ids...))
	e.equal("the suspects claimed by hint", len(e.a.claim(slots(8, 0), only(ids...)).Tasks), 1)
}

func lossesHalve(e *env) {
	id := e.suspects(1)[0]
	for losses, allowed := range []int{4, 2} {
		r := e.worker("doomed").claim(slots(32, allowed-1))
		if len(r.Tasks) != 1 {
			e.Fatalf("after %d losses a suspect was not claimed beside %d others", losses, allowed-1)
		}
		e.pass(ttl + ttl/3)
		got := e.reap().Reaped
		e.equal("the reaped", got, []store.Reaped{{Task: id, State: task.Ready}})
		t := e.task(id)
		if t.CrashCount != 2 || t.QuarantineLosses != losses+1 {
			e.Fatalf("after a loss among others CrashCount = %d and SuspectLosses = %d, want 2 and %d", t.CrashCount, t.QuarantineLosses, losses+1)
		}
		e.a.getsNothing(slots(32, allowed/2))
	}
	c := e.worker("doomed").claim(slots(32, 0)).Tasks[0]
	e.equal("the reaped", e.expire(c), store.Reaped{Task: id, State: task.Failed, Crash: true})
	t := e.ended(id, task.Failed, task.KindPoison)
	if !strings.Contains(t.Error.Message, "3") {
		e.Errorf("the message %q does not say that 3 leases were lost in a row", t.Error.Message)
	}
}

// Only a loss while alone convicts, so alone must mean alone: one more suspect
// beside it could be the one that kills the process.
func aloneIsAlone(e *env) {
	ids := e.suspects(2)
	worn, other := ids[0], ids[1]
	for range 2 { // losses among others: from 4 at once to 1
		got := e.worker("doomed").claim(slots(32, 1), only(worn)).Tasks
		e.equal("the suspects claimed", len(got), 1)
		e.pass(ttl + ttl/3)
		e.reap()
	}
	cs := e.a.claim(slots(32, 0), only(worn)).Tasks
	e.equal("the suspects claimed", len(cs), 1)
	e.equal("the company of one that must be alone", cs[0].QuarantineLimit, 1)
	e.a.getsNothing(slots(32, 1), company(cs[0].QuarantineLimit))
	e.next(-1, slots(32, 1), company(cs[0].QuarantineLimit))
	e.finish(released(cs[0]))

	cs = e.a.claim(slots(32, 0)).Tasks
	e.equal("the suspects claimed at once", len(cs), 1)
	e.finish(released(cs[0]))
	got := e.b.claim(slots(32, 2), company(4), only(other)).Tasks
	e.equal("the suspects claimed beside two with company for four", len(got), 1)
	e.equal("the company of one without losses among others", got[0].QuarantineLimit, 4)
}

func suspectCleared(e *env) {
	id := e.suspects(1)[0]
	e.worker("doomed").claim(slots(32, 1))
	e.pass(ttl + ttl/3)
	e.reap()
	e.succeed(id)
	t := e.task(id)
	if t.CrashCount != 0 || t.QuarantineLosses != 0 {
		e.Errorf("after success CrashCount = %d and SuspectLosses = %d, want 0", t.CrashCount, t.QuarantineLosses)
	}
}

func poisonAlone(e *env) {
	const neighbours = 20
	poison := e.one(priority(1))
	others := e.many(neighbours)
	// A process of 16 slots dies whenever it runs the poison task; each claim
	// takes as many suspects as it may.
	for range 40 {
		if e.task(poison).State.Terminal() {
			break
		}
		w := e.worker("doomed")
		got := w.claim(slots(16, 0), limit(16)).Tasks
		died := false
		for _, c := range got {
			died = died || c.Task.ID == poison
		}
		if died {
			e.pass(ttl + ttl/3)
			e.reap()
			continue
		}
		for _, c := range got {
			e.finish(success(c))
		}
	}
	e.ended(poison, task.Failed, task.KindPoison)
	for _, t := range e.tasks(others...) {
		if t.State == task.Failed {
			e.Errorf("neighbour %v failed: %v", t.ID, t.Error)
		}
	}
}
