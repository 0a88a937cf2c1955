package rules

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A task that decomposes waits for its children (ADR 0022). An edge of the kind done leads to
// each child and holds the number of the attempt that waits ([Need.Awaited]). While its Join
// is set the task waits for these edges alone, because its other edges were decided before it
// started. A task that ends, or cleans up, before its children keeps the Join.

// Parent holds the fields of a task that its decompose needs.
type Parent struct {
	Depth      int
	Children   int // of all earlier decompositions and calls
	Decomposed int // of earlier decompositions
}

// refuses returns the error if the task cannot have n more children, else nil.
func (p Parent) refuses(n int) *task.Error {
	if err := task.CheckChildren(p.Depth, p.Children, n); err != nil {
		return &task.Error{Kind: task.KindValidation, Message: err.Error()}
	}
	return nil
}

// checkDecompose refuses a malformed decompose. No engine reports one.
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

// ResolveDecompose is [ResolveFinish] for a decompose ([Asks]). A decompose over a limit fails
// its task permanently.
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

// RefuseChildren returns the failure of a task whose children the store refuses permanently.
func RefuseChildren(refused error) Transition {
	return Transition{State: task.Failed, Outcome: task.OutcomeFailure, Failure: &task.Error{
		Kind: task.KindValidation, Message: strings.ToValidUTF8("its children cannot be stored: "+refused.Error(), "\uFFFD"),
	}}
}

// RefusedTasks returns the cancel reason of a job with a task that the store refuses
// permanently.
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

// ChildOf returns the i-th child of a task's decompositions with the fields that it takes from
// its parent: its name, unless it has one, and whether it may fail.
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
	child.AllowFailure = child.AllowFailure || mayFail // a repair may fail
	return child
}

// ChildFailure returns the failure of a task that ends with its children. wrong is the oldest
// child that did not succeed, and name is that child's name.
func ChildFailure(wrong *EndedNeed, name string) *task.Error {
	return &task.Error{Kind: task.KindDependencyFailed, Message: fmt.Sprintf("its child %s ended %s", name, wrong.End.State)}
}

// ParentEnded is the cancel reason of children whose parent ended while it waited for them.
const ParentEnded = "its parent ended"

// TaskWaits returns the open edges that a task waits for. open decides which edges count as
// open.
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

// child reports whether the need is a child of a decomposition. An edge for add_dependency has
// the kind success, and an edge to a child of a call has its step.
func (n *Need) child() bool { return n.Awaited > 0 && n.Kind == task.OnDone && n.Step == "" }

// WrongChild returns the oldest child of a task's last decomposition that ended without
// success, or nil. needs are sorted by ID.
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

// RevivesChild reports whether the retry of a task revives this child. join and parent are the
// task's join and the kind of its error. A child of a call that did not succeed is always
// revived, because the retried task would read the same failure again.
//
// A child of a decomposition is revived if the task waits for it and the child was cancelled
// with its parent. It is also revived if both missed their shared deadline, or used up their
// shared budget.
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
		return true // a child that failed for the budget too
	}
	return n.End.State == task.Cancelled && (n.CancelKind == task.KindParentEnded || parent == task.KindDeadline && n.End.Kind == parent)
}

// refuseRetry returns the reason why a task that waited for children when it ended cannot be
// retried, or "". Either a child is still being cancelled, or a child that decides the end of
// the task failed by itself.
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

// CancelJobKind returns the [task.Task.CancelKind] for a task of a cancelled job. Children end
// with their parents.
func CancelJobKind(depth int) task.ErrorKind {
	if depth > 0 {
		return task.KindParentEnded
	}
	return task.KindCancelled
}
