package weaver

import (
	"fmt"

	"github.com/goweaver/weaver/task"
)

// IfFailed makes a task run when any of these nodes goes wrong. It starts at the first that failed, or
// was cancelled because of a need, a deadline or a budget, while the others may still run. A person's
// cancel does not count. If all have ended without such a failure, the task is cancelled with error
// kind not_needed, which does not count against the job, and so are its dependents.
//
// In addition to IfFailed, all Needs must have succeeded and all of IfDone ended. A task that ran
// because of a failure does not undo the failure: the job fails, unless AllowFailure permits it.
func IfFailed(nodes ...*Node) NodeOption {
	return nodeOption(func(n *Node) { n.add(task.OnFailed, nodes) })
}

// IfDone makes a task run when all these nodes have ended, in any state. A blocked task has not ended.
func IfDone(nodes ...*Node) NodeOption {
	return nodeOption(func(n *Node) { n.add(task.OnDone, nodes) })
}

// AllowFailure lets the job succeed although the task fails (Counters.Allowed of its JobInfo counts
// it). Its dependents run as if it had succeeded; its output is ErrNotSucceeded for them. IfFailed
// still sees the failure.
//
// A missed deadline is such a failure. A person's cancel is not, nor is a failed need for which it
// cannot run: both end its dependents.
func AllowFailure() NodeOption {
	return nodeOption(func(n *Node) { n.draft.own().Task.AllowFailure = true })
}

// twoWays returns the problem of a need declared in two ways.
func (n *Node) twoWays(name string, one, other task.EdgeKind) error {
	option := map[task.EdgeKind]string{task.OnSuccess: "Needs", task.OnFailed: "IfFailed", task.OnDone: "IfDone", task.OnUndo: "Undoes", task.OnUndone: "Undoes"}
	return fmt.Errorf("%q has %q both in %s and in %s: give it in one of them", n.name, name, option[one], option[other])
}
