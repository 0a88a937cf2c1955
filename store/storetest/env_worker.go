package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// worker is a process with an engine, reduced to its calls of the store.
type worker struct {
	e    *env
	id   store.WorkerID
	name string
}

// worker joins a new worker. Unless it stays, it sends no heartbeat while time passes.
func (e *env) worker(name string) *worker {
	e.Helper()
	e.workers++
	w := &worker{e: e, id: store.WorkerID(fmt.Sprintf("%s-%d", name, e.workers)), name: name}
	w.join(ttl)
	return w
}

// stranger returns a worker that did not join.
func (e *env) stranger(name string) *worker {
	return &worker{e: e, id: store.WorkerID(name), name: name}
}

func (w *worker) join(ttl time.Duration) {
	w.e.Helper()
	err := w.e.s.Join(w.e.Context(), w.e.ns, store.WorkerInfo{ID: w.id, Name: w.name, TTL: ttl})
	w.e.require(err == nil, "Join of %s: %v", w.name, err)
}

func (w *worker) leave() {
	w.e.Helper()
	err := w.e.s.Leave(w.e.Context(), w.e.ns, w.id)
	w.e.require(err == nil, "Leave of %s: %v", w.name, err)
}

// die makes the process of a worker look dead. It reports whether this kind of store can detect that.
func (w *worker) die() bool {
	if w.e.h.Kill == nil {
		return false
	}
	w.e.h.Kill(w.e.T, w.e.s, w.id)
	return true
}

// stay makes pass send heartbeats of this worker, but not for its leases.
func (w *worker) stay() { *w.e.alive = append(*w.e.alive, w) }

// quiet reverts stay.
func (w *worker) quiet() {
	*w.e.alive = slices.DeleteFunc(*w.e.alive, func(o *worker) bool { return o == w })
}

// beat renews leases and marks the worker as seen.
func (w *worker) beat(leases ...task.Lease) []store.Beat {
	w.e.Helper()
	beats, err := w.e.s.Heartbeat(w.e.Context(), w.e.ns, store.HeartbeatRequest{Worker: w.id, TTL: ttl, Leases: leases})
	w.e.require(err == nil, "Heartbeat of %s: %v", w.name, err)
	w.e.require(len(beats) == len(leases), "Heartbeat of %d leases answered %d", len(leases), len(beats))
	return beats
}

// ask changes a claim.
type ask func(*store.ClaimRequest)

func limit(n int) ask                { return func(r *store.ClaimRequest) { r.Limit = n } }
func only(ids ...task.ID) ask        { return func(r *store.ClaimRequest) { r.IDs = ids } }
func queues(free map[string]int) ask { return func(r *store.ClaimRequest) { r.Queues = free } }
func types(known map[string]int) ask { return func(r *store.ClaimRequest) { r.Types = known } }
func claimTTL(d time.Duration) ask   { return func(r *store.ClaimRequest) { r.TTL = d } }
func quarantineLimit(n int) ask      { return func(r *store.ClaimRequest) { r.QuarantineLimit = n } }
func under(lease task.LeaseID) ask   { return func(r *store.ClaimRequest) { r.LeaseID = lease } }
func alone(r *store.ClaimRequest)    { r.Alone = true }
func running(n int) ask              { return func(r *store.ClaimRequest) { r.Running = n } }
func slots(all, quarantined int) ask {
	return func(r *store.ClaimRequest) { r.Slots, r.Running, r.Quarantined = all, quarantined, quarantined }
}

func lookUp(lease task.LeaseID) ask {
	return func(r *store.ClaimRequest) { r.LeaseID, r.Again = lease, true }
}

func (w *worker) request(asks ...ask) store.ClaimRequest {
	r := store.ClaimRequest{
		Worker: w.id, Name: w.name, LeaseID: w.e.newLease(), TTL: ttl, Limit: 1000,
		Types: map[string]int{alpha: 1, beta: 1}, Slots: 7, // a quarantined task runs alone
	}
	for _, a := range asks {
		a(&r)
	}
	return r
}

// claim asks for work and returns the whole answer.
func (w *worker) claim(asks ...ask) store.ClaimResult {
	w.e.Helper()
	got, err := w.e.s.Claim(w.e.Context(), w.e.ns, w.request(asks...))
	w.e.require(err == nil, "Claim by %s: %v", w.name, err)
	return got
}

// take claims exactly this task.
func (w *worker) take(id task.ID) store.Claimed {
	w.e.Helper()
	got := w.claim(only(id))
	if len(got.Tasks) != 1 || got.Tasks[0].Task.ID != id {
		t := w.e.task(id)
		w.e.Fatalf("%s claimed %d tasks instead of %v, which is %s/%s", w.name, len(got.Tasks), id, t.State, t.Waiting)
	}
	return got.Tasks[0]
}

// takeAll claims exactly these tasks in one call, in this order.
func (w *worker) takeAll(ids ...task.ID) []store.Claimed {
	w.e.Helper()
	got := w.claim(only(ids...)).Tasks
	w.e.require(len(got) == len(ids), "%s claimed %d tasks of %d", w.name, len(got), len(ids))
	slices.SortFunc(got, func(x, y store.Claimed) int {
		return slices.Index(ids, x.Task.ID) - slices.Index(ids, y.Task.ID)
	})
	return got
}

// gets claims the due tasks and compares them, in the order claimed.
func (w *worker) gets(want []task.ID, asks ...ask) []store.Claimed {
	w.e.Helper()
	got := w.claim(asks...).Tasks
	w.e.require(slices.Equal(claimedIDs(got), want), "%s claimed %v, want %v", w.name, claimedIDs(got), want)
	return got
}

// getsNothing claims and expects no task.
func (w *worker) getsNothing(asks ...ask) {
	w.e.Helper()
	w.gets(nil, asks...)
}

// claimedIDs returns the IDs of claimed tasks.
func claimedIDs(cs []store.Claimed) []task.ID {
	return mapped(cs, func(c store.Claimed) task.ID { return c.Task.ID })
}

// leasesOf returns the leases of claimed tasks.
func leasesOf(cs []store.Claimed) []task.Lease {
	return mapped(cs, func(c store.Claimed) task.Lease { return c.Lease })
}

// reap runs a reap, which must be eligible.
func (e *env) reap() store.ReapResult {
	e.Helper()
	return e.reapWith(3)
}

// reapWith reaps with another crash budget.
func (e *env) reapWith(budget int) store.ReapResult {
	e.Helper()
	got := e.reaper.reap(store.ReapRequest{CrashBudget: budget})
	e.require(!got.WarmingUp, "the reaper sent all its heartbeats and warms up")
	return got
}

// reap runs a reap as this worker.
func (w *worker) reap(r store.ReapRequest) store.ReapResult {
	w.e.Helper()
	r.Worker, r.TTL = w.id, ttl
	got, err := w.e.s.Reap(w.e.Context(), w.e.ns, r)
	w.e.require(err == nil, "Reap by %s: %v", w.name, err)
	return got
}

// reapExpired lets every unrenewed lease expire, and reaps.
func (e *env) reapExpired() store.ReapResult {
	e.Helper()
	e.pass(ttl + ttl/3)
	return e.reap()
}

// reapsNothing expects a reap to change nothing.
func (e *env) reapsNothing() {
	e.Helper()
	got := e.reap()
	e.check(len(got.Reaped) == 0 && len(got.Expired) == 0, "reaped %v and ended %v, want nothing", got.Reaped, got.Expired)
}

// expire lets the lease of an attempt expire and be reaped.
func (e *env) expire(c store.Claimed) store.Reaped {
	e.Helper()
	for _, r := range e.reapExpired().Reaped {
		if r.Task == c.Task.ID {
			return r
		}
	}
	e.Fatalf("the expired lease of %v was not reaped", c.Task.ID)
	return store.Reaped{}
}

// crash makes n consecutive processes die while running the task.
func (e *env) crash(id task.ID, n int) {
	e.Helper()
	for range n {
		e.expire(e.worker("doomed").take(id))
	}
}

// The ends of an attempt.

func success(c store.Claimed) store.Finish {
	return store.Finish{Lease: c.Lease, Outcome: task.OutcomeSuccess, Output: json.RawMessage(`"done"`), Elapsed: time.Millisecond, CodeVersion: 1}
}

// failure ends an attempt with a handler's error and a decision.
func failure(c store.Claimed, kind task.DecisionKind, delay time.Duration) store.Finish {
	return store.Finish{
		Lease: c.Lease, Outcome: task.OutcomeFailure, Error: &task.Error{Kind: task.KindHandler, Message: "no luck"},
		Decision: &task.Decision{Kind: kind, Reason: task.Reason{Policy: "test", Version: 1, Text: "the test says so"}},
		Delay:    delay, Elapsed: time.Millisecond, CodeVersion: 1,
	}
}

func retry(c store.Claimed, delay time.Duration) store.Finish {
	return failure(c, task.DecideRetry, delay)
}

func dead(c store.Claimed) store.Finish  { return failure(c, task.DecideMarkDead, 0) }
func block(c store.Claimed) store.Finish { return failure(c, task.DecideBlock, 0) }

func internalError(c store.Claimed, delay time.Duration) store.Finish {
	return store.Finish{Lease: c.Lease, Outcome: task.OutcomeFailure, Error: &task.Error{Kind: task.KindInternal, Message: "no bucket"}, Delay: delay}
}

func suspend(c store.Claimed, until time.Time) store.Finish {
	return store.Finish{Lease: c.Lease, Outcome: task.OutcomeSuspended, WakeAt: until}
}

// notRun ends an attempt that its worker cannot run.
func notRun(c store.Claimed) store.Finish {
	return store.Finish{Lease: c.Lease, Outcome: task.OutcomeReleased, Error: &task.Error{Kind: task.KindWorker, Message: "no bucket"}, Delay: time.Second}
}

func released(c store.Claimed) store.Finish {
	return store.Finish{Lease: c.Lease, Outcome: task.OutcomeReleased}
}

func cancelled(c store.Claimed) store.Finish {
	return store.Finish{Lease: c.Lease, Outcome: task.OutcomeCancelled, Error: &task.Error{Kind: task.KindCancelled, Message: "gave up"}}
}

// finish ends an attempt and expects the store to accept it. It returns the answer without the part checked by
// [env.checkOverruled].
func (e *env) finish(f store.Finish) store.FinishResult {
	e.Helper()
	got := e.finishAll(f)[0]
	e.require(got.Err == nil, "Finish with %s: %v", f.Outcome, got.Err)
	if f.Outcome != task.OutcomeSuccess || got.State != task.Succeeded || got.Overruled != nil {
		e.checkOverruled(&f, &got)
	}
	got.Overruled = nil
	return got
}

// finishAll ends attempts in one batch.
func (e *env) finishAll(fs ...store.Finish) []store.FinishResult {
	e.Helper()
	list := slices.Clone(fs)
	got, err := e.s.Finish(e.Context(), e.ns, list...)
	clear(list) // a caller may reuse the slice
	e.require(err == nil, "Finish of %d: %v", len(fs), err)
	e.require(len(got) == len(fs), "Finish of %d answered %d", len(fs), len(got))
	return got
}

// finishOK ends attempts in one batch, all of which the store must accept.
func (e *env) finishOK(fs ...store.Finish) {
	e.Helper()
	for i, got := range e.finishAll(fs...) {
		e.require(got.Err == nil, "Finish with %s: %v", fs[i].Outcome, got.Err)
	}
}

// finishes returns a finish for each claimed task.
func finishes(cs []store.Claimed, end func(store.Claimed) store.Finish) []store.Finish {
	return mapped(cs, end)
}

// finishRefused expects a finish to be refused without a write.
func (e *env) finishRefused(f store.Finish, want error) {
	e.Helper()
	e.unchanged(fmt.Sprintf("Finish with %s", f.Outcome), func() {
		e.wantErr("Finish with "+string(f.Outcome), e.finishAll(f)[0].Err, want)
	})
}

// succeed runs tasks to success, one after another.
func (e *env) succeed(ids ...task.ID) {
	e.Helper()
	for _, id := range ids {
		e.finish(success(e.a.take(id)))
	}
}

// fail runs tasks to failure.
func (e *env) fail(ids ...task.ID) {
	e.Helper()
	for _, id := range ids {
		e.finish(dead(e.a.take(id)))
	}
}

// blockTask runs a task until it is blocked.
func (e *env) blockTask(id task.ID) {
	e.Helper()
	e.finish(block(e.a.take(id)))
}
