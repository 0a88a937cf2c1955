package rules

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A task that decomposes waits for its children (ADR 0022): an edge of the kind
// done leads to each, with the attempt that waits ([Need.Awaited]). As long as
// its Join is set the task waits for such edges alone; its others were decided
// before it started. It keeps the Join when it ends, or cleans up, before its
// children have ended.

// Parent is a task as its decompose meets it.
type Parent struct {
	Depth      int
	Children   int // that it has, of earlier decompositions and calls
	Decomposed int // those of decompositions
}

// refuses says why the task cannot have n more children, nil if it can.
func (p Parent) refuses(n int) *task.Error {
	if err := task.CheckChildren(p.Depth, p.Children, n); err != nil {
		return &task.Error{Kind: task.KindValidation, Message: err.Error()}
	}
	return nil
}

// checkDecompose refuses a decompose that no engine reports.
func checkDecompose(f *store.Finish) error {
	if decidedKind(f) == task.DecideRepair {
		if f.Join != task.JoinRepair || len(f.Children) != 1 {
			return fmt.Errorf("finish task %v: a repair has the join %q and one child, not %q and %d", f.Lease.Task, task.JoinRepair, f.Join, len(f.Children))
		}
	} else if f.Join != task.JoinRerun && f.Join != task.JoinComplete {
		return fmt.Errorf("finish task %v: a decompose cannot have the join %q", f.Lease.Task, f.Join)
	}
	if len(f.Children) == 0 {
		return fmt.Errorf("finish task %v: a decompose without children", f.Lease.Task)
	}
	for i := range f.Children {
		if c := &f.Children[i]; len(c.Needs) > 0 || c.IdempotencyKey != "" || c.Coalesce || c.ID == f.Lease.Task {
			return fmt.Errorf("finish task %v: child %v has needs, an idempotency key or the id of its parent, or coalesces", f.Lease.Task, c.ID)
		}
	}
	return nil
}

// ResolveDecompose is [ResolveFinish] for a decompose ([Asks]): one that is over a limit
// fails its task, for good.
func ResolveDecompose(f *store.Finish, p Parent, cancel CancelRequest, deadline, now time.Time) Transition {
	failure := p.refuses(len(f.Children))
	if failure == nil {
		return ResolveFinish(f, cancel, deadline, now)
	}
	t := refused(f, failure)
	if cancel.Kind != "" {
		return t.asked(&cancel, deadline)
	}
	return t
}

// RefuseChildren is the end of a task that waits for children which the store refuses for
// good.
func RefuseChildren(refused error) Transition {
	return Transition{State: task.Failed, Outcome: task.OutcomeFailure, Failure: &task.Error{
		Kind: task.KindValidation, Message: strings.ToValidUTF8("its children cannot be stored: "+refused.Error(), "\uFFFD"),
	}}
}

// RefusedTasks says why a job is cancelled of which the store refuses a task for good.
func RefusedTasks(refused error) string {
	return strings.ToValidUTF8("its tasks cannot be stored: "+refused.Error(), "\uFFFD")
}

// decompose makes the task wait for its children.
func (t *Transition) decompose(f *store.Finish) {
	t.State, t.Waiting, t.Join, t.KeepError = task.Pending, f.Join.Waiting(), f.Join, true
	if f.Join == task.JoinComplete {
		if t.JoinOutput = f.Output; len(t.JoinOutput) == 0 {
			t.JoinOutput = json.RawMessage("null")
		}
	}
}

// ChildOf returns the child with what it has of its parent: its name, the i-th of
// the children of its decompositions, unless it has one, and whether it may fail.
func ChildOf(child task.New, parent string, i int, mayFail bool) task.New {
	return named(child, parent, fmt.Sprintf("decompose[%d]", i), mayFail)
}

func named(child task.New, parent, name string, mayFail bool) task.New {
	if child.Node == "" {
		child.Node = name
		if parent != "" {
			child.Node = parent + "/" + child.Node
		}
	}
	child.AllowFailure = child.AllowFailure || mayFail // a repair may
	return child
}

// ChildFailure is the failure message of a task that was to end with its
// children; wrong is the oldest of them that did not succeed, called name.
func ChildFailure(wrong *EndedNeed, name string) *task.Error {
	return &task.Error{Kind: task.KindDependencyFailed, Message: fmt.Sprintf("its child %s ended %s", name, wrong.End.State)}
}

// ParentEnded is the reason for which children are cancelled that their parent
// waited for when it ended.
const ParentEnded = "its parent ended"

// TaskWaits is what a task waits for; open says which of its edges count as open.
func TaskWaits(join task.Join, needs []Need, open func(*Need) bool) Waits {
	if join == task.JoinNone {
		return WaitsFor(needs, open)
	}
	w := Waits{IfFailed: NoIfFailed}
	for i := range needs {
		if n := &needs[i]; n.Awaited > 0 && n.Step == "" && open(n) {
			w.Open++
		}
	}
	return w
}

// child reports whether the need is a child of a decomposition: the edge to another
// task that a task asked for is of the kind success, that to a child of a call has
// its step.
func (n *Need) child() bool { return n.Awaited > 0 && n.Kind == task.OnDone && n.Step == "" }

// WrongChild returns the oldest child of a task's last decomposition that has
// ended without success, nil if there is none. needs are sorted by ID.
func WrongChild(needs []Need) *Need {
	last := 0
	for i := range needs {
		if n := &needs[i]; n.child() {
			last = max(last, n.Awaited)
		}
	}
	for i := range needs {
		if n := &needs[i]; n.child() && n.Awaited == last && n.Ended() && n.End.State != task.Succeeded {
			return n
		}
	}
	return nil
}

// RevivesChild reports whether the retry of a task, which had ended with a join and
// an error of a kind, brings this child back. A child of a call that did not succeed
// comes back however it ended: the retried task would get its failure for ever. One
// of a decomposition does if the task waits for it, and it was cancelled because its
// parent ended, or both missed the deadline, or used the budget up, that they share.
func (n *Need) RevivesChild(join task.Join, parent task.ErrorKind) bool {
	switch {
	case !n.Ended() || n.End.State == task.Succeeded:
		return false
	case n.Step != "":
		return true
	case join == task.JoinNone || !n.child():
		return false
	}
	if parent == task.KindBudget && n.End.Kind == parent {
		return true // also one that failed for it
	}
	return n.End.State == task.Cancelled && (n.CancelKind == task.KindParentEnded || parent == task.KindDeadline && n.End.Kind == parent)
}

// refuseRetry says why a task that waited for children when it ended cannot be
// retried, "" if it can: one of them is still being cancelled, or did not succeed
// by itself, though the task ends with them.
func refuseRetry(join task.Join, kind task.ErrorKind, needs []Need) string {
	var others []Need
	for i := range needs {
		n := &needs[i]
		if (join != task.JoinNone && n.child() || n.Step != "") && !n.Marked && !n.Ended() {
			return fmt.Sprintf("and its child %s, which is %s, is still being cancelled: try again in a moment", n.Name, n.End.State)
		}
		if !n.RevivesChild(join, kind) {
			others = append(others, *n)
		}
	}
	if wrong := WrongChild(others); wrong != nil && join == task.JoinComplete {
		return fmt.Sprintf("and ends with its child %s, which is %s: retry that one first", wrong.Name, wrong.End.State)
	}
	return ""
}

// CancelJobKind is the [task.Task.CancelKind] of the tasks of a job that is
// cancelled: its children end with their parents.
func CancelJobKind(depth int) task.ErrorKind {
	if depth > 0 {
		return task.KindParentEnded
	}
	return task.KindCancelled
}
