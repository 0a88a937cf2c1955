package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// RootOf follows the waits of a task, or the cause of its cancellation, to the root: a task that waits for no other
// and ended for no other. It returns the shortest path from a need of t to the root, or nil if no need holds t. Of
// several roots it picks the one that most urgently needs a person. tasks and edges are those of t's job.
func RootOf(t *task.Task, tasks []task.Task, edges []store.GraphEdge) []*task.Task {
	if !held(t) {
		return nil
	}
	byID := make(map[task.ID]*task.Task, len(tasks))
	for i := range tasks {
		byID[tasks[i].ID] = &tasks[i]
	}
	needs := make(map[task.ID][]store.GraphEdge, len(tasks))
	for _, e := range edges {
		needs[e.To] = append(needs[e.To], e)
	}
	from := map[task.ID]*task.Task{t.ID: nil} // predecessor of each task
	var root *task.Task
	for next := []*task.Task{t}; len(next) > 0; next = next[1:] {
		last, at := true, next[0]
		for _, e := range needs[at.ID] {
			n := byID[e.From]
			if n == nil || !holds(at, e, n) {
				continue
			}
			last = false
			if _, seen := from[n.ID]; !seen {
				from[n.ID] = at
				next = append(next, n)
			}
		}
		if last && at != t && (root == nil || urgency(at.State) > urgency(root.State)) {
			root = at
		}
	}
	var path []*task.Task
	for at := root; at != nil && at.ID != t.ID; at = from[at.ID] {
		path = append(path, at)
	}
	slices.Reverse(path)
	return path
}

// held reports whether a task waits for other tasks, or was cancelled or failed because of one.
func held(t *task.Task) bool {
	switch t.State {
	case task.Pending:
		return t.Waiting.OnTasks()
	case task.Cancelled, task.Failed:
		return kindOf(t) == task.KindDependencyFailed
	}
	return false
}

// holds reports whether a task waits for the need of this edge, or ended because of it.
func holds(t *task.Task, e store.GraphEdge, need *task.Task) bool {
	switch {
	case !held(t):
		return false
	case t.State == task.Pending:
		called := t.Waiting == task.WaitChildren && t.Join == task.JoinNone
		return !e.Decided && called == (e.Step != "")
	case t.State == task.Failed: // failed because of a child
		return e.Awaited > 0 && e.Step == "" && need.State.Terminal() && need.State != task.Succeeded
	}
	met, ended := e.Kind.Holds(need.End())
	return ended && !met
}

// rootSentence names the root cause first and then the path to the task: "c5 failed: exit status 1; c299 needs it
// through c298 … c6."
func (c Clock) rootSentence(t *task.Task, path []*task.Task) string {
	if len(path) == 0 {
		return ""
	}
	root, between := path[len(path)-1], path[:len(path)-1]
	return text.Stop(fmt.Sprintf("%s; %s needs it%s", c.rootState(root), plainName(t), through(between)))
}

// maxThrough is the maximum number of intermediate tasks that are named one by one.
const maxThrough = 3

func through(between []*task.Task) string {
	names := make([]string, len(between))
	for i, t := range between {
		names[i] = plainName(t)
	}
	switch n := len(names); {
	case n == 0:
		return ""
	case n <= maxThrough:
		return " through " + strings.Join(names, ", ")
	default:
		return " through " + names[0] + " … " + names[n-1]
	}
}

func plainName(t *task.Task) string { return text.OneLine(cmp.Or(t.Node, t.ID.String()), MaxNote) }

// rootState returns the beginning of a sentence about a root cause, with the first line of its error.
func (c Clock) rootState(t *task.Task) string {
	said := plainName(t) + " "
	switch {
	case t.State == task.Failed:
		return said + "failed: " + headline(t.Error)
	case t.State == task.Cancelled:
		if why := c.Cancelled(t, nil); why != "" {
			return said + "was cancelled: " + why
		}
		return said + "was cancelled"
	case t.State == task.Blocked:
		if why := blockedBy(t, MaxMessage); why != "" {
			return said + "is blocked: " + why
		}
		return said + "is blocked"
	case Retrying(t.State, t.Waiting):
		return said + "waits for its retry, due " + c.When(t.ReadyAt) + ": " + headline(t.Error)
	case held(t):
		return said + Waits(t, nil)
	}
	return said + c.TaskState(&store.History{Task: *t})
}

// headline is [Headline] without the remark that a command wrote nothing.
func headline(e *task.Error) string {
	if e == nil {
		return noError
	}
	return strings.TrimSuffix(Headline(e), "; it wrote nothing")
}

// rootCause returns the root of a wait whose path is too long to list need by need.
func (w *walk) rootCause(path []*task.Task) []Cause {
	h, _ := w.history(path[len(path)-1].ID)
	if h == nil || w.seen[h.Task.ID] { // not read yet, or deleted in between
		return nil
	}
	w.seen[h.Task.ID] = true
	behind := "Behind it"
	if n := len(path) - 2; n > 0 {
		behind += fmt.Sprintf(", after %s,", text.Plural(n, "more task"))
	}
	return []Cause{{
		Kind: CauseNeed, TaskID: h.Task.ID, State: h.Task.State,
		Sentence: text.Stop(fmt.Sprintf("%s is %s, which %s", behind, Label(&h.Task), w.TaskState(h))),
		Because:  w.causes(h, Short(&h.Task), 2),
	}}
}

// jobRoot describes the first task that decides a job's state and counts the others.
func (c Clock) jobRoot(state task.JobState, deciding []*task.Task, tasks []task.Task) string {
	for _, t := range deciding {
		if state == task.JobRunning && (len(c.Gone[t.ID]) > 0 || t.State == task.Blocked) {
			return text.Stop(c.rootState(t))
		}
	}
	if len(deciding) == 0 || state != task.JobFailed && state != task.JobBlocked {
		return ""
	}
	root, more, led := deciding[0], -1, 0
	blocked := state == task.JobBlocked
	for _, t := range deciding {
		if !blocked || !t.State.Terminal() {
			more++
		}
	}
	for i := range tasks {
		if t := &tasks[i]; held(t) && t != root && (!blocked || !t.State.Terminal()) {
			led++
		}
	}
	said := c.rootState(root)
	switch {
	case more > 0 && blocked:
		said += fmt.Sprintf("; beside it %s the job up", counted(more, "more task holds", "more tasks hold"))
	case more > 0:
		said += fmt.Sprintf("; beside it %s", counted(more, "more task failed or was cancelled", "more tasks failed or were cancelled"))
	case led > 0 && blocked:
		said += "; " + counted(led, "task needs it", "tasks need it")
	case led > 0:
		said += "; " + counted(led, "task that needs it was cancelled", "tasks that need it were cancelled")
	}
	if i := slices.IndexFunc(deciding, func(t *task.Task) bool { return t.State.Terminal() }); blocked && i > 0 {
		said += "; " + c.rootState(deciding[i])
	}
	return text.Stop(said)
}

// JobGone names the tasks of a job whose worker processes are dead and the command that continues them. It returns ""
// if no process is known to be dead.
func (c Clock) JobGone(tasks []task.Task) string {
	var names []string
	help := ""
	for i := range tasks {
		if gone := c.gone(&tasks[i]); gone != "" {
			names, help = append(names, plainName(&tasks[i])), gone
		}
	}
	if len(names) == 0 {
		return ""
	}
	more := max(0, len(names)-maxThrough)
	return text.Stop(fmt.Sprintf("%s: %s", listed(names[:len(names)-more], more), help))
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
