package storetest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var operateScenes = []scene{
	{"unblock lets a blocked task go on", unblockGoesOn},
	{"unblock replaces its own input only", unblockReplaces},
	{"unblock leaves at least one attempt", unblockLeavesAttempt},
	{"unblock in every other state is refused", unblockOtherStates},
	{"delete removes every record", deleteRemoves},
	{"delete is refused unless the task ended outside a job", deleteRefused},
	{"a pause shows who and why", pauseShows},
	{"pause and resume are idempotent", pauseTwice},
	{"a pause leaves running tasks alone", pauseLeavesRunning},
	{"tasks enqueued, retried and released into a pause wait", intoPause},
	{"commands are answered in order, each on its own", commandsInOrder},
	{"every verb is audited", everyVerbAudited},
}

func unblockGoesOn(e *env) {
	id := e.one()
	e.blockTask(id)
	e.pass(time.Second)
	e.equal("the answer", e.operate(store.UnblockTask{Audit: admin, Task: id, Input: json.RawMessage(`{"ok":1}`)}), store.CommandResult{State: task.Ready})
	t := e.is(id, task.Ready, task.WaitNone)
	e.dueAt(id, e.now())
	e.equal("the input of the unblock", string(t.UnblockInput), `{"ok":1}`)
	e.blockTask(id)
	e.operate(store.UnblockTask{Audit: admin, Task: id, Input: json.RawMessage(`{"ok":2}`)})
	e.equal("the input of the second unblock", string(e.a.take(id).Task.UnblockInput), `{"ok":2}`)
}

func unblockReplaces(e *env) {
	big := func(letter string) string { return `"` + strings.Repeat(letter, 100<<10) + `"` }
	bystander := e.one()
	e.blockTask(bystander)
	e.operate(store.UnblockTask{Audit: admin, Task: bystander, Input: json.RawMessage(big("b"))})
	id := e.one(input(big("i")))
	for _, answer := range []string{big("u"), big("v"), `"small"`, big("w")} {
		e.blockTask(id)
		e.operate(store.UnblockTask{Audit: admin, Task: id, Input: json.RawMessage(answer)})
		t := e.task(id)
		if string(t.Input) != big("i") || string(t.UnblockInput) != answer {
			e.Errorf("the input has %d bytes and that of the unblock %d, want %d and %d", len(t.Input), len(t.UnblockInput), len(big("i")), len(answer))
		}
	}
	e.equal("the input of another's unblock", string(e.task(bystander).UnblockInput), big("b"))
}

func unblockLeavesAttempt(e *env) {
	id := e.one(attempts(2))
	e.finish(retry(e.a.take(id), 0))
	e.blockTask(id)
	e.equal("AttemptCount", e.task(id).AttemptCount, 2)
	e.operate(store.UnblockTask{Audit: admin, Task: id})
	e.equal("AttemptCount after unblock", e.task(id).AttemptCount, 1)
	fresh := e.one(attempts(5))
	e.blockTask(fresh)
	e.operate(store.UnblockTask{Audit: admin, Task: fresh})
	e.equal("AttemptCount of a task with attempts left", e.task(fresh).AttemptCount, 1)
}

func unblockOtherStates(e *env) {
	for _, st := range stances {
		s := &subject{queue: "unblock/" + st.name}
		st.reach(e, s)
		if e.task(s.id).State != task.Blocked {
			e.turnedDown(store.UnblockTask{Audit: admin, Task: s.id, Input: json.RawMessage(`1`)}, store.ErrState)
		}
	}
	e.turnedDown(store.UnblockTask{Audit: admin, Task: e.newID()}, store.ErrNotFound)
}

func deleteRemoves(e *env) {
	keep := e.one(labels("team", "a"))
	for _, end := range ends {
		id := e.one(labels("team", "a"), key("k", 1), once("o"), expires(time.Minute))
		c := e.a.take(id)
		e.record(step(c, "s", `1`))
		e.finish(retry(c, 0))
		end.end(e, id)
		e.operate(store.DeleteTask{Audit: admin, Task: id})
		_, err := e.s.History(e.Context(), e.ns, id)
		e.wantErr("History of a deleted task", err, store.ErrNotFound)
		e.turnedDown(store.DeleteTask{Audit: admin, Task: id}, store.ErrNotFound)
		list, _, err := e.s.List(e.Context(), e.ns, store.Filter{Labels: map[string]string{"team": "a"}})
		if err != nil || len(list) != 1 || list[0].ID != keep {
			e.Errorf("List shows %d tasks, %v", len(list), err)
		}
		snap := e.snap()
		if len(snap.Tasks) != 1 || len(snap.Attempts) != 0 || len(snap.Decisions) != 0 || len(snap.Steps) != 0 {
			e.Errorf("records of the deleted task are left: %+v", snap)
		}
	}
	e.expireNothing()
}

func deleteRefused(e *env) {
	for _, st := range stances {
		s := &subject{queue: "delete/" + st.name}
		st.reach(e, s)
		if t := e.task(s.id); !t.State.Terminal() || !t.JobID.IsZero() {
			e.turnedDown(store.DeleteTask{Audit: admin, Task: s.id}, store.ErrState)
		}
	}
	g := e.job("a")
	e.succeed(g.id("a"))
	e.turnedDown(store.DeleteTask{Audit: admin, Task: g.id("a")}, store.ErrState)
	e.turnedDown(store.DeleteTask{Audit: admin, Task: e.newID()}, store.ErrNotFound)
}

func pauseShows(e *env) {
	id := e.one(queue("slow"))
	e.operate(store.PauseQueue{Audit: admin, Queue: "slow"})
	e.is(id, task.Pending, task.WaitPaused)
	p := e.history(id).QueuePause
	if p == nil || p.Actor != admin.By || p.Reason != admin.Reason || p.Target != "slow" {
		e.Fatalf("the history says %+v about the pause", p)
	}
	e.near("the pause", p.At, e.now())
	e.equal("the paused queues", e.snap().Paused, []string{"slow"})
	e.operate(store.ResumeQueue{Audit: admin, Queue: "slow"})
	e.is(id, task.Ready, task.WaitNone)
	if p := e.history(id).QueuePause; p != nil {
		e.Errorf("the history still says %+v about a pause", p)
	}
	e.equal("the paused queues", len(e.snap().Paused), 0)
}

func pauseTwice(e *env) {
	id := e.one()
	for range 2 {
		e.operate(store.PauseQueue{Audit: admin, Queue: task.DefaultQueue})
		e.is(id, task.Pending, task.WaitPaused)
		e.dueAt(id, e.now())
	}
	for range 2 {
		e.operate(store.ResumeQueue{Audit: admin, Queue: task.DefaultQueue})
		e.is(id, task.Ready, task.WaitNone)
		e.dueAt(id, e.now())
	}
	e.operate(store.ResumeQueue{Audit: admin, Queue: "never seen"})
	e.succeed(id)
}

func pauseLeavesRunning(e *env) {
	c := e.a.take(e.one())
	e.operate(store.PauseQueue{Audit: admin, Queue: task.DefaultQueue})
	e.equal("the beat", e.a.beat(c.Lease), []store.Beat{{}})
	e.record(step(c, "s", `1`))
	e.finish(success(c))
}

func intoPause(e *env) {
	g := e.job("a", "b: a")
	again, given := e.one(), e.one()
	cs := e.a.takeAll(g.id("a"), again, given)
	e.operate(store.PauseQueue{Audit: admin, Queue: task.DefaultQueue})
	fresh := e.one()
	e.finishAll(success(cs[0]), retry(cs[1], 0), released(cs[2]))
	e.all(task.Pending, task.WaitPaused, fresh, g.id("b"), again, given)
	e.a.getsNothing()
	e.operate(store.ResumeQueue{Audit: admin, Queue: task.DefaultQueue})
	e.equal("the tasks claimed after the pause", len(e.a.claim().Tasks), 4)
}

func commandsInOrder(e *env) {
	failed, running, stuck := e.one(), e.one(), e.one()
	e.fail(failed)
	e.blockTask(stuck)
	e.a.take(running)
	got, err := e.s.Operate(e.Context(), e.ns,
		cancelOf(failed), cancelOf(running), retryOf(e.newID()), retryOf(failed), cancelOf(failed),
		store.UnblockTask{Audit: admin, Task: stuck}, store.UnblockTask{Audit: admin, Task: stuck},
	)
	if err != nil || len(got) != 7 {
		e.Fatalf("Operate = %d answers, %v", len(got), err)
	}
	for i, want := range []error{store.ErrState, nil, store.ErrNotFound, nil, nil, nil, store.ErrState} {
		e.wantErr("a command", got[i].Err, want)
	}
	for i, want := range map[int]task.State{1: task.Running, 3: task.Ready, 4: task.Cancelled, 5: task.Ready} {
		e.equal("the state answered", got[i].State, want)
	}
	e.is(failed, task.Cancelled, task.WaitNone)
	if got, err := e.s.Operate(e.Context(), e.ns); err != nil || len(got) != 0 {
		e.Errorf("no command answered %v, %v", got, err)
	}
}

func everyVerbAudited(e *env) {
	var want []store.AuditEntry
	do := func(verb, target string, cmd store.Command) {
		e.Helper()
		e.operate(cmd)
		want = append(want, store.AuditEntry{Actor: admin.By, Verb: verb, Target: target, Reason: admin.Reason})
		e.pass(10 * time.Millisecond)
	}
	asked, taken, stuck := e.one(), e.one(), e.one()
	g := e.job("a")
	e.a.takeAll(asked, taken)
	e.blockTask(stuck)
	do("cancel", asked.String(), cancelOf(asked))
	do("force_cancel", taken.String(), forceOf(taken))
	do("retry", taken.String(), retryOf(taken))
	do("unblock", stuck.String(), store.UnblockTask{Audit: admin, Task: stuck})
	do("cancel", taken.String(), cancelOf(taken))
	do("delete", taken.String(), store.DeleteTask{Audit: admin, Task: taken})
	do("cancel_job", g.sub.Job.ID.String(), store.CancelJob{Audit: admin, Job: g.sub.Job.ID})
	do("pause", "slow", store.PauseQueue{Audit: admin, Queue: "slow"})
	do("resume", "slow", store.ResumeQueue{Audit: admin, Queue: "slow"})
	start := e.now()
	e.operate(store.Restored{Audit: admin})

	got := e.snap().Audit
	if len(got) != len(want)+1 {
		e.Fatalf("%d audit entries, want %d: %+v", len(got), len(want)+1, got)
	}
	last := got[len(got)-1]
	e.near("the last entry", last.At, start)
	if last.Verb != "restored" || last.Actor != admin.By {
		e.Errorf("the last entry is %+v, want restored", last)
	}
	for i, w := range want {
		if got[i].At.IsZero() || i > 0 && got[i].At.Before(got[i-1].At) {
			e.Errorf("entry %d is of %v", i, got[i].At)
		}
		got[i].At = time.Time{}
		e.equal("an audit entry", got[i], w)
	}
	var verbs []string
	for _, a := range e.history(asked).Audit {
		verbs = append(verbs, a.Verb)
	}
	e.equal("the verbs in the task's history", strings.Join(verbs, " "), "cancel")
}
