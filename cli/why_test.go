package cli_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/cli"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Every reason to wait has its sentence.
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
		{task.WaitRepair, nil, "It waits while its input is being repaired, and goes on in 1m30s (2026-11-20T12:01:30Z) at the latest."},
		{task.WaitManual, nil, "It waits for a person, and goes on in 1m30s (2026-11-20T12:01:30Z) at the latest."},
		{task.WaitBudget, nil, "It waits because its budget is used up, and goes on in 1m30s (2026-11-20T12:01:30Z) at the latest."},
		{task.WaitDeadline, nil, "It waits to be ended: its deadline has passed, and goes on in 1m30s (2026-11-20T12:01:30Z) at the latest."},
		{task.WaitSignal, nil, "It waits for a signal, and goes on in 1m30s (2026-11-20T12:01:30Z) at the latest."},
		{task.WaitChildren, with(func(k *task.Task) { k.ReadyAt = time.Time{} }), "It waits for the tasks that it called."},
		{task.WaitRate, nil, "It waits because of a rate limit, and goes on in 1m30s (2026-11-20T12:01:30Z) at the latest."},
	} {
		h := a(1, task.Pending, waits(tt.waiting, soon))
		if tt.change != nil {
			tt.change(&h)
		}
		says(t, why(t, h), tt.want)
	}
}

// Every way to end, or to stand, has its sentence.
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
			"Its process stopped under it twice in a row, on web2:8, web1:7: it would go on stopping workers, so it was not started again. Look at what the handler does to its process: memory, os.Exit, fatal signals.",
			"  Attempt 1 began 3m ago (2026-11-20T11:57:00Z) on web1:7 and lost its lease because its worker died or was cut off after 1s.",
		}},
		{"cancelled", a(1, task.Cancelled, failed(task.KindCancelled, "…"), with(func(k *task.Task) { k.CancelBy, k.CancelReason = "ops", "too late" })), []string{
			"It was cancelled " + minuteAgo + " by ops: too late.",
			"  weaver task retry 00000000000000000000000001",
		}},
		{"cancelled by nobody known", a(1, task.Cancelled, failed(task.KindCancelled, "")), []string{"It was cancelled " + minuteAgo + ": cancelled."}},
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
		{"blocked by a value", a(1, task.Blocked, waits(task.WaitManual, time.Time{}), failed(task.KindDecode, "the input does not decode")), []string{
			"It is blocked and waits for a person: decode_error: the input does not decode.",
		}},
		{"blocked by a budget", a(1, task.Blocked, waits(task.WaitBudget, time.Time{})), []string{"It is blocked, its budget is used up."}},
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
			"It was asked to cancel by ops: too late. Its worker hears of it with the next heartbeat and ends the handler's context; then it is up to the handler to return.",
			"  weaver task cancel --force 00000000000000000000000001",
		}},
		{"running past its deadline", a(1, task.Running, runs(1, "web1:7", ago(time.Minute), in(time.Second)), with(func(k *task.Task) {
			k.CancelRequested, k.CancelKind = true, task.KindDeadline
		})), []string{
			"It was asked to end because its deadline passed. Its worker hears of it with the next heartbeat and ends the handler's context; then it is up to the handler to return.",
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
		{"a suspect", a(1, task.Ready, waits("", ago(time.Minute)), with(func(k *task.Task) { k.CrashCount = 2 })), []string{
			"Its process stopped under it twice in a row: it is a suspect, of which a worker runs few at once. At the crash budget (3 unless configured) it fails as poison.",
		}},
		{"a deadline ahead", a(1, task.Ready, waits("", ago(time.Minute)), with(func(k *task.Task) { k.DeadlineAt = in(time.Hour) })), []string{
			"If it has not ended in 1h (2026-11-20T13:00:00Z), its deadline, it is cancelled.",
		}},
		{"a deadline before the due time", a(1, task.Pending, waits(task.WaitDelay, in(2*time.Hour)), with(func(k *task.Task) { k.DeadlineAt = in(time.Hour) })), []string{
			"Its deadline, in 1h (2026-11-20T13:00:00Z), comes before it is due: it will be cancelled then.",
		}},
		{"a deadline that nobody kept", a(1, task.Ready, waits("", ago(time.Minute)), with(func(k *task.Task) { k.DeadlineAt = ago(time.Second) })), []string{
			"Its deadline passed 1s ago (2026-11-20T11:59:59Z): a worker that is up ends it.",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			says(t, why(t, tt.h), tt.want...)
		})
	}
}

func TestWhyReady(t *testing.T) {
	t.Parallel()
	ready := a(1, task.Ready, waits("", ago(time.Minute)))
	says(t, why(t, ready),
		"It is ready since 1m ago (2026-11-20T11:59:00Z) and waits for a worker.",
		`No task of type acme.billing.charge.v1 is running: look whether a worker is up that handles this type and serves queue "billing".`)

	other := a(2, task.Running, runs(1, "web1:7", ago(time.Minute), in(time.Second))).Task
	b := book{tasks: []store.History{ready}, list: []task.Task{other}}
	says(t, ask(t, b, id(1)), "1 task of its type is running, for example on web1:7: it comes when a slot is free and what is due before it has started.")
	b.list, b.more = append(b.list, other), "next"
	says(t, ask(t, b, id(1)), "At least 2 tasks of its type are running, for example on web1:7: it comes when a slot is free and what is due before it has started.")
}

// Each attempt is told with what was decided after it, and operators' verbs
// stand where they happened.
func TestWhyPast(t *testing.T) {
	t.Parallel()
	boom := &task.Error{Kind: task.KindHandler, Message: "boom\nat line 3", Step: "charge"}
	h := a(1, task.Pending, waits(task.WaitRetry, in(4*time.Second)),
		tried(1, "web1:7", ago(10*time.Minute), task.OutcomeFailure, boom),
		decided(task.DecideRetry, ago(9*time.Minute), "attempt 1 of 5 failed: retry after 2s, by exponential backoff"),
		tried(2, "web1:7", ago(8*time.Minute), task.OutcomeSuspended, nil),
		tried(3, "web1:7", ago(7*time.Minute), task.OutcomeReleased, nil),
		tried(4, "web1:7", ago(6*time.Minute), task.OutcomeFailure, &task.Error{Kind: task.KindInternal, Message: "disk"}),
		tried(5, "web1:7", ago(5*time.Minute), task.OutcomeBlocked, &task.Error{Kind: task.KindHandler, Message: "who pays?"}),
		decided(task.DecideBlock, time.Time{}, "the handler asked for a person: who pays?"),
		tried(6, "web1:7", ago(3*time.Minute), task.OutcomeDecodeFailed, &task.Error{Kind: task.KindDecode, Message: "not a number"}),
		func(h *store.History) {
			h.Attempts[0].StepsRun = []string{"reserve", "charge"}
			h.Audit = []store.AuditEntry{{At: ago(4 * time.Minute), Actor: "ops", Verb: "unblock", Target: h.Task.ID.String(), Reason: "we do"}}
			h.Steps = []task.Step{
				{Name: "reserve", Kind: task.KindStep, State: task.StepCompleted, AttemptNo: 1},
				{Name: "charge", Kind: task.KindStep, State: task.StepFailed, AttemptNo: 1, Try: 1},
				{Name: "charge", Kind: task.KindStep, State: task.StepFailed, AttemptNo: 1, Try: 2},
			}
		})
	text := why(t, h)
	says(t, text,
		`  Attempt 1 began 10m ago (2026-11-20T11:50:00Z) on web1:7 and failed after 1s: handler_error in step "charge": boom at line 3; it ran steps "reserve", "charge". 2 tries of its steps failed. It was decided to retry, due 9m ago (2026-11-20T11:51:00Z): attempt 1 of 5 failed: retry after 2s, by exponential backoff.`,
		"  Attempt 2 began 8m ago (2026-11-20T11:52:00Z) on web1:7 and left its worker to wait after 1s.",
		"  Attempt 3 began 7m ago (2026-11-20T11:53:00Z) on web1:7 and was given back because its worker stopped, at no cost, after 1s.",
		"  Attempt 4 began 6m ago (2026-11-20T11:54:00Z) on web1:7 and was stopped by an error of the engine itself, which costs no attempt, after 1s: internal: disk.",
		"  Attempt 5 began 5m ago (2026-11-20T11:55:00Z) on web1:7 and asked for a person after 1s: who pays? It was decided to wait for a person: the handler asked for a person: who pays?",
		"  ops unblocked it 4m ago (2026-11-20T11:56:00Z): we do.",
		"  Attempt 6 began 3m ago (2026-11-20T11:57:00Z) on web1:7 and could not read its input after 1s: not a number.",
		"3 of its 5 attempts are used.",
		`Recorded and not run again: step "reserve".`,
	)
	if strings.Index(text, "ops unblocked it") < strings.Index(text, "Attempt 5") {
		t.Errorf("the verb stands before what happened before it:\n%s", text)
	}
}

func TestWhyPastIsShort(t *testing.T) {
	t.Parallel()
	h := a(1, task.Pending, waits(task.WaitSleep, in(time.Hour)))
	for n := range 14 {
		tried(n+1, "web1:7", ago(time.Hour-time.Duration(n)*time.Minute), task.OutcomeSuspended, nil)(&h)
	}
	text := why(t, h)
	says(t, text, "  Before that: 4 attempts (4 suspended), which -o json tells.")
	if n := strings.Count(text, "Attempt "); n != 10 {
		t.Errorf("told %d attempts, want 10", n)
	}
}

// A finished task tells which recorded steps had no part in its end.
func TestWhyUnreachedSteps(t *testing.T) {
	t.Parallel()
	h := a(1, task.Succeeded, tried(1, "web1:7", ago(time.Minute), task.OutcomeSuccess, nil))
	neverSays(t, why(t, h), "never reached")
	h.Attempts[0].StepsUnreached = []string{"old-name", "older"}
	says(t, why(t, h), `Its last attempt never reached the recorded steps "old-name", "older": the code was changed since, or these names change from attempt to attempt. What they recorded had no part in the result.`)
}

func TestWhyConcurrency(t *testing.T) {
	t.Parallel()
	holder := a(2, task.Running, runs(1, "web1:7", ago(time.Minute), in(time.Second)))
	h := a(1, task.Pending, waits(task.WaitConcurrency, ago(time.Hour)), with(func(k *task.Task) { k.ConcurrencyKey, k.ConcurrencyLimit = "org_1", 1 }))
	says(t, why(t, h), "  Nobody holds the key right now: a worker takes it as soon as it has a free slot.")

	h.Holders = []task.ID{id(2), id(3)} // the second was deleted in between
	says(t, why(t, h, holder),
		"  The key is held by 00000000000000000000000002 (acme.billing.charge.v1), which is running on web1:7, in its attempt 1, which began 1m ago (2026-11-20T11:59:00Z); this one runs when it leaves, after those that were due earlier.",
		"  weaver why 00000000000000000000000002")

	h.Holders = []task.ID{id(2), id(2), id(2), id(2), id(2), id(2), id(2)}
	says(t, why(t, h, holder), "  2 tasks more hold it.")
}

func TestWhyPaused(t *testing.T) {
	t.Parallel()
	h := a(1, task.Pending, waits(task.WaitPaused, ago(time.Hour)), func(h *store.History) {
		h.QueuePause = &store.AuditEntry{At: ago(time.Minute), Actor: "ops", Verb: "pause", Target: "billing", Reason: "bank is down"}
	})
	says(t, why(t, h),
		`It waits because its queue "billing" is paused.`,
		"  The queue was paused 1m ago (2026-11-20T11:59:00Z) by ops: bank is down.",
		"  weaver queue resume billing")

	h.Task.ReadyAt = in(time.Minute)
	says(t, why(t, h), `It waits because its queue "billing" is paused, and is due in 1m (2026-11-20T12:01:00Z).`)
	h.Task.Waiting = task.WaitDeps
	says(t, why(t, h), `Its queue "billing" is paused as well, since 1m ago (2026-11-20T11:59:00Z) by ops: bank is down.`)
}

func TestWhyDependents(t *testing.T) {
	t.Parallel()
	dependents := func(state task.State, done bool) func(*store.History) {
		return func(h *store.History) {
			h.Dependents = []store.Need{{ID: id(8), Node: "sum", State: state, Done: done}, {ID: id(9), State: state, Done: done}}
		}
	}
	says(t, why(t, a(1, task.Running, dependents(task.Pending, false))), `For it wait tasks "sum", "00000000000000000000000009".`)
	says(t, why(t, a(1, task.Failed, dependents(task.Cancelled, true))), `Cancelled because of it: tasks "sum", "00000000000000000000000009".`)
	neverSays(t, why(t, a(1, task.Succeeded, dependents(task.Cancelled, true))), "because of it")
}

func TestWhyNeitherTaskNorJob(t *testing.T) {
	t.Parallel()
	_, _, err := cli.Why(t.Context(), book{}, now, 10, id(1))
	if !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the error is %v, want one that is ErrNotFound", err)
	}
}

// What text tells in lines, JSON tells in fields.
func TestWhyJSON(t *testing.T) {
	t.Parallel()
	extract := a(3, task.Blocked, named("extract"), waits(task.WaitManual, time.Time{}))
	sum := a(1, task.Pending, named("sum"), waits(task.WaitDeps, time.Time{}), needs(need(extract, false)))
	_, x, err := cli.Why(t.Context(), book{tasks: []store.History{sum, extract}}, now, 10, id(1))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":"task","id":"00000000000000000000000001","job_id":"00000000000000000000000033","name":"sum","task_type":"acme.billing.charge.v1",` +
		`"state":"pending","waiting_reason":"deps","summary":"It waits for 1 other task.",` +
		`"because":[{"kind":"need","task_id":"00000000000000000000000003","state":"blocked","sentence":"It waits for \"extract\" (00000000000000000000000003), which is blocked and waits for a person."}],` +
		`"actions":[{"command":"weaver task unblock 00000000000000000000000003","effect":"lets \"extract\" go on; --input gives its handler an answer"}]}`
	if string(raw) != want {
		t.Errorf("got  %s\nwant %s", raw, want)
	}
}
