package storetest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var operateCases = []testCase{
	{"commands are answered in order, each on its own", func(e *env) {
		failed, running, stuck := e.one(), e.one(), e.one()
		e.fail(failed)
		e.blockTask(stuck)
		e.a.take(running)
		got, err := e.s.Operate(e.Context(), e.ns,
			cancelOf(failed), cancelOf(running), retryOf(e.newID()), retryOf(failed), cancelOf(failed),
			unblockOf(stuck, ""), unblockOf(stuck, ""),
		)
		e.require(err == nil && len(got) == 7, "Operate = %d answers, %v", len(got), err)
		for i, want := range []error{store.ErrState, nil, store.ErrNotFound, nil, nil, nil, store.ErrState} {
			e.wantErr("a command", got[i].Err, want)
		}
		for i, want := range map[int]task.State{1: task.Running, 3: task.Ready, 4: task.Cancelled, 5: task.Ready} {
			e.equal("the state answered", got[i].State, want)
		}
		e.is(failed, task.Cancelled, task.WaitNone)
		got, err = e.s.Operate(e.Context(), e.ns)
		e.check(err == nil && len(got) == 0, "no command answered %v, %v", got, err)
	}},
	{"every verb is audited", func(e *env) {
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
		do("unblock", stuck.String(), unblockOf(stuck, ""))
		do("reschedule", taken.String(), runNowOf(taken))
		do("cancel", taken.String(), cancelOf(taken))
		do("delete", taken.String(), deleteOf(taken))
		do("cancel_job", g.sub.Job.ID.String(), cancelJobOf(g.sub.Job.ID))
		waits := e.one()
		do("pause_task", waits.String(), pauseTaskOf(waits))
		do("resume_task", waits.String(), resumeTaskOf(waits))
		do("pause_type", beta, pauseTypeOf(beta))
		do("resume_type", beta, resumeTypeOf(beta))
		do("pause", "slow", pauseOf("slow"))
		do("resume", "slow", resumeOf("slow"))
		start := e.now()
		e.operate(store.Restored{Audit: admin})

		got := e.snap().Audit
		e.require(len(got) == len(want)+1, "%d audit entries, want %d: %+v", len(got), len(want)+1, got)
		last := got[len(got)-1]
		e.near("the last entry", last.At, start)
		e.check(last.Verb == "restored" && last.Actor == admin.By, "the last entry is %+v, want restored", last)
		for i, w := range want {
			e.check(!got[i].At.IsZero() && (i == 0 || !got[i].At.Before(got[i-1].At)), "entry %d is of %v", i, got[i].At)
			e.equal("the id of an entry", got[i].ID, int64(i+1))
			got[i].At, got[i].ID = time.Time{}, 0
			e.equal("an audit entry", got[i], w)
		}
		audit := e.history(asked).Audit
		e.check(len(audit) == 1 && audit[0].Verb == "cancel", "the task's history shows the verbs %+v", audit)
	}},
	{"unblock lets a blocked task go on", func(e *env) {
		id := e.one()
		e.blockTask(id)
		e.pass(time.Second)
		e.equal("the answer", e.operate(unblockOf(id, `{"ok":1}`)), store.CommandResult{State: task.Ready})
		t := e.is(id, task.Ready, task.WaitNone)
		e.dueAt(id, e.now())
		e.equal("the input of the unblock", string(t.UnblockInput), `{"ok":1}`)
		e.blockTask(id)
		e.operate(unblockOf(id, `{"ok":2}`))
		e.equal("the input of the second unblock", string(e.a.take(id).Task.UnblockInput), `{"ok":2}`)
	}},
	{"unblock replaces its own input only", func(e *env) {
		big := func(letter string) string { return `"` + strings.Repeat(letter, 100<<10) + `"` }
		other := e.one()
		e.blockTask(other)
		e.operate(unblockOf(other, big("b")))
		id := e.one(input(big("i")))
		for _, answer := range []string{big("u"), big("v"), `"small"`, big("w")} {
			e.blockTask(id)
			e.operate(unblockOf(id, answer))
			t := e.task(id)
			e.check(string(t.Input) == big("i") && string(t.UnblockInput) == answer, "the input has %d bytes and that of the unblock %d, want %d and %d", len(t.Input), len(t.UnblockInput), len(big("i")), len(answer))
		}
		e.equal("the input of another's unblock", string(e.task(other).UnblockInput), big("b"))
	}},
	{"an unblock input stays until the task ends", func(e *env) {
		id := e.one()
		e.blockTask(id)
		e.operate(unblockOf(id, `{"approved":true}`))
		c := e.a.take(id)
		e.equal("the input of the unblock", string(c.Task.UnblockInput), `{"approved":true}`)
		e.finish(retry(c, 0))
		c = e.a.take(id)
		e.equal("the input of the unblock, next attempt", string(c.Task.UnblockInput), `{"approved":true}`)
	}},
	{"an unblock input is for the question that the task waits with", func(e *env) {
		id := e.one()
		asks := func(question string) {
			f := block(e.a.take(id))
			f.Error.Ask = question
			e.finish(f)
		}
		answers := func(input, by, want string) {
			e.Helper()
			cmd := unblockOf(id, input)
			cmd.Ask = by
			e.operate(cmd)
			t := e.task(id)
			e.check(t.UnblockFor == want && string(t.UnblockInput) == input, "the input %s is for %q, want %s for %q", t.UnblockInput, t.UnblockFor, input, want)
		}
		asks("flight")
		e.equal("the question", e.task(id).Error.Ask, "flight")
		other := unblockOf(id, `"yes"`)
		other.Ask = "hotel"
		e.commandRefused(other, store.ErrChanged)
		answers(`"yes"`, "", "flight")
		e.finish(retry(e.a.take(id), 0))
		c := e.a.take(id)
		e.check(c.Task.UnblockFor == "flight" && string(c.Task.UnblockInput) == `"yes"`, "the next attempt gets %s for %q", c.Task.UnblockInput, c.Task.UnblockFor)
		f := block(c)
		f.Error.Ask = "hotel"
		e.finish(f)
		answers("", "", "") // the answer about the flight is not one about the hotel
		asks("hotel")
		answers(`"no"`, "hotel", "hotel")
		asks("")
		e.commandRefused(other, store.ErrChanged)
		answers(`"plain"`, "", "")
	}},
	{"unblock leaves at least one attempt", func(e *env) {
		id := e.one(attempts(2))
		e.finish(retry(e.a.take(id), 0))
		e.blockTask(id)
		e.equal("AttemptCount", e.task(id).AttemptCount, 2)
		e.operate(unblockOf(id, ""))
		e.equal("AttemptCount after unblock", e.task(id).AttemptCount, 1)
		fresh := e.one(attempts(5))
		e.blockTask(fresh)
		e.operate(unblockOf(fresh, ""))
		e.equal("AttemptCount of a task with attempts left", e.task(fresh).AttemptCount, 1)
	}},
	{"unblock in every other state is refused", func(e *env) {
		for _, st := range situations {
			s := &subject{queue: "unblock/" + st.name}
			st.reach(e, s)
			if e.task(s.id).State != task.Blocked {
				e.commandRefused(unblockOf(s.id, `1`), store.ErrState)
			}
		}
		e.commandRefused(unblockOf(e.newID(), ""), store.ErrNotFound)
	}},
	{"delete removes every record", func(e *env) {
		keep := e.one(labels("team", "a"))
		for _, end := range ends {
			id := e.one(labels("team", "a"), key("k", 1), once("o"), expires(time.Minute))
			c := e.a.take(id)
			e.record(step(c, "s", `1`))
			e.finish(retry(c, 0))
			end.end(e, id)
			e.operate(deleteOf(id))
			_, err := e.s.History(e.Context(), e.ns, id)
			e.wantErr("History of a deleted task", err, store.ErrNotFound)
			e.commandRefused(deleteOf(id), store.ErrNotFound)
			e.lists(store.Filter{Labels: map[string]string{"team": "a"}}, keep)
			snap := e.snap()
			e.check(len(snap.Tasks) == 1 && len(snap.Attempts) == 0 && len(snap.Decisions) == 0 && len(snap.Steps) == 0, "records of the deleted task are left: %+v", snap)
		}
		e.expireNothing()
	}},
	{"delete frees the id and the idempotency key, and nothing comes back with them", func(e *env) {
		big := `"` + strings.Repeat("x", 2000) + `"`
		n := e.draft(input(big), once("k"))
		e.enqueue(n)
		remove := func() {
			e.Helper()
			c := e.a.take(n.ID) // under numbers that were used before
			e.record(step(c, "s", `1`))
			e.finish(dead(c))
			e.operate(deleteOf(n.ID))
		}
		remove()
		e.enqueue(n)
		h := e.history(n.ID)
		e.equal("the attempts, steps and decisions", len(h.Attempts)+len(h.Steps)+len(h.Decisions), 0)
		e.check(string(h.Task.Input) == big, "the task came back with the input %.20s", h.Task.Input)
		remove()
		again := e.one(once("k"))
		e.existing(e.draft(once("k")), again)
	}},
	{"delete removes labels and edges", func(e *env) {
		need, n, dependent := e.draft(), e.draft(labels("a", "b")), e.draft()
		n.Needs = []task.Edge{{Needs: need.ID, Kind: task.OnSuccess}}
		dependent.Needs = []task.Edge{{Needs: n.ID, Kind: task.OnSuccess}}
		e.submit(store.Submission{Tasks: []task.New{need, n, dependent}})
		e.succeed(need.ID, n.ID, dependent.ID)
		e.operate(deleteOf(n.ID))
		e.equal("needs of the dependent", len(e.history(dependent.ID).Needs), 0)
		e.equal("dependents of the need", len(e.history(need.ID).Dependents), 0)
		n.Needs = nil
		e.enqueue(n)
		e.lists(store.Filter{Labels: map[string]string{"a": "b"}}, n.ID)
		e.succeed(n.ID)
	}},
	{"delete is refused unless the task ended outside a job", func(e *env) {
		for _, st := range situations {
			s := &subject{queue: "delete/" + st.name}
			st.reach(e, s)
			if t := e.task(s.id); !t.State.Terminal() || !t.JobID.IsZero() {
				e.commandRefused(deleteOf(s.id), store.ErrState)
			}
		}
		g := e.job("a")
		e.succeed(g.id("a"))
		e.commandRefused(deleteOf(g.id("a")), store.ErrState)
		e.commandRefused(deleteOf(e.newID()), store.ErrNotFound)
	}},
}

var operateSeenCases = []testCase{
	{"R16 a command acts on the epoch that was seen, and on every epoch without one", func(e *env) {
		for _, c := range seenCommands {
			for _, seen := range []func(epoch int64) int64{func(epoch int64) int64 { return epoch }, func(int64) int64 { return 0 }} {
				id := c.reach(e)
				e.operate(c.cmd(id, store.Seen{Epoch: seen(e.task(id).Epoch)}))
			}
		}
	}},
	{"R16 a command on another epoch than the one that was seen changes nothing", func(e *env) {
		for _, c := range seenCommands {
			id := c.reach(e)
			for _, d := range []int64{-1, 1, 1000} {
				e.commandRefused(c.cmd(id, store.Seen{Epoch: e.task(id).Epoch + d}), store.ErrChanged)
			}
		}
	}},
	{"R16 a command on a task that changed since it was seen changes nothing", func(e *env) {
		for _, c := range seenCommands {
			id := c.reach(e)
			now := e.task(id)
			e.commandRefused(c.cmd(id, store.Seen{Epoch: now.Epoch, UpdatedAt: now.UpdatedAt.Add(-time.Microsecond)}), store.ErrChanged)
			e.operate(c.cmd(id, store.Seen{Epoch: now.Epoch, UpdatedAt: now.UpdatedAt}))
		}
	}},
	{"R16 what a task's version does not have", func(e *env) {
		id := e.one()
		same := func(what string, do func()) {
			e.Helper()
			seen := e.task(id).UpdatedAt
			e.pass(time.Second)
			do()
			e.equal("UpdatedAt after "+what, e.task(id).UpdatedAt, seen)
		}
		same("a pause", func() { e.operate(pauseTaskOf(id)) })
		same("a resume", func() { e.operate(store.ResumeTask{Audit: admin, Task: id}) })
		same("a signal", func() { e.operate(signalOf(id, "s", "k", `1`)) })
		c := e.a.take(id)
		same("a step", func() { e.record(step(c, "one", `1`)) })
		same("a request that it end", func() { e.operate(cancelOf(id)) })
	}},
	{"R16 a command on a task that another worker claimed since changes nothing", func(e *env) {
		id := e.one()
		e.finish(retry(e.a.take(id), 0))
		seen := store.Seen{Epoch: e.task(id).Epoch}
		c := e.b.take(id)
		for _, force := range []bool{false, true} {
			e.commandRefused(store.CancelTask{Audit: admin, Seen: seen, Task: id, Force: force}, store.ErrChanged)
		}
		e.finish(success(c))
		e.commandRefused(store.DeleteTask{Audit: admin, Seen: seen, Task: id}, store.ErrChanged)
	}},
	{"R16 an unknown task is not found, whatever epoch was seen", func(e *env) {
		for _, c := range seenCommands {
			e.commandRefused(c.cmd(e.newID(), store.Seen{Epoch: 7}), store.ErrNotFound)
		}
	}},
}

// seenCommands are the commands that carry the epoch seen by the operator, each with a task to act on.
var seenCommands = []struct {
	reach func(e *env) task.ID
	cmd   func(id task.ID, seen store.Seen) store.Command
}{
	{ranOnce(func(c store.Claimed) store.Finish { return retry(c, 0) }), func(id task.ID, seen store.Seen) store.Command {
		return store.CancelTask{Audit: admin, Seen: seen, Task: id}
	}},
	{runs, func(id task.ID, seen store.Seen) store.Command {
		return store.CancelTask{Audit: admin, Seen: seen, Task: id}
	}},
	{runs, func(id task.ID, seen store.Seen) store.Command {
		return store.CancelTask{Audit: admin, Seen: seen, Task: id, Force: true}
	}},
	{ranOnce(dead), func(id task.ID, seen store.Seen) store.Command {
		return store.RetryTask{Audit: admin, Seen: seen, Task: id}
	}},
	{ranOnce(func(c store.Claimed) store.Finish { return retry(c, time.Minute) }), func(id task.ID, seen store.Seen) store.Command {
		return store.RescheduleTask{Audit: admin, Seen: seen, Task: id}
	}},
	{ranOnce(block), func(id task.ID, seen store.Seen) store.Command {
		return store.UnblockTask{Audit: admin, Seen: seen, Task: id}
	}},
	{ranOnce(success), func(id task.ID, seen store.Seen) store.Command {
		return store.DeleteTask{Audit: admin, Seen: seen, Task: id}
	}},
	{runs, func(id task.ID, seen store.Seen) store.Command {
		return store.SendSignal{Audit: admin, Seen: seen, Task: id, Name: "n", Key: "k", Payload: json.RawMessage("1")}
	}},
	{runs, func(id task.ID, seen store.Seen) store.Command {
		return store.PauseTask{Audit: admin, Seen: seen, Task: id}
	}},
}

// runs returns a running task of epoch two.
func runs(e *env) task.ID {
	id := ranOnce(func(c store.Claimed) store.Finish { return retry(c, 0) })(e)
	e.a.take(id)
	return id
}

// ranOnce returns a task whose second attempt ended, so that its previous epoch is not a special value.
func ranOnce(end func(store.Claimed) store.Finish) func(e *env) task.ID {
	return func(e *env) task.ID {
		id := e.one()
		e.finish(retry(e.a.take(id), 0))
		e.finish(end(e.a.take(id)))
		return id
	}
}
