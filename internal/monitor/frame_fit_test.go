package monitor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// plainText is a line without colours.
func plainText(line string) string { return strings.Join(printableLines(line), "") }

func TestFramesFit(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]*model{"night": night(t), "many": many(t)} {
		for columns := 20; columns <= 130; columns++ {
			for _, rows := range []int{1, 2, 3, 10, 24, 400} {
				if rows == 400 && columns%20 != 0 {
					continue // slow
				}
				f := m.frame(columns, rows, Start, At(65))
				lines, painted := f.text(text.Painter{}, columns), f.text(text.Painter{On: true}, columns)
				if len(lines) > max(1, rows-1) {
					t.Errorf("%s on %d × %d: %d lines", name, columns, rows, len(lines))
				}
				if rows == 24 && !strings.Contains(strings.Join(painted, ""), "\x1b[36m") {
					t.Errorf("%s on %d × %d has no colours", name, columns, rows)
				}
				for i, line := range lines {
					if w := text.Width(line); w > columns || strings.Contains(line, "\x1b") || strings.TrimRight(line, " ") != line {
						t.Errorf("%s on %d × %d: a line of %d columns: %q", name, columns, rows, w, line)
					}
					if plainText(painted[i]) != line {
						t.Errorf("%s on %d × %d: painted %q, plain %q", name, columns, rows, painted[i], line)
					}
				}
			}
		}
	}
}

func TestFramesOfHostileTasks(t *testing.T) {
	t.Parallel()
	const evil = "\x1b[31m\x1b]0;own\a\x1b[2Jx\u202e\r\n\x9b3Ay\x07"
	j := JobOf("a", "b", "c", "d")
	for i, name := range []string{"a" + evil, "b" + evil, "c", "d"} {
		j.Tasks[i].Node = name
	}
	j.Task("c").ConcurrencyKey, j.Task("c").Waiting, j.Task("c").State = evil, task.WaitConcurrency, task.Pending
	j.Task("d").CancelBy, j.Task("d").CancelReason, j.Task("d").State = evil, evil, task.Cancelled
	m := j.model()
	m.hear(j.Starts("a"+evil, At(0)))
	m.hear(j.Prints("a"+evil, "out"+evil))
	m.hear(j.Starts("b"+evil, At(0)))
	m.hear(j.Fails("b"+evil, evil+evil, At(1)))
	for _, columns := range []int{20, 40, 80, 120} {
		for _, line := range m.frame(columns, 24, Start, At(2)).text(text.Painter{}, columns) {
			if strings.ContainsAny(line, "\x1b\a\r\n\u202e\u009b") || strings.Contains(line, "own") || text.Width(line) > columns {
				t.Errorf("a line lets something through: %q", line)
			}
		}
	}
}

// On a small terminal the end of a task is news for a while.
func TestRecentlyFinished(t *testing.T) {
	t.Parallel()
	var tasks []string
	for i := range 30 {
		tasks = append(tasks, fmt.Sprintf("t%02d", i))
	}
	j := JobOf(tasks...)
	m := j.model()
	for i := range 10 {
		m.hear(j.Starts(tasks[i], At(0)))
		m.hear(j.Succeeds(tasks[i], At(float64(i))))
	}
	shown := func(at float64) string {
		nodes, rest := m.choose(6, At(at))
		if len(nodes)+len(rest) != 30 {
			t.Errorf("%d tasks are shown and %d not", len(nodes), len(rest))
		}
		var names []string
		for _, n := range nodes {
			names = append(names, n.key)
		}
		return strings.Join(names, " ")
	}
	if got := shown(9.5); got != "t05 t06 t07 t08 t09" {
		t.Errorf("just after: %s", got)
	}
	if got := shown(17.5); got != "t08 t09 t10 t11 t12" {
		t.Errorf("later: %s", got)
	}
	m.hear(j.Starts("t20", At(18)))
	m.hear(j.Starts("t21", At(18)))
	m.hear(j.Fails("t21", "no", At(18)))
	if got := shown(1000); got != "t10 t11 t12 t20 t21" {
		t.Errorf("long after: %s", got)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	needs := []*node{{name: "x", state: task.Failed}, {name: "y", state: task.Succeeded}, {name: "z", state: task.Cancelled}}
	open := []*node{{name: "v", state: task.Running}, {name: "w", state: task.Pending}, needs[1]}
	for _, tc := range []struct {
		n           node
		long, short string
		note        string
	}{
		{node{state: task.Ready}, "ready", "ready", "waits for a worker"},
		{node{state: task.Running, begun: At(0), said: "  x "}, "running 5s", "5s", "x"},
		{node{state: task.Running, begun: At(0), asked: true}, "ending 5s", "ending", ""},
		{node{state: task.Running, begun: At(9)}, "running 0s", "0s", ""}, // the store's clock is ahead
		{node{state: task.Pending, waiting: task.WaitDeps, open: 2}, "waiting", "waiting", "needs 2 more tasks"},
		{node{state: task.Pending, waiting: task.WaitDeps, needs: needs}, "waiting", "waiting", "x, z did not succeed"},
		{node{state: task.Pending, waiting: task.WaitDeps, needs: open}, "waiting", "waiting", "needs v, w"},
		{node{state: task.Pending, waiting: task.WaitDeps, needs: needs[1:2]}, "waiting", "waiting", ""},
		{node{state: task.Pending, waiting: task.WaitConcurrency, lock: "db"}, "waiting", "waiting", `waits for key "db"`},
		{node{state: task.Pending, waiting: task.WaitPaused}, "waiting", "waiting", "queue is paused"},
		{node{state: task.Pending, waiting: task.WaitSignal}, "waiting", "waiting", "waits: signal"},
		{node{state: task.Pending, waiting: task.WaitRetry, dueAt: At(3), said: "no"}, "retry in a moment", "retry a moment", "no"},
		{node{state: task.Cancelled}, "cancelled", "cancelled", ""},
		{node{state: task.Cancelled, err: &task.Error{Kind: task.KindDependencyFailed}, needs: needs}, "cancelled", "cancelled", "x, z did not succeed"},
		{node{state: task.Cancelled, err: &task.Error{Kind: task.KindDependencyFailed}}, "cancelled", "cancelled", "what it needs did not succeed"},
		{node{state: task.Cancelled, err: &task.Error{Kind: task.KindNotNeeded}}, "cancelled", "cancelled", "it was not needed"},
		{node{state: task.Cancelled, err: &task.Error{Kind: task.KindDeadline}}, "cancelled", "cancelled", "its deadline had passed"},
		{node{state: task.Cancelled, err: &task.Error{Kind: task.KindCancelled}, cancelBy: "ops: late"}, "cancelled", "cancelled", "ops: late"},
		{node{state: task.Cancelled, err: &task.Error{Kind: task.KindCancelled, Message: "by ops"}}, "cancelled", "cancelled", "by ops"},
	} {
		long, short := tc.n.status(At(5))
		if note := tc.n.note(); long != tc.long || short != tc.short || note != tc.note {
			t.Errorf("%s %s: %q, %q, %q; want %q, %q, %q", tc.n.state, tc.n.waiting, long, short, note, tc.long, tc.short, tc.note)
		}
	}
	if got := names([]*node{{name: "a"}, {name: "b"}, {name: "c"}}, 2); got != "a, b and 1 more" {
		t.Errorf("names = %q", got)
	}
	for e, want := range map[task.Error]string{
		{Kind: task.KindHandler, Message: "exit 3\nmore"}:                 "exit 3",
		{Kind: task.KindPanic, Message: "nil map"}:                        "panic: nil map",
		{Kind: task.KindTimeout, Message: "timeout: 3s"}:                  "timeout: 3s",
		{Kind: task.KindHandler, Message: "exit 3; it wrote last:\nmore"}: "exit 3",
		{Kind: task.KindHandler, Message: "a: b; c"}:                      "a: b; c",
		{Kind: task.KindHandler, Message: "two errors:\nmore"}:            "two errors",
		{Kind: task.KindPoison}:                                           "poison",
	} {
		if got := failure(&e); got != want {
			t.Errorf("failure(%v) = %q, want %q", e, got, want)
		}
	}
	if got := until(time.Nanosecond); got != "<1ms" {
		t.Errorf("until(1ns) = %q", got)
	}
}
