package explain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// TaskState returns the end of a sentence that begins with the task: "is blocked: …", "waits for its retry, …". It
// has no full stop.
func (c Clock) TaskState(h *store.History) string {
	t := &h.Task
	switch t.State {
	case task.Succeeded:
		if t.AttemptNo > 1 {
			return fmt.Sprintf("succeeded %s, in its attempt %d", c.When(t.FinishedAt), t.AttemptNo)
		}
		return "succeeded " + c.When(t.FinishedAt)
	case task.Failed:
		return "failed " + c.When(t.FinishedAt) + Allowed(t) + ": " + Failure(t.Error, MaxMessage)
	case task.Cancelled:
		return "was cancelled " + c.When(t.FinishedAt) + Allowed(t) + c.cancelled(t)
	case task.Blocked:
		return "is blocked" + blocked(t)
	case task.Running:
		said := fmt.Sprintf("is running on %s, in its attempt %d, which began %s", text.OneLine(t.LeasedBy, MaxNote), t.AttemptNo, c.When(t.StartedAt))
		if gone := c.gone(t); gone != "" {
			return said + ", but " + gone
		}
		said += c.asked(h)
		if c.Passed(t.LeaseExpiresAt) {
			said += ", but its lease ended " + c.Rel(t.LeaseExpiresAt) + " and was not renewed"
		}
		return said
	case task.Ready:
		if t.ReadyAt.After(c.Now) { // the store's clock is slightly ahead of the reader's
			return "is ready and " + Waits(t, nil)
		}
		if len(h.Limits) > 0 {
			return "is due since " + c.When(t.ReadyAt) + " and waits for " + c.limits(h)
		}
		return "is ready since " + c.When(t.ReadyAt) + " and " + Waits(t, nil)
	}
	return c.waits(h)
}

// cancelled returns the suffix for "was cancelled", with its punctuation.
func (c Clock) cancelled(t *task.Task) string {
	switch kind := kindOf(t); kind {
	case task.KindDeadline:
		said := ": " + cancelledBecause(kind)
		if !t.DeadlineAt.IsZero() {
			said = ": its deadline, " + c.Abs(t.DeadlineAt) + ", had passed"
		}
		if over := c.overBudget(t); over != "" {
			said = ": " + over
		}
		if t.AttemptNo == 0 {
			said += " before it was started"
		}
		return said
	case task.KindDependencyFailed, task.KindNotNeeded:
		return ", because " + cancelledBecause(kind)
	}
	if who := By(t.CancelBy, t.CancelReason); who != "" && kindOf(t) != task.KindBudget {
		return who
	}
	if t.Error != nil {
		return ": " + Failure(t.Error, MaxMessage)
	}
	return ""
}

// blocked returns the suffix for "is blocked", with its punctuation.
func blocked(t *task.Task) string {
	said := " and waits for a person"
	switch t.Waiting {
	case task.WaitBudget:
		if said = ", its budget is used up"; t.IdleAttempts > 0 {
			said += idle(t)
		}
	case task.WaitRepair:
		said = ", its input has to be repaired"
	case task.WaitDeadline:
		said = ", its deadline has passed"
	case task.WaitUndo:
		said = " in its undo, which needs a person"
	}
	if why := blockedBy(t, MaxMessage); why != "" {
		said += ": " + why
	}
	return said
}

// blockedBy returns the message of a handler that asked for a person, or the error that a person must look at.
func blockedBy(t *task.Task, limit int) string {
	e, asked := t.Error, Question(t.Type, t.Error)
	switch {
	case asked != "":
		return text.OneLine(asked, limit)
	case e == nil:
		return ""
	case e.Kind == task.KindHandler && e.Step == "":
		return text.OneLine(e.Message, limit)
	}
	return Failure(e, limit)
}

// waits says why a pending task does not run.
func (c Clock) waits(h *store.History) string {
	t := &h.Task
	due := c.When(t.ReadyAt)
	orElse := func(said string) string {
		if due != "" {
			said += ", and goes on " + due + " at the latest"
		}
		return said
	}
	switch t.Waiting {
	case task.WaitNone, task.WaitDelay:
		if t.AttemptNo > 0 { // an operator postponed it when it was due again
			return "was rescheduled and is due " + due
		}
		return "was enqueued for later and is due " + due
	case task.WaitDeps:
		return openNeeds(h.Needs)
	case task.WaitRetry:
		if notRun(h) != nil {
			return "waits for a worker that can run it, due again " + due
		}
		return "waits for its retry, due " + due
	case task.WaitSleep:
		return fmt.Sprintf("sleeps%s and wakes %s", sleepStep(h), due)
	case task.WaitConcurrency:
		if t.ConcurrencyKey == task.ParallelKey(t.JobID) {
			return fmt.Sprintf("is due and waits for its job, which lets %d of its tasks run at once", max(t.ConcurrencyLimit, 1))
		}
		return fmt.Sprintf("is due and waits for its concurrency key %q, which lets %d run at once", text.OneLine(t.ConcurrencyKey, MaxNote), max(t.ConcurrencyLimit, 1))
	case task.WaitPaused:
		said := "waits because " + whatIsPaused(t, "its ", MaxNote)
		if in := c.inWaits(h); in != "" {
			return said + ", and it " + in
		}
		if t.ReadyAt.After(c.Now) {
			said += ", and is due " + due
		}
		return said
	case task.WaitSignal:
		return cmp.Or(c.inWaits(h), orElse("waits for a signal"))
	case task.WaitChildren:
		if said := c.inWaits(h); t.Join == task.JoinNone && said != "" {
			return said
		}
		return openChildren(h.Needs)
	case task.WaitRate:
		return orElse("waits because of a rate limit")
	case task.WaitRepair:
		said := "waits while its input is being repaired"
		if t.RepairCount > 0 {
			said += fmt.Sprintf(" (repair %d of %d)", t.RepairCount, t.MaxRepairs)
		}
		return orElse(said)
	case task.WaitBudget:
		return orElse("waits because its budget is used up")
	case task.WaitManual:
		return orElse("waits for a person")
	case task.WaitDeadline:
		return orElse("waits to be ended: its deadline has passed")
	case task.WaitUndo:
		return c.undo(h, due)
	}
	return orElse("waits: " + string(t.Waiting))
}

// awaited returns a test for the needs whose end a task waits for. Once a need for failure has failed, the other
// needs for failure do not count. Children do not count here.
func awaited(needs []store.Need) func(store.Need) bool {
	asked := func(n store.Need) bool { return n.Awaited > 0 && n.Kind == task.OnSuccess && !n.Done }
	if slices.ContainsFunc(needs, asked) {
		return asked // the handler asked for this need; the other needs no longer count
	}
	started := slices.ContainsFunc(needs, func(n store.Need) bool {
		return n.Kind == task.OnFailed && n.Done && n.End().WentWrong()
	})
	return func(n store.Need) bool { return n.Awaited == 0 && !n.Done && !(started && n.Kind == task.OnFailed) }
}

// openNeeds counts the needs that a task still waits for.
func openNeeds(needs []store.Need) string {
	open := 0
	counts := awaited(needs)
	for _, need := range needs {
		if counts(need) {
			open++
		}
	}
	all := len(needs)
	for _, need := range needs {
		if isChild(need) || need.Step != "" {
			all--
		}
	}
	if open == all {
		return "waits for " + text.Plural(open, "other task")
	}
	return fmt.Sprintf("waits for %d of the %d tasks that it needs", open, all)
}

// isChild reports whether a need is a child of the task's decomposition.
func isChild(n store.Need) bool { return n.Awaited > 0 && n.Kind == task.OnDone && n.Step == "" }

// openChild reports whether a need is a child that has not ended.
func openChild(n store.Need) bool { return isChild(n) && !n.Done }

// lastChildren returns a test for the children of the last decomposition.
func lastChildren(needs []store.Need) func(store.Need) bool {
	last := 0
	for _, n := range needs {
		if isChild(n) {
			last = max(last, n.Awaited)
		}
	}
	return func(n store.Need) bool { return isChild(n) && n.Awaited == last }
}

// wrongChild returns a test for the children of the last decomposition that did not succeed.
func wrongChild(needs []store.Need) func(store.Need) bool {
	of := lastChildren(needs)
	return func(n store.Need) bool { return of(n) && n.State.Terminal() && n.State != task.Succeeded }
}

// openChildren counts the children of the last decomposition that a task still waits for.
func openChildren(needs []store.Need) string {
	open, all := 0, 0
	of := lastChildren(needs)
	for _, n := range needs {
		if of(n) {
			all++
		}
		if openChild(n) {
			open++
		}
	}
	if open >= all {
		return "waits for " + children(open)
	}
	return fmt.Sprintf("waits for %d of its %s", open, children(all))
}

func children(n int) string {
	if n == 1 {
		return "1 child"
	}
	return fmt.Sprint(n, " children")
}

// sleepStep names the current sleep of a task.
func sleepStep(h *store.History) string {
	name := ""
	for _, st := range h.Steps {
		if st.Kind == task.KindSleep && (name == "" || st.WakeAt.Equal(h.Task.ReadyAt)) {
			name = st.Name
		}
	}
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" in %q", text.OneLine(name, MaxNote))
}

// whatIsPaused names the paused object: the task, its type or its queue. its comes before "queue" and "type".
func whatIsPaused(t *task.Task, its string, most int) string {
	switch t.Pause {
	case task.PauseTask:
		return "it is paused"
	case task.PauseType:
		return fmt.Sprintf("%stype %s is paused", its, text.OneLine(t.Type, most))
	}
	return fmt.Sprintf("%squeue %q is paused", its, text.OneLine(t.Queue, most))
}
