package propagate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func id(n byte) task.ID { return task.ID{n} }

// graph is an Ops over a few dependents, with a log of its calls.
type graph struct {
	edges []propagate.Edge
	open  map[task.ID]rules.Waits
	group []propagate.Edge // of the kind failed
	ready map[task.ID]time.Time
	joins map[task.ID]task.Join
	left  map[byte]int     // children of the call of a task
	calls bool             // all dependents have calls
	wrong []propagate.Edge // to children that did not succeed
	fail  string           // the operation that fails
	log   []string
	jobs  map[task.ID]task.JobCounters
	ended map[task.ID]*task.Error

	undo []rules.UndoNeed // of all dependents, which are then undo tasks

	limit      int
	more       []string         // keys with more waiters
	unmarked   []propagate.Edge // edges that a chore has not marked yet
	cancelling bool
}

func (g *graph) note(op, format string, args ...any) error {
	g.log = append(g.log, op+" "+fmt.Sprintf(format, args...))
	if op == g.fail {
		return errBroken
	}
	return nil
}

// look is note for operations that only read.
func (g *graph) look(op string) error {
	if op == g.fail {
		return g.note(op, "")
	}
	return nil
}

var errBroken = errors.New("broken")

func (g *graph) WakeKeys(keys []string) ([]string, error) { return g.more, g.note("wake", "%v", keys) }

func (g *graph) AddChores(keys []string, ended []propagate.Ended) error {
	var list []string
	for _, e := range ended {
		list = append(list, fmt.Sprint(e.ID[0]))
	}
	return g.note("chores", "%v [%s]", keys, strings.Join(list, " "))
}

func (g *graph) Unmarked(ids []task.ID) (edges []propagate.Edge, err error) {
	for _, e := range g.unmarked {
		if slices.Contains(ids, e.Dependent) {
			edges = append(edges, e)
		}
	}
	return edges, g.look("unmarked")
}

func (g *graph) UndoNeeds(id, _ task.ID) ([]rules.UndoNeed, bool, error) {
	return g.undo, false, g.note("undo needs of", "%d", id[0])
}

func (g *graph) IfFailed(ids []task.ID) (edges []propagate.Edge, err error) {
	for _, e := range g.group {
		if slices.Contains(ids, e.Dependent) {
			edges = append(edges, e)
		}
	}
	return edges, g.note("group", "%d", len(ids))
}

func (g *graph) Cancelling(jobs []task.ID) ([]bool, error) {
	is := make([]bool, len(jobs))
	for i := range is {
		is[i] = g.cancelling
	}
	return is, g.look("cancelling")
}

func (g *graph) InsertDispatch(rows []store.DispatchRow) error {
	var list []string
	for _, r := range rows {
		list = append(list, fmt.Sprintf("%d in %v", r.Task[0], r.AvailableAt.Sub(now)))
	}
	return g.note("dispatch", "%s", strings.Join(list, ", "))
}

func (g *graph) MarkEdges(ended []propagate.Ended, limit int) (marked []propagate.Edge, rest []propagate.Ended, err error) {
	var list []string
	for _, e := range ended {
		list = append(list, fmt.Sprint(e.ID[0]))
		more := false
		g.edges = slices.DeleteFunc(g.edges, func(edge propagate.Edge) bool {
			if edge.Need != e.ID {
				return false
			}
			if more = len(marked) == limit; more {
				return false
			}
			edge.End = e.End
			marked = append(marked, edge)
			return true
		})
		if more {
			rest = append(rest, e)
		}
	}
	return marked, rest, g.note("mark", "%s", strings.Join(list, ", "))
}

func (g *graph) LowerNeeds(marked []propagate.Marked) (deps []propagate.Dependent, err error) {
	var list []string
	for _, m := range marked {
		list = append(list, fmt.Sprintf("%d by %d", m.ID[0], m.All+m.IfFailed))
		if _, ok := g.open[m.ID]; !ok || g.ended[m.ID] != nil {
			continue // it does not wait for needs any more
		}
		g.open[m.ID] = g.open[m.ID].After(m.Marked)
		deps = append(deps, propagate.Dependent{
			ID: m.ID, Waits: g.open[m.ID], ReadyAt: g.ready[m.ID], Job: job, Needed: true, Dispatch: store.DispatchRow{Task: m.ID},
			Join: g.joins[m.ID], Calls: g.calls,
		})
		if g.undo != nil {
			deps[len(deps)-1].Undoable.Phase = &task.UndoPhase{EndsAs: task.Succeeded}
		}
	}
	return deps, g.note("lower", "%s", strings.Join(list, ", "))
}

func (g *graph) LowerCalls(ended []propagate.CallEnds) (woken []propagate.Woken, err error) {
	var list []string
	for _, c := range ended {
		list = append(list, fmt.Sprintf("%d %s by %d", c.Task[0], c.Step, c.Children))
		if g.left[c.Task[0]] -= c.Children; g.left[c.Task[0]] == 0 {
			was := propagate.Unfinished(task.Pending, task.WaitChildren)
			woken = append(woken, propagate.Woken{Job: job, Was: was, Dispatch: store.DispatchRow{Task: c.Task, AvailableAt: now}})
		}
	}
	return woken, g.note("calls", "%s", strings.Join(list, ", "))
}

func (g *graph) MakeReady(tasks []propagate.Ready) error {
	var list []string
	for _, r := range tasks {
		list = append(list, fmt.Sprintf("%d %s/%s", r.ID[0], r.State, r.Waiting))
	}
	return g.note("ready", "%s", strings.Join(list, ", "))
}

func (g *graph) WrongChildren(parents []task.ID) (edges []propagate.Edge, err error) {
	for i := range g.wrong {
		if slices.Contains(parents, g.wrong[i].Dependent) {
			edges = append(edges, g.wrong[i])
		}
	}
	return edges, g.note("wrong children", "%d", len(edges))
}

func (g *graph) Complete(tasks []propagate.Joined) error {
	var list []string
	for _, j := range tasks {
		g.ended[j.ID] = j.Failure
		list = append(list, fmt.Sprintf("%d %v", j.ID[0], j.Failure == nil))
	}
	return g.note("complete", "%s", strings.Join(list, ", "))
}

func (g *graph) Nodes(ids []task.ID) ([]string, error) {
	return make([]string, len(ids)), g.note("nodes", "%d", len(ids))
}

func (g *graph) CancelDependents(tasks []propagate.Unmet) error {
	var list []string
	for _, u := range tasks {
		g.ended[u.ID] = u.Failure
		list = append(list, fmt.Sprintf("%d %s", u.ID[0], u.Failure.Kind))
	}
	return g.note("cancel", "%s", strings.Join(list, ", "))
}

func (g *graph) BeginUndo(tasks []propagate.Undoing) error {
	var list []string
	for _, u := range tasks {
		list = append(list, fmt.Sprintf("%d %s", u.ID[0], u.To.Undo.EndsAs))
	}
	return g.note("undo", "%s", strings.Join(list, ", "))
}

func (g *graph) CountJobs(changes []propagate.JobChange) ([]propagate.JobState, []task.ID, error) {
	var moved []propagate.JobState
	for _, c := range changes {
		g.jobs[c.Job] = g.jobs[c.Job].Add(c.Change)
		moved = append(moved, propagate.JobState{Job: c.Job, State: task.JobRunning})
	}
	return moved, nil, g.note("count", "%d", len(changes))
}

// newGraph returns a graph of success edges from a need to its dependent.
func newGraph(edges ...[2]byte) *graph {
	g := &graph{limit: 100, open: map[task.ID]rules.Waits{}, ready: map[task.ID]time.Time{}, jobs: map[task.ID]task.JobCounters{}, ended: map[task.ID]*task.Error{}}
	for _, e := range edges {
		g.add(e[0], e[1], task.OnSuccess)
	}
	return g
}

// add adds an edge.
func (g *graph) add(need, dependent byte, kind task.EdgeKind) {
	e := propagate.Edge{Dependent: id(dependent), EndedNeed: rules.EndedNeed{Need: id(need), Kind: kind}}
	g.edges = append(g.edges, e)
	if kind == task.OnFailed {
		g.group = append(g.group, e)
	}
	var list []task.Edge
	for _, e := range g.edges {
		if e.Dependent == id(dependent) {
			list = append(list, task.Edge{Kind: e.Kind})
		}
	}
	g.open[id(dependent)] = rules.FirstWaits(list)
}

func (g *graph) run(t *testing.T, b *propagate.Batch, want ...string) propagate.Result {
	t.Helper()
	got, err := b.Run(g, now, g.limit)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(g.log, want) {
		t.Errorf("operations:\n%s\nwant:\n%s", strings.Join(g.log, "\n"), strings.Join(want, "\n"))
	}
	return got
}

// jobsOf returns the IDs of jobs.
func jobsOf(list []propagate.JobState) (ids []task.ID) {
	for _, j := range list {
		ids = append(ids, j.Job)
	}
	return ids
}
