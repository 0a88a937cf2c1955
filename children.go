package weaver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Join is the continuation of a task whose children have ended: see Decompose.
type Join = task.Join

// The joins.
const (
	// JoinRerun runs the handler again, whatever the results of the children, and the handler reads
	// them with Children. It must do so first, or it would decompose again.
	JoinRerun = task.JoinRerun
	// JoinComplete ends the task with its children. It succeeds with the output that its handler
	// returned with Decompose if all succeeded, and fails (dependency_failed) if one did not.
	JoinComplete = task.JoinComplete
)

// Decompose is the error with which a handler splits its task:
//
//	return out, weaver.Decompose(weaver.JoinComplete, Resize.With(a), Resize.With(b))
//
// The drafts become its children, in the same transaction as the end of the attempt, and it waits
// without a worker until all of them have ended. That costs no attempt. A child belongs to the task's
// job, ends with its deadline at the latest, and may fail if the task may (AllowFailure); its other
// options are those of its draft. A child that fails counts against the job like any other task.
//
// When the task ends before its children (by a cancel or its deadline), the unfinished ones are
// cancelled; a retry of it revives them.
//
// A task has at most 10,000 children over all of its attempts, nested at most 8 deep. More fail the
// task at once, and so does an invalid draft or one with an IdempotencyKey: children are stored once
// without it.
func Decompose(join task.Join, drafts ...Draft) error {
	return &engine.Decompose{Join: join, Children: func(ids *task.IDs, limit int) ([]task.New, error) {
		if join != JoinRerun && join != JoinComplete {
			return nil, fmt.Errorf("decompose: %w: the join %q: want JoinRerun or JoinComplete", ErrInvalidOption, join)
		}
		if err := task.CheckChildren(0, 0, len(drafts)); err != nil {
			return nil, err
		}
		c := Client{ids: ids, limit: limit}
		children := make([]task.New, len(drafts))
		var problems []error
		for i, d := range drafts {
			n, err := c.toNew(d)
			if err == nil && n.IdempotencyKey != "" {
				err = fmt.Errorf("%w of %s: a child has no IdempotencyKey: it is stored once with the end of the attempt", ErrInvalidOption, d.typeName)
			}
			if err == nil && n.Coalesce {
				err = fmt.Errorf("%w of %s: a child has no Coalesce: its parent waits for it", ErrInvalidOption, d.typeName)
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("decompose: child %d: %w", i, err))
			}
			children[i] = n
		}
		return children, errors.Join(problems...)
	}}
}

// AddDependency is the error with which a handler asks to wait for another task of the namespace, in
// any job:
//
//	return out, weaver.AddDependency(id)
//
// The task waits without a worker, at no cost of an attempt, and its handler runs again when the other
// task has succeeded: at once, if it already has. The handler must check first: asking again for a
// succeeded task fails its own task. If the other task ends otherwise, this one is cancelled
// (dependency_failed), as with Needs, and a retry of the other one revives it. A task that does not
// exist, is a child of this one, or itself waits for this one fails it at once.
func AddDependency(id TaskID) error { return &engine.AddDependency{Task: id} }

// completes reports whether an error asks for children with which the task ends: the handler's return
// value is then its output.
func completes(err error) bool {
	var d *engine.Decompose
	return errors.As(err, &d) && d.Join == JoinComplete
}

// Child is a child of a task, as Children returns it.
type Child struct {
	ID      TaskID
	Node    string // its name: "decompose[0]" and so on, prefixed with the task's name if it has one
	Type    string
	Attempt int   // the attempt of the task that asked for it
	State   State // final state that ended the wait: a later retry of the child does not change it
	Output  json.RawMessage
	Error   *task.Error // kind, code and message, if it did not succeed
}

// Children returns, inside a handler, the finished children that the task waited for (JoinRerun), in
// the order requested, those of earlier attempts first. A first attempt has no children.
func Children(ctx context.Context) ([]Child, error) {
	a, err := engine.From(ctx)
	if err != nil {
		return nil, err
	}
	needs, err := a.Needs(ctx)
	if err != nil {
		return nil, err
	}
	needs = slices.DeleteFunc(slices.Clone(needs), func(n store.Need) bool { return n.Awaited == 0 || n.Kind != task.OnDone || !n.Done })
	ids := make([]task.ID, len(needs))
	for i := range needs {
		ids[i] = needs[i].ID
	}
	if len(ids) == 0 {
		return nil, nil
	}
	tasks, err := a.Tasks(ctx, ids...)
	if err != nil {
		return nil, fmt.Errorf("read the children: %w", err)
	}
	children := make([]Child, 0, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		if t.Type == task.RepairType {
			continue // of the engine, not of the handler
		}
		at, _ := slices.BinarySearchFunc(needs, t.ID, func(n store.Need, id task.ID) int { return n.ID.Compare(id) })
		c := Child{ID: t.ID, Node: t.Node, Type: t.Type, Attempt: needs[at].Awaited, State: needs[at].EndedState}
		switch c.Error = needs[at].EndedError; {
		case c.State == StateSucceeded && t.Forgotten:
			return nil, engine.Erased("output", t)
		case c.State == StateSucceeded:
			if c.Output, err = a.Load(ctx, "output of "+t.ID.String(), t.Output); err != nil {
				return nil, err
			}
		case c.Error == nil && c.State == t.State: // it ended before edges kept such
			c.Error = t.Error
		}
		children = append(children, c)
	}
	return children, nil
}

// OutputOf returns the output of a child of this type. Errors: ErrWrongType,
// ErrNotSucceeded.
func (t *Type[In, Out]) OutputOf(child Child) (out Out, err error) {
	err = t.outputOfChild(&child, &out)
	return out, err
}

func (t *contract) outputOfChild(child *Child, out any) error {
	if child.Type != t.name {
		return fmt.Errorf("%q is a %s, not a %s: %w", child.Node, child.Type, t.name, ErrWrongType)
	}
	if child.State != StateSucceeded {
		why := ""
		if child.Error != nil {
			why = " (" + child.Error.Message + ")"
		}
		return fmt.Errorf("%q is %s%s: %w", child.Node, child.State, why, ErrNotSucceeded)
	}
	if err := json.Unmarshal(child.Output, out); err != nil {
		return fmt.Errorf("the output of %q no longer decodes: %w", child.Node, err)
	}
	return nil
}
