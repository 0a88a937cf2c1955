package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// maxCauses is the maximum number of needs, holders or job tasks that are listed one by one.
const maxCauses = 5

// walk builds one explanation: it follows waits from task to task.
type walk struct {
	*Explainer
	known   Known
	missing []task.ID        // tasks whose histories are needed but not in known
	seen    map[task.ID]bool // tasks already explained: needs may form a diamond
	actions []Action
}

func newWalk(e *Explainer, known Known) *walk {
	return &walk{Explainer: e, known: known, seen: make(map[task.ID]bool)}
}

// history looks up a task. ok is false if the history was not read yet; h is nil if the task no longer exists.
func (w *walk) history(id task.ID) (h *store.History, ok bool) {
	if h, ok = w.known[id]; !ok && !slices.Contains(w.missing, id) {
		w.missing = append(w.missing, id)
	}
	return h, ok
}

// causes follows the wait or the failure of a task to its root. On the way it collects the actions for operators.
// subject begins the sentences.
func (w *walk) causes(h *store.History, subject string, depth int) []Cause {
	t := &h.Task
	switch {
	case t.State == task.Pending && t.Waiting == task.WaitDeps:
		return w.needs(h, subject+" waits for", depth, awaited(h.Needs))
	case t.State == task.Pending && (t.Waiting == task.WaitSignal || t.Waiting == task.WaitChildren && t.Join == task.JoinNone):
		w.signal(h)
		return w.needs(h, subject+" waits for", depth, openCalled(h))
	case t.State == task.Pending && t.Waiting == task.WaitRepair:
		w.act(h, depth)
		return w.needs(h, subject+" waits for", depth, openChild)
	case t.State == task.Pending && t.Waiting == task.WaitChildren:
		return w.needs(h, subject+" waits for", depth, openChild)
	case t.State == task.Failed && kindOf(t) == task.KindDependencyFailed:
		causes := w.needs(h, subject+" needed", depth, wrongChild(h.Needs))
		if len(causes) == 0 { // the children were retried since
			w.act(h, depth)
		}
		return causes
	case t.State == task.Cancelled && (kindOf(t) == task.KindDependencyFailed || kindOf(t) == task.KindNotNeeded):
		causes := w.needs(h, subject+" needed", depth, unmetNeed(h.Needs))
		if len(causes) == 0 && kindOf(t) == task.KindDependencyFailed {
			// The need was retried or deleted since: only then can the task be retried by itself.
			w.act(h, depth)
		}
		return causes
	case t.State == task.Pending && t.Waiting == task.WaitConcurrency:
		return w.holders(h, subject)
	case t.State == task.Pending && t.Waiting == task.WaitPaused:
		w.act(h, depth)
		w.signal(h)
		return w.pause(h)
	}
	w.act(h, depth)
	if t.State == task.Blocked {
		return failedRepair(h)
	}
	return nil
}

// failedRepair says why the last repair of a blocked task failed.
func failedRepair(h *store.History) []Cause {
	t := &h.Task
	for i := range h.Needs {
		n := &h.Needs[i]
		if t.RepairCount == 0 || !isChild(*n) || n.EndedError == nil || !strings.HasSuffix(n.Node, fmt.Sprintf("repair[%d]", t.RepairCount)) {
			continue
		}
		return []Cause{{
			Kind: CauseNeed, TaskID: n.ID, State: n.EndedState,
			Sentence: text.Stop(fmt.Sprintf("Its last repair, %s, ended %s: %s", n.ID, n.EndedState, Failure(n.EndedError, MaxMessage))),
		}}
	}
	return nil
}

// unmetNeed returns a test for needs whose end keeps a task from running. A need for failure that did not fail counts
// only if no other need is unmet.
func unmetNeed(needs []store.Need) func(store.Need) bool {
	unmet := func(n store.Need) bool {
		holds, ended := n.Kind.Holds(n.End())
		return ended && !holds
	}
	must := func(n store.Need) bool { return n.Kind != task.OnFailed && unmet(n) }
	if slices.ContainsFunc(needs, must) {
		return must
	}
	return unmet
}

// needs lists the needs that match counts; those that wait for a person come first.
func (w *walk) needs(h *store.History, begin string, depth int, counts func(store.Need) bool) []Cause {
	open := slices.DeleteFunc(slices.Clone(h.Needs), func(n store.Need) bool { return !counts(n) })
	slices.SortStableFunc(open, func(a, b store.Need) int { return urgency(b.State) - urgency(a.State) })
	var causes []Cause
	for i, n := range open {
		if i == maxCauses {
			return append(causes, Cause{Kind: CauseMore, Sentence: fmt.Sprintf("%s %s more: `%s` lists them.", begin, text.Plural(len(open)-i, "task"), w.Command("task", "show", h.Task.ID.String()))})
		}
		causes = append(causes, w.need(n, begin, depth))
	}
	return causes
}

// urgency orders needs: those that cannot proceed by themselves rank highest.
func urgency(s task.State) int {
	return slices.Index([]task.State{task.Succeeded, task.Pending, task.Ready, task.Running, task.Cancelled, task.Failed, task.Blocked}, s)
}

func (w *walk) need(n store.Need, begin string, depth int) Cause {
	c := Cause{Kind: CauseNeed, TaskID: n.ID, State: n.State}
	h, ok := w.history(n.ID)
	if !ok {
		return c
	}
	if h == nil {
		c.Sentence = fmt.Sprintf("%s %s, which no longer exists.", begin, n.ID)
		return c
	}
	c.State = h.Task.State
	as := condition(n.Kind)
	if n.Awaited > 0 {
		as = "" // the task waits for any end of its children
	}
	c.Sentence = fmt.Sprintf("%s %s%s, which %s", begin, Label(&h.Task), as, w.TaskState(h))
	switch {
	case w.seen[n.ID]:
		c.Sentence += " (see above)."
		return c
	case depth >= w.Depth:
		c.Sentence += fmt.Sprintf("; `%s` goes on from there.", w.Command("why", n.ID.String()))
		return c
	}
	c.Sentence = text.Stop(c.Sentence)
	w.seen[n.ID] = true
	c.Because = w.causes(h, Short(&h.Task), depth+1)
	return c
}

// condition returns the words for edges that do not require success.
func condition(k task.EdgeKind) string {
	switch k {
	case task.OnFailed:
		return " to fail"
	case task.OnDone, task.OnUndo, task.OnUndone:
		return " to end"
	}
	return ""
}

// holders lists the tasks that hold the concurrency key, or the first waiter if the key has room.
func (w *walk) holders(h *store.History, subject string) []Cause {
	waiter := subject
	if subject == "It" {
		waiter = "this one"
	}
	if !h.Ahead.IsZero() || len(h.Holders) == 0 {
		return []Cause{w.ahead(h, waiter)}
	}
	var causes []Cause
	for i, id := range h.Holders {
		if i == maxCauses {
			return append(causes, Cause{Kind: CauseMore, Sentence: fmt.Sprintf("%s more hold it.", text.Plural(len(h.Holders)-i, "task"))})
		}
		holder, _ := w.history(id)
		if holder == nil {
			continue // not read yet, or ended and deleted between the two reads
		}
		causes = append(causes, Cause{
			Kind: CauseKey, TaskID: id, State: holder.Task.State,
			Sentence: fmt.Sprintf("The key is held by %s, which %s; %s runs when it leaves, after those that were due earlier.",
				Label(&holder.Task), w.TaskState(holder), waiter),
		})
		w.add(on(id, VerbWhy, "tells why the holder has not ended"))
		if w.overdue(holder) || w.gone(&holder.Task) != "" {
			w.act(holder, 2)
		}
	}
	return causes
}

// ahead describes the task that comes before this waiter of a key with room.
func (w *walk) ahead(h *store.History, waiter string) Cause {
	var first *store.History
	if !h.Ahead.IsZero() {
		first, _ = w.history(h.Ahead)
	}
	if first == nil { // not read yet, deleted between the two reads, or about to become ready
		return Cause{Kind: CauseKey, Sentence: fmt.Sprintf("The key has room: %s becomes ready in a moment.", waiter)}
	}
	w.add(on(h.Ahead, VerbWhy, "tells why the task that comes first has not started"))
	return Cause{
		Kind: CauseKey, TaskID: h.Ahead, State: first.Task.State,
		Sentence: text.Stop(fmt.Sprintf("The key has room. A task of the same type in the same queue comes first, %s, which %s", Label(&first.Task), w.TaskState(first))),
	}
}

// pause names the operator who paused the task, its type or its queue.
func (w *walk) pause(h *store.History) []Cause {
	p, what := h.QueuePause, "The queue was paused "
	switch h.Task.Pause {
	case task.PauseTask:
		p, what = h.TaskPause, "It was paused "
	case task.PauseType:
		p, what = h.TypePause, "The type was paused "
	}
	if p == nil {
		return nil
	}
	return []Cause{{Kind: CausePause, Sentence: text.Stop(what + w.When(p.At) + By(p.Actor, p.Reason))}}
}

// act adds the operator's actions for the explained task, or for a task at the root of its wait.
func (w *walk) act(h *store.History, depth int) {
	t := &h.Task
	name, asked := Short(t), depth == 1
	switch {
	case t.Forgotten: // no action can start the task again
	case t.Undo != nil && w.gone(t) == "":
		w.actUndo(t, asked)
	case t.State == task.Blocked:
		if Question(t.Type, t.Error) != "" {
			w.add(on(t.ID, VerbUnblock, "approves "+name+"; with --input "+refusal+" it fails"))
		} else if t.Error != nil && t.Error.Ask != "" {
			w.add(on(t.ID, VerbUnblock, "asks "+name+" again; with --input that is the answer to this question, and it goes on").with(Args{Ask: t.Error.Ask}))
		} else if kindOf(t) == task.KindDecode && t.Error.Step == "" {
			w.actUnreadable(h)
		} else if from := RerunFrom(h); from != "" {
			w.add(on(t.ID, VerbRerun, fmt.Sprintf("enqueues a new task, outside of a job, that runs %q and the later steps anew", text.OneLine(from, MaxNote))).with(Args{From: from}))
			w.add(on(t.ID, VerbUnblock, "lets "+name+" go on, once its program can read the recorded value"))
		} else {
			w.add(on(t.ID, VerbUnblock, "lets "+name+" go on; --input gives its handler an answer"))
		}
		if asked {
			w.add(on(t.ID, VerbCancel, "gives "+name+" up, and with it what needs it"))
		}
	case t.State.Terminal() && spentByJob(t) && w.OfJob != nil && w.OfJob.BudgetUsedUp():
		w.add(raise(w.OfJob, "raises the budget of its job and continues the tasks that it ended"))
	case t.State == task.Failed, t.State == task.Cancelled && kindOf(t) != task.KindNotNeeded:
		effect := "starts " + name + " again with all its attempts; recorded steps stay"
		args := retryArgs(t)
		if ranCleanup(h) != "" {
			args.KeepSteps = true
			effect += ", and do not run again: only if its cleanup did not undo them"
			if !slices.ContainsFunc(h.Needs, func(n store.Need) bool { return n.Awaited == 0 }) {
				w.add(on(t.ID, VerbRerun, "enqueues a new task, outside of a job, that runs all steps anew"))
			}
		}
		if slices.ContainsFunc(h.Dependents, func(n store.Need) bool { return n.State == task.Cancelled }) {
			effect += ", and the tasks that were cancelled because of it wait again"
		}
		w.add(on(t.ID, VerbRetry, effect).with(args))
	case w.gone(t) != "":
		a := on(t.ID, VerbRun, "takes "+name+" over at once")
		a.Command = w.Gone[t.ID][0]
		w.add(a)
		if asked && t.Undo == nil {
			w.add(on(t.ID, VerbCancel, "gives "+name+" up").with(Args{Force: true}))
		}
	case t.State == task.Running && (t.CancelRequested || w.overdue(h)):
		effect := "takes the lease of " + name + " away and ends it at once, whatever its handler does"
		if t.CleanupWhenCancelled || t.UndoOpen > 0 {
			effect += "; its undo runs when that lease has ended"
		}
		w.add(on(t.ID, VerbCancel, effect).with(Args{Force: true}))
	case t.State == task.Running && asked:
		w.add(on(t.ID, VerbCancel, "asks "+name+" to end"))
	case t.State == task.Pending && t.Waiting == task.WaitRepair && asked:
		w.add(on(t.ID, VerbRepair, "gives "+name+" another input at once").needsInput())
	case t.State == task.Pending && asked && WaitsForTime(t.Waiting):
		w.add(on(t.ID, VerbReschedule, "starts "+name+" now; --in and --at start it at another time"))
	case t.State == task.Pending && t.Waiting == task.WaitPaused:
		switch t.Pause {
		case task.PauseTask:
			w.add(on(t.ID, VerbResume, "lets "+name+" run"))
		case task.PauseType:
			w.add(Action{Verb: VerbResume, Target: Target{TargetType, t.Type}, Effect: "lets the tasks of the type run"})
		default:
			w.add(Action{Verb: VerbResume, Target: Target{TargetQueue, t.Queue}, Effect: "lets the tasks of the queue run"})
		}
	}
}

// actUnreadable adds the actions for a task that could not read a value. The attempt's outcome names the input.
// Otherwise the value is a checkpoint, an artifact, or one for which the worker has no key or bucket.
func (w *walk) actUnreadable(h *store.History) {
	t, name := &h.Task, Short(&h.Task)
	if n := len(h.Attempts); n == 0 || h.Attempts[n-1].Outcome == task.OutcomeDecodeFailed {
		w.add(on(t.ID, VerbRepair, "gives "+name+" another input, and it goes on").needsInput())
		w.add(on(t.ID, VerbUnblock, "runs "+name+" again with the present input, once its program can read it"))
		return
	}
	w.add(on(t.ID, VerbUnblock, "runs "+name+" again, once the unreadable value is there and its program can read it"))
	w.add(on(t.ID, VerbRepair, "gives "+name+" another input, if it is the input that cannot be read").needsInput())
	if !hasNeeds(h) {
		w.add(on(t.ID, VerbRerun, "enqueues a new task, outside of a job, that runs all steps anew"))
	}
}

// hasNeeds reports whether a task has needs; such a task cannot be rerun.
func hasNeeds(h *store.History) bool {
	return slices.ContainsFunc(h.Needs, func(n store.Need) bool { return n.Awaited == 0 && n.Step == "" })
}

// RerunFrom returns the step of a blocked task whose recorded value does not decode; a rerun can start from it. It
// returns "" if there is no such step or a rerun is refused.
func RerunFrom(h *store.History) string {
	t := &h.Task
	if t.State != task.Blocked || kindOf(t) != task.KindDecode || hasNeeds(h) {
		return ""
	}
	return t.Error.Step
}

// WaitsForTime reports whether a pending task waits only for a time.
func WaitsForTime(why task.Waiting) bool {
	switch why {
	case task.WaitNone, task.WaitDelay, task.WaitRetry, task.WaitSleep:
		return true
	}
	return false
}

// add adds an action unless it is already listed.
func (w *walk) add(a Action) {
	if a = w.shown(a); !slices.Contains(w.actions, a) {
		w.actions = append(w.actions, a)
	}
}
