package weaver

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/goweaver/weaver/store"
)

// warnUnserved logs the task types whose default queue the engine does not serve.
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

// warnNodes logs the tasks of a job that this engine does not run.
func (e *Engine) warnNodes(j *Job) {
	for _, n := range j.nodes {
		if !slices.Contains(e.types, n.draft.typeName) {
			e.log.Warn("this engine does not handle a task of the job, which waits for another worker: add its type to Config.Handlers",
				"task", n.name, "task_type", n.draft.typeName)
			continue
		}
		queue := n.draft.options().Queue
		if _, served := e.queues[queue]; e.queues != nil && !served {
			e.log.Warn("this engine does not serve the queue of a task of the job, which waits for another worker: add it to Config.Queues",
				"task", n.name, "task_type", n.draft.typeName, "queue", queue)
		}
	}
}

// Overview reads the requested parts of an overview of the namespace, in one read of bounded size.
func (c *Client) Overview(ctx context.Context, req store.OverviewRequest) (store.Overview, error) {
	o, err := c.store.Overview(ctx, c.ns, req)
	if err != nil {
		return store.Overview{}, fmt.Errorf("read the overview: %w", err)
	}
	return o, nil
}

// Queues returns the queues with waiting or running tasks or a pause, with the number of due tasks,
// the oldest due time, the number due later, and the pause. Paused task types come last; they have a
// Type and no Name.
func (c *Client) Queues(ctx context.Context) ([]store.Queue, error) {
	o, err := c.store.Overview(ctx, c.ns, store.OverviewRequest{Parts: store.OverviewQueues})
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	return o.Queues, nil
}

// Counts returns the number of tasks by state, type and queue: exact up to 10,000, and a lower bound
// above.
func (c *Client) Counts(ctx context.Context) (store.Counts, error) {
	o, err := c.store.Overview(ctx, c.ns, store.OverviewRequest{Parts: store.OverviewCounts})
	if err != nil {
		return store.Counts{}, fmt.Errorf("count tasks: %w", err)
	}
	return o.Counts, nil
}

// Workers returns the running engines with their announcements and numbers of running tasks. An engine
// of a dead process is included for a while: it is Dead if that is known, otherwise Silent.
func (c *Client) Workers(ctx context.Context) ([]store.WorkerStatus, error) {
	o, err := c.store.Overview(ctx, c.ns, store.OverviewRequest{Parts: store.OverviewWorkers})
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	return o.Workers, nil
}

// Graph returns one page of up to 10,000 tasks of a job, oldest first, with the edges between them;
// pass its Next as After for the next page. Errors: ErrNotFound, ErrBadCursor.
func (c *Client) Graph(ctx context.Context, req store.GraphRequest) (store.Graph, error) {
	g, err := c.store.Graph(ctx, c.ns, req)
	if err != nil {
		return store.Graph{}, fmt.Errorf("read the graph of job %s: %w", req.Job, err)
	}
	return g, nil
}

// Audit returns the operators' commands, newest first, and the cursor of the next page, "" at the end.
// A page may have fewer entries than asked for before the end. Error: ErrBadCursor.
func (c *Client) Audit(ctx context.Context, f store.AuditFilter) ([]store.AuditEntry, string, error) {
	err := cmp.Or(checkTexts("Target", f.Target), checkTexts("Actor", f.Actor), checkTexts("Verb", f.Verb), checkTexts("After", f.After))
	if err != nil {
		return nil, "", fmt.Errorf("read the audit: %w", err)
	}
	list, next, err := c.store.Audit(ctx, c.ns, f)
	if err != nil {
		return nil, "", fmt.Errorf("read the audit: %w", err)
	}
	return list, next, nil
}
