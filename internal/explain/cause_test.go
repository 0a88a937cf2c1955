package explain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The explanation follows needs to the root of a wait and suggests the command for the root.
func TestWhyFollowsNeedsToTheRoot(t *testing.T) {
	t.Parallel()
	extract := a(3, task.Blocked, named("extract"), waits(task.WaitManual, time.Time{}), failed(task.KindHandler, "needs an approved budget"))
	load := a(4, task.Succeeded, named("load"))
	clean := a(2, task.Pending, named("clean"), waits(task.WaitDeps, time.Time{}), needs(need(extract, false)))
	sum := a(1, task.Pending, named("sum"), waits(task.WaitDeps, time.Time{}), needs(need(load, true), need(clean, false)))
	text := why(t, sum, clean, extract, load)
	says(t, text,
		`Task 00000000000000000000000001 "sum", of type acme.billing.charge.v1, in job 00000000000000000000000033`,
		"It waits for 1 of the 2 tasks that it needs.",
		`  It waits for "clean" (00000000000000000000000002), which waits for 1 other task.`,
		`    "clean" waits for "extract" (00000000000000000000000003), which is blocked and waits for a person: needs an approved budget.`,
		"  weaver task unblock 00000000000000000000000003",
		`      lets "extract" go on; --input gives its handler an answer`,
	)
	neverSays(t, text, `"load"`, "task cancel")
}

func TestWhyFollowsCancelledNeedsToTheRoot(t *testing.T) {
	t.Parallel()
	extract := a(3, task.Failed, named("extract"), failed(task.KindHandler, "no such host"))
	clean := a(2, task.Cancelled, named("clean"), failed(task.KindDependencyFailed, ""), needs(need(extract, true)))
	sum := a(1, task.Cancelled, named("sum"), failed(task.KindDependencyFailed, ""), needs(need(clean, true)))
	text := why(t, sum, clean, extract)
	says(t, text,
		"It was cancelled 1m ago (2026-11-20T11:59:00Z), because what it needs did not succeed.",
		`  It needed "clean" (00000000000000000000000002), which was cancelled 1m ago (2026-11-20T11:59:00Z), because what it needs did not succeed.`,
		`    "clean" needed "extract" (00000000000000000000000003), which failed 1m ago (2026-11-20T11:59:00Z): handler_error: no such host.`,
		"  weaver task retry 00000000000000000000000003",
	)
	neverSays(t, text, "task retry 00000000000000000000000001", "task retry 00000000000000000000000002")

	alarm := a(1, task.Cancelled, named("alarm"), failed(task.KindNotNeeded, ""), func(h *store.History) {
		h.Needs = []store.Need{{ID: id(4), Kind: task.OnFailed, State: task.Succeeded, Done: true}}
	})
	text = why(t, alarm, a(4, task.Succeeded, named("load")))
	says(t, text,
		"It was cancelled 1m ago (2026-11-20T11:59:00Z), because it was not needed.",
		`  It needed "load" (00000000000000000000000004) to fail, which succeeded 1m ago (2026-11-20T11:59:00Z).`)
	neverSays(t, text, "weaver task")

	// The failed need is the reason, not the need that did not fail.
	both := a(1, task.Cancelled, named("both"), failed(task.KindDependencyFailed, ""), func(h *store.History) {
		h.Needs = []store.Need{
			{ID: id(3), Kind: task.OnSuccess, State: task.Failed, Done: true},
			{ID: id(4), Kind: task.OnFailed, State: task.Succeeded, Done: true},
		}
	})
	text = why(t, both, extract, a(4, task.Succeeded, named("load")))
	says(t, text, `  It needed "extract" (00000000000000000000000003), which failed 1m ago (2026-11-20T11:59:00Z): handler_error: no such host.`)
	neverSays(t, text, `"load"`)
}

func TestWhyOfAnAllowedFailure(t *testing.T) {
	t.Parallel()
	lint := a(3, task.Failed, named("lint"), failed(task.KindHandler, "untidy"), with(func(k *task.Task) { k.AllowFailure = true }))
	says(t, why(t, lint), "It failed 1m ago (2026-11-20T11:59:00Z), which the job allows: handler_error: untidy.")
}

// A task that runs if one of its needs fails waits for the remaining needs after one failed.
func TestWhyWaitsForTheFirstFailure(t *testing.T) {
	t.Parallel()
	x, y, tool := a(2, task.Failed, named("x")), a(3, task.Running, named("y")), a(4, task.Running, named("tool"))
	edge := func(h store.History, kind task.EdgeKind) store.Need {
		return store.Need{ID: h.Task.ID, Kind: kind, State: h.Task.State, Done: h.Task.State.Terminal()}
	}
	alarm := a(1, task.Pending, named("alarm"), waits(task.WaitDeps, time.Time{}), needs(edge(x, task.OnFailed), edge(y, task.OnFailed), edge(tool, task.OnSuccess)))
	text := why(t, alarm, x, y, tool)
	says(t, text, "It waits for 1 of the 3 tasks that it needs.")
	neverSays(t, text, `waits for "y"`)
}

// After the need was retried, only the task itself can be retried.
func TestWhyCancelledNeedIsGoneOn(t *testing.T) {
	t.Parallel()
	extract := a(3, task.Running, named("extract"))
	sum := a(1, task.Cancelled, named("sum"), failed(task.KindDependencyFailed, ""), needs(need(extract, true)))
	says(t, why(t, sum, extract), "  weaver task retry 00000000000000000000000001")
}

func TestWhyNeedsThatWantAPersonComeFirst(t *testing.T) {
	t.Parallel()
	all := []store.History{{}}
	var edges []store.Need
	for n := range byte(7) {
		h := a(n+10, task.Ready, named(fmt.Sprintf("n%d", n)), waits("", ago(time.Minute)))
		if n == 6 {
			h = a(n+10, task.Blocked, named("stuck"), waits(task.WaitManual, time.Time{}))
		}
		all, edges = append(all, h), append(edges, need(h, false))
	}
	all[0] = a(1, task.Pending, waits(task.WaitDeps, time.Time{}), needs(edges...))
	text := why(t, all...)
	says(t, text,
		`  It waits for "stuck" (0000000000000000000000000G), which is blocked and waits for a person.`,
		"  It waits for 2 tasks more: `weaver task show 00000000000000000000000001` lists them.")
	if strings.Index(text, `"stuck"`) > strings.Index(text, `"n0"`) {
		t.Errorf("the blocked need is not listed first:\n%s", text)
	}
}

func TestWhyDepthLimit(t *testing.T) {
	t.Parallel()
	var chain []store.History
	last := a(20, task.Blocked, named("root"), waits(task.WaitManual, time.Time{}))
	chain = append(chain, last)
	for n := byte(19); n > 0; n-- {
		chain = append(chain, a(n, task.Pending, named(fmt.Sprintf("n%d", n)), waits(task.WaitDeps, time.Time{}), needs(need(chain[len(chain)-1], false))))
	}
	b := book{tasks: chain}
	text := shown(b.explain(t, id(1), 3))
	says(t, text, "      \"n3\" waits for \"n4\" (00000000000000000000000004), which waits for 1 other task; `weaver why 00000000000000000000000004` goes on from there.")
	neverSays(t, text, `"n5"`)
	if text = shown(b.explain(t, id(1), 30)); !strings.Contains(text, "weaver task unblock "+id(20).String()) {
		t.Errorf("with enough depth the root is not found:\n%s", text)
	}
}

// A need shared by two needs is explained once.
func TestWhyDiamond(t *testing.T) {
	t.Parallel()
	root := a(4, task.Blocked, named("root"), waits(task.WaitManual, time.Time{}))
	left := a(2, task.Pending, named("left"), waits(task.WaitDeps, time.Time{}), needs(need(root, false)))
	right := a(3, task.Pending, named("right"), waits(task.WaitDeps, time.Time{}), needs(need(root, false)))
	top := a(1, task.Pending, named("top"), waits(task.WaitDeps, time.Time{}), needs(need(left, false), need(right, false)))
	text := why(t, top, left, right, root)
	says(t, text, `    "right" waits for "root" (00000000000000000000000004), which is blocked and waits for a person (see above).`)
	if n := strings.Count(text, "weaver task unblock"); n != 1 {
		t.Errorf("the same help is offered %d times:\n%s", n, text)
	}

	// The tasks behind it are explained once, too.
	below := a(5, task.Blocked, named("below"), waits(task.WaitManual, time.Time{}))
	root = a(4, task.Pending, named("root"), waits(task.WaitDeps, time.Time{}), needs(need(below, false)))
	if text := why(t, top, left, right, root, below); strings.Count(text, `"root" waits for "below"`) != 1 {
		t.Errorf("the causes of the need are not listed once:\n%s", text)
	}
}

func TestWhyNeedIsGone(t *testing.T) {
	t.Parallel()
	h := a(1, task.Pending, waits(task.WaitDeps, time.Time{}), needs(store.Need{ID: id(9)}))
	says(t, why(t, h), "  It waits for 00000000000000000000000009, which no longer exists.")
}

// The explanation of a parent names the children it failed for and their actions.
func TestWhyAParentFailed(t *testing.T) {
	t.Parallel()
	parent := a(1, task.Failed, failed(task.KindDependencyFailed, "its child x ended failed"))
	parent.Needs = []store.Need{
		{ID: id(2), Kind: task.OnDone, Awaited: 1, Done: true, State: task.Succeeded, EndedState: task.Succeeded},
		{ID: id(3), Kind: task.OnDone, Awaited: 1, Done: true, State: task.Failed, EndedState: task.Failed},
	}
	child := a(3, task.Failed, failed(task.KindHandler, "no such host"))
	text := why(t, parent, child)
	says(t, text,
		"  It needed 00000000000000000000000003 (acme.billing.charge.v1), which failed 1m ago (2026-11-20T11:59:00Z): handler_error: no such host.",
		"  weaver task retry 00000000000000000000000003")
	neverSays(t, text, "00000000000000000000000002")
}
