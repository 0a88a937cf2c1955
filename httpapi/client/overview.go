package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi/wire"
	"github.com/goweaver/weaver/store"
)

// read sends a GET.
func (c *Client) read(ctx context.Context, path string, q url.Values, v any) error {
	return c.send(ctx, request{method: http.MethodGet, path: path, query: q}, v)
}

// Counts is weaver.Client.Counts over HTTP.
func (c *Client) Counts(ctx context.Context) (store.Counts, error) {
	var got wire.Counts
	err := c.read(ctx, "/v1/counts", nil, &got)
	return got.Counts, err
}

// Queues is weaver.Client.Queues over HTTP.
func (c *Client) Queues(ctx context.Context) ([]store.Queue, error) {
	var got wire.List[store.Queue]
	err := c.read(ctx, "/v1/queues", nil, &got)
	return got.Items, err
}

// Workers is weaver.Client.Workers over HTTP.
func (c *Client) Workers(ctx context.Context) ([]store.WorkerStatus, error) {
	var got wire.List[store.WorkerStatus]
	err := c.read(ctx, "/v1/workers", nil, &got)
	return got.Items, err
}

// Types lists the task types that workers announced, without their schemas; Type reads these.
func (c *Client) Types(ctx context.Context) ([]TaskType, error) {
	var got wire.List[TaskType]
	err := c.read(ctx, "/v1/types", nil, &got)
	return got.Items, err
}

// Type reads an announced task type. An unknown type is a *Problem with the status 404.
func (c *Client) Type(ctx context.Context, name string) (t TaskType, err error) {
	err = c.read(ctx, "/v1/types/"+url.PathEscape(name), nil, &t)
	return t, err
}

// Audit is weaver.Client.Audit over HTTP.
func (c *Client) Audit(ctx context.Context, f store.AuditFilter) ([]store.AuditEntry, string, error) {
	q := pageQuery(f.Limit, f.After)
	for name, value := range map[string]string{"target": f.Target, "actor": f.Actor, "verb": f.Verb} {
		if value != "" {
			q.Set(name, value)
		}
	}
	var page wire.Page[store.AuditEntry]
	err := c.read(ctx, "/v1/audit", q, &page)
	return page.Items, page.Next, err
}

// PauseType is weaver.Client.PauseType over HTTP.
func (c *Client) PauseType(ctx context.Context, name string, opts ...weaver.OperateOption) error {
	return c.operateNamed(ctx, "types", name, "pause", store.PauseType{}, opts)
}

// ResumeType is weaver.Client.ResumeType over HTTP.
func (c *Client) ResumeType(ctx context.Context, name string, opts ...weaver.OperateOption) error {
	return c.operateNamed(ctx, "types", name, "resume", store.ResumeType{}, opts)
}

// Bulk retries, cancels, deletes or unblocks up to 1,000 tasks, or in a dry run lists the effects.
// If the result has a Next, repeat the request with it to continue. A request whose response was
// lost (store.ErrUnknown) may be repeated: each task is checked again.
func (c *Client) Bulk(ctx context.Context, req BulkRequest) (res BulkResult, err error) {
	err = c.send(ctx, request{method: http.MethodPost, path: "/v1/tasks/bulk", body: req, safe: req.DryRun}, &res)
	return res, err
}
