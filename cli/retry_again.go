package cli

import (
	"context"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// notAgain returns the names of the tasks of a job that a retry does not run again although it retries the tasks they
// reacted to. Such a task succeeded after others had ended (if: failed, if: done, on). before is the job before the
// retry.
func notAgain(ctx context.Context, client *weaver.Client, before *jobTasks) ([]string, error) {
	edges, err := masked(client).Edges(ctx, before.ID)
	if err != nil || len(edges) == 0 {
		return nil, err
	}
	now, err := client.JobTasks(ctx, before.ID)
	if err != nil {
		return nil, err
	}
	hadEnded := make(map[task.ID]bool, len(before.Tasks))
	for i := range before.Tasks {
		hadEnded[before.Tasks[i].ID] = before.Tasks[i].State.Terminal()
	}
	back := make(map[task.ID]bool)
	for i := range now {
		back[now[i].ID] = hadEnded[now[i].ID] && !now[i].State.Terminal()
	}
	ran := make(map[task.ID]bool)
	for _, e := range edges {
		if e.Kind != task.OnSuccess && e.Awaited == 0 && back[e.From] {
			ran[e.To] = true
		}
	}
	var names []string
	for i := range now {
		if now[i].State == task.Succeeded && ran[now[i].ID] {
			names = append(names, now[i].Node)
		}
	}
	return names, nil
}
