package view

import (
	"strings"

	"github.com/goweaver/weaver/task"
)

// forest is the drawing order of a job's tasks: each task under the deepest of its
// needs, or under the task that called it. Other needs are not drawn.
type forest struct {
	order []*node       // every task, a parent before its subtree
	at    map[*node]int // place in order
	last  []int         // place of the last task in the subtree of the task at a place
	level map[*node]int // length of the longest chain of tasks before it
}

func newForest(nodes []*node, byID map[task.ID]*node) *forest {
	under := make(map[*node][]*node, len(nodes))
	var roots []*node
	parents, level := deepest(nodes)
	for _, n := range nodes {
		parent := parents[n]
		if parent == nil {
			parent = byID[n.parent]
		}
		if parent == nil || parent == n {
			roots = append(roots, n)
			continue
		}
		under[parent] = append(under[parent], n)
	}
	f := &forest{at: make(map[*node]int, len(nodes)), last: make([]int, len(nodes)), level: level}
	for _, root := range roots {
		f.plant(root, under)
	}
	for _, n := range nodes { // in a cycle, which no stored job has
		if _, ok := f.at[n]; !ok {
			f.plant(n, nil)
		}
	}
	return f
}

// plant appends a tree. The stack is explicit: a chain of 100,000 tasks must not
// overflow the goroutine's stack.
func (f *forest) plant(root *node, under map[*node][]*node) {
	type frame struct {
		node *node
		next int
	}
	put := func(n *node) frame {
		f.at[n] = len(f.order)
		f.order = append(f.order, n)
		return frame{node: n}
	}
	stack := []frame{put(root)}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if children := under[top.node]; top.next < len(children) {
			top.next++
			stack = append(stack, put(children[top.next-1]))
			continue
		}
		f.last[f.at[top.node]] = len(f.order) - 1
		stack = stack[:len(stack)-1]
	}
}

// deepest returns, by task, the first of the needs with the highest level, and the
// levels.
func deepest(nodes []*node) (parents map[*node]*node, level map[*node]int) {
	open := make(map[*node]int, len(nodes))
	after := make(map[*node][]*node, len(nodes))
	var due []*node
	for _, n := range nodes {
		open[n] = len(n.needs)
		for _, need := range n.needs {
			after[need] = append(after[need], n)
		}
		if open[n] == 0 {
			due = append(due, n)
		}
	}
	level = make(map[*node]int, len(nodes))
	parents = make(map[*node]*node, len(nodes))
	for len(due) > 0 {
		n := due[0]
		due = due[1:]
		for _, need := range n.needs {
			if l := level[need] + 1; l > level[n] {
				level[n], parents[n] = l, need
			}
		}
		for _, next := range after[n] {
			if open[next]--; open[next] == 0 {
				due = append(due, next)
			}
		}
	}
	return parents, level
}

// branches returns the line prefixes of some tasks, in the forest's order. A task
// without its parent hangs on the nearest ancestor present. "…" replaces the first
// levels beyond limit (at least 1).
func (f *forest) branches(shown []*node, limit int) []string {
	parent := make([]int, len(shown))
	lastChild := make([]int, len(shown))
	depth := make([]int, len(shown))
	var above []int // path to the current task
	for i, n := range shown {
		for len(above) > 0 && f.last[f.at[shown[above[len(above)-1]]]] < f.at[n] {
			above = above[:len(above)-1]
		}
		parent[i], depth[i] = -1, len(above)
		if len(above) > 0 {
			parent[i] = above[len(above)-1]
			lastChild[parent[i]] = i
		}
		above = append(above, i)
	}
	lines := make([]string, len(shown))
	for i := range shown {
		if depth[i] == 0 {
			continue
		}
		levels := min(depth[i], limit)
		parts := make([]string, levels)
		parts[levels-1] = "├─ "
		if lastChild[parent[i]] == i {
			parts[levels-1] = "└─ "
		}
		at := parent[i]
		for k := levels - 2; k >= 0; k-- {
			parts[k] = "│  "
			if lastChild[parent[at]] == at {
				parts[k] = "   "
			}
			at = parent[at]
		}
		if depth[i] > limit {
			parts[0] = "…  "
		}
		lines[i] = strings.Join(parts, "")
	}
	return lines
}
