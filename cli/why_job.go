package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// job explains a job by the tasks that decide its state.
func (e *explainer) job(ctx context.Context, st *weaver.JobStatus) (*explanation, error) {
	x := &explanation{
		Kind: "job", ID: st.ID, Name: st.Name, State: string(st.State),
		Summary: text.Stop("It " + e.clock.jobStanding(&st.JobInfo)),
		Notes:   e.jobNotes(st),
	}
	tasks := decisive(st)
	for i := range tasks {
		if i == maxCauses {
			x.Because = append(x.Because, cause{Kind: causeMore, Sentence: fmt.Sprintf("%s more like these: `%s` lists them.", text.Plural(len(tasks)-i, "task"), e.command("job", "show", st.ID.String()))})
			break
		}
		c, err := e.jobTask(ctx, &tasks[i])
		if err != nil {
			return nil, err
		}
		x.Because = append(x.Because, c)
	}
	x.Actions = e.actions
	if !st.State.Terminal() && !st.CancelRequested {
		x.Actions = append(x.Actions, action{e.command("job", "cancel", st.ID.String()), "gives the whole job up"})
	}
	return x, nil
}

func (e *explainer) jobTask(ctx context.Context, t *task.Task) (cause, error) {
	h, err := e.read.History(ctx, t.ID)
	if err != nil {
		return cause{}, err
	}
	c := cause{Kind: causeTask, TaskID: t.ID, State: h.Task.State, Sentence: text.Stop("Task " + label(&h.Task) + " " + e.clock.standing(&h))}
	if e.seen[t.ID] {
		return c, nil
	}
	e.seen[t.ID] = true
	// Two, as for the need of a task: what is offered serves the job.
	c.Because, err = e.causes(ctx, &h, short(&h.Task), 2)
	return c, err
}

// decisive picks the tasks that make a job what it is: those that move, those
// that hold it up, or those that it ended badly for.
func decisive(st *weaver.JobStatus) []task.Task {
	pick := func(ok func(*task.Task) bool) []task.Task {
		return slices.DeleteFunc(slices.Clone(st.Tasks), func(t task.Task) bool { return !ok(&t) })
	}
	switch st.State {
	case task.JobRunning:
		return pick(func(t *task.Task) bool { return task.Movable(t.State, t.Waiting) })
	case task.JobBlocked:
		stuck := pick(func(t *task.Task) bool { return !t.State.Terminal() && t.Waiting != task.WaitDeps })
		if len(stuck) == 0 {
			stuck = pick(func(t *task.Task) bool { return !t.State.Terminal() })
		}
		return stuck
	case task.JobFailed, task.JobCancelled:
		roots := pick(func(t *task.Task) bool {
			return task.Against(t.State, kindOf(t)) && kindOf(t) != task.KindDependencyFailed
		})
		if len(roots) == 0 {
			roots = pick(func(t *task.Task) bool { return task.Against(t.State, kindOf(t)) })
		}
		return roots
	}
	return nil
}

func kindOf(t *task.Task) task.ErrorKind {
	if t.Error == nil {
		return task.KindNone
	}
	return t.Error.Kind
}

// jobStanding is a job's state as the end of a sentence.
func (c clock) jobStanding(j *task.Job) string {
	n := j.Counters
	switch j.State {
	case task.JobRunning:
		return fmt.Sprintf("is running: %d of its %s have not ended, %d of them can go on without help", n.Unfinished, text.Plural(n.Total, "task"), n.Movable)
	case task.JobBlocked:
		return fmt.Sprintf("is blocked: %d of its %s have not ended, and none of them can go on without a person", n.Unfinished, text.Plural(n.Total, "task"))
	case task.JobSucceeded:
		if n.Succeeded == n.Total {
			return fmt.Sprintf("succeeded %s, with its %s", c.when(j.FinishedAt), text.Plural(n.Total, "task"))
		}
		return fmt.Sprintf("succeeded %s: %d of its %s succeeded, the others were not needed", c.when(j.FinishedAt), n.Succeeded, text.Plural(n.Total, "task"))
	case task.JobFailed:
		return fmt.Sprintf("failed %s: %d of its %s failed or were cancelled, %d succeeded", c.when(j.FinishedAt), n.Failed, text.Plural(n.Total, "task"), n.Succeeded)
	}
	return fmt.Sprintf("was cancelled %s%s; %d of its %s had succeeded", c.when(j.FinishedAt), by(j.CancelBy, j.CancelReason), n.Succeeded, text.Plural(n.Total, "task"))
}

func (e *explainer) jobNotes(st *weaver.JobStatus) []string {
	var notes []string
	if st.CancelRequested && !st.State.Terminal() {
		notes = append(notes, "It was asked to cancel"+by(st.CancelBy, st.CancelReason)+": what runs still has to end.")
	}
	if !st.DeadlineAt.IsZero() && !st.State.Terminal() {
		text := "What has not ended %s, its deadline, is cancelled."
		if e.clock.passed(st.DeadlineAt) {
			text = "Its deadline passed %s: a worker that is up cancels what has not ended."
		}
		notes = append(notes, fmt.Sprintf(text, e.clock.when(st.DeadlineAt)))
	}
	var waiting, gone []string
	for _, t := range st.Tasks {
		switch {
		case t.State == task.Pending && t.Waiting == task.WaitDeps:
			waiting = append(waiting, t.Node)
		case kindOf(&t) == task.KindDependencyFailed:
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
