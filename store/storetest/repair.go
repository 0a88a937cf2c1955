package storetest

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// repairs ends an attempt that cannot decode its input, with the decision to repair it.
func repairs(c store.Claimed, child task.New) store.Finish {
	f := failure(c, task.DecideRepair, 0)
	f.Outcome, f.Error = task.OutcomeDecodeFailed, &task.Error{Kind: task.KindDecode, Message: "no number"}
	child.AllowFailure = true // its failure does not count against its job
	f.Join, f.Children = task.JoinRepair, []task.New{child}
	return f
}

// repair makes a task wait for a repair of its input, and returns the repair.
func (e *env) repair(id task.ID) task.ID {
	e.Helper()
	child := e.draft(typed(beta), queue(task.RepairQueue(alpha)))
	e.finish(repairs(e.a.take(id), child))
	e.remember(child.ID)
	return child.ID
}

// replaceOf returns the replace command of a repair, or of the operator if repair is zero.
func replaceOf(id, repair task.ID, old, input string) store.ReplaceInput {
	cmd := store.ReplaceInput{Audit: admin, Task: id, Repair: repair, Input: json.RawMessage(input), SchemaVersion: 1}
	if old != "" {
		cmd.OldHash, cmd.OldSchema = task.PayloadHash(json.RawMessage(old)), 1
	}
	return cmd
}

// hasInput checks the input of a task as readers and claims see it.
func (e *env) hasInput(id task.ID, want string) {
	e.Helper()
	e.equal("the input", string(e.task(id).Input), want)
}

func bound(queues map[string][]string) ask { return func(r *store.ClaimRequest) { r.Bound = queues } }

func maxRepairs(n int) opt { return func(t *task.New) { t.MaxRepairs = n } }

// anyHash matches a SHA-256 in hex.
var anyHash = regexp.MustCompile(`\b[0-9a-f]{64}\b`)

var repairCases = []testCase{
	{"an input is repaired by a child, and the task runs again with the new one", func(e *env) {
		id := e.one(input(`"x"`))
		child := e.draft(typed(beta), queue(task.RepairQueue(alpha)))
		f := repairs(e.a.take(id), child)
		first := e.finish(f)
		e.equal("the answer", first, store.FinishResult{State: task.Pending, Waiting: task.WaitRepair})
		e.remember(child.ID)
		t := e.is(id, task.Pending, task.WaitRepair)
		e.check(t.RepairCount == 1 && t.AttemptCount == 0 && t.Join == task.JoinRepair && t.Error != nil, "repair_count %d, attempt_count %d, join %q, error %v", t.RepairCount, t.AttemptCount, t.Join, t.Error)
		attempt, d := e.decidedLast(id, task.DecideRepair)
		e.equal("the outcome", attempt.Outcome, task.OutcomeDecodeFailed)
		e.equal("the children of the decision", d.ChildIDs, []task.ID{child.ID})
		e.unchanged("the same report", func() { e.equal("the answer", e.finish(f), first) })

		c := e.a.take(child.ID)
		e.equal("the parent", c.Task.ParentID, id)
		cmd := replaceOf(id, child.ID, `"x"`, `7`)
		e.equal("the answer to the command", e.operate(cmd), store.CommandResult{State: task.Pending})
		e.is(id, task.Pending, task.WaitRepair)
		e.unchanged("the same command", func() {
			e.equal("the answer", e.operate(cmd), store.CommandResult{State: task.Pending, Existing: true})
		})
		e.finish(success(c))
		e.due(id)
		got := e.a.take(id)
		e.equal("the input handed out", string(got.Task.Input), `7`)
		e.equal("repair_count", got.Task.RepairCount, 1)
		e.unchanged("the command of a repair that is over", func() { e.check(e.operate(cmd).Existing, "it is not known") })
		e.finish(success(got))
	}},
	{"of two that replace one input the later is refused", func(e *env) {
		id := e.one(input(`"x"`))
		child := e.repair(id)
		c := e.a.take(child)
		e.operate(replaceOf(id, child, `"x"`, `7`))
		text := e.commandRefused(replaceOf(id, child, `"x"`, `8`), store.ErrChanged)
		if hashes := anyHash.FindAllString(text, -1); len(hashes) != 2 || hashes[0] == hashes[1] {
			e.Errorf("the text %q does not name two inputs", text)
		}
		old := replaceOf(id, task.ID{}, `7`, `9`)
		old.OldSchema = 2
		e.commandRefused(old, store.ErrChanged)
		e.finish(success(c))
		e.commandRefused(replaceOf(id, child, `7`, `8`), store.ErrState)
		e.hasInput(id, `7`)
	}},
	{"an operator gives a blocked task another input, and it goes on", func(e *env) {
		id := e.one(input(`"x"`), maxRepairs(1))
		e.succeed(e.repair(id))
		e.finish(block(e.a.take(id)))
		seen := e.task(id)
		e.check(seen.State == task.Blocked && seen.RepairCount == 1, "it is %s, with repair_count %d", seen.State, seen.RepairCount)
		e.commandRefused(replaceOf(id, task.ID{}, "", `"x"`), store.ErrState)
		e.commandRefused(replaceOf(id, e.newID(), `"x"`, `7`), store.ErrState)
		wrong := replaceOf(id, task.ID{}, "", `7`)
		wrong.Epoch = seen.Epoch + 1
		e.commandRefused(wrong, store.ErrChanged)
		cmd := replaceOf(id, task.ID{}, `"x"`, `7`)
		e.equal("the answer", e.operate(cmd), store.CommandResult{State: task.Ready})
		e.unchanged("the same command", func() { e.check(e.operate(cmd).Existing, "it is not known") })
		t := e.is(id, task.Ready, task.WaitNone)
		e.check(t.RepairCount == 0 && t.IdleAttempts == 0, "repair_count %d, idle attempts %d", t.RepairCount, t.IdleAttempts)
		e.hasInput(id, `7`)
		audit := e.history(id).Audit
		last := audit[len(audit)-1]
		e.check(last.Verb == "repair" && last.Actor == admin.By, "the audit says %+v", last)
		e.contains("the audit", last.Reason, admin.Reason)
		// The hashes are those of the stored values, which may be sealed.
		if hashes := anyHash.FindAllString(last.Reason, -1); len(hashes) != 2 || hashes[0] == hashes[1] {
			e.Errorf("the audit %q does not name two inputs", last.Reason)
		}
		e.finish(success(e.a.take(id)))
		e.commandRefused(replaceOf(id, task.ID{}, "", `8`), store.ErrState)
		e.commandRefused(replaceOf(e.newID(), task.ID{}, "", `8`), store.ErrNotFound)
	}},
	{"an operator's input ends the repair that a task waits for", func(e *env) {
		id, other := e.one(input(`"x"`)), e.one(input(`"y"`))
		child, running := e.repair(id), e.repair(other)
		c := e.a.take(running)
		e.equal("the answer", e.operate(replaceOf(id, task.ID{}, `"x"`, `7`)), store.CommandResult{State: task.Ready})
		e.ended(child, task.Cancelled, task.KindNotNeeded)
		e.due(id)
		e.equal("the answer of one whose repair runs", e.operate(replaceOf(other, task.ID{}, `"y"`, `8`)), store.CommandResult{State: task.Pending})
		e.check(e.task(running).CancelRequested, "the repair was not asked to end")
		e.finish(cancelled(c))
		e.due(other)
		e.hasInput(id, `7`)
		e.hasInput(other, `8`)
	}},
	{"an input that is long, and one in the bucket, take the place of another", func(e *env) {
		long := `"` + strings.Repeat("x", 40_000) + `"`
		id := e.one(input(`"x"`))
		e.blockTask(id)
		e.operate(replaceOf(id, task.ID{}, `"x"`, long))
		e.hasInput(id, long)
		e.finish(block(e.a.take(id)))
		b := e.blob("bytes")
		e.operate(replaceOf(id, task.ID{}, long, string(b.Value())))
		e.hasInput(id, string(b.Value()))
		e.equal("the blob", e.blobState(b), task.BlobLive)
		c := e.a.take(id)
		e.equal("the input handed out", string(c.Task.Input), string(b.Value()))
		e.finish(block(c))
		cmd := replaceOf(id, task.ID{}, "", `7`)
		cmd.OldHash = b.SHA256
		e.operate(cmd)
		e.hasInput(id, `7`)
		e.silence(2 * time.Hour)
		e.collects(b)
		e.finish(block(e.a.take(id)))
		e.commandRefused(replaceOf(id, task.ID{}, "", string(b.Value())), store.ErrBlobGone)
	}},
	{"a task whose repair did not succeed is judged again", func(e *env) {
		g := e.job("a", "after: a")
		id := g.id("a")
		child := e.repair(id)
		g.counts(task.JobRunning, 3, 3, 1, 0, 0)
		e.is(id, task.Pending, task.WaitRepair)
		e.fail(child)
		e.due(id)
		e.equal("repair_count", e.task(id).RepairCount, 1)
		child = e.repair(id)
		e.equal("repair_count", e.task(id).RepairCount, 2)
		e.blockTask(child)
		g.countsAllowed(task.JobBlocked, task.JobCounters{Total: 4, Unfinished: 3, Allowed: 1})
		e.operate(replaceOf(id, task.ID{}, "", `7`))
		e.ended(child, task.Cancelled, task.KindNotNeeded)
		e.succeed(id, g.id("after"))
		g.countsAllowed(task.JobSucceeded, task.JobCounters{Total: 4, Allowed: 1, Succeeded: 2})
	}},
	{"a repair ends with its task, and comes back with it", func(e *env) {
		id := e.one(input(`"x"`))
		child := e.repair(id)
		e.operate(cancelOf(id))
		e.ended(child, task.Cancelled, task.KindCancelled)
		e.operate(retryOf(id))
		t := e.is(id, task.Pending, task.WaitRepair)
		e.check(t.RepairCount == 0 && t.Join == task.JoinRepair, "repair_count %d, join %q", t.RepairCount, t.Join)
		e.succeed(child)
		e.due(id)
		e.succeed(id)
		e.operate(deleteOf(id))
		e.operate(deleteOf(child))
	}},
	{"an unblock leaves one repair at least", func(e *env) {
		id, none := e.one(maxRepairs(2)), e.one(maxRepairs(0))
		e.succeed(e.repair(id))
		e.succeed(e.repair(id))
		e.blockTask(id)
		e.blockTask(none)
		e.operate(unblockOf(id, ""))
		e.operate(unblockOf(none, ""))
		e.equal("repair_count", e.task(id).RepairCount, 1)
		e.equal("repair_count of one that may have none", e.task(none).RepairCount, 0)
	}},
	{"a task that was asked to end is not repaired", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.operate(cancelOf(id))
		tasks := len(e.snap().Tasks)
		e.equal("the state", e.finish(repairs(c, e.draft(typed(beta)))).State, task.Cancelled)
		e.equal("the tasks", len(e.snap().Tasks), tasks)
		e.equal("repair_count", e.task(id).RepairCount, 0)
	}},
	{"a repair has one child, and the join of one", func(e *env) {
		c := e.a.take(e.one())
		two := repairs(c, e.draft())
		two.Children = append(two.Children, e.draft())
		join := repairs(c, e.draft())
		join.Join = task.JoinRerun
		split := splits(c, task.JoinRepair, e.draft())
		for _, f := range []store.Finish{two, join, split} {
			e.check(e.finishAll(f)[0].Err != nil, "%s with %q and %d children was accepted", f.Decision.Kind, f.Join, len(f.Children))
		}
	}},
	{"a claim takes a bound type from its queues alone", func(e *env) {
		mine, theirs := e.one(typed(beta), queue("q1")), e.one(typed(beta), queue("q2"))
		plain := e.one(queue("q2"))
		only1 := bound(map[string][]string{beta: {"q1"}})
		e.a.gets([]task.ID{mine, plain}, only1)
		e.a.getsNothing(only(theirs), only1)
		got := e.a.claim(only1)
		e.check(len(got.Tasks) == 0 && got.Next < 0, "claimed %d tasks, and the next is due in %v", len(got.Tasks), got.Next)
		e.a.getsNothing(bound(map[string][]string{beta: {"q2"}}), queues(map[string]int{"q1": 5}))
		e.b.gets([]task.ID{theirs}, bound(map[string][]string{beta: {"q1", "q2"}}))
	}},
}
