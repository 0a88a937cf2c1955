package weaver

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// warnUnserved logs the task types whose tasks, unless an enqueue says
// otherwise, wait in a queue that the engine does not serve.
func (cfg Config) warnUnserved() {
	if cfg.Queues == nil {
		return
	}
	for _, h := range cfg.Handlers {
		if _, served := cfg.Queues[h.queue]; !served {
			cfg.Logger.Warn("no queue of this engine holds the tasks of a type that it handles: they wait for another worker",
				"task_type", h.name, "queue", h.queue, "served", slices.Sorted(maps.Keys(cfg.Queues)))
		}
	}
}

func (cfg Config) types() []string {
	var names []string
	for _, h := range cfg.Handlers {
		if !slices.Contains(names, h.name) {
			names = append(names, h.name)
		}
	}
	return names
}

// warnNodes logs the tasks of a job that the engine itself does not run.
func (e *Engine) warnNodes(j *Job) {
	for _, n := range j.nodes {
		if !slices.Contains(e.types, n.draft.typeName) {
			e.log.Warn("this engine does not handle a task of the job, which waits for another worker: add its type to Config.Handlers",
				"task", n.name, "task_type", n.draft.typeName)
			continue
		}
		queue := n.draft.set.task.Queue
		if _, served := e.queues[queue]; e.queues != nil && !served {
			e.log.Warn("this engine does not serve the queue of a task of the job, which waits for another worker: add it to Config.Queues",
				"task", n.name, "task_type", n.draft.typeName, "queue", queue)
		}
	}
}

// Queues returns the queues in which tasks wait to be started, or that are
// paused: how many tasks of each are due, and how many are due later. Task types
// that are paused come last; they have a Type and no Name.
func (c *Client) Queues(ctx context.Context) ([]QueueInfo, error) {
	queues, err := c.store.Queues(ctx, c.ns)
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	return queues, nil
}

// Counts returns how many tasks are in each state, 0 too. Those that succeeded are
// not counted, because nothing waits for them and the store would have to read them
// all; what it reads is a row for each task that it counts.
func (c *Client) Counts(ctx context.Context) (map[State]int, error) {
	counts, err := c.store.Counts(ctx, c.ns)
	if err != nil {
		return nil, fmt.Errorf("count tasks: %w", err)
	}
	return counts, nil
}

// Workers returns the engines that run, with the task types that they handle and
// how many tasks each of them runs. One whose process died is among them for a
// while: its LastSeen does not move.
func (c *Client) Workers(ctx context.Context) ([]WorkerInfo, error) {
	workers, err := c.store.Workers(ctx, c.ns)
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	return workers, nil
}
