package rules

import (
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A large job is stored in parts. The first transaction writes all of its tasks as packed
// drafts and makes the job exist, and each further transaction inserts one part of the tasks.
// No task of the job is claimed before the last part ([store.ChoreEnqueue]).

const (
	// MaxWhole is the largest weight of a job stored in one transaction.
	MaxWhole = 2000
	// MaxPartBytes is the total input size from which on a part is closed.
	MaxPartBytes = 1 << 20
	// MaxDraftBytes is the maximum total input size of a job stored in parts. One transaction
	// writes all drafts, so a larger job gains nothing.
	MaxDraftBytes = 32 << 20
)

// InParts reports whether a submission that weighs more than whole is stored in parts. Tasks
// with keys that decide which tasks are stored are stored in one transaction.
func InParts(sub *store.Submission, whole int) bool {
	if sub.Job == nil || Weight(sub) <= whole {
		return false
	}
	bytes := 0
	for i := range sub.Tasks {
		n := &sub.Tasks[i]
		if n.IdempotencyKey != "" || n.Coalesce {
			return false
		}
		bytes += len(n.Input)
	}
	return bytes <= MaxDraftBytes
}

// Weight returns the cost of inserting a submission, in tasks. An edge costs half as much as a
// task.
func Weight(sub *store.Submission) int {
	edges := 0
	for i := range sub.Tasks {
		edges += len(sub.Tasks[i].Needs)
	}
	return len(sub.Tasks) + edges/2
}

// Part is an element of a part: a task with its first edges, or further edges of a task that
// an earlier element inserts.
type Part struct {
	Task     int // its index in the submission
	From, To int // the range of its needs
	Needed   bool
}

// More reports whether the element has only edges.
func (p *Part) More() bool { return p.From > 0 }

// Parts divides the tasks of a job and their edges into parts of a weight. Each task comes
// before its needs, so that the end of a task finds all of its dependents. Tasks without needs
// come last, in their order. Parts returns nil if the edges name other tasks or form a cycle.
func Parts(tasks []task.New, weight int) (parts [][]Part) {
	order, needed := dependentsFirst(tasks)
	if order == nil {
		return nil
	}
	limit := max(4, 2*weight) // in half tasks
	var now []Part
	halves, bytes := 0, 0
	add := func(p Part, w, b int) {
		if len(now) > 0 && (halves+w > limit || bytes+b > MaxPartBytes) {
			parts, now, halves, bytes = append(parts, now), nil, 0, 0
		}
		now, halves, bytes = append(now, p), halves+w, bytes+b
	}
	for _, i := range order {
		n := len(tasks[i].Needs)
		first := min(n, limit-2)
		add(Part{Task: i, To: first, Needed: needed[i]}, 2+first, len(tasks[i].Input))
		for from := first; from < n; from += limit {
			to := min(n, from+limit)
			add(Part{Task: i, From: from, To: to}, to-from, 0)
		}
	}
	if len(now) > 0 {
		parts = append(parts, now)
	}
	return parts
}

// dependentsFirst returns the indexes of tasks, each before its needs, and which tasks are
// needed. It returns nil if the edges name other tasks or form a cycle.
func dependentsFirst(tasks []task.New) (order []int, needed []bool) {
	index := make(map[task.ID]int, len(tasks))
	for i := range tasks {
		index[tasks[i].ID] = i
	}
	dependents, needed := make([]int, len(tasks)), make([]bool, len(tasks))
	for i := range tasks {
		for _, e := range tasks[i].Needs {
			at, known := index[e.Needs]
			if !known {
				return nil, nil
			}
			dependents[at]++
			needed[at] = true
		}
	}
	var roots []int
	order = make([]int, 0, len(tasks))
	for i := range tasks {
		switch {
		case len(tasks[i].Needs) == 0:
			roots = append(roots, i)
		case dependents[i] == 0:
			order = append(order, i)
		}
	}
	for at := 0; at < len(order); at++ {
		for _, e := range tasks[order[at]].Needs {
			i := index[e.Needs]
			if dependents[i]--; dependents[i] == 0 && len(tasks[i].Needs) > 0 {
				order = append(order, i)
			}
		}
	}
	if order = slices.Concat(order, roots); len(order) < len(tasks) {
		return nil, nil
	}
	return order, needed
}

// Target returns the task or the job that a command is about, or zero.
func Target(cmd store.Command) (id task.ID, job bool) {
	switch cmd := cmd.(type) {
	case store.CancelJob:
		return cmd.Job, true
	case store.DeleteJob:
		return cmd.Job, true
	case store.RaiseBudget:
		return cmd.Job, true
	case store.CancelTask:
		return cmd.Task, false
	case store.RetryTask:
		return cmd.Task, false
	case store.UnblockTask:
		return cmd.Task, false
	case store.RescheduleTask:
		return cmd.Task, false
	case store.SendSignal:
		return cmd.Task, false
	case store.DeleteTask:
		return cmd.Task, false
	case store.ReplaceInput:
		return cmd.Task, false
	case store.RerunTask:
		return cmd.Task, false
	case store.PauseTask:
		return cmd.Task, false
	case store.ResumeTask:
		return cmd.Task, false
	case store.ForgetTask:
		return cmd.Task, false
	case store.ExpireInput:
		return cmd.Task, false
	}
	return task.ID{}, false
}
