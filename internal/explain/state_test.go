package explain_test

import (
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Each reason to wait has its own sentence.
func TestWhyPending(t *testing.T) {
	t.Parallel()
	soon := in(90 * time.Second)
	for _, tt := range []struct {
		waiting task.Waiting
		change  func(*store.History)
		want    string
	}{
		{task.WaitNone, nil, "It was enqueued for later and is due in 1m30s (2026-11-20T12:01:30Z)."},
		{task.WaitDelay, nil, "It was enqueued for later and is due in 1m30s (2026-11-20T12:01:30Z)."},
		{task.WaitDelay, func(h *store.History) { h.Task.AttemptNo = 1 }, "It was rescheduled and is due in 1m30s (2026-11-20T12:01:30Z)."},
		{task.WaitRetry, nil, "It waits for its retry, due in 1m30s (2026-11-20T12:01:30Z)."},
		{task.WaitSleep, nil, "It sleeps and wakes in 1m30s (2026-11-20T12:01:30Z)."},
		{task.WaitSleep, func(h *store.History) {
			h.Steps = []task.Step{
				{Name: "nap", Kind: task.KindSleep, State: task.StepCompleted, WakeAt: ago(time.Hour)},
				{Name: "cool-down", Kind: task.KindSleep, State: task.StepCompleted, WakeAt: soon},
			}
		}, `It sleeps in "cool-down" and wakes in 1m30s (2026-11-20T12:01:30Z).`},
		{task.WaitConcurrency, with(func(k *task.Task) { k.ConcurrencyKey, k.ConcurrencyLimit = "org_1", 2 }), `It is due and waits for its concurrency key "org_1", which lets 2 run at once.`},
		{task.WaitPaused, nil, `It waits because its queue "billing" is paused, and is due in 1m30s (2026-11-20T12:01:30Z).`},
		{task.WaitDeps, needs(store.Need{ID: id(7)}, store.Need{ID: id(8), Done: true}), "It waits for 1 of the 2 tasks that it needs."},
		{task.WaitDeps, needs(store.Need{ID: id(6), Kind: task.OnDone, Awaited: 1, Done: true}, store.Need{ID: id(7), Kind: task.OnFailed}, store.Need{ID: id(8), Kind: task.OnSuccess, Awaited: 2}), "It waits for 1 of the 2 tasks that it needs."},
		{task.WaitRepair, nil, "It waits while its input is being repaired, and goes on in 1m30s (2026-11-20T12:01:30Z) at the latest."},
		{task.WaitManual, nil, "It waits for a person, and goes on in 1m30s (2026-11-20T12:01:30Z) at the latest."},
		{task.WaitBudget, nil, "It waits because its budget is used up, and goes on in 1m30s (2026-11-20T12:01:30Z) at the latest."},
		{task.WaitDeadline, nil, "It waits to be ended: its deadline has passed, and goes on in 1m30s (2026-11-20T12:01:30Z) at the latest."},
		{task.WaitSignal, nil, "It waits for a signal, and goes on in 1m30s (2026-11-20T12:01:30Z) at the latest."},
		{task.WaitChildren, needs(store.Need{ID: id(7), Kind: task.OnDone, Awaited: 2}), "It waits for 1 child."},
		{task.WaitChildren, needs(store.Need{ID: id(6), Kind: task.OnDone, Awaited: 1, Done: true}, store.Need{ID: id(7), Kind: task.OnDone, Awaited: 2, Done: true}, store.Need{ID: id(8), Kind: task.OnDone, Awaited: 2}, store.Need{ID: id(9), Kind: task.OnDone, Awaited: 2}), "It waits for 2 of its 3 children."},
		{task.WaitRate, nil, "It waits because of a rate limit, and goes on in 1m30s (2026-11-20T12:01:30Z) at the latest."},
	} {
		h := a(1, task.Pending, waits(tt.waiting, soon))
		if tt.change != nil {
			tt.change(&h)
		}
		says(t, why(t, h), tt.want)
	}
}

// Each final or blocked state has its own sentence.
func TestWhyStates(t *testing.T) {
	t.Parallel()
	minuteAgo := "1m ago (2026-11-20T11:59:00Z)"
	for _, tt := range []struct {
		name string
		h    store.History
		want []string
	}{
		{"succeeded", a(1, task.Succeeded), []string{"It succeeded " + minuteAgo + "."}},
		{"failed", a(1, task.Failed, failed(task.KindHandler, "card refused")), []string{
			"It failed " + minuteAgo + ": handler_error: card refused.",
			"  weaver task retry 00000000000000000000000001",
		}},
		{"failed in a step", a(1, task.Failed, func(h *store.History) {
			h.Task.Error = &task.Error{Kind: task.KindPanic, Message: "nil map", Step: "charge"}
		}), []string{"It failed " + minuteAgo + `: panic in step "charge": nil map.`}},
		{"timeout", a(1, task.Failed, failed(task.KindTimeout, "the attempt timed out")), []string{"It failed " + minuteAgo + ": timeout: the attempt timed out."}},
		{"validation", a(1, task.Failed, failed(task.KindValidation, "too large")), []string{"It failed " + minuteAgo + ": validation_error: too large."}},
		{"internal", a(1, task.Failed, failed(task.KindInternal, "gave up")), []string{"It failed " + minuteAgo + ": internal: gave up."}},
		{"poison", a(1, task.Failed, failed(task.KindPoison, "3 leases lost in a row"),
			tried(1, "web1:7", ago(3*time.Minute), task.OutcomeLeaseLost, nil), tried(2, "web2:8", ago(2*time.Minute), task.OutcomeLeaseLost, nil),
			with(func(k *task.Task) { k.CrashCount = 2 })), []string{
			"It failed " + minuteAgo + ": poison: 3 leases lost in a row.",
			"Its process stopped under it twice in a row, on web2:8, web1:7: it would go on stopping workers, so it was not started again. Check the handler for memory use, os.Exit and fatal signals.",
			"  Attempt 1 began 3m ago (2026-11-20T11:57:00Z) on web1:7 and was interrupted, because its worker died or was cut off, after 1s.",
		}},
		{"cancelled", a(1, task.Cancelled, failed(task.KindCancelled, "…"), with(func(k *task.Task) { k.CancelBy, k.CancelReason = "ops", "too late" })), []string{
			"It was cancelled " + minuteAgo + " by ops: too late.",
			"  weaver task retry 00000000000000000000000001",
		}},
		{"cancelled without an actor", a(1, task.Cancelled, failed(task.KindCancelled, "")), []string{"It was cancelled " + minuteAgo + ": cancelled."}},
		{"deadline before a start", a(1, task.Cancelled, failed(task.KindDeadline, ""), with(func(k *task.Task) { k.DeadlineAt = ago(2 * time.Minute) })), []string{
			"It was cancelled " + minuteAgo + ": its deadline, 2026-11-20T11:58:00Z, had passed before it was started.",
		}},
		{"deadline while running", a(1, task.Cancelled, failed(task.KindDeadline, ""), with(func(k *task.Task) { k.AttemptNo = 1 })), []string{
			"It was cancelled " + minuteAgo + ": its deadline had passed.",
		}},
		{"blocked by its handler", a(1, task.Blocked, waits(task.WaitManual, time.Time{}), failed(task.KindHandler, "needs an approved budget")), []string{
			"It is blocked and waits for a person: needs an approved budget.",
			"  weaver task unblock 00000000000000000000000001",
			"  weaver task cancel 00000000000000000000000001",
		}},
		{"a question with a time", a(1, task.Blocked, waits(task.WaitManual, time.Time{}), failed(task.KindHandler, "who pays?"), with(func(k *task.Task) { k.Error.AskUntil = in(time.Hour) })), []string{
			"If nobody answers, it goes on without an answer in 1h (2026-11-20T13:00:00Z).",
		}},
		{"released by a worker that cannot run it", a(1, task.Pending, waits(task.WaitRetry, in(time.Minute)), tried(1, "web1:7", ago(time.Minute), task.OutcomeReleased, &task.Error{Kind: task.KindWorker, Message: "no key"})), []string{
			"It waits for a worker that can run it, due again in 1m (2026-11-20T12:01:00Z).",
			"It was released once, at no cost, by a worker that could not run it (web1:7): no key. Repair that worker, or start another one; `weaver worker ls` shows which can run no tasks.",
		}},
		{"blocked by a value", a(1, task.Blocked, waits(task.WaitManual, time.Time{}), failed(task.KindDecode, "the input does not decode")), []string{
			"It is blocked and waits for a person: decode_error: the input does not decode.",
			"  weaver task repair 00000000000000000000000001 --input FILE",
		}},
		{"blocked by what is not its input", a(1, task.Blocked, waits(task.WaitManual, time.Time{}), failed(task.KindDecode, `the artifact "a.csv" cannot be read`), tried(1, "web1:7", ago(time.Minute), task.OutcomeBlocked, nil)), []string{
			"  weaver task unblock 00000000000000000000000001",
			"      runs 00000000000000000000000001 again, once the unreadable value is there and its program can read it",
			"      gives 00000000000000000000000001 another input, if it is the input that cannot be read",
			"  weaver task rerun 00000000000000000000000001",
		}},
		{"blocked by a budget", a(1, task.Blocked, waits(task.WaitBudget, time.Time{})), []string{"It is blocked, its budget is used up."}},
		{"blocked without progress", a(1, task.Blocked, waits(task.WaitBudget, time.Time{}), failed(task.KindPanic, "nil map"), with(func(k *task.Task) {
			k.IdleAttempts, k.MaxNoProgress, k.Cost, k.MaxCost = 7, 7, 30, 100
		})), []string{
			"It is blocked, its budget is used up: 7 attempts in a row recorded nothing new (max_no_progress 7). The last error: panic: nil map.",
			"Its steps have spent 30 of 100 micro-units.",
			"  weaver task unblock 00000000000000000000000001",
		}},
		{"failed for its own cost", a(1, task.Failed, failed(task.KindBudget, "the budget is used up: it spent 11 of 10 micro-units (its max_cost)"), with(func(k *task.Task) {
			k.JobID, k.Cost, k.MaxCost = id(99), 11, 10
		})), []string{
			"It failed " + minuteAgo + ": budget: the budget is used up: it spent 11 of 10 micro-units (its max_cost).",
			"Its steps have spent 11 of 10 micro-units.",
			"  weaver task retry --add-cost 6 00000000000000000000000001",
		}},
		{"running, asked to end for a budget", a(1, task.Running, runs(1, "web1:7", ago(time.Minute), in(time.Second)), with(func(k *task.Task) {
			k.CancelRequested, k.CancelKind, k.CancelReason = true, task.KindJobBudget, "its job used 3 of 3 attempts (budget.max_total_attempts)"
		})), []string{
			"It was asked to end because a budget is used up: its job used 3 of 3 attempts (budget.max_total_attempts). Its worker is notified with the next heartbeat and ends the handler's context; then it is up to the handler to return.",
		}},
		{"blocked for a repair", a(1, task.Blocked, waits(task.WaitRepair, time.Time{})), []string{"It is blocked, its input has to be repaired."}},
		{"running", a(1, task.Running, runs(2, "web1:7", ago(time.Minute), in(20*time.Second)), with(func(k *task.Task) {
			k.Timeout = 2 * time.Minute
			k.Progress = &task.Progress{Current: 10, Total: 100, Message: "fetched"}
		})), []string{
			"It is running on web1:7, in its attempt 2, which began " + minuteAgo + ".",
			"Its lease lasts until 2026-11-20T12:00:20Z unless the worker renews it, which it does as long as it lives. The attempt times out in 1m (2026-11-20T12:01:00Z). Its last report: 10 of 100: fetched.",
			"  weaver task cancel 00000000000000000000000001",
		}},
		{"running without a worker", a(1, task.Running, runs(1, "web1:7", ago(time.Minute), ago(20*time.Second))), []string{
			"It is running on web1:7, in its attempt 1, which began " + minuteAgo + ", but its lease ended 20s ago and was not renewed.",
			"Its lease ended 20s ago (2026-11-20T11:59:40Z) and was not renewed: the worker died or is cut off. Any worker of this namespace that is up takes the task back; if none is, start one.",
		}},
		{"running, asked to end", a(1, task.Running, runs(1, "web1:7", ago(time.Minute), in(time.Second)), with(func(k *task.Task) {
			k.CancelRequested, k.CancelKind, k.CancelBy, k.CancelReason = true, task.KindCancelled, "ops", "too late"
		})), []string{
			"It was asked to cancel by ops: too late. Its worker is notified with the next heartbeat and ends the handler's context; then it is up to the handler to return.",
			"  weaver task cancel --force 00000000000000000000000001",
		}},
		{"failed after it was asked to end", a(1, task.Failed, failed(task.KindHandler, "no"), with(func(k *task.Task) {
			k.CancelRequested, k.CancelKind, k.CancelBy = true, task.KindCancelled, "ops"
		})), []string{
			"It was asked to cancel by ops, and it failed.",
		}},
		{"running past its deadline", a(1, task.Running, runs(1, "web1:7", ago(time.Minute), in(time.Second)), with(func(k *task.Task) {
			k.CancelRequested, k.CancelKind = true, task.KindDeadline
		})), []string{
			"It was asked to end because its deadline passed. Its worker is notified with the next heartbeat and ends the handler's context; then it is up to the handler to return.",
		}},
		{"being undone", a(1, task.Pending, waits(task.WaitUndo, in(time.Minute)), with(func(k *task.Task) {
			k.CancelRequested, k.CancelKind, k.CancelBy, k.CancelReason, k.DeadlineAt = true, task.KindCancelled, "ops", "too late", ago(time.Second)
			k.Error = &task.Error{Kind: task.KindCancelled, Message: "cancelled by ops: too late"}
			k.Undo = &task.UndoPhase{EndsAs: task.Cancelled, Error: k.Error}
		})), []string{
			"It is being undone, next in 1m (2026-11-20T12:01:00Z), and then ends cancelled: cancelled by ops: too late.",
			"It was asked to cancel by ops: too late.",
			"Its handler is called for its cleanups, with a context that has ended. One that fails is tried again; then the task ends cancelled. What needs the task waits until then.",
			"  weaver task retry --cleanup 00000000000000000000000001",
			"      tries the undo of 00000000000000000000000001 now",
			"  weaver task cancel --abandon-undo 00000000000000000000000001",
		}},
		{"its undo failed before", a(1, task.Pending, waits(task.WaitUndo, in(time.Minute)), with(func(k *task.Task) {
			k.Error = &task.Error{Kind: task.KindHandler, Message: "courier down"}
			k.Undo = &task.UndoPhase{EndsAs: task.Failed, Error: k.Error, Began: ago(time.Hour), Since: 2}
		}), undoAttempts(task.OutcomeUndoFailed, task.OutcomeUndoFailed, task.OutcomeUndoFailed, task.OutcomeUndoFailed)), []string{
			`It is being undone, which failed twice: handler_error in step "refund": psp 503; it is tried again in 1m (2026-11-20T12:01:00Z), and then ends failed: handler_error: courier down.`,
		}},
		{"to be undone after its children", a(1, task.Pending, waits(task.WaitUndo, in(time.Second)), with(func(k *task.Task) {
			k.Undo = &task.UndoPhase{EndsAs: task.Failed, Began: ago(time.Hour)}
		}), undoAttempts(task.OutcomeSuspended)), []string{
			"It is to be undone when its children have ended, and looks again in 1s (2026-11-20T12:00:01Z), and then ends failed.",
		}},
		{"to be undone after a revoked lease", a(1, task.Pending, waits(task.WaitUndo, in(time.Minute)), with(func(k *task.Task) {
			k.Undo = &task.UndoPhase{EndsAs: task.Cancelled, Began: ago(time.Second), Forced: true, NotBefore: in(time.Minute)}
		})), []string{
			"It is to be undone in 1m (2026-11-20T12:01:00Z), when the lease that was revoked has ended, and then ends cancelled.",
			"  weaver task cancel --abandon-undo 00000000000000000000000001",
		}},
		{"being undone, in a paused queue", a(1, task.Pending, waits(task.WaitPaused, ago(time.Minute)), with(func(k *task.Task) {
			k.CancelRequested, k.CancelKind = true, task.KindDeadline
			k.Undo = &task.UndoPhase{EndsAs: task.Cancelled}
		})), []string{
			"It was asked to end because its deadline passed.",
			"Its handler is called for its cleanups, with a context that has ended. One that fails is tried again; then the task ends cancelled. What needs the task waits until then.",
		}},
		{"blocked in its undo", a(1, task.Blocked, waits(task.WaitUndo, time.Time{}), with(func(k *task.Task) {
			k.Error = &task.Error{Kind: task.KindDecode, Message: "no such field"}
			k.Undo = &task.UndoPhase{EndsAs: task.Failed}
		})), []string{
			"It is blocked in its undo, which needs a person: decode_error: no such field.",
			"  weaver task retry --cleanup 00000000000000000000000001",
			"  weaver task cancel --abandon-undo 00000000000000000000000001",
		}},
		{"running in its undo", a(1, task.Running, runs(2, "web1:7", ago(time.Minute), in(time.Second)), with(func(k *task.Task) {
			k.Undo = &task.UndoPhase{EndsAs: task.Failed}
		})), []string{
			"It is running on web1:7, in its attempt 2, which began " + minuteAgo + ", to be undone before it ends failed.",
			"  weaver task cancel --force 00000000000000000000000001",
			"      takes the lease of 00000000000000000000000001 away; its undo begins anew when that has ended",
			"  weaver task cancel --abandon-undo 00000000000000000000000001",
			"      gives the undo of 00000000000000000000000001 up: what was not undone stays",
		}},
		{"its undo given up", a(1, task.Failed, with(func(k *task.Task) {
			k.Error = &task.Error{Kind: task.KindUndoFailed, Message: "undo given up: psp 503"}
			k.Undo = &task.UndoPhase{EndsAs: task.Cancelled, GaveUp: true}
		})), []string{
			"Its undo was given up: without it the task would have ended cancelled. What was not undone stays as it is. The task is neither deleted nor forgotten before its undo is retried, or abandoned by an operator.",
			"  weaver task retry --cleanup 00000000000000000000000001",
			"  weaver task cancel --abandon-undo 00000000000000000000000001",
		}},
		{"its undo abandoned", a(1, task.Failed, with(func(k *task.Task) {
			k.Error = &task.Error{Kind: task.KindUndoFailed, Message: "undo given up: abandoned by ops"}
			k.Undo = &task.UndoPhase{EndsAs: task.Failed, GaveUp: true, Abandoned: true}
		})), []string{
			"Its undo was abandoned: without it the task would have ended failed. What was not undone stays as it is.",
			"  weaver task retry --cleanup 00000000000000000000000001",
		}},
		{"succeeded though asked to end", a(1, task.Succeeded, with(func(k *task.Task) { k.CancelRequested, k.CancelBy = true, "ops" })), []string{
			"It was asked to cancel by ops, but its handler returned success all the same.",
		}},
		{"succeeded late", a(1, task.Succeeded, with(func(k *task.Task) { k.AttemptNo = 3 })), []string{"It succeeded " + minuteAgo + ", in its attempt 3."}},
		{"all attempts used", a(1, task.Failed, failed(task.KindHandler, "boom"), with(func(k *task.Task) { k.AttemptCount = 5 })), []string{"All its 5 attempts are used."}},
		{"one attempt allowed", a(1, task.Failed, failed(task.KindHandler, "boom"), with(func(k *task.Task) { k.AttemptCount, k.MaxAttempts = 1, 1 })), []string{"Its only attempt is used."}},
		{"blocked at its last attempt", a(1, task.Blocked, with(func(k *task.Task) { k.AttemptCount = 5 })), []string{"All its 5 attempts are used; unblocking gives it one more."}},
		{"errors of the engine", a(1, task.Pending, waits(task.WaitRetry, in(time.Second)), with(func(k *task.Task) { k.InternalCount = 2 })), []string{
			"0 of its 5 attempts are used; the engine itself failed twice in a row, which does not count.",
		}},
		{"quarantined", a(1, task.Ready, waits("", ago(time.Minute)), with(func(k *task.Task) { k.CrashCount = 2 })), []string{
			"Its process stopped under it twice in a row. It is quarantined: a worker runs few of such tasks at once, and in the end only this one. At the crash budget (3 unless configured) it fails as poison.",
		}},
		{"a deadline ahead", a(1, task.Ready, waits("", ago(time.Minute)), with(func(k *task.Task) { k.DeadlineAt = in(time.Hour) })), []string{
			"If it has not ended in 1h (2026-11-20T13:00:00Z), its deadline, it is cancelled.",
		}},
		{"a deadline before the due time", a(1, task.Pending, waits(task.WaitDelay, in(2*time.Hour)), with(func(k *task.Task) { k.DeadlineAt = in(time.Hour) })), []string{
			"Its deadline, in 1h (2026-11-20T13:00:00Z), comes before it is due: it will be cancelled then.",
		}},
		{"a deadline that passed unnoticed", a(1, task.Ready, waits("", ago(time.Minute)), with(func(k *task.Task) { k.DeadlineAt = ago(time.Second) })), []string{
			"Its deadline passed 1s ago (2026-11-20T11:59:59Z): a worker that is up ends it.",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			says(t, why(t, tt.h), tt.want...)
		})
	}
}
