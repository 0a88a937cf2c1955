package explain_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestWhyReady(t *testing.T) {
	t.Parallel()
	ready := a(1, task.Ready, waits("", ago(time.Minute)))
	says(t, why(t, ready),
		"It is ready since 1m ago (2026-11-20T11:59:00Z) and waits for a worker.",
		`No task of type acme.billing.charge.v1 is running: look whether a worker is up that handles this type and serves queue "billing".`)

	other := a(2, task.Running, runs(1, "web1:7", ago(time.Minute), in(time.Second))).Task
	b := book{tasks: []store.History{ready}, running: explain.Running{Tasks: []task.Task{other}}}
	says(t, shown(b.explain(t, id(1), 10)), "1 task of its type is running, for example on web1:7: it comes when a slot is free and what is due before it has started.")
	b.running = explain.Running{Tasks: []task.Task{other, other}, More: true}
	says(t, shown(b.explain(t, id(1), 10)), "At least 2 tasks of its type are running, for example on web1:7: it comes when a slot is free and what is due before it has started.")
}

// The notes of a finished task name recorded steps that had no part in its end.
func TestWhyUnreachedSteps(t *testing.T) {
	t.Parallel()
	h := a(1, task.Succeeded, tried(1, "web1:7", ago(time.Minute), task.OutcomeSuccess, nil))
	neverSays(t, why(t, h), "never reached")
	h.Attempts[0].StepsUnreached = []string{"old-name", "older"}
	says(t, why(t, h), `Its last attempt never reached the recorded steps "old-name", "older": it took another path, or these names change from attempt to attempt. What they recorded had no part in the result.`)

	h = a(1, task.Succeeded, tried(1, "web1:7", ago(time.Hour), task.OutcomeFailure, nil), tried(2, "web1:7", ago(time.Minute), task.OutcomeSuccess, nil))
	h.Attempts[1].StepsUnreached = []string{"old-name"}
	h.Steps = []task.Step{{Name: "old-name", Kind: task.KindStep, State: task.StepCompleted, AttemptNo: 1}}
	for _, v := range []struct {
		first, last int
		changed     bool
	}{{0, 0, false}, {2, 2, false}, {0, 2, false}, {2, 3, true}} {
		h.Attempts[0].CodeVersion, h.Attempts[1].CodeVersion = v.first, v.last
		if v.changed {
			says(t, why(t, h), `Its last attempt never reached the recorded step "old-name": the code was changed since, from version 2 to 3, or these names change from attempt to attempt. What they recorded had no part in the result.`)
		} else {
			neverSays(t, why(t, h), "code was changed")
		}
	}
}

func TestWhyConcurrency(t *testing.T) {
	t.Parallel()
	holder := a(2, task.Running, runs(1, "web1:7", ago(time.Minute), in(time.Second)))
	h := a(1, task.Pending, waits(task.WaitConcurrency, ago(time.Hour)), with(func(k *task.Task) { k.ConcurrencyKey, k.ConcurrencyLimit = "org_1", 1 }))
	says(t, why(t, h), "  The key has room: this one becomes ready in a moment.")

	// The key has room, but no worker starts the task that comes first.
	first := a(2, task.Ready, waits("", ago(2*time.Hour)))
	h.Ahead = first.Task.ID
	says(t, why(t, h, first),
		"  The key has room. A task of the same type in the same queue comes first, 00000000000000000000000002 (acme.billing.charge.v1), which is ready since 2h ago (2026-11-20T10:00:00Z) and waits for a worker.",
		"  weaver why 00000000000000000000000002")
	h.Holders = []task.ID{id(3)} // another task holds the key at the same time
	says(t, why(t, h, first), "  The key has room. A task of the same type in the same queue comes first, 00000000000000000000000002 (acme.billing.charge.v1), which is ready since 2h ago (2026-11-20T10:00:00Z) and waits for a worker.")
	h.Ahead = id(4) // deleted between the two reads
	says(t, why(t, h), "  The key has room: this one becomes ready in a moment.")
	h.Ahead = task.ID{}

	h.Holders = []task.ID{id(2), id(3)} // the second was deleted between the two reads
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
	h.Task.Pause = task.PauseType
	h.TypePause = &store.AuditEntry{At: ago(time.Minute), Actor: "ada", Verb: "pause_type"}
	says(t, why(t, h),
		"It waits because its type acme.billing.charge.v1 is paused, and is due in 1m (2026-11-20T12:01:00Z).",
		"  The type was paused 1m ago (2026-11-20T11:59:00Z) by ada.",
		`Its queue "billing" is paused as well, since 1m ago (2026-11-20T11:59:00Z) by ops: bank is down.`,
		"  weaver queue resume --type acme.billing.charge.v1")
	h.Task.Pause = task.PauseTask
	h.TaskPause = &store.AuditEntry{At: ago(time.Hour), Actor: "eve", Verb: "pause_task"}
	says(t, why(t, h),
		"It waits because it is paused, and is due in 1m (2026-11-20T12:01:00Z).",
		"  It was paused 1h ago (2026-11-20T11:00:00Z) by eve.",
		"Its type is paused as well, since 1m ago (2026-11-20T11:59:00Z) by ada.",
		"  weaver task resume 00000000000000000000000001")
	h.TaskPause, h.TypePause, h.Task.Pause = nil, nil, task.PauseNone
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

// Until is set only while a task waits for a time.
func TestUntil(t *testing.T) {
	t.Parallel()
	for state, want := range map[task.State]time.Time{task.Pending: in(time.Hour), task.Ready: {}, task.Running: {}, task.Failed: {}} {
		h := a(1, state, waits(task.WaitNone, in(time.Hour)))
		if x := (book{tasks: []store.History{h}}).explain(t, id(1), 10); !x.Until.Equal(want) {
			t.Errorf("%s until %v, want %v", state, x.Until, want)
		}
	}
}

// The JSON form has a field for each line of the text.
func TestWhyJSON(t *testing.T) {
	t.Parallel()
	extract := a(3, task.Blocked, named("extract"), waits(task.WaitManual, time.Time{}))
	sum := a(1, task.Pending, named("sum"), waits(task.WaitDeps, time.Time{}), needs(need(extract, false)))
	raw, err := json.Marshal(book{tasks: []store.History{sum, extract}}.explain(t, id(1), 10))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":"task","id":"00000000000000000000000001","job_id":"00000000000000000000000033","name":"sum","task_type":"acme.billing.charge.v1",` +
		`"state":"pending","waiting_reason":"deps","start":{"reason":"it waits for other tasks"},"summary":"It waits for 1 other task.",` +
		`"because":[{"kind":"need","task_id":"00000000000000000000000003","state":"blocked","sentence":"It waits for \"extract\" (00000000000000000000000003), which is blocked and waits for a person."}],` +
		`"actions":[{"verb":"unblock","target":{"kind":"task","id":"00000000000000000000000003"},"command":"weaver task unblock 00000000000000000000000003","effect":"lets \"extract\" go on; --input gives its handler an answer"}]}`
	if string(raw) != want {
		t.Errorf("got  %s\nwant %s", raw, want)
	}
}
