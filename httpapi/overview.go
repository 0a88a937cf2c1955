package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Counts holds numbers of tasks.
func (c *call) counts() error {
	o, err := c.overview(store.OverviewCounts)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, Counts{At: o.At, Counts: o.Counts})
}

// overview reads parts of the namespace's overview.
func (c *call) overview(parts store.OverviewParts) (store.Overview, error) {
	ctx, cancel := c.context()
	defer cancel()
	return c.api.client.Overview(ctx, store.OverviewRequest{Parts: parts})
}

func (c *call) queues() error {
	o, err := c.overview(store.OverviewQueues)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, listOf(o.Queues))
}

func (c *call) workers() error {
	o, err := c.overview(store.OverviewWorkers)
	if err != nil {
		return err
	}
	typesAsLists(o.Workers)
	return c.write(http.StatusOK, listOf(o.Workers))
}

// typesAsLists makes the types of workers that only send orders encode as [] instead of null.
func typesAsLists(workers []store.WorkerStatus) {
	for i := range workers {
		workers[i].Types = listOf(workers[i].Types).Items
	}
}

// TaskType is a task type that workers announced.
// listTypes lists the announced types without their schemas, which may be large.
func (c *call) listTypes() error {
	list, err := c.announced()
	if err != nil {
		return err
	}
	for i := range list {
		list[i].Input, list[i].Output = nil, nil
	}
	return c.write(http.StatusOK, listOf(list))
}

func (c *call) getType() error {
	name := c.path("name")
	if err := task.CheckTypeName(name); err != nil {
		p := notFound.of("There is no task type of this name.")
		p.Errors = []ProblemError{{Parameter: "name", Detail: err.Error()}}
		return p
	}
	list, err := c.announced(name)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return notFound.of("No worker has announced the task type %s in the namespace %q: /v1/types lists those that were.", name, c.api.client.Namespace())
	}
	return c.write(http.StatusOK, list[0])
}

// announced reads the given announced types, or all of them, and the present counts of their tasks.
func (c *call) announced(names ...string) ([]TaskType, error) {
	ctx, cancel := c.context()
	defer cancel()
	types, err := c.api.client.Types(ctx, names...)
	if err != nil || len(types) == 0 {
		return nil, err
	}
	o, err := c.api.client.Overview(ctx, store.OverviewRequest{Parts: store.OverviewQueues | store.OverviewWorkers})
	if err != nil {
		return nil, err
	}
	handled := make(map[string]int)
	for i := range o.Workers {
		if w := &o.Workers[i]; !w.Dead && !w.Silent {
			for _, name := range w.Types {
				handled[name]++
			}
		}
	}
	list := make([]TaskType, len(types))
	for i, t := range types {
		list[i] = TaskType{AnnouncedType: t, Workers: handled[t.Name]}
		if at := slices.IndexFunc(o.Queues, func(q store.Queue) bool { return q.Type == t.Name }); at >= 0 {
			list[i].Paused, list[i].Pause = o.Queues[at].Paused, o.Queues[at].Pause
		}
	}
	return list, nil
}

func (c *call) resumeType() error {
	return c.operateNamed(func(ctx context.Context, name string, opts []weaver.OperateOption) error {
		return c.api.client.ResumeType(ctx, name, opts...)
	})
}

// audit lists operators' actions, newest first.
func (c *call) audit() (err error) {
	f := store.AuditFilter{Target: c.get("target"), Actor: c.get("actor"), Verb: c.get("verb"), After: c.get("after")}
	if f.Limit, err = c.limit(store.MaxLimit); err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	list, next, err := c.api.client.Audit(ctx, f)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, Page[store.AuditEntry]{Items: listOf(list).Items, Next: next})
}

// featurePaths maps features to the paths that they need.
var featurePaths = map[string]string{
	"bulk": "/v1/tasks/bulk", "events": "/v1/events", "explanations": "/v1/tasks/{id}/why", "graph": "/v1/jobs/{id}/graph", "login": "/login",
	"limits": "/v1/limits", "metrics": "/metrics", "orders": "/do/order", "schedules": "/v1/schedules", "watch": "/v1/watch",
}

// features writes the features of this server. A missing feature is false.
func (c *call) features() error {
	f := Features{Namespace: c.api.client.Namespace(), Features: make(map[string]bool)}
	for name, path := range featurePaths {
		f.Features[name] = c.api.paths[path] != nil
	}
	can := c.api.client.Store().Capabilities()
	f.Features["stats"] = can.Has(store.CanKeepStats)
	f.Features["types"] = can.Has(store.CanKeepTypes)
	f.Features["recorded_events"] = can.Has(store.CanKeepEvents)
	f.Features["command_logs"] = c.api.cfg.CommandLogs != nil
	return c.write(http.StatusOK, f)
}

// operateNamed returns the handler of a verb on a named object.
func (c *call) operateNamed(do func(ctx context.Context, name string, opts []weaver.OperateOption) error) error {
	var body verbRequest
	if err := c.decodeOptional(&body); err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	if err := do(ctx, c.path("name"), c.operator(body.Reason)); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
