package storetest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// guardScenes are those that each show one guard of the lease law, which the
// longer stories pass by.
var guardScenes = []scene{
	{"a claim needs a lease id", claimNeedsLease},
	{"a lookup finds the tasks of its own lease only", lookUpOwn},
	{"Next does not count what its deadline keeps", nextWithoutLate},
	{"Next does not count what its key keeps", nextWithoutKeyed},
	{"a call whose context has ended does nothing", endedContext},
	{"a conflict leaves no progress", conflictProgress},
	{"tasks are started by a step only, and a step has ended", startWithoutStep},
	{"tries are told apart by step, attempt and number", triesApart},
	{"the same name and value of another kind is a conflict", kindConflict},
	{"the same name with another error is a conflict", errorConflict},
	{"a completed step forgives losses in company", stepForgivesLosses},
	{"a report that no worker makes is refused", strangeReports},
	{"a negative delay does not lead back in time", noWayBack},
	{"nothing of a deleted task comes back with its id", deletedForGood},
	{"who paused a queue first stays on record", pausedTwice},
	{"the waiter that was due first is woken first", oldestWaiterFirst},
	{"a key that nobody holds or awaits leaves no row", keysTidied},
	{"R7 a loss that is no crash does not use up the budget", lossWithinBudget},
	{"R7 a process known to be dead has crashed, however lately it was seen", deadHasCrashed},
	{"R7 a process that joined again is not dead", joinedAgain},
	{"R7 a silent worker is not forgotten while it holds leases", silentHolder},
	{"R7 a dead worker is not forgotten while leases of it are left", deadHolder},
}

// guardStepTxScenes are those of stores with step transactions.
var guardStepTxScenes = []scene{
	{"a value that comes after the end of the context is not stored", stepTxEndedContext},
	{"a repeated step leaves nothing of its second run", stepTxRepeated},
}

// guardNotifyScenes are those of stores that tell their users.
var guardNotifyScenes = []scene{
	{"a restore is announced to the running", noticesRestored},
}

func claimNeedsLease(e *env) {
	e.one()
	e.unchanged("a claim without a lease id", func() {
		if got, err := e.s.Claim(e.Context(), e.ns, e.a.request(under(task.LeaseID{}))); err == nil {
			e.Errorf("it answered %+v", got)
		}
	})
}

func lookUpOwn(e *env) {
	x, y := e.one(), e.one()
	here, there := e.a.take(x), e.b.take(y)
	e.a.gets([]task.ID{x}, lookUp(here.Lease.ID))
	e.a.gets([]task.ID{y}, lookUp(there.Lease.ID))
	e.a.getsNothing(lookUp(task.NewLeaseID()))
}

func nextWithoutLate(e *env) {
	e.one(expires(time.Second))
	e.pass(2 * time.Second)
	if got := e.a.claim(); len(got.Tasks) != 0 || got.Next >= 0 {
		e.Errorf("beside a task whose deadline passed a claim answered %+v, want nothing, and nothing to come", got)
	}
}

func nextWithoutKeyed(e *env) {
	e.many(2, key("k", 1))
	if got := e.a.claim(limit(1)); len(got.Tasks) != 1 || got.Next >= 0 {
		e.Errorf("a claim of one of two tasks of a key answered %d tasks and Next %v, want one, and nothing to come", len(got.Tasks), got.Next)
	}
}

func endedContext(e *env) {
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
			if call() == nil {
				e.Errorf("%s answered no error", what)
			}
		})
	}
}

func conflictProgress(e *env) {
	c := e.a.take(e.one())
	e.record(step(c, "s", `1`))
	e.unchanged("a conflict", func() {
		again := step(c, "s", `2`)
		again.Progress = &task.Progress{Current: 1, Total: 2}
		e.wantErr("the record", e.recordAll(again)[0].Err, store.ErrStepConflict)
	})
}

func startWithoutStep(e *env) {
	c := e.a.take(e.one())
	odd := step(c, "s", `1`)
	odd.Step.State = "begun"
	for what, r := range map[string]store.Record{"a start without a step": {Lease: c.Lease, Tasks: e.drafts(1)}, "a step that neither failed nor completed": odd} {
		e.unchanged(what, func() {
			if got := e.recordAll(r)[0]; got.Err == nil {
				e.Errorf("%s answered %+v", what, got)
			}
		})
	}
}

func triesApart(e *env) {
	id := e.one(attempts(5))
	c := e.a.take(id)
	e.record(try(c, "s", 1))
	e.record(try(c, "t", 1))
	e.record(try(c, "s", 2))
	e.record(try(c, "s", 1)) // once more
	e.finish(retry(c, 0))
	second := e.b.take(id)
	for range 2 {
		e.equal("the attempt of a try", e.record(try(second, "s", 1)).Step.AttemptNo, 2)
	}
	type tried struct {
		name        string
		attempt, no int
	}
	var got []tried
	for _, s := range e.steps(id) {
		got = append(got, tried{s.Name, s.AttemptNo, s.Try})
	}
	slices.SortFunc(got, func(a, b tried) int {
		return slices.Compare([]int{int(a.name[0]), a.attempt, a.no}, []int{int(b.name[0]), b.attempt, b.no})
	})
	e.equal("the tries", got, []tried{{"s", 1, 1}, {"s", 1, 2}, {"s", 2, 1}, {"t", 1, 1}})
}

func kindConflict(e *env) {
	c := e.a.take(e.one())
	e.record(sleep(c, "s", time.Minute))
	again := step(c, "s", "")
	again.Step.Value = nil
	e.wantErr("a step under the name of a sleep", e.recordAll(again)[0].Err, store.ErrStepConflict)
}

func errorConflict(e *env) {
	c := e.a.take(e.one())
	failed := func(text string) store.Record {
		r := step(c, "s", "")
		r.Step.Value, r.Step.Error = nil, &task.Error{Kind: task.KindHandler, Message: text, Step: "s"}
		return r
	}
	e.record(failed("no"))
	e.record(failed("no"))
	e.wantErr("another error", e.recordAll(failed("never"))[0].Err, store.ErrStepConflict)
}

func stepForgivesLosses(e *env) {
	ids := e.suspects(2)
	if got := e.worker("doomed").claim(slots(16, 0)).Tasks; len(got) != 2 {
		e.Fatalf("a worker with 16 slots claimed %d suspects, want 2", len(got))
	}
	e.pass(ttl + ttl/3)
	e.reap()
	e.equal("SuspectLosses", e.task(ids[0]).QuarantineLosses, 1)
	c := e.a.take(ids[0])
	e.record(step(c, "s", `1`))
	e.equal("SuspectLosses after a step", e.task(ids[0]).QuarantineLosses, 0)
	e.equal("CrashCount after a step", e.task(ids[0]).CrashCount, 0)
}

func strangeReports(e *env) {
	c := e.a.take(e.one())
	undecided, odd, lost := dead(c), dead(c), dead(c)
	undecided.Decision = nil
	odd.Decision = &task.Decision{Kind: "guess"}
	lost.Outcome = task.OutcomeLeaseLost
	for what, f := range map[string]store.Finish{"an outcome of the reaper's": lost, "a failure that nobody decided": undecided, "an unknown decision": odd} {
		e.unchanged(what, func() {
			if got := e.finishAll(f)[0]; got.Err == nil {
				e.Errorf("%s answered %+v", what, got)
			}
		})
	}
	e.finish(success(c))
}

func noWayBack(e *env) {
	id := e.one()
	e.finish(retry(e.a.take(id), -time.Hour))
	e.near("NextReadyAt", e.history(id).Decisions[0].NextReadyAt, e.now())
	e.dueAt(id, e.now())
}

func deletedForGood(e *env) {
	big := `"` + strings.Repeat("x", 2000) + `"`
	n := e.draft(input(big))
	e.enqueue(n)
	c := e.a.take(n.ID)
	e.record(step(c, "s", `1`))
	e.finish(dead(c))
	e.operate(store.DeleteTask{Audit: admin, Task: n.ID})
	e.enqueue(n)
	h := e.history(n.ID)
	if len(h.Attempts)+len(h.Steps)+len(h.Decisions) != 0 || string(h.Task.Input) != big {
		e.Errorf("the task came back with %d attempts, %d steps, %d decisions and input %.20s", len(h.Attempts), len(h.Steps), len(h.Decisions), h.Task.Input)
	}
	e.finish(dead(e.a.take(n.ID))) // under numbers that were used before
}

func pausedTwice(e *env) {
	id := e.one()
	for _, who := range []string{"first", "second"} {
		e.operate(store.PauseQueue{Audit: store.Audit{By: who}, Queue: task.DefaultQueue})
	}
	pause := e.history(id).QueuePause
	if pause == nil || pause.Actor != "first" {
		e.Errorf("the pause on record is %+v, want the first", pause)
	}
	e.operate(store.ResumeQueue{Audit: admin, Queue: task.DefaultQueue})
	e.is(id, task.Ready, task.WaitNone)
}

func oldestWaiterFirst(e *env) {
	holder := e.a.take(e.one(key("k", 1)))
	later, sooner := e.one(key("k", 1), after(4*time.Second)), e.one(key("k", 1), after(2*time.Second))
	e.pass(3 * time.Second)
	e.b.getsNothing()
	e.pass(2 * time.Second)
	e.b.getsNothing()
	e.finish(success(holder))
	e.finish(success(e.b.gets([]task.ID{sooner})[0]))
	e.b.gets([]task.ID{later})
}

func keysTidied(e *env) {
	x, y := e.one(key("k", 1)), e.one(key("k", 1))
	c := e.a.take(x)
	e.b.getsNothing()
	e.operate(cancelOf(y))
	e.finish(success(c))
	e.equal("rows of keys", len(e.snap().Keys), 0)
}

func lossWithinBudget(e *env) {
	id := e.one()
	e.crash(id, 2)
	w := e.worker("deaf")
	w.stay() // it lives, and loses its lease all the same
	w.take(id)
	e.pass(ttl + ttl/3)
	got := e.reapWith(2).Reaped
	if len(got) != 1 || got[0].Crash || got[0].State != task.Ready {
		e.Errorf("reaped %+v, want one that is ready again, and no crash", got)
	}
}

// die makes the process of a worker look dead, and reports whether this kind
// of store can tell.
func (w *worker) die() bool {
	if w.e.h.Kill == nil {
		return false
	}
	w.e.h.Kill(w.e.T, w.e.s, w.id)
	return true
}

func deadHasCrashed(e *env) {
	w := e.worker("doomed")
	w.stay()
	w.take(e.one())
	e.pass(ttl + ttl/3)
	w.quiet()
	known := w.die()
	got := e.reap().Reaped
	if len(got) != 1 || got[0].Crash != known {
		e.Errorf("reaped %+v, want one with Crash %v", got, known)
	}
}

func joinedAgain(e *env) {
	w := e.worker("again")
	c := w.take(e.one())
	w.die()
	w.join()
	if got := e.reap().Reaped; len(got) != 0 {
		e.Errorf("reaped %+v of a process that joined again", got)
	}
	e.finish(success(c))
}

func silentHolder(e *env) {
	w := e.worker("silent")
	id := e.one()
	w.claim(only(id), claimTTL(time.Hour))
	e.pass(15 * ttl)
	e.reap()
	e.is(id, task.Running, task.WaitNone)
	known := w.die()
	if got := e.reap().Reaped; (len(got) == 1) != known {
		e.Errorf("reaped %+v; the process is known to be dead: %v", got, known)
	}
}

func deadHolder(e *env) {
	w := e.worker("doomed")
	w.takeAll(e.many(3)...)
	known := w.die()
	for range 3 {
		if got := e.keeper.reap(store.ReapRequest{CrashBudget: 3, Limit: 1}).Reaped; (len(got) == 1) != known {
			e.Errorf("reaped %+v; the process is known to be dead: %v", got, known)
		}
	}
}

func stepTxEndedContext(e *env) {
	c := e.a.take(e.one())
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	r := step(c, "tx", "")
	r.Step.Value = nil
	e.unchanged("a step whose context ended", func() {
		got, err := e.s.(store.StepTxer).StepTx(ctx, e.ns, r, time.Second, e.enqueuing(e.draft(), func(context.Context) (json.RawMessage, error) {
			cancel()
			return json.RawMessage(`1`), nil
		}))
		if err == nil {
			e.Errorf("StepTx answered %+v", got)
		}
	})
}

func stepTxRepeated(e *env) {
	c := e.a.take(e.one())
	first, second := e.draft(), e.draft()
	e.withTx(c, e.enqueuing(first, returnsOne))
	e.unchanged("the same step again", func() { e.withTx(c, e.enqueuing(second, returnsOne)) })
	e.succeed(first.ID)
}

func noticesRestored(e *env) {
	ear := e.listen()
	c := e.a.take(e.one())
	got := ear.hears(func() { e.operate(store.Restored{Audit: admin}) })
	if !slices.Contains(got.Cancels, c.Task.ID) {
		e.Errorf("a restore announced %+v, want a cancel of the running task", got)
	}
}
