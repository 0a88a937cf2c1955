package weaver

import (
	"fmt"
	"slices"

	"github.com/goweaver/weaver/task"
)

// Undoes makes the task the undo of another task of the job. It runs when all others have ended and
// the job went wrong: a task ended against it, or it was cancelled. It then runs if the other task has
// begun, whatever its end; otherwise it is cancelled with error kind not_needed, which does not count
// against the job. Dependents of the other task are undone first.
//
// Its handler only runs the undo, and may run more than once. It is retried for 24 h, after 1 s, 2 s,
// … up to 1 min; then it fails with the kind undo_failed, and the needs of the other task are not
// undone: see [github.com/goweaver/weaver/task.UndoPhase]. No cancel, deadline or budget of the job
// ends it, and its attempts do not count. It calls no Step, Sleep, Call or Ask.
//
// It has no needs of its own. Tasks that need it (IfDone) wait for the undo: they are not undone, and
// their failure undoes no task. Once an undo of a job has begun, its tasks are retried with KeepSteps
// only: submit the job again.
func Undoes(other *Node) NodeOption {
	return nodeOption(func(n *Node) {
		switch {
		case other == nil:
			n.job.problems = append(n.job.problems, fmt.Errorf("%q undoes a nil node", n.name))
		case other.job != n.job:
			n.job.problems = append(n.job.problems, fmt.Errorf("%q undoes %q, which belongs to another job", n.name, other.name))
		default:
			n.undoes = other.name
		}
	})
}

// maxUndoEdges is the maximum number of needs of all undo tasks of a job together: each needs all
// other tasks.
const maxUndoEdges = 200_000

// allNeeds returns the needs of each node, including those of undo tasks.
func (j *Job) allNeeds(problems *[]error) [][]need {
	all := make([][]need, len(j.nodes))
	undoOf := make(map[string]string) // names of undo tasks, by the task they undo
	for i, n := range j.nodes {
		if all[i] = n.needs; n.undoes == "" {
			continue
		}
		other := j.byName[n.undoes]
		switch again := undoOf[n.undoes]; {
		case other == nil:
			*problems = append(*problems, fmt.Errorf("%q undoes %q, which is not in the job", n.name, n.undoes))
		case other.undoes != "":
			*problems = append(*problems, fmt.Errorf("%q undoes %q, which is an undo itself", n.name, n.undoes))
		case again != "":
			*problems = append(*problems, fmt.Errorf("%q and %q both undo %q: keep one of them", again, n.name, n.undoes))
		case len(n.needs) > 0:
			*problems = append(*problems, fmt.Errorf("%q undoes %q and has needs: an undo runs when all other tasks have ended", n.name, n.undoes))
		case n.draft.options().AllowFailure:
			*problems = append(*problems, fmt.Errorf("%q undoes %q and has AllowFailure: an undo that was given up has to be seen to", n.name, n.undoes))
		default:
			undoOf[n.undoes] = n.name
		}
	}
	if len(undoOf) == 0 {
		return all
	}
	w := undoWiring{undoOf: undoOf, dependents: make(map[string][]string), after: make(map[string]bool)}
	for _, n := range j.nodes {
		for _, nd := range n.needs {
			w.dependents[nd.name] = append(w.dependents[nd.name], n.name)
		}
	}
	for _, n := range j.nodes {
		if undoOf[n.undoes] == n.name {
			w.markAfter(n.name)
		}
	}
	edges := 0
	for i, n := range j.nodes {
		if undoOf[n.undoes] != n.name {
			continue
		}
		if w.after[n.undoes] {
			*problems = append(*problems, fmt.Errorf("%q undoes %q, which runs after an undo", n.name, n.undoes))
			continue
		}
		all[i] = w.needs(j, n.undoes)
		if edges += len(all[i]); edges > maxUndoEdges {
			*problems = append(*problems, fmt.Errorf("the undo tasks of the job need more than %d tasks together: give fewer tasks an undo of their own", maxUndoEdges))
			return all
		}
	}
	return all
}

// undoWiring computes the needs of a job's undo tasks.
type undoWiring struct {
	undoOf     map[string]string   // names of undo tasks, by the task they undo
	dependents map[string][]string // of each node
	after      map[string]bool     // undo tasks, and tasks that run after one
}

// markAfter marks a node and the tasks that run after it.
func (w *undoWiring) markAfter(name string) {
	for open := []string{name}; len(open) > 0; open = open[1:] {
		if !w.after[open[0]] {
			w.after[open[0]] = true
			open = append(open, w.dependents[open[0]]...)
		}
	}
}

// needs returns the needs of a node's undo: all tasks that do not run after an undo, and the undos of
// the node's dependents.
func (w *undoWiring) needs(j *Job, undone string) []need {
	beyond := map[string]bool{undone: true} // its direct and indirect dependents
	var undos []need
	for open := []string{undone}; len(open) > 0; open = open[1:] {
		for _, name := range w.dependents[open[0]] {
			if beyond[name] || w.after[name] {
				continue
			}
			beyond[name] = true
			open = append(open, name)
			if undo := w.undoOf[name]; undo != "" {
				undos = append(undos, need{undo, task.OnUndone})
			}
		}
	}
	list := make([]need, 0, len(j.nodes))
	for _, n := range j.nodes {
		switch {
		case w.after[n.name]:
		case n.name == undone:
			list = append(list, need{n.name, task.OnUndo})
		case beyond[n.name]:
			list = append(list, need{n.name, task.OnUndone})
		default:
			list = append(list, need{n.name, task.OnDone})
		}
	}
	return slices.Concat(list, undos)
}
