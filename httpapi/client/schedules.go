package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi/wire"
	"github.com/goweaver/weaver/store"
)

// schedulePath returns the path of a schedule, or of a part of it.
func schedulePath(name, part string) (string, error) {
	if name == "" || name == "." || name == ".." {
		return "", fmt.Errorf("%w: the name %q cannot be part of a path", weaver.ErrInvalidOption, name)
	}
	return "/v1/schedules/" + url.PathEscape(name) + part, nil
}

// schedule sends a request about a schedule.
func (c *Client) schedule(ctx context.Context, name, part string, r request, v any) (err error) {
	if r.path, err = schedulePath(name, part); err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	return c.send(ctx, r, v)
}

// PutSchedule is weaver.Client.PutSchedule over HTTP.
func (c *Client) PutSchedule(ctx context.Context, s weaver.Schedule, opts ...weaver.OperateOption) (got weaver.ScheduleInfo, err error) {
	o, err := operation("put schedule "+s.Name(), store.WriteSchedule{Verb: "put_schedule"}, opts)
	if err != nil {
		return got, err
	}
	p, err := s.Plain()
	if err != nil {
		return got, fmt.Errorf("put: %w", err)
	}
	body := wire.ScheduleDraft{
		VerbRequest: reason(o), Cron: p.Cron, Timezone: p.Timezone, Every: wire.Span(p.Every), NotBefore: p.NotBefore, NotAfter: p.NotAfter,
		Overlap: p.Overlap, CatchUp: wire.Span(p.CatchUp), Jitter: wire.Span(p.Jitter),
	}
	if p.Job != nil {
		job := jobDraftOf(p.Job, p.Tasks)
		body.Job = &job
	} else {
		task := draftOf(&p.Tasks[0])
		body.Task = &task
	}
	r := request{method: http.MethodPut, body: body, safe: o.SeenVersion == nil}
	switch {
	case o.SeenVersion == nil:
	case *o.SeenVersion == 0:
		r.ifNoneMatch = "*"
	default:
		r.ifMatch = wire.VersionTag(*o.SeenVersion)
	}
	err = c.schedule(ctx, p.Name, "", r, &got)
	return got, err
}

// Schedule is weaver.Client.Schedule over HTTP.
func (c *Client) Schedule(ctx context.Context, name string) (weaver.ScheduleInfo, error) {
	var got wire.Schedule
	err := c.schedule(ctx, name, "", request{method: http.MethodGet, query: pageQuery(1, "")}, &got)
	return got.ScheduleInfo, err
}

// NextFires is weaver.Client.NextFires over HTTP.
func (c *Client) NextFires(ctx context.Context, name string, n int) ([]time.Time, error) {
	if n < 1 {
		return nil, nil
	}
	q := pageQuery(1, "")
	q.Set("upcoming", strconv.Itoa(min(n, store.MaxLimit)))
	var got wire.Schedule
	err := c.schedule(ctx, name, "", request{method: http.MethodGet, query: q}, &got)
	return got.Upcoming, err
}

// Schedules is weaver.Client.Schedules over HTTP.
func (c *Client) Schedules(ctx context.Context, after string, limit int) ([]weaver.ScheduleInfo, error) {
	var page wire.Page[weaver.ScheduleInfo]
	err := c.send(ctx, request{method: http.MethodGet, path: "/v1/schedules", query: pageQuery(limit, after)}, &page)
	return page.Items, err
}

// ScheduleFires is weaver.Client.ScheduleFires over HTTP.
func (c *Client) ScheduleFires(ctx context.Context, name string, before time.Time, limit int) ([]weaver.ScheduleFire, error) {
	after := ""
	if !before.IsZero() {
		after = before.UTC().Format(time.RFC3339Nano)
	}
	var page wire.Page[weaver.ScheduleFire]
	err := c.schedule(ctx, name, "/fires", request{method: http.MethodGet, query: pageQuery(limit, after)}, &page)
	return page.Items, err
}

// PauseSchedule is weaver.Client.PauseSchedule over HTTP.
func (c *Client) PauseSchedule(ctx context.Context, name string, opts ...weaver.OperateOption) (weaver.ScheduleInfo, error) {
	return c.operateSchedule(ctx, name, "pause", opts)
}

// ResumeSchedule is weaver.Client.ResumeSchedule over HTTP.
func (c *Client) ResumeSchedule(ctx context.Context, name string, opts ...weaver.OperateOption) (weaver.ScheduleInfo, error) {
	return c.operateSchedule(ctx, name, "resume", opts)
}

// TriggerSchedule is weaver.Client.TriggerSchedule over HTTP.
func (c *Client) TriggerSchedule(ctx context.Context, name string, opts ...weaver.OperateOption) (weaver.ScheduleInfo, error) {
	return c.operateSchedule(ctx, name, "trigger", opts)
}

func (c *Client) operateSchedule(ctx context.Context, name, verb string, opts []weaver.OperateOption) (got weaver.ScheduleInfo, err error) {
	o, err := operation(verb+" schedule "+name, store.WriteSchedule{}, opts)
	if err != nil {
		return got, err
	}
	err = c.schedule(ctx, name, "/"+verb, request{method: http.MethodPost, body: why(o)}, &got)
	return got, err
}

// BackfillSchedule is weaver.Client.BackfillSchedule over HTTP.
func (c *Client) BackfillSchedule(ctx context.Context, name string, from, to time.Time, opts ...weaver.OperateOption) (got weaver.Backfilled, err error) {
	o, err := operation("backfill schedule "+name, store.WriteSchedule{Verb: "backfill_schedule"}, opts)
	if err != nil {
		return got, err
	}
	body := wire.BackfillRequest{VerbRequest: reason(o), From: from, To: to, DryRun: o.DryRun}
	err = c.schedule(ctx, name, "/backfill", request{method: http.MethodPost, body: body, safe: true}, &got)
	return got, err
}

// DeleteSchedule is weaver.Client.DeleteSchedule over HTTP.
func (c *Client) DeleteSchedule(ctx context.Context, name string, opts ...weaver.OperateOption) error {
	o, err := operation("delete schedule "+name, store.WriteSchedule{}, opts)
	if err != nil {
		return err
	}
	q := make(url.Values)
	if o.Reason != "" {
		q.Set("reason", o.Reason)
	}
	return c.schedule(ctx, name, "", request{method: http.MethodDelete, query: q}, nil)
}
