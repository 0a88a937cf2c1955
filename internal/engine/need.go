package engine

import (
	"context"
	"fmt"

	"github.com/goweaver/weaver/task"
)

// Need returns a task that the task needs, by its name in the job; nil when it
// needs none of that name, or the store does not have it any more.
func (a *Attempt) Need(ctx context.Context, node string) (*task.Task, error) {
	needs, err := a.Needs(ctx)
	if err != nil {
		return nil, err
	}
	for i := range needs {
		if needs[i].Node != node {
			continue
		}
		found, err := a.env.Store.Tasks(ctx, a.env.Namespace, needs[i].ID)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, err
		case err != nil:
			return nil, &KindError{Kind: task.KindInternal, Err: fmt.Errorf("read the output of %q: %w", node, err)}
		case len(found) == 0:
			return nil, nil
		}
		return &found[0], nil
	}
	return nil, nil
}
