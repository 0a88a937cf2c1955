package monitor

import (
	"cmp"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
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

// view is the node as package explain reads it.
func (n *node) view() *store.History {
	return &store.History{Task: n.task(), Needs: n.needViews()}
}

func (n *node) task() task.Task {
	return task.Task{
		ID: n.id, State: n.state, Waiting: n.waiting, ReadyAt: n.dueAt, RemainingDeps: n.open, ConcurrencyKey: n.lock,
		AttemptNo: n.attempt, AttemptCount: n.counted, MaxAttempts: n.max, CancelRequested: n.asked,
		CancelBy: n.cancelBy, CancelReason: n.cancelReason, Error: n.err, StartedAt: n.begun, AllowFailure: n.mayFail,
	}
}

func (n *node) needViews() []store.Need {
	needs := make([]store.Need, len(n.needs))
	for i, other := range n.needs {
		needs[i] = store.Need{ID: other.id, Node: cmp.Or(other.name, other.key), Kind: n.takes, State: other.state, AllowFailure: other.mayFail}
		if other.err != nil && other.state.Terminal() {
			needs[i].ErrorKind = other.err.Kind
		}
	}
	return needs
}

// status is a task's state in a word or two, and a shorter form for narrow
// screens.
func (n *node) status(now time.Time) (long, short string) {
	t := n.task()
	return explain.Status(&t, n.took, now)
}

// note is what there is to say of a task beside its state: why it waits or was
// cancelled, else its last line.
func (n *node) note() string {
	switch {
	case n.state == task.Ready, n.state == task.Pending && n.waiting != task.WaitRetry:
		h := n.view()
		return explain.Waits(&h.Task, h.Needs)
	case n.state == task.Cancelled:
		h := n.view()
		return explain.Cancelled(&h.Task, h.Needs)
	}
	return strings.TrimSpace(n.said)
}

// retrying reports whether a failed attempt will be followed by another one.
func (n *node) retrying() bool { return explain.Retrying(n.state, n.waiting) }
