package weaver

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// maxForeseen is the maximum number of tasks that a DryRun examines individually; refusals of further
// tasks are not predicted.
const maxForeseen = 1000

// foresight predicts which tasks of a dry run a verb would refuse.
type foresight struct {
	client   *Client
	selected map[TaskID]bool
	also     func(context.Context, TaskID) (bool, error) // reports whether a task outside the list is selected; nil: it is not
	spent    map[JobID]error

	keepSteps, cleanups bool
}

// selects reports whether the verb also applies to a task.
func (f *foresight) selects(ctx context.Context, id TaskID) (bool, error) {
	selected, known := f.selected[id]
	if known || f.also == nil {
		return selected, nil
	}
	selected, err := f.also(ctx, id)
	if err == nil {
		f.selected[id] = selected
	}
	return selected, err
}

// retry returns why the retry of a task would be refused: its undo was given up, an unselected need
// ended so that it cannot run, its job's budget is used up, or its cleanup ran.
func (f *foresight) retry(ctx context.Context, h *store.History) (refused, err error) {
	t := &h.Task
	switch {
	case f.cleanups && t.Undo == nil:
		return fmt.Errorf("task %s is %s, and nothing is to be undone: %w", t.ID, t.State, ErrState), nil
	case f.cleanups:
		return nil, nil
	case t.Undo != nil:
		return fmt.Errorf("task %s is %s, its undo was given up: try that again with weaver task retry %[1]s --cleanup (Cleanups): %[3]w", t.ID, t.State, ErrState), nil
	}
	if !t.JobID.IsZero() {
		why, known := f.spent[t.JobID]
		if !known {
			job, err := f.client.Job(ctx, t.JobID)
			if err != nil {
				return nil, err
			}
			if job.BudgetUsedUp() {
				why = fmt.Errorf("its job %s has used its budget up: raise that with the retry of the job: %w", t.JobID, ErrState)
			}
			f.spent[t.JobID] = why
		}
		if why != nil {
			return fmt.Errorf("task %s is %s: %w", t.ID, t.State, why), nil
		}
	}
	n, err := f.obstacle(ctx, h.Needs)
	if err != nil {
		return nil, err
	}
	if n != nil {
		return fmt.Errorf("task %s is %s, and of its needs task %s is %s: %w", t.ID, t.State, cmp.Or(n.Node, n.ID.String()), n.State, ErrState), nil
	}
	if i := slices.IndexFunc(h.Steps, func(s StepInfo) bool { return s.RanCleanup() }); i >= 0 && !f.keepSteps {
		return fmt.Errorf("task %s is %s, but its cleanup %q ran, so the steps that it undid would count as done: %w", t.ID, t.State, h.Steps[i].Name, ErrState), nil
	}
	return nil, nil
}

// obstacle returns a need that prevents a task from running, or nil.
func (f *foresight) obstacle(ctx context.Context, needs []store.Need) (*store.Need, error) {
	var onFailed *store.Need
	for i := range needs {
		n := &needs[i]
		if n.Awaited > 0 {
			continue
		}
		holds, ended := n.Kind.Holds(n.End())
		could := !ended || holds
		if !could {
			var err error
			if could, err = f.selects(ctx, n.ID); err != nil {
				return nil, err
			}
		}
		switch {
		case n.Kind != task.OnFailed && !could:
			return n, nil
		case n.Kind == task.OnFailed && could:
			return f.obstacle(ctx, withoutFailed(needs))
		case n.Kind == task.OnFailed:
			onFailed = n
		}
	}
	return onFailed, nil
}

// withoutFailed returns the needs whose failure does not start the task.
func withoutFailed(needs []store.Need) (others []store.Need) {
	for _, n := range needs {
		if n.Kind != task.OnFailed {
			others = append(others, n)
		}
	}
	return others
}

// delete returns why the delete of a task would be refused: another task waits for its end.
func (f *foresight) delete(_ context.Context, h *store.History) (refused, err error) {
	for i := range h.Dependents {
		if d := &h.Dependents[i]; !d.State.Terminal() {
			return fmt.Errorf("task %s is %s, but task %s still waits for it: %w", h.Task.ID, h.Task.State, d.ID, ErrState), nil
		}
	}
	return nil, nil
}
