package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// plainText returns a line without colours.
func plainText(line string) string { return strings.Join(text.Lines(line), "") }

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
	m.observe(j.Starts("a"+evil, At(0)))
	m.observe(j.Prints("a"+evil, "out"+evil))
	m.observe(j.Starts("b"+evil, At(0)))
	m.observe(j.Fails("b"+evil, evil+evil, At(1)))
	for _, columns := range []int{20, 40, 80, 120} {
		for _, line := range m.frame(columns, 24, Start, At(2)).text(text.Painter{}, columns) {
			if strings.ContainsAny(line, "\x1b\a\r\n\u202e\u009b") || strings.Contains(line, "own") || text.Width(line) > columns {
				t.Errorf("a line lets something through: %q", line)
			}
		}
	}
}

// On a small terminal a finished task ranks as news for a while.
func TestRecentlyFinished(t *testing.T) {
	t.Parallel()
	var tasks []string
	for i := range 30 {
		tasks = append(tasks, fmt.Sprintf("t%02d", i))
	}
	j := JobOf(tasks...)
	m := j.model()
	for i := range 10 {
		m.observe(j.Starts(tasks[i], At(0)))
		m.observe(j.Succeeds(tasks[i], At(float64(i))))
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
	m.observe(j.Starts("t20", At(18)))
	m.observe(j.Starts("t21", At(18)))
	m.observe(j.Fails("t21", "no", At(18)))
	if got := shown(1000); got != "t10 t11 t12 t20 t21" {
		t.Errorf("long after: %s", got)
	}
}
