package weaver

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/goweaver/weaver/store"
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
		queue := n.draft.options().Queue
		if _, served := e.queues[queue]; e.queues != nil && !served {
			e.log.Warn("this engine does not serve the queue of a task of the job, which waits for another worker: add it to Config.Queues",
				"task", n.name, "task_type", n.draft.typeName, "queue", queue)
		}
	}
}

// Overview returns what the namespace holds: the parts that req asks for, in one read
// of bounded size.
func (c *Client) Overview(ctx context.Context, req store.OverviewRequest) (store.Overview, error) {
	o, err := c.store.Overview(ctx, c.ns, req)
	if err != nil {
		return store.Overview{}, fmt.Errorf("read the overview: %w", err)
	}
	return o, nil
}

// Queues returns the queues in which tasks wait to be started or run, or that are
// paused: how many tasks of each are due, since when, how many are due later, and who
// paused it. Task types that are paused come last; they have a Type and no Name.
func (c *Client) Queues(ctx context.Context) ([]store.Queue, error) {
	o, err := c.store.Overview(ctx, c.ns, store.OverviewRequest{Parts: store.OverviewQueues})
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	return o.Queues, nil
}

// Counts returns how many tasks are in each state, and of each type and queue: exact up
// to 10,000, and then at least so many.
func (c *Client) Counts(ctx context.Context) (store.Counts, error) {
	o, err := c.store.Overview(ctx, c.ns, store.OverviewRequest{Parts: store.OverviewCounts})
	if err != nil {
		return store.Counts{}, fmt.Errorf("count tasks: %w", err)
	}
	return o.Counts, nil
}

// Workers returns the engines that run, with what they announced and how many tasks
// each of them runs. One whose process died is among them for a while: it is Dead,
// where that is known, or else Silent.
func (c *Client) Workers(ctx context.Context) ([]store.WorkerStatus, error) {
	o, err := c.store.Overview(ctx, c.ns, store.OverviewRequest{Parts: store.OverviewWorkers})
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	return o.Workers, nil
}

// Graph returns the tasks of a job with the edges between them: a page of up to 10,000
// tasks, the oldest first; with its Next as After the next page follows. ErrNotFound,
// store.ErrBadCursor.
func (c *Client) Graph(ctx context.Context, req store.GraphRequest) (store.Graph, error) {
	g, err := c.store.Graph(ctx, c.ns, req)
	if err != nil {
		return store.Graph{}, fmt.Errorf("read the graph of job %s: %w", req.Job, err)
	}
	return g, nil
}

// Audit returns what operators did, newest first, and the cursor of the next page, ""
// at the end. A page may have fewer entries than asked for while there are more.
// store.ErrBadCursor.
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
