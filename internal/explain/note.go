package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Status returns a task's state in a word or two, with its elapsed or remaining time, and a shorter form for narrow
// screens. took is the duration of its last attempt.
func Status(t *task.Task, took time.Duration, now time.Time) (long, short string) {
	switch t.State {
	case task.Running:
		d := text.Span(now.Sub(t.StartedAt))
		if t.Undo != nil {
			return "undoing " + d, "undoing"
		}
		if t.CancelRequested {
			return "ending " + d, "ending"
		}
		return "running " + d, d
	case task.Succeeded:
		d := text.Took(took)
		return "succeeded " + d, d
	case task.Failed:
		return "failed " + text.Took(took), "failed"
	case task.Pending:
		switch t.Waiting {
		case task.WaitRetry:
			d := text.Until(t.ReadyAt.Sub(now))
			return "retry in " + d, "retry " + d
		case task.WaitSleep:
			return "wakes in " + text.Until(t.ReadyAt.Sub(now)), "asleep"
		case task.WaitUndo:
			if t.Undo.Runs() {
				return "undoes", "undoing"
			}
			return "being undone", "undoing"
		}
		return "waiting", "waiting"
	}
	return string(t.State), string(t.State)
}

// Note returns details about a task, in addition to its state, on one line.
func (c Clock) Note(t *task.Task) string {
	said := ""
	switch t.State {
	case task.Pending, task.Ready:
		said = c.waitNote(t)
	case task.Running:
		said = "on " + t.LeasedBy
		switch {
		case c.gone(t) != "":
			said += ", its process is gone"
		case t.Undo != nil:
			said += ", undoing"
		case t.CancelRequested:
			said += ", asked to end"
		case c.Passed(t.LeaseExpiresAt):
			said += ", lease ended " + c.Rel(t.LeaseExpiresAt)
		case t.Progress != nil:
			said += ", " + Progress(t.Progress, MaxNote)
		}
	case task.Blocked:
		said = blockedBy(t, MaxNote)
	case task.Failed:
		said = Failure(t.Error, MaxNote)
	case task.Cancelled:
		said = c.Cancelled(t, nil)
	}
	return text.OneLine(said, MaxNote)
}

// waitNote is [Waits] with times.
func (c Clock) waitNote(t *task.Task) string {
	due := ""
	if !t.ReadyAt.IsZero() {
		due = " " + c.Rel(t.ReadyAt)
	}
	switch {
	case t.State == task.Ready:
	case t.Waiting == task.WaitNone, t.Waiting == task.WaitDelay:
		return "due" + due
	case t.Waiting == task.WaitRetry && t.Error == nil:
		return "was released by a worker that could not run it, due again" + due
	case t.Waiting == task.WaitRetry:
		return "retries" + due + ": " + Failure(t.Error, MaxNote)
	case t.Waiting == task.WaitSleep:
		return "sleeps, wakes" + due
	case t.Waiting == task.WaitUndo && due != "":
		return undoing(t) + ", next" + due
	case t.Waiting == task.WaitSignal && due != "":
		return Waits(t, nil) + ", goes on" + due + " at the latest"
	}
	return Waits(t, nil)
}

// maxNeeds is the maximum number of needs in a note.
const maxNeeds = 5

// Waits says in a few words why a ready or pending task does not run. It returns "" for a task that only waits for a
// time. needs are the known needs of the task.
func Waits(t *task.Task, needs []store.Need) string {
	if t.State == task.Ready {
		return "waits for a worker"
	}
	switch t.Waiting {
	case task.WaitDeps:
		if lost := unmet(needs); lost != "" {
			return lost // about to be cancelled
		}
		if failed, some := needNames(needs, func(n *store.Need) bool { return n.Kind == task.OnFailed && n.End().WentWrong() }); some {
			needs = slices.DeleteFunc(slices.Clone(needs), func(n store.Need) bool { return n.Kind == task.OnFailed })
			if len(needs) == 0 {
				return failed + " failed" // about to become ready
			}
		}
		if len(needs) == 0 {
			return "needs " + text.Plural(t.RemainingDeps, "more task")
		}
		open, some := needNames(needs, func(n *store.Need) bool {
			holds, ended := n.Kind.Holds(n.End())
			return !ended || !holds && n.Kind != task.OnFailed
		})
		if !some {
			return "" // about to become ready, or not needed
		}
		return "needs " + open + conditionOf(needs)
	case task.WaitSignal:
		return "waits for a signal"
	case task.WaitChildren:
		if t.Join == task.JoinNone {
			return "waits for the children of a call"
		}
		return "waits for " + children(t.RemainingDeps)
	case task.WaitUndo:
		return undoing(t)
	case task.WaitRepair:
		return "waits for the repair of its input"
	case task.WaitConcurrency:
		return fmt.Sprintf("waits for key %q", text.OneLine(t.ConcurrencyKey, 2*MaxNote))
	case task.WaitPaused:
		switch t.Pause {
		case task.PauseTask:
			return "is paused"
		case task.PauseType:
			return "type is paused"
		}
		return "queue is paused"
	case task.WaitNone, task.WaitDelay, task.WaitSleep, task.WaitRetry:
		return ""
	}
	return "waits: " + string(t.Waiting)
}

// conditionOf is condition for needs with the same edge kind.
func conditionOf(needs []store.Need) string {
	for i := range needs {
		if needs[i].Kind != needs[0].Kind {
			return ""
		}
	}
	return condition(needs[0].Kind)
}

// Cancelled says in a few words why a task was cancelled; "" if no reason is recorded. needs are the known needs of
// the task.
func (c Clock) Cancelled(t *task.Task, needs []store.Need) string {
	said := ""
	switch kindOf(t) {
	case task.KindDependencyFailed:
		said = cmp.Or(unmet(needs), Head(t.Error.Message), cancelledBecause(task.KindDependencyFailed))
	case task.KindNotNeeded, task.KindDeadline:
		said = cmp.Or(c.overBudget(t), cancelledBecause(t.Error.Kind))
	default:
		said = text.OneLine(Who(t.CancelBy, t.CancelReason), text.MaxLine)
		if said == "" && t.Error != nil {
			said = Head(t.Error.Message)
		}
	}
	return said
}

// overBudget describes a task that ended because the duration budget of its job was used up. It returns "" if that is
// unknown or the task's own deadline came first.
func (c Clock) overBudget(t *task.Task) string {
	j := c.OfJob
	if j == nil || kindOf(t) != task.KindDeadline || j.Budget.MaxDuration <= 0 || !t.DeadlineAt.Equal(j.DeadlineAt) {
		return ""
	}
	return fmt.Sprintf("the job reached budget.max_duration (%s)", text.Setting(j.Budget.MaxDuration))
}

// cancelledBecause returns the words for a cancel that no operator requested.
func cancelledBecause(kind task.ErrorKind) string {
	switch kind {
	case task.KindDependencyFailed:
		return "what it needs did not succeed"
	case task.KindNotNeeded:
		return "it was not needed"
	case task.KindDeadline:
		return "its deadline had passed"
	}
	return ""
}

// unmet names the needs that did not succeed; "" if all did, as far as known.
func unmet(needs []store.Need) string {
	lost, some := needNames(needs, func(n *store.Need) bool {
		holds, ended := n.Kind.Holds(n.End())
		return ended && !holds && n.Kind != task.OnFailed
	})
	if !some {
		return ""
	}
	return lost + " did not succeed"
}

// needNames lists the selected needs by name: "a, b and 3 more". some is false if no need is selected. Only the names
// shown are made printable, because a task may have many needs and a tree is redrawn often.
func needNames(needs []store.Need, in func(*store.Need) bool) (said string, some bool) {
	var names []string
	more := 0
	for i := range needs {
		n := &needs[i]
		switch {
		case !in(n):
		case len(names) == maxNeeds:
			more++
		default:
			names = append(names, text.OneLine(cmp.Or(n.Node, n.ID.String()), 2*MaxNote))
		}
	}
	return listed(names, more), len(names) > 0
}
