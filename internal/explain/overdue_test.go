package explain_test

import (
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A task that waits for a handler which ignores the end of its context says so, and suggests how to end the holder.
func TestWhyHandlersThatIgnoreTheirContext(t *testing.T) {
	t.Parallel()
	began := ago(10 * time.Minute)
	busy := runs(1, "web1:7", began, in(20*time.Second))
	asked := func(h *store.History) {
		h.Task.CancelRequested, h.Task.CancelKind = true, task.KindCancelled
		h.Audit = []store.AuditEntry{{Verb: "cancel", At: ago(3 * time.Minute)}}
	}
	const running = "is running on web1:7, in its attempt 1, which began 10m ago (2026-11-20T11:50:00Z)"
	for name, tt := range map[string]struct {
		change func(*store.History)
		want   string
		force  bool
	}{
		"time left":      {with(func(k *task.Task) { k.Timeout = time.Hour }), "", false},
		"just timed out": {with(func(k *task.Task) { k.Timeout = 10*time.Minute - 2*time.Second }), "", false},
		"timed out":      {with(func(k *task.Task) { k.Timeout = time.Minute }), ", but it timed out 9m ago (2026-11-20T11:51:00Z), and its handler has not returned", true},
		"past its time":  {with(func(k *task.Task) { k.DeadlineAt = ago(2 * time.Minute) }), ", but its deadline passed 2m ago (2026-11-20T11:58:00Z), and its handler has not returned", true},
		"started to clean up": {with(func(k *task.Task) {
			k.DeadlineAt, k.CancelRequested, k.CancelKind = ago(time.Hour), true, task.KindDeadline
		}), ", and was asked to end 10m ago (2026-11-20T11:50:00Z), and its handler has not returned", true},
		"asked to end":   {asked, ", and was asked to end 3m ago (2026-11-20T11:57:00Z), and its handler has not returned", true},
		"asked just now": {with(func(k *task.Task) { k.CancelRequested = true }), ", and was asked to end", false},
		"without its lease": {
			with(func(k *task.Task) { k.Timeout, k.LeaseExpiresAt = time.Minute, ago(time.Second) }),
			", but its lease ended 1s ago and was not renewed", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holder := a(2, task.Running, busy, tt.change)
			waiter := a(1, task.Pending, waits(task.WaitConcurrency, began), func(h *store.History) { h.Holders = []task.ID{id(2)} })
			text := why(t, waiter, holder)
			says(t, text, "  The key is held by 00000000000000000000000002 (acme.billing.charge.v1), which "+running+tt.want+"; this one runs when it leaves, after those that were due earlier.")
			const force = "  weaver task cancel --force 00000000000000000000000002"
			if tt.force {
				says(t, text, force)
			} else {
				neverSays(t, text, force)
			}
			dependent := a(1, task.Pending, named("sum"), waits(task.WaitDeps, time.Time{}), needs(need(holder, false)))
			says(t, why(t, dependent, holder), "  It waits for 00000000000000000000000002 (acme.billing.charge.v1), which "+running+tt.want+".")
		})
	}
}

func TestWhyReadyBehindOverdueHandlers(t *testing.T) {
	t.Parallel()
	late := a(2, task.Running, runs(1, "web1:7", ago(time.Hour), in(time.Second)), with(func(k *task.Task) { k.Timeout = time.Minute })).Task
	fine := a(3, task.Running, runs(1, "web1:7", ago(time.Hour), in(time.Second))).Task
	h := a(1, task.Ready, waits("", ago(time.Minute)))
	for want, running := range map[string][]task.Task{
		"1 task of its type is running, for example on web1:7: it comes when a slot is free and what is due before it has started.":                                                                                  {fine},
		"2 tasks of its type are running, for example on web1:7: it comes when a slot is free and what is due before it has started. The handler of one of them ignores the end of its context and keeps its slot.":  {fine, late},
		"2 tasks of its type are running, for example on web1:7: it comes when a slot is free and what is due before it has started. The handlers of 2 tasks ignore the end of their contexts and keep their slots.": {late, late},
	} {
		b := book{tasks: []store.History{h}, running: explain.Running{Tasks: running}}
		says(t, shown(b.explain(t, id(1), 10)), want)
	}
}

// A timeout in the past is not announced as coming.
func TestWhyAttemptTimedOut(t *testing.T) {
	t.Parallel()
	h := a(1, task.Running, runs(1, "web1:7", ago(time.Minute), in(20*time.Second)), with(func(k *task.Task) { k.Timeout = 58 * time.Second }))
	says(t, why(t, h), "Its lease lasts until 2026-11-20T12:00:20Z unless the worker renews it, which it does as long as it lives. The attempt timed out 2s ago (2026-11-20T11:59:58Z): its handler's context has ended, and its handler has yet to return.")
}

func TestWhyReadyWithANewerSchema(t *testing.T) {
	t.Parallel()
	h := a(1, task.Ready, waits("", ago(time.Minute)), with(func(k *task.Task) { k.SchemaVersion = 2 }))
	says(t, why(t, h), `No task of type acme.billing.charge.v1 is running: look whether a worker is up that handles this type and serves queue "billing". Its input has schema version 2: a worker whose handler reads older ones only leaves it.`)
}
