package explain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// chain returns c0 … cn-1, each of which needs the one before. root is c0; others makes the rest, in name order.
func chain(n byte, root store.History, others func(byte, store.History) store.History) []store.History {
	hs := []store.History{root}
	for i := byte(1); i < n; i++ {
		hs = append(hs, others(i, hs[i-1]))
	}
	return hs
}

func cancelledFor(i byte, n store.History) store.History {
	return a(i+1, task.Cancelled, named(fmt.Sprintf("c%d", i)), failed(task.KindDependencyFailed, ""), needs(need(n, true)))
}

func waitsFor(i byte, n store.History) store.History {
	return a(i+1, task.Pending, named(fmt.Sprintf("c%d", i)), waits(task.WaitDeps, time.Time{}), needs(need(n, false)))
}

// edgesOf returns the edges and tasks of histories.
func edgesOf(hs []store.History) (tasks []task.Task, edges []store.GraphEdge) {
	for _, h := range hs {
		tasks = append(tasks, h.Task)
		for _, n := range h.Needs {
			edges = append(edges, store.GraphEdge{To: h.Task.ID, From: n.ID, Kind: n.Kind, Decided: n.Done})
		}
	}
	return tasks, edges
}

// whyWithRoot explains the last of the histories, which form one job.
func whyWithRoot(t *testing.T, depth int, hs ...store.History) *explain.Explanation {
	t.Helper()
	last := hs[len(hs)-1]
	tasks, edges := edgesOf(hs)
	b := book{tasks: hs, root: explain.RootOf(&last.Task, tasks, edges)}
	return b.explain(t, last.Task.ID, depth)
}

// The first sentence names the root cause, its error, and the path, shortened in the middle if it is long.
func TestRootComesFirst(t *testing.T) {
	t.Parallel()
	broken := a(1, task.Failed, named("c0"), failed(task.KindHandler, "exit status 1; it wrote last:\nno such file"))
	silent := a(1, task.Failed, named("c0"), failed(task.KindHandler, "exit status 1; it wrote nothing"))
	stuck := a(1, task.Blocked, named("c0"), waits(task.WaitManual, time.Time{}), failed(task.KindHandler, "who pays?"))
	given := a(1, task.Cancelled, named("c0"), with(func(k *task.Task) { k.CancelBy, k.CancelReason = "ops", "wrong day" }))
	retry := a(1, task.Pending, named("c0"), waits(task.WaitRetry, in(3*time.Second)), failed(task.KindHandler, "the bank is closed"))
	runner := a(1, task.Running, named("c0"), runs(1, "web1:7", ago(time.Minute), in(time.Second)))
	for _, tt := range []struct {
		n      byte
		root   store.History
		others func(byte, store.History) store.History
		want   string
	}{
		{2, broken, cancelledFor, "c0 failed: exit status 1; c1 needs it."},
		{2, silent, cancelledFor, "c0 failed: exit status 1; c1 needs it."},
		{3, broken, cancelledFor, "c0 failed: exit status 1; c2 needs it through c1."},
		{5, broken, cancelledFor, "c0 failed: exit status 1; c4 needs it through c3, c2, c1."},
		{200, broken, cancelledFor, "c0 failed: exit status 1; c199 needs it through c198 … c1."},
		{200, given, cancelledFor, "c0 was cancelled: ops: wrong day; c199 needs it through c198 … c1."},
		{200, stuck, waitsFor, "c0 is blocked: who pays?; c199 needs it through c198 … c1."},
		{200, retry, waitsFor, "c0 waits for its retry, due in 3s (2026-11-20T12:00:03Z): the bank is closed; c199 needs it through c198 … c1."},
		{200, runner, waitsFor, "c0 is running on web1:7, in its attempt 1, which began 1m ago (2026-11-20T11:59:00Z); c199 needs it through c198 … c1."},
		{1, broken, nil, ""},
		{1, runner, nil, ""},
	} {
		x := whyWithRoot(t, 10, chain(tt.n, tt.root, tt.others)...)
		if x.Root != tt.want {
			t.Errorf("%d tasks behind one that is %s: %q, want %q", tt.n, tt.root.Task.State, x.Root, tt.want)
		}
	}
}

// A long path is listed only at its ends, and still offers the actions at the root.
func TestRootOfALongWay(t *testing.T) {
	t.Parallel()
	broken := a(1, task.Failed, named("c0"), failed(task.KindHandler, "exit status 1"))
	text := shown(whyWithRoot(t, 10, chain(200, broken, cancelledFor)...))
	says(t, text,
		"It was cancelled 1m ago (2026-11-20T11:59:00Z), because what it needs did not succeed.",
		"  It needed \"c198\" (00000000000000000000000067), which was cancelled 1m ago (2026-11-20T11:59:00Z), because what it needs did not succeed; `weaver why 00000000000000000000000067` goes on from there.",
		`  Behind it, after 197 more tasks, is "c0" (00000000000000000000000001), which failed 1m ago (2026-11-20T11:59:00Z): handler_error: exit status 1.`,
		"  weaver task retry 00000000000000000000000001",
	)
	neverSays(t, text, `"c197"`)
	if n := strings.Count(text, "\n"); n > 8 {
		t.Errorf("the explanation has %d lines:\n%s", n, text)
	}
	// A root that the tree of needs reaches is listed once.
	text = shown(whyWithRoot(t, 10, chain(5, broken, cancelledFor)...))
	neverSays(t, text, "Behind it")
	says(t, text, `        "c1" needed "c0" (00000000000000000000000001), which failed 1m ago (2026-11-20T11:59:00Z): handler_error: exit status 1.`)
}

// Of several roots the sentence names the one that most urgently needs a person, by the shortest path.
func TestRootOfSeveral(t *testing.T) {
	t.Parallel()
	runner := a(1, task.Running, named("runs"), runs(1, "web1:7", ago(time.Minute), in(time.Second)))
	stuck := a(2, task.Blocked, named("stuck"), waits(task.WaitManual, time.Time{}))
	done := a(3, task.Succeeded, named("done"))
	far := waitsFor(3, stuck)
	top := a(9, task.Pending, named("top"), waits(task.WaitDeps, time.Time{}), needs(need(runner, false), need(done, true), need(far, false), need(a(8, task.Ready), false)))
	if x := whyWithRoot(t, 10, runner, stuck, done, far, top); x.Root != "stuck is blocked; top needs it through c3." {
		t.Errorf("the root is %q", x.Root)
	}
	// The need was retried since.
	again := a(1, task.Running, named("again"))
	if x := whyWithRoot(t, 10, again, cancelledFor(4, again)); x.Root != "" {
		t.Errorf("the root of a task whose need runs again is %q", x.Root)
	}
}

func TestJobRootComesFirst(t *testing.T) {
	t.Parallel()
	broken := a(1, task.Failed, named("c0"), failed(task.KindHandler, "exit status 1"))
	other := a(2, task.Failed, named("other"), failed(task.KindHandler, "no"))
	given := a(3, task.Cancelled, named("given"), with(func(k *task.Task) { k.CancelBy = "ops" }))
	stuck := a(4, task.Blocked, named("stuck"), waits(task.WaitManual, time.Time{}))
	load := a(5, task.Succeeded, named("load"))
	for want, b := range map[string]book{
		"c0 failed: exit status 1.":                                                  jobOf(nil, load, broken),
		"c0 failed: exit status 1; 1 task that needs it was cancelled.":              jobOf(nil, broken, cancelledFor(6, broken)),
		"c0 failed: exit status 1; 2 tasks that need it were cancelled.":             jobOf(nil, broken, cancelledFor(6, broken), cancelledFor(7, broken)),
		"c0 failed: exit status 1; beside it 2 more tasks failed or were cancelled.": jobOf(nil, given, broken, other, cancelledFor(6, broken)),
		"given was cancelled: ops.":                                                  jobOf(nil, given),
		"stuck is blocked; 1 task needs it.":                                         jobOf(nil, load, stuck, waitsFor(6, stuck)),
		"stuck is blocked; 2 tasks need it.":                                         jobOf(nil, stuck, waitsFor(6, stuck), waitsFor(7, stuck)),
		"":                                                                           jobOf(nil, load),
	} {
		if x := b.explain(t, task.ID{}, 10); x.Root != want {
			t.Errorf("%s: %q, want %q", x.State, x.Root, want)
		}
	}
}

// A running task whose process is dead says so and names the command that continues it.
func TestWhyProcessIsGone(t *testing.T) {
	t.Parallel()
	runner := a(1, task.Running, named("c0"), runs(1, "web1:7", ago(time.Minute), in(20*time.Second)), with(func(k *task.Task) { k.Timeout = time.Second }))
	gone := map[task.ID][]string{id(1): {"weaver worker", "weaver run nightly.yaml"}}
	const said = "is running on web1:7, in its attempt 1, which began 1m ago (2026-11-20T11:59:00Z), but its process is gone; `weaver worker` or `weaver run nightly.yaml` goes on"
	b := book{tasks: []store.History{runner}, gone: gone}
	text := shown(b.explain(t, id(1), 10))
	says(t, text, "It "+said+".", "  weaver worker", `      takes "c0" over at once`)
	neverSays(t, text, "lease lasts", "timed out", "task cancel 0")

	b = jobOf(nil, a(2, task.Ready, named("next"), waits("", ago(time.Minute))), runner)
	b.gone = gone
	x := b.explain(t, task.ID{}, 10)
	if want := "c0 " + said + "."; x.Root != want {
		t.Errorf("the root of the job is %q, want %q", x.Root, want)
	}
	waiter := waitsFor(1, runner)
	tasks, edges := edgesOf([]store.History{runner, waiter})
	b = book{tasks: []store.History{runner, waiter}, gone: gone, root: explain.RootOf(&waiter.Task, tasks, edges)}
	if x, want := b.explain(t, id(2), 10), "c0 "+said+"; c1 needs it."; x.Root != want {
		t.Errorf("the root of a wait for it is %q, want %q", x.Root, want)
	}
	c := clock
	c.Gone = gone
	if note := c.Note(&runner.Task); note != "on web1:7, its process is gone" {
		t.Errorf("its note is %q", note)
	}
}
