package task

import "strings"

// EdgeKind is the outcome of the needed task that satisfies an edge.
type EdgeKind string

// The kinds of edges. A task runs when all its edges of the kinds success and done are satisfied, and at least one of
// its edges of the kind failed, if it has any.
const (
	OnSuccess EdgeKind = "success" // it succeeded, or its failure is allowed ([End.Allowed])
	OnFailed  EdgeKind = "failed"  // it went wrong ([End.WentWrong])
	OnDone    EdgeKind = "done"    // it ended

	// The edges of an undo task of a job. The task runs when all its needs have ended and the job went wrong. The
	// edge is not satisfied if an undo was given up, because the remaining effect may depend on the needed task.
	OnUndo   EdgeKind = "undo"   // to the undone task, after its end
	OnUndone EdgeKind = "undone" // to a task that needs the undone task, or to the undo of such a task
)

// Edge makes a task wait for another task.
type Edge struct {
	Needs ID       `json:"depends_on_task_id"`
	Kind  EdgeKind `json:"kind"`
}

// End describes how a task ended, as far as its dependents and the counters of its job see it.
type End struct {
	State        State     // not terminal: the task has not ended
	Kind         ErrorKind // of the task's error
	AllowFailure bool      // [New.AllowFailure]
}

// WentWrong reports whether the task failed or could not run: cancelled because of a need, a deadline or a budget. A
// cancel by a person does not count.
func (e End) WentWrong() bool {
	switch e.State {
	case Failed:
		return true
	case Cancelled:
		return e.Kind == KindDependencyFailed || e.Kind == KindDeadline || e.Kind == KindBudget
	}
	return false
}

// Allowed reports whether the task itself went wrong and is allowed to fail. Such a failure does not count against
// the job and satisfies edges of the kind success. A task cancelled because of a need has no failure of its own.
func (e End) Allowed() bool {
	return e.AllowFailure && e.WentWrong() && (e.State == Failed || e.Kind != KindDependencyFailed)
}

// Against reports whether the end prevents the success of the task's job.
func (e End) Against() bool {
	return (e.State == Failed || e.State == Cancelled && e.Kind != KindNotNeeded) && !e.Allowed()
}

// Holds reports whether the end of the needed task satisfies an edge of this kind. The result ended is false while
// the state of the needed task is not terminal.
func (k EdgeKind) Holds(e End) (holds, ended bool) {
	if !e.State.Terminal() {
		return false, false
	}
	switch k {
	case OnFailed:
		return e.WentWrong(), true
	case OnDone:
		return true, true
	case OnUndo, OnUndone:
		return e.Kind != KindUndoFailed, true
	}
	return e.State == Succeeded || e.Allowed(), true
}

// FindCycle returns the nodes of one cycle of the graph, with the first node repeated at the end, or nil. needs maps
// each node to the nodes that it waits for. order fixes which cycle is found.
func FindCycle(order []string, needs map[string][]string) []string {
	const (
		unseen = iota
		open
		done
	)
	mark := make(map[string]int, len(order))
	// The stack is explicit: a chain of 100,000 nodes must not overflow the goroutine's stack.
	type frame struct {
		node string
		next int
	}
	for _, root := range order {
		if mark[root] != unseen {
			continue
		}
		stack := []frame{{node: root}}
		mark[root] = open
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.next == len(needs[top.node]) {
				mark[top.node] = done
				stack = stack[:len(stack)-1]
				continue
			}
			child := needs[top.node][top.next]
			top.next++
			switch mark[child] {
			case unseen:
				mark[child] = open
				stack = append(stack, frame{node: child})
			case open:
				var cycle []string
				for i := len(stack) - 1; i >= 0; i-- {
					cycle = append(cycle, stack[i].node)
					if stack[i].node == child {
						break
					}
				}
				for i, j := 0, len(cycle)-1; i < j; i, j = i+1, j-1 {
					cycle[i], cycle[j] = cycle[j], cycle[i]
				}
				return append(cycle, child)
			}
		}
	}
	return nil
}

// CycleString formats a cycle for display: "a → b → a".
func CycleString(cycle []string) string { return strings.Join(cycle, " → ") }
