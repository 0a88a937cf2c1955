package view

import (
	"cmp"
	"slices"
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

// view returns the node in the form that package explain takes.
func (n *node) view() *store.History {
	return &store.History{Task: n.task(), Needs: n.needViews()}
}

func (n *node) task() task.Task {
	return task.Task{
		ID: n.id, State: n.state, Waiting: n.waiting, ReadyAt: n.dueAt, RemainingDeps: n.open, ConcurrencyKey: n.lock,
		AttemptNo: n.attempt, AttemptCount: n.counted, MaxAttempts: n.max, CancelRequested: n.asked,
		CancelBy: n.cancelBy, CancelReason: n.cancelReason, Error: n.err, StartedAt: n.begun, DeadlineAt: n.deadline, AllowFailure: n.mayFail,
	}
}

// needViews returns a task's needs. A need that was cancelled for its own need is
// replaced by the root of that chain, once.
func (n *node) needViews() []store.Need {
	needs := make([]store.Need, 0, len(n.needs))
	replaced := false
	for _, need := range n.needs {
		other := need.root()
		replaced = replaced || other != need
		if replaced && slices.ContainsFunc(needs, func(known store.Need) bool { return known.ID == other.id }) {
			continue
		}
		view := store.Need{ID: other.id, Node: cmp.Or(other.name, other.key), Kind: n.takes, State: other.state, AllowFailure: other.mayFail}
		if other.err != nil && other.state.Terminal() {
			view.ErrorKind = other.err.Kind
		}
		needs = append(needs, view)
	}
	return needs
}

// root returns the task that caused the cancel of n through any chain of needs, or
// n.
func (n *node) root() *node {
	for n.state == task.Cancelled && n.err != nil && n.err.Kind == task.KindDependencyFailed {
		i := slices.IndexFunc(n.needs, func(other *node) bool { return other.state == task.Failed || other.state == task.Cancelled })
		if i < 0 {
			break
		}
		n = n.needs[i]
	}
	return n
}

// status returns a task's state in one or two words, and a shorter form for narrow
// screens.
func (n *node) status(now time.Time) (long, short string) {
	t := n.task()
	return explain.Status(&t, n.took, now)
}

// note returns the reason why a task waits or was cancelled, else its last line.
func (n *node) note() string {
	switch {
	case n.state == task.Ready, n.state == task.Pending && n.waiting != task.WaitRetry:
		h := n.view()
		return explain.Waits(&h.Task, h.Needs)
	case n.state == task.Cancelled:
		h := n.view()
		return explain.Clock{OfJob: n.of}.Cancelled(&h.Task, h.Needs)
	}
	return strings.TrimSpace(n.said)
}

// end returns the node's end, as far as it ended.
func (n *node) end() task.End {
	t := n.task()
	return t.End()
}

// retrying reports whether a retry follows a failed attempt.
func (n *node) retrying() bool { return explain.Retrying(n.state, n.waiting) }
