package task

import "strings"

// EdgeKind says which end of the needed task lets the other one run.
type EdgeKind string

// The kinds of edges.
const (
	OnSuccess EdgeKind = "success"
	OnFailed  EdgeKind = "failed"
	OnDone    EdgeKind = "done"
)

// Edge says that a task waits for another one.
type Edge struct {
	Needs ID       `json:"depends_on_task_id"`
	Kind  EdgeKind `json:"kind"`
}

// Holds reports whether an edge of this kind is satisfied by a needed task
// that ended in state s; ok is false while s is not terminal.
func (k EdgeKind) Holds(s State) (holds, ok bool) {
	if !s.Terminal() {
		return false, false
	}
	switch k {
	case OnFailed:
		return s == Failed, true
	case OnDone:
		return true, true
	}
	return s == Succeeded, true
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
