package storetest

import (
	"context"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var claimWaitCases = []testCase{
	{"a waiting claim gets what becomes due, from then on", func(e *env) {
		g, stuck, paused, again := e.job("a", "b: a"), e.one(), e.one(queue("paused")), e.one()
		e.blockTask(stuck)
		e.operate(pauseOf("paused"))
		need, c := e.a.take(g.id("a")), e.a.take(again)
		for what, due := range map[string]func() task.ID{
			"an enqueue":                 func() task.ID { return e.one() },
			"the release of a dependent": func() task.ID { e.finish(success(need)); return g.id("b") },
			"a retry at once":            func() task.ID { e.finish(retry(c, 0)); return again },
			"an unblock":                 func() task.ID { e.operate(unblockOf(stuck, "")); return stuck },
			"a resume":                   func() task.ID { e.operate(resumeOf("paused")); return paused },
		} {
			waiting := e.b.claimOrWait(e.Context(), time.Hour)
			e.silence(time.Second / 10)
			id := due()
			got := <-waiting.answer
			e.equal("the tasks claimed after "+what, claimedIDs(got.Tasks), []task.ID{id})
			e.nearly("Waited", got.Waited, time.Second/10)
			e.near("LeaseExpiresAt", e.task(id).LeaseExpiresAt, e.now().Add(ttl))
			e.finish(success(got.Tasks[0]))
		}
	}},
	{"a waiting claim ends when a row of the future is due", func(e *env) {
		id := e.one(after(time.Minute))
		began := e.now()
		got := <-e.a.claimOrWait(e.Context(), time.Hour).answer
		e.nearly("the time until the answer", e.now().Sub(began), time.Minute)
		if len(got.Tasks) == 0 {
			got = e.a.claim()
		}
		e.equal("the tasks claimed", claimedIDs(got.Tasks), []task.ID{id})
	}},
	{"a waiting claim ends with nothing when its wait is over", func(e *env) {
		began := e.now()
		e.endsEmpty(e.a.claimOrWait(e.Context(), time.Minute))
		e.nearly("the time until the answer", e.now().Sub(began), time.Minute)
	}},
	{"a wake ends a waiting claim with nothing", func(e *env) {
		began := e.now()
		waiting := e.a.claimOrWait(e.Context(), time.Hour)
		waiting.wake <- struct{}{}
		e.endsEmpty(waiting)
		e.nearly("the time until the answer", e.now().Sub(began), 0)
	}},
	{"the end of its context ends a waiting claim with nothing", func(e *env) {
		began := e.now()
		ctx, cancel := context.WithCancel(e.Context())
		waiting := e.a.claimOrWait(ctx, time.Hour)
		cancel()
		e.endsEmpty(waiting)
		e.nearly("the time until the answer", e.now().Sub(began), 0)
	}},
	{"a waiting claim takes only what it asks for", func(e *env) {
		waiting := e.a.claimOrWait(e.Context(), time.Hour, limit(1), queues(map[string]int{"billing": 5}))
		other := e.one()
		e.equal("the answers after a task of another queue", len(waiting.answer), 0)
		ids := e.many(2, queue("billing"))
		e.equal("the tasks claimed", claimedIDs((<-waiting.answer).Tasks), ids[:1])
		e.b.gets([]task.ID{other, ids[1]})
	}},
	{"a waiting claim that looked at as many rows as it may is answered", func(e *env) {
		e.a.take(e.one(key("k", 1)))
		began := e.now()
		waiting := e.b.claimOrWait(e.Context(), time.Hour, limit(1))
		ids := e.enqueue(append(e.drafts(looks(1)+10, key("k", 1)), e.draft())...)
		got := <-waiting.answer
		e.check(got.Stopped && len(got.Tasks) == 0, "the claim got %d tasks and stopped %v", len(got.Tasks), got.Stopped)
		e.nearly("the time until the answer", e.now().Sub(began), 0)
		e.b.gets(ids[len(ids)-1:], limit(1))
	}},
	{"a claim that goes on behind a place waits for all that becomes due", func(e *env) {
		place := store.ClaimPlace{Priority: task.MaxPriority, Due: e.now(), Task: e.newID()}
		waiting := e.a.claimOrWait(e.Context(), time.Hour, func(r *store.ClaimRequest) { r.Behind = place })
		id := e.one()
		e.equal("the tasks claimed", claimedIDs((<-waiting.answer).Tasks), []task.ID{id})
	}},
	{"a claim does not wait when a task is due, nor with Again or IDs", func(e *env) {
		id := e.one()
		began := e.now()
		c := (<-e.a.claimOrWait(e.Context(), time.Hour).answer).Tasks[0]
		e.equal("the task claimed", c.Task.ID, id)
		again := <-e.a.claimOrWait(e.Context(), time.Hour, lookUp(c.Lease.ID)).answer
		e.equal("the tasks looked up", claimedIDs(again.Tasks), []task.ID{id})
		e.endsEmpty(e.a.claimOrWait(e.Context(), time.Hour, lookUp(task.NewLeaseID())))
		e.endsEmpty(e.a.claimOrWait(e.Context(), time.Hour, only(id)))
		e.nearly("the time until the answers", e.now().Sub(began), 0)
	}},
}

// waitingClaim is a Claim that may wait.
type waitingClaim struct {
	answer <-chan store.ClaimResult
	wake   chan<- struct{}
}

// claimOrWait starts a claim that may wait. It returns when the claim waits or is answered.
func (w *worker) claimOrWait(ctx context.Context, wait time.Duration, asks ...ask) waitingClaim {
	answer, wake := make(chan store.ClaimResult, 1), make(chan struct{}, 1)
	r := w.request(asks...)
	r.Wait, r.Wake = wait, wake
	go func() {
		got, err := w.e.s.Claim(ctx, w.e.ns, r)
		w.e.check(err == nil || ctx.Err() != nil, "Claim by %s: %v", w.name, err)
		answer <- got
	}()
	synctest.Wait()
	return waitingClaim{answer: answer, wake: wake}
}

// endsEmpty expects a claim to end without a task and to receive no task afterwards.
func (e *env) endsEmpty(w waitingClaim) {
	e.Helper()
	e.equal("the tasks of a claim that ended with nothing", len((<-w.answer).Tasks), 0)
	e.succeed(e.one())
}
