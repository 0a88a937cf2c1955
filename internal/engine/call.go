package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Call stores children and waits for their end.
type Call struct {
	N int // number of children, at least 1

	// Children returns the children, with new IDs. It is called once for each attempt that stores some of them: a
	// repeated record names the same children.
	Children func() ([]task.New, error)

	Undo bool // children that succeeded are undone with the task
}

// undo returns the undo of the call, or nil.
func (c *Call) undo() *Undo {
	if !c.Undo {
		return nil
	}
	return &Undo{children: true}
}

func (c *Call) record(ctx context.Context, a *Attempt, name string, index int, known *task.Step) (*task.Step, error) {
	stored := 0
	if known != nil {
		if err := c.check(a, known); err != nil {
			return nil, err
		}
		if stored = known.ChildrenStored; stored >= c.N {
			return known, nil // if the call completes meanwhile, the task is not suspended
		}
	} else if err := task.CheckCall(a.task.Depth, 0, c.N); err != nil {
		return nil, a.failFatally(&KindError{Kind: task.KindValidation, Step: name, Err: fmt.Errorf("call %q: %s", name, strings.TrimPrefix(err.Error(), "call: "))})
	}
	children, err := c.Children()
	if err != nil {
		return nil, a.failFatally(&KindError{Kind: task.KindValidation, Step: name, Err: fmt.Errorf("call %q: %w", name, err)})
	}
	a.injectInto(ctx, children)
	for {
		step := a.newStep(name, index, task.KindCall, task.StepWaiting)
		step.ChildrenLeft, step.ChildrenStored, step.Round = c.N, stored, a.roundOf(name)
		if c.Undo {
			step.Undo = task.UndoOpen
		}
		// Crash here: the stored children exist, and the next attempt continues after them.
		res, err := a.record(ctx, store.Record{Step: step, Tasks: children[stored:min(stored+task.MaxCallTasks, c.N)]})
		if err == nil {
			a.stored(ctx, children[stored:min(max(res.Step.ChildrenStored, stored), c.N)])
		}
		switch {
		case err != nil:
			return nil, err
		case res.Step.ChildrenStored >= c.N:
			return &res.Step, nil
		case res.Step.ChildrenStored <= stored:
			return nil, &KindError{Kind: task.KindInternal, Step: name, Err: fmt.Errorf("call %q: the store has %d of %d children and takes no more", name, res.Step.ChildrenStored, c.N)}
		}
		stored = res.Step.ChildrenStored
		if err := a.checkValidity(ctx); err != nil {
			return nil, err
		}
	}
}

func (*Call) over(_ *Attempt, step *task.Step) bool { return step.State == task.StepCompleted }
func (*Call) reason() task.Waiting                  { return task.WaitChildren }

// check compares a call with the recorded call of its name.
func (c *Call) check(a *Attempt, recorded *task.Step) error {
	n := recorded.Children
	if n == c.N {
		return nil
	}
	return a.otherCall(recorded.Name, n, c.N)
}

// CallOf returns the children of a call, in order, once they have ended. It is Await for a call. Without inputs it
// neither waits nor records.
func (a *Attempt) CallOf(ctx context.Context, name string, c *Call) ([]Called, error) {
	if err := a.declareUndo(name, c.undo(), UndoRetry{}); err != nil {
		return nil, err
	}
	if c.N == 0 {
		step, _, err := a.enter(ctx, name)
		if err != nil {
			return nil, err
		}
		if step == nil {
			a.leave()
			step = a.waitingStep(name)
		}
		if step != nil {
			return nil, c.check(a, step)
		}
		return nil, nil
	}
	step, err := a.Await(ctx, name, c)
	if err != nil {
		return nil, err
	}
	return a.Results(ctx, step, c)
}

// Called is an ended child of a call.
type Called struct {
	ID     task.ID
	State  task.State      // state that ended the wait
	Output json.RawMessage // of a succeeded child
	Error  *task.Error     // kind, code and message of a failed child; nil if the store did not keep them
}

// Results returns the results of the children of a completed call, in the order of the call.
func (a *Attempt) Results(ctx context.Context, step *task.Step, c *Call) ([]Called, error) {
	if err := c.check(a, step); err != nil {
		return nil, err
	}
	ctx = a.readContext(ctx)
	results, err := a.results(ctx, step.Name, c.N)
	return results, unreadCall(ctx, step.Name, err)
}

// unreadCall returns the error of an attempt that could not read the children of a call.
func unreadCall(ctx context.Context, name string, err error) error {
	var v *Verdict
	if err == nil || ctx.Err() != nil || errors.As(err, &v) {
		return err
	}
	return &KindError{Kind: task.KindInternal, Step: name, Err: fmt.Errorf("read the children of call %q: %w", name, err)}
}

func (a *Attempt) results(ctx context.Context, name string, n int) ([]Called, error) {
	needs, err := a.childrenOf(ctx, name, n)
	if err != nil {
		return nil, err
	}
	return a.called(ctx, name, needs)
}

// called reads the results of the children behind the given edges, in their order.
func (a *Attempt) called(ctx context.Context, name string, needs []store.Need) ([]Called, error) {
	results := make([]Called, len(needs))
	at := make(map[task.ID]int, len(needs))
	ids := make([]task.ID, 0, len(needs)) // tasks that are read in addition to their edges
	for i, need := range needs {
		results[i] = Called{ID: need.ID, State: need.EndedState, Error: need.EndedError}
		at[need.ID] = i
		if need.EndedError == nil {
			ids = append(ids, need.ID)
		}
	}
	for len(ids) > 0 {
		some := ids[:min(task.MaxCallTasks, len(ids))]
		ids = ids[len(some):]
		tasks, err := a.env.Store.Tasks(ctx, a.env.Namespace, some...)
		if err != nil {
			return nil, err
		}
		if len(tasks) < len(some) {
			return nil, fmt.Errorf("%d of them are gone", len(some)-len(tasks))
		}
		for i := range tasks {
			t := &tasks[i]
			switch r := &results[at[t.ID]]; {
			case r.State == task.Succeeded && t.Forgotten:
				return nil, Erased("output", t)
			case r.State == task.Succeeded:
				if r.Output, err = a.env.Values.Load(ctx, t.Output); err != nil {
					return nil, Unreadable("output of "+t.ID.String(), name, err)
				}
			case r.State == t.State:
				r.Error = t.Error
			}
		}
	}
	return results, nil
}

// childrenOf returns the edges to the children of a completed call, in the order of its inputs. Edges read before the
// completion of the call are read again.
func (a *Attempt) childrenOf(ctx context.Context, name string, n int) ([]store.Need, error) {
	for again := false; ; again = true {
		all, err := a.readNeeds(ctx, again)
		if err != nil {
			return nil, err
		}
		children := make([]store.Need, n)
		found := 0
		for i := range all {
			if all[i].Step != name || !all[i].Done {
				continue
			}
			at, err := childIndex(all[i].Node)
			if err != nil || at >= n || !children[at].ID.IsZero() {
				return nil, fmt.Errorf("unknown child %q of a call with %d children", all[i].Node, n)
			}
			children[at] = all[i]
			found++
		}
		switch {
		case found == n:
			return children, nil
		case again:
			return nil, fmt.Errorf("%d of %d are recorded", found, n)
		}
	}
}

// childIndex parses the index in the name of a child, "fan[3]".
func childIndex(node string) (int, error) {
	digits, ok := strings.CutSuffix(node[strings.LastIndexByte(node, '[')+1:], "]")
	if !ok {
		return 0, errors.New("no number")
	}
	n, err := strconv.Atoi(digits)
	if err == nil && n < 0 {
		err = errors.New("negative")
	}
	return n, err
}
