package monitor

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

var glyphs = map[task.State]string{
	task.Pending:   "○",
	task.Ready:     "○",
	task.Running:   "●",
	task.Succeeded: "✓",
	task.Failed:    "✗",
	task.Cancelled: "⊘",
	task.Blocked:   "⏸",
}

func (n *node) glyph() string {
	if n.retrying() {
		return "↻"
	}
	return glyphs[n.state]
}

func (n *node) color() string {
	if n.retrying() {
		return text.Yellow
	}
	return text.StateColor(n.state)
}

// status is a task's state in a word or two, and a shorter form for narrow
// screens.
func (n *node) status(now time.Time) (long, short string) {
	switch n.state {
	case task.Running:
		d := text.Span(now.Sub(n.begun))
		if n.asked {
			return "ending " + d, "ending"
		}
		return "running " + d, d
	case task.Succeeded:
		d := took(n.took)
		return "succeeded " + d, d
	case task.Failed:
		return "failed " + took(n.took), "failed"
	case task.Pending:
		switch {
		case n.waiting == task.WaitRetry:
			d := until(n.dueAt.Sub(now))
			return "retry in " + d, "retry " + d
		case n.waiting == task.WaitSleep:
			return "wakes in " + until(n.dueAt.Sub(now)), "asleep"
		}
		return "waiting", "waiting"
	}
	return string(n.state), string(n.state)
}

// note is what there is to say of a task beside its state.
func (n *node) note() string {
	switch n.state {
	case task.Ready:
		return "waits for a worker"
	case task.Pending:
		if n.waiting != task.WaitRetry {
			return n.waits()
		}
	case task.Cancelled:
		return n.cancelled()
	}
	return strings.TrimSpace(n.said)
}

// waits is why a pending task does not run.
func (n *node) waits() string {
	switch n.waiting {
	case task.WaitDeps:
		if lost := n.lostNeeds(); lost != "" {
			return lost // it will be cancelled in a moment
		}
		if open := n.openNeeds(); len(open) > 0 {
			return "needs " + names(open, 5)
		}
		if len(n.needs) > 0 {
			return "" // all have succeeded: it will be ready in a moment
		}
		return "needs " + text.Plural(n.open, "more task")
	case task.WaitConcurrency:
		return fmt.Sprintf("waits for key %q", oneLine(n.lock, maxName))
	case task.WaitPaused:
		return "queue is paused"
	case task.WaitNone, task.WaitDelay, task.WaitSleep:
		return ""
	}
	return "waits: " + string(n.waiting)
}

// cancelled is why a task was cancelled, "" when nobody said it.
func (n *node) cancelled() string {
	if n.err == nil {
		return n.cancelBy
	}
	switch n.err.Kind {
	case task.KindDependencyFailed:
		return cmp.Or(n.lostNeeds(), "what it needs did not succeed")
	case task.KindNotNeeded:
		return "it was not needed"
	case task.KindDeadline:
		return "its deadline had passed"
	}
	if n.cancelBy != "" {
		return n.cancelBy
	}
	return headline(n.err.Message)
}

// lostNeeds says which needs did not succeed, "" when none is known.
func (n *node) lostNeeds() string {
	var lost []*node
	for _, other := range n.needs {
		if other.state == task.Failed || other.state == task.Cancelled {
			lost = append(lost, other)
		}
	}
	if len(lost) == 0 {
		return ""
	}
	return names(lost, 5) + " did not succeed"
}

// names lists tasks: "a, b, c and 4 more".
func names(nodes []*node, limit int) string {
	var list []string
	for i, n := range nodes {
		if i == limit {
			return fmt.Sprintf("%s and %d more", strings.Join(list, ", "), len(nodes)-limit)
		}
		list = append(list, n.name)
	}
	return strings.Join(list, ", ")
}

// progress is a report in words: "3 of 10: reading".
func progress(p task.Progress) string {
	text := fmt.Sprintf("%g", p.Current)
	if p.Total > 0 {
		text += fmt.Sprintf(" of %g", p.Total)
	}
	if p.Message != "" {
		text += ": " + oneLine(p.Message, maxLine)
	}
	return text
}

// headline is the first line of an error, without the words that introduce
// the next ones: "exit status 3; it wrote last:" is "exit status 3".
func headline(message string) string {
	line := firstLine(message, maxLine)
	introduces := strings.HasSuffix(line, ":")
	line = strings.TrimRight(line, ":")
	if i := strings.LastIndex(line, "; "); i > 0 && introduces {
		line = line[:i]
	}
	return line
}

// failure is an error in words, with its kind unless that goes without saying.
func failure(e *task.Error) string {
	text := headline(e.Message)
	switch {
	case text == "":
		return string(e.Kind)
	case e.Kind == task.KindHandler || e.Kind == task.KindNone || strings.HasPrefix(text, string(e.Kind)):
		return text
	}
	return string(e.Kind) + ": " + text
}
