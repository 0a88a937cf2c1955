package weaver

import (
	"fmt"

	"github.com/goweaver/weaver/task"
)

// IfFailed lets a task run when any of these went wrong: it starts at the first
// that failed, or was cancelled because of a need, a deadline or a budget, while
// the others may still run. The cancel of a person is none of these. When all
// have ended and none went wrong the task is cancelled with error kind
// not_needed, which does not count against the job, and what needs it with it.
//
// Beside IfFailed all Needs must have succeeded and all of IfDone ended. A task
// that ran because another one failed does not take that failure back: the job
// fails, unless the failure is allowed (AllowFailure).
func IfFailed(nodes ...*Node) NodeOption {
	return nodeOption(func(n *Node) { n.add(task.OnFailed, nodes) })
}

// IfDone lets a task run when all these have ended, in whichever way. One that
// is blocked has not ended.
func IfDone(nodes ...*Node) NodeOption {
	return nodeOption(func(n *Node) { n.add(task.OnDone, nodes) })
}

// AllowFailure says that the task may fail: its job can succeed all the same
// (Counters.Allowed of its JobInfo counts it), and tasks that need it run as if it had
// succeeded; its output is ErrNotSucceeded for them. IfFailed still sees that it
// failed.
//
// A deadline that it misses is a failure of that kind. The cancel of a person is
// not, and neither is a need that went wrong, for which it cannot run: both end
// what needs it.
func AllowFailure() NodeOption {
	return nodeOption(func(n *Node) { n.draft.own().Task.AllowFailure = true })
}

// twoWays is the problem of a need that is asked for in two ways.
func (n *Node) twoWays(name string, one, other task.EdgeKind) error {
	option := map[task.EdgeKind]string{task.OnSuccess: "Needs", task.OnFailed: "IfFailed", task.OnDone: "IfDone", task.OnUndo: "Undoes", task.OnUndone: "Undoes"}
	return fmt.Errorf("%q has %q both in %s and in %s: give it in one of them", n.name, name, option[one], option[other])
}
