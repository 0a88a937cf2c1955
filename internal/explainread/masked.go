package explainread

import (
	"context"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
)

// Masked is a client that reads tasks as they are shown: masked as they say
// (docs/privacy.md). Who goes on with a value reads it with the client itself. It is a
// Source.
type Masked struct{ *weaver.Client }

// Get reads a task as it is shown.
func (c Masked) Get(ctx context.Context, id weaver.TaskID) (weaver.TaskInfo, error) {
	t, err := c.Client.Get(ctx, id)
	redact.Task(&t)
	return t, err
}

// List reads tasks as they are shown.
func (c Masked) List(ctx context.Context, f weaver.Filter) ([]weaver.TaskInfo, string, error) {
	list, next, err := c.Client.List(ctx, f)
	redact.Tasks(list)
	return list, next, err
}

// JobTasks reads the tasks of a job as they are shown.
func (c Masked) JobTasks(ctx context.Context, id weaver.JobID) ([]weaver.TaskInfo, error) {
	list, err := c.Client.JobTasks(ctx, id)
	redact.Tasks(list)
	return list, err
}

// History reads what is recorded about a task as it is shown.
func (c Masked) History(ctx context.Context, id weaver.TaskID) (store.History, error) {
	h, err := c.Client.History(ctx, id)
	redact.History(&h)
	return h, err
}

// Search reads tasks as they are shown.
func (c Masked) Search(ctx context.Context, q ops.Query) (ops.SearchPage, error) {
	page, err := c.Client.Search(ctx, q)
	redact.Tasks(page.Items)
	return page, err
}

// Edges returns the edges of the tasks of a job.
func (c Masked) Edges(ctx context.Context, job weaver.JobID) (edges []store.GraphEdge, err error) {
	for req := (store.GraphRequest{Job: job}); ; {
		g, err := c.Graph(ctx, req)
		if err != nil {
			return nil, err
		}
		edges = append(edges, g.Edges...)
		if req.After = g.Next; req.After == "" {
			return edges, nil
		}
	}
}

// Orphans returns which of the tasks run in processes that are known to be dead, where
// the store knows it.
func (c Masked) Orphans(ctx context.Context, ids ...weaver.TaskID) ([]weaver.TaskID, error) {
	return c.Store().Orphans(ctx, c.Namespace(), ids...)
}
