package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Job explains a job by the tasks that decide its state. The explanation is complete when missing is empty; see
// [Explainer].
func (e *Explainer) Job(j *task.Job, tasks []task.Task, known Known) (x *Explanation, missing []task.ID) {
	w := newWalk(e, known)
	x = &Explanation{
		Kind: "job", ID: j.ID, Name: j.Name, State: string(j.State),
		Summary: text.Stop("It " + e.JobState(j, tasks)),
		Notes:   e.jobNotes(j, tasks),
	}
	deciding := decisive(j.State, tasks)
	slices.SortStableFunc(deciding, func(a, b *task.Task) int { return e.severity(b) - e.severity(a) })
	x.Root = e.jobRoot(j.State, deciding, tasks)
	for i, t := range deciding {
		if i == maxCauses {
			x.Because = append(x.Because, Cause{Kind: CauseMore, Sentence: fmt.Sprintf("%s more like these: `%s` lists them.", text.Plural(len(deciding)-i, "task"), e.Command("job", "show", j.ID.String()))})
			break
		}
		x.Because = append(x.Because, w.jobTask(t))
	}
	x.Actions = w.actions
	if RaiseArgs(j) != nil && j.State.Terminal() && j.State != task.JobSucceeded {
		x.Actions = append([]Action{e.shown(raise(j, "raises the budget and continues the tasks that it ended"))},
			slices.DeleteFunc(x.Actions, func(a Action) bool { return a.Verb == VerbRetry && a.Target.Kind == TargetTask })...)
	}
	if !j.State.Terminal() && !j.CancelRequested {
		x.Actions = append(x.Actions, e.shown(Action{Verb: VerbCancel, Target: Target{TargetJob, j.ID.String()}, Effect: "cancels the whole job"}))
	}
	return x, w.missing
}

// severity orders the tasks that decide the state of a job: higher values come first.
func (c Clock) severity(t *task.Task) int {
	if c.gone(t) != "" {
		return 3
	}
	return slices.Index([]task.State{task.Cancelled, task.Failed, task.Blocked}, t.State)
}

func (w *walk) jobTask(t *task.Task) Cause {
	h, _ := w.history(t.ID)
	if h == nil { // not read yet
		h = &store.History{Task: *t}
	}
	said := "Task " + Label(&h.Task) + " " + w.TaskState(h)
	if Retrying(h.Task.State, h.Task.Waiting) && h.Task.Error != nil && notRun(h) == nil {
		said += ": " + headline(h.Task.Error)
	}
	c := Cause{Kind: CauseTask, TaskID: t.ID, State: h.Task.State, Sentence: text.Stop(said)}
	if w.seen[t.ID] {
		return c
	}
	w.seen[t.ID] = true
	// Depth 2, as for the need of a task: only actions that help the job are listed.
	c.Because = w.causes(h, Short(&h.Task), 2)
	return c
}

// decisive returns the tasks that decide the state of a job: those that can proceed, those that hold it up, or those
// for which it did not succeed. Failed tasks also count before the job ends.
func decisive(state task.JobState, tasks []task.Task) []*task.Task {
	pick := func(ok func(*task.Task) bool) (some []*task.Task) {
		for i := range tasks {
			if ok(&tasks[i]) {
				some = append(some, &tasks[i])
			}
		}
		return some
	}
	stands := func(t *task.Task) bool { // waits for no other task
		return !t.State.Terminal() && !t.Waiting.OnTasks()
	}
	wrong := func(t *task.Task) bool { return t.End().Against() && kindOf(t) != task.KindDependencyFailed }
	switch state {
	case task.JobRunning:
		return pick(func(t *task.Task) bool {
			return stands(t) || wrong(t) || task.Movable(t.State, t.Waiting, t.Join, !t.ReadyAt.IsZero())
		})
	case task.JobBlocked:
		stuck := pick(stands)
		if len(stuck) == 0 {
			stuck = pick(func(t *task.Task) bool { return !t.State.Terminal() })
		}
		return append(stuck, pick(wrong)...)
	case task.JobFailed, task.JobCancelled:
		roots := pick(func(t *task.Task) bool {
			return wrong(t) && !(t.State == task.Cancelled && kindOf(t) == task.KindBudget)
		})
		if len(roots) == 0 { // the task that used up the budget succeeded
			roots = pick(wrong)
		}
		if len(roots) == 0 {
			roots = pick(func(t *task.Task) bool { return t.End().Against() })
		}
		return roots
	}
	return nil
}

// JobState returns the end of a sentence that begins with the job, with the counts and words of [JobResult]. It has
// no full stop.
func (c Clock) JobState(j *task.Job, tasks []task.Task) string {
	n, lost := j.Counters, lossWords(countOf(tasks))
	if lost != "" {
		lost = "; " + lost
	}
	all := text.Plural(n.Total, "task")
	switch j.State {
	case task.JobRunning:
		return fmt.Sprintf("is running: %d of its %s have not ended, %d of them can go on without help%s", n.Unfinished, all, n.Movable, lost)
	case task.JobBlocked:
		return fmt.Sprintf("is blocked: %d of its %s have not ended, and none of them can go on without a person%s", n.Unfinished, all, lost)
	case task.JobSucceeded:
		if n.Succeeded == n.Total {
			return fmt.Sprintf("succeeded %s, with its %s", c.When(j.FinishedAt), all)
		}
		said := fmt.Sprintf("succeeded %s: %d of its %s succeeded", c.When(j.FinishedAt), n.Succeeded, all) + allowedOf(n)
		if n.Succeeded+n.Allowed < n.Total {
			said += ", the others were not needed"
		}
		return said
	case task.JobFailed:
		_, detail := jobDetail(j, tasks)
		return fmt.Sprintf("failed %s: %s", c.When(j.FinishedAt), detail)
	}
	_, detail := jobDetail(j, tasks)
	return fmt.Sprintf("was cancelled %s%s; %s", c.When(j.FinishedAt), By(j.CancelBy, j.CancelReason), detail)
}

// whichAllowed follows a failure that does not count against the job.
const whichAllowed = ", which the job allows"

// allowedOf counts the failures that a job allows; "" if there are no such failures.
func allowedOf(n task.JobCounters) string {
	if n.Allowed == 0 {
		return ""
	}
	return fmt.Sprintf(", %d failed%s", n.Allowed, whichAllowed)
}

// Allowed returns a suffix for a task's state if its job allows the failure, else "".
func Allowed(t *task.Task) string {
	if t.End().Allowed() {
		return whichAllowed
	}
	return ""
}

func (c Clock) jobNotes(j *task.Job, tasks []task.Task) []string {
	var notes []string
	if j.CancelRequested && !j.State.Terminal() {
		notes = append(notes, "It was asked to cancel"+By(j.CancelBy, j.CancelReason)+": what runs still has to end.")
	}
	if !j.DeadlineAt.IsZero() && !j.State.Terminal() {
		format := "What has not ended %s, its deadline, is cancelled."
		if c.Passed(j.DeadlineAt) {
			format = "Its deadline passed %s: a worker that is up cancels what has not ended."
		}
		notes = append(notes, fmt.Sprintf(format, c.When(j.DeadlineAt)))
	}
	if note := c.budgetNote(j); note != "" {
		notes = append(notes, note)
	}
	var waiting, gone []string
	for i := range tasks {
		switch t := &tasks[i]; {
		case t.State == task.Pending && t.Waiting == task.WaitDeps:
			waiting = append(waiting, t.Node)
		case t.State == task.Cancelled && kindOf(t) == task.KindDependencyFailed:
			gone = append(gone, t.Node)
		}
	}
	if len(waiting) > 0 {
		notes = append(notes, "Waiting for others of its tasks: "+quoted(waiting)+".")
	}
	if len(gone) > 0 {
		notes = append(notes, "Cancelled because of what they need: "+quoted(gone)+".")
	}
	return notes
}

// countOf counts the tasks of a job.
func countOf(tasks []task.Task) *Tally {
	var n Tally
	for i := range tasks {
		t := &tasks[i]
		n.Add(t.End(), t.Waiting)
	}
	return &n
}

// lossWords counts the tasks that did not succeed, in the words of every view: "1 failed, 2 were cancelled".
func lossWords(n *Tally) string {
	var parts []string
	if n.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", n.Failed))
	}
	return strings.Join(append(parts, cancelWords(n)...), ", ")
}

func cancelWords(n *Tally) (parts []string) {
	if n.Cancelled > 0 {
		parts = append(parts, counted(n.Cancelled, "was cancelled", "were cancelled"))
	}
	if n.Allowed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed%s", n.Allowed, whichAllowed))
	}
	if n.NotNeeded > 0 {
		parts = append(parts, counted(n.NotNeeded, "was not needed", "were not needed"))
	}
	return parts
}

// JobResult describes the end or the progress of a job in one sentence. state is the verb ("failed after"), which a
// view may colour. detail follows the elapsed time ("1 of 7 tasks failed, 2 were cancelled").
func JobResult(j *task.Job, tasks []task.Task) (state, detail string) {
	state, detail = jobDetail(j, tasks)
	if j.State == task.JobCancelled {
		if by := Who(j.CancelBy, j.CancelReason); by != "" {
			detail += fmt.Sprintf(" (%s)", text.OneLine(by, 2*MaxNote))
		}
	}
	return state, detail
}

// jobDetail is [JobResult] without the actor who cancelled the job.
func jobDetail(j *task.Job, tasks []task.Task) (state, detail string) {
	n := countOf(tasks)
	all := text.Plural(n.Total, "task")
	rest := n.Total - n.Done()
	var parts []string
	some := func(count int, one, many string) {
		if count > 0 {
			parts = append(parts, counted(count, one, many))
		}
	}
	switch j.State {
	case task.JobSucceeded:
		if state = "succeeded in"; n.NotNeeded+n.Allowed == 0 {
			return state, all
		}
		some(n.Succeeded, "succeeded", "succeeded")
	case task.JobFailed:
		state = "failed after"
		some(n.Failed, "failed", "failed")
	case task.JobCancelled:
		state = "was cancelled after"
		some(n.Succeeded, "succeeded", "succeeded")
		some(n.Failed, "failed", "failed")
	case task.JobBlocked:
		state = "is blocked after"
		some(n.Blocked, "waits for a person", "wait for a person")
		some(n.Failed, "failed", "failed")
		some(rest-n.Blocked, "is left", "are left")
	default:
		state = "is not finished after"
		some(n.Succeeded, "succeeded", "succeeded")
		some(n.Failed, "failed", "failed")
		some(rest, "is left", "are left")
	}
	parts = append(parts, cancelWords(n)...)
	if len(parts) > 0 { // "1 of 7 tasks failed, 2 were cancelled"
		count, verb, _ := strings.Cut(parts[0], " ")
		parts[0] = fmt.Sprintf("%s of %s %s", count, all, verb)
	}
	return state, strings.Join(parts, ", ")
}
