package task

import "strings"

// EdgeKind says which end of the needed task lets the other one run.
type EdgeKind string

// The kinds of edges. A task runs when all of its edges of the kinds success and
// done hold, and, if it has some of the kind failed, any one of those.
const (
	OnSuccess EdgeKind = "success" // it succeeded, or failed and may ([End.Allowed])
	OnFailed  EdgeKind = "failed"  // it went wrong ([End.WentWrong])
	OnDone    EdgeKind = "done"    // it ended

	// Of the undo of a task of a job: it runs when all its needs have ended and the job went
	// wrong. It holds unless an undo was given up: what stands then may be what the needed
	// task is for.
	OnUndo   EdgeKind = "undo"   // to the task that it undoes, which has ended
	OnUndone EdgeKind = "undone" // to a task that needs that one, or to the undo of such a task
)

// Edge says that a task waits for another one.
type Edge struct {
	Needs ID       `json:"depends_on_task_id"`
	Kind  EdgeKind `json:"kind"`
}

// End is what the edges towards a task and the counters of its job see of how it
// ended.
type End struct {
	State        State     // not terminal: it has not ended
	Kind         ErrorKind // of its error
	AllowFailure bool      // [New.AllowFailure]
}

// WentWrong reports whether the task failed, or could not run: it was cancelled
// for a need, a deadline or a budget. The cancel of a person is none of these.
func (e End) WentWrong() bool {
	switch e.State {
	case Failed:
		return true
	case Cancelled:
		return e.Kind == KindDependencyFailed || e.Kind == KindDeadline || e.Kind == KindBudget
	}
	return false
}

// Allowed reports whether the task went wrong by itself, and may: that does not
// count against its job, and satisfies edges of the kind success. That a need of
// it went wrong is no failure of its own.
func (e End) Allowed() bool {
	return e.AllowFailure && e.WentWrong() && (e.State == Failed || e.Kind != KindDependencyFailed)
}

// Against reports whether the end keeps the task's job from succeeding.
func (e End) Against() bool {
	return (e.State == Failed || e.State == Cancelled && e.Kind != KindNotNeeded) && !e.Allowed()
}

// Holds reports whether an edge of this kind is satisfied by the end of a needed
// task; ended is false while the task's state is not terminal.
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

// FindCycle returns the nodes of one cycle of the graph, first node repeated
// at the end, or nil. needs maps each node to what it waits for; order fixes
// which cycle is found.
func FindCycle(order []string, needs map[string][]string) []string {
	const (
		unseen = iota
		open
		done
	)
	mark := make(map[string]int, len(order))
	// An explicit stack: a chain of 100,000 nodes must not overflow ours.
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

// CycleString prints a cycle for people: "a → b → a".
func CycleString(cycle []string) string { return strings.Join(cycle, " → ") }
