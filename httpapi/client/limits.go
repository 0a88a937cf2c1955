package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi/wire"
	"github.com/goweaver/weaver/store"
)

func limitPath(name string) string { return "/v1/limits/" + url.PathEscape(name) }

// SetLimit is weaver.Client.SetLimit over HTTP.
func (c *Client) SetLimit(ctx context.Context, name string, l weaver.Limit, opts ...weaver.OperateOption) error {
	o, err := operation("set limit", store.SetLimit{}, opts)
	if err == nil {
		limit := store.Limit(l)
		err = limitProblem(weaver.ErrInvalidOption, store.CheckLimit(name, &limit))
	}
	if err != nil {
		return err
	}
	body := wire.LimitDraft{VerbRequest: reason(o), Starts: l.Starts, Per: wire.Span(l.Per), Burst: l.Burst, Running: l.Running, Pending: l.Pending, Weight: l.Weight}
	return c.send(ctx, request{method: http.MethodPut, path: limitPath(name), body: body, safe: true}, new(weaver.LimitInfo))
}

// DeleteLimit is weaver.Client.DeleteLimit over HTTP.
func (c *Client) DeleteLimit(ctx context.Context, name string, opts ...weaver.OperateOption) error {
	o, err := operation("delete limit", store.SetLimit{}, opts)
	if err == nil {
		err = limitProblem(weaver.ErrNotFound, store.CheckLimitName(name))
	}
	if err != nil {
		return err
	}
	q := make(url.Values)
	if o.Reason != "" {
		q.Set("reason", o.Reason)
	}
	return c.send(ctx, request{method: http.MethodDelete, path: limitPath(name), query: q}, nil)
}

// Limit is weaver.Client.Limit over HTTP.
func (c *Client) Limit(ctx context.Context, name string) (got weaver.LimitInfo, err error) {
	if err := limitProblem(weaver.ErrNotFound, store.CheckLimitName(name)); err != nil {
		return got, err
	}
	err = c.send(ctx, request{method: http.MethodGet, path: limitPath(name)}, &got)
	return got, err
}

// Limits is weaver.Client.Limits over HTTP.
func (c *Client) Limits(ctx context.Context, after string, limit int) ([]weaver.LimitInfo, error) {
	var page wire.Page[weaver.LimitInfo]
	err := c.send(ctx, request{method: http.MethodGet, path: "/v1/limits", query: pageQuery(limit, after)}, &page)
	return page.Items, err
}

// limitProblem returns an error of a kind, or nil if there is none: not every name can be part of a path.
func limitProblem(kind, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("limit: %w: %w", kind, err)
}
