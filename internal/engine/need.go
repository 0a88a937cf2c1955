package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Needs returns the tasks that the task needed or decomposed into, with their ends. They are read once.
func (a *Attempt) Needs(ctx context.Context) ([]store.Need, error) {
	if _, err := a.readNeeds(ctx, false); err != nil {
		return nil, err
	}
	a.needsMu.Lock()
	defer a.needsMu.Unlock()
	return a.needs, nil
}

// readNeeds returns all edges of the task, including those to children of its calls: as they were at the first read
// or, with again, as they are now.
func (a *Attempt) readNeeds(ctx context.Context, again bool) ([]store.Need, error) {
	ctx = a.readContext(ctx)
	a.needsMu.Lock()
	defer a.needsMu.Unlock()
	if a.needsRead && !again {
		return a.allNeeds, nil
	}
	all, err := a.env.Store.Needs(ctx, a.env.Namespace, a.subject())
	if err != nil {
		err = fmt.Errorf("read the needs of task %s: %w", a.task.ID, err)
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, &KindError{Kind: task.KindInternal, Err: err}
	}
	called := func(n store.Need) bool { return n.Step != "" }
	a.allNeeds, a.needs, a.needsRead = all, slices.DeleteFunc(slices.Clone(all), called), true
	return all, nil
}

// Tasks reads tasks of the namespace.
func (a *Attempt) Tasks(ctx context.Context, ids ...task.ID) ([]task.Task, error) {
	return a.env.Store.Tasks(a.readContext(ctx), a.env.Namespace, ids...)
}

// Need returns a task that the task needs, by its name in the job. It returns nil if the task has no such need, or
// the store no longer has it.
func (a *Attempt) Need(ctx context.Context, node string) (*task.Task, error) {
	needs, err := a.Needs(ctx)
	if err != nil {
		return nil, err
	}
	for i := range needs {
		if needs[i].Node != node {
			continue
		}
		ctx = a.readContext(ctx)
		found, err := a.Tasks(ctx, needs[i].ID)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, err
		case err != nil:
			return nil, &KindError{Kind: task.KindInternal, Err: fmt.Errorf("read the output of %q: %w", node, err)}
		case len(found) == 0:
			return nil, nil
		}
		found[0].Output, err = a.Load(ctx, fmt.Sprintf("output of %q", node), found[0].Output)
		return &found[0], err
	}
	return nil, nil
}
