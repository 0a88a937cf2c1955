package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi/wire"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// EnqueueTasks implements weaver.Enqueuer. It accepts up to 1,000 drafts.
func (c *Client) EnqueueTasks(ctx context.Context, drafts ...weaver.Draft) ([]weaver.Enqueued, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	if len(drafts) > wire.MaxBatch {
		return nil, fmt.Errorf("enqueue: %w: %d drafts: over HTTP at most %d are enqueued at once", weaver.ErrTooLarge, len(drafts), wire.MaxBatch)
	}
	bodies := make([]wire.Draft, len(drafts))
	keyed := true
	var problems []error
	for i, d := range drafts {
		n, err := d.Task()
		if err != nil {
			if len(drafts) > 1 {
				err = fmt.Errorf("draft %d: %w", i, err)
			}
			problems = append(problems, err)
		}
		bodies[i] = draftOf(&n)
		keyed = keyed && n.IdempotencyKey != ""
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("enqueue: nothing was stored: %w", errors.Join(problems...))
	}
	r := request{method: http.MethodPost, path: "/v1/tasks", body: bodies[0], safe: keyed}
	var got wire.List[wire.Enqueued]
	if len(drafts) == 1 {
		got.Items = make([]wire.Enqueued, 1)
		if err := c.send(ctx, r, &got.Items[0]); err != nil {
			return nil, err
		}
	} else {
		r.path, r.body = "/v1/tasks/batch", wire.BatchRequest{Tasks: bodies}
		if err := c.send(ctx, r, &got); err != nil {
			return nil, err
		}
	}
	if len(got.Items) != len(drafts) {
		return nil, fmt.Errorf("%w: the answer names %d tasks, and %d were sent", store.ErrUnknown, len(got.Items), len(drafts))
	}
	out := make([]weaver.Enqueued, len(drafts))
	for i, e := range got.Items {
		out[i] = weaver.Enqueued{ID: e.ID, Type: e.Type, Disposition: e.Disposition}
	}
	return out, nil
}

// draftOf converts a task.
func draftOf(n *task.New) wire.Draft {
	d := wire.Draft{
		Type: n.Type, Input: n.Input, SchemaVersion: n.SchemaVersion, Exact: true,
		Redact: n.Redact,
	}
	option.Copy(&d.DraftOptions, n)
	for _, e := range n.Expire {
		d.Expire = append(d.Expire, wire.ExpiryDraft{Path: e.Path, After: wire.Span(e.After)})
	}
	return d
}

// optionsOf returns the changes that options make to a task that only the server knows; nil without
// changes.
func optionsOf(opts []weaver.EnqueueOption) (*wire.DraftOptions, error) {
	if len(opts) == 0 {
		return nil, nil
	}
	if err := weaver.NewDraft("weaver.http.options.v1", []byte("null"), opts...).Err(); err != nil {
		return nil, err
	}
	said, zero := option.Said(func(s *option.Settings) {
		for _, o := range opts {
			o.ApplyEnqueue(s)
		}
	})
	var problems []error
	cannot := func(what string) {
		problems = append(problems, fmt.Errorf("%w: %s cannot be given to a rerun over HTTP", weaver.ErrInvalidOption, what))
	}
	if said.SchemaVersion != 0 {
		cannot("SchemaVersion")
	}
	for _, o := range zero {
		cannot(o.Name + "(0)")
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	var d wire.DraftOptions
	option.Copy(&d, &said)
	return &d, nil
}

// Get reads one task; ErrNotFound.
func (c *Client) Get(ctx context.Context, id weaver.TaskID) (weaver.TaskInfo, error) {
	t, err := c.getTask(ctx, id, nil, 0)
	return t.Task, err
}

func (c *Client) getTask(ctx context.Context, id weaver.TaskID, q url.Values, poll time.Duration) (t wire.Task, err error) {
	err = c.send(ctx, request{method: http.MethodGet, path: taskPath(id), query: q, poll: poll}, &t)
	return t, err
}

func taskPath(id weaver.TaskID, parts ...string) string {
	return "/v1/tasks/" + strings.Join(append([]string{idPart(id)}, parts...), "/")
}

// idPart returns an ID as a part of a path; the zero ID is not an empty part.
func idPart(id task.ID) string {
	if id.IsZero() {
		return strings.Repeat("0", 26)
	}
	return id.String()
}

// List reads tasks newest first, and the cursor of the next page, "" at the end. Rows have no
// inputs and outputs; Get reads these. Errors: those of weaver.Client.List.
func (c *Client) List(ctx context.Context, f weaver.Filter) ([]weaver.TaskInfo, string, error) {
	page, err := c.Search(ctx, "", f)
	return page.Items, page.Next, err
}

// Search reads the tasks that match a query, newest first. ops.ParseQuery defines the query and
// weaver.Client.Search its results; "" matches all tasks. The filter's conditions apply, too. Rows
// have no inputs and outputs. ErrInvalidQuery is a *Problem with the place of the mistake
// (Problem.Errors).
func (c *Client) Search(ctx context.Context, query string, f weaver.Filter) (ops.SearchPage, error) {
	return c.search(ctx, "/v1/tasks", query, f)
}

func (c *Client) search(ctx context.Context, path, query string, f weaver.Filter) (ops.SearchPage, error) {
	if err := f.Check(); err != nil {
		return ops.SearchPage{}, fmt.Errorf("list tasks: %w: %w", weaver.ErrInvalidOption, err)
	}
	q := filterQuery(&f)
	if query != "" {
		q.Set("q", query)
	}
	var found wire.Found
	if err := c.send(ctx, request{method: http.MethodGet, path: path, query: q}, &found); err != nil {
		return ops.SearchPage{}, err
	}
	page := ops.SearchPage{Items: make([]weaver.TaskInfo, len(found.Items)), Scanned: found.Scanned, OldestSeen: found.OldestSeen, Unread: found.Unread, Next: found.Next}
	for i := range found.Items {
		page.Items[i] = found.Items[i].Task
	}
	return page, nil
}

// filterQuery returns the parameters of a filter.
func filterQuery(f *weaver.Filter) url.Values {
	q := pageQuery(f.Limit, f.After)
	set := func(name, value string, given bool) {
		if given {
			q.Set(name, value)
		}
	}
	addAll(q, "state", f.States)
	addAll(q, "type", f.Types)
	addAll(q, "waiting", f.Waiting)
	addAll(q, "error", f.ErrorKinds)
	set("queue", f.Queue, f.Queue != "")
	set("job", f.Job.String(), !f.Job.IsZero())
	set("parent", f.Parent.String(), !f.Parent.IsZero())
	set("created_after", f.CreatedAfter.Format(time.RFC3339Nano), !f.CreatedAfter.IsZero())
	set("created_before", f.CreatedBefore.Format(time.RFC3339Nano), !f.CreatedBefore.IsZero())
	for k, v := range f.Labels {
		q.Add("label", k+"="+v)
	}
	return q
}

func addAll[S ~string](q url.Values, name string, values []S) {
	for _, v := range values {
		q.Add(name, string(v))
	}
}

// pageQuery returns the parameters of a page.
func pageQuery(limit int, after string) url.Values {
	q := make(url.Values)
	if limit > 0 {
		q.Set("limit", strconv.Itoa(min(limit, store.MaxLimit)))
	}
	if after != "" {
		q.Set("after", after)
	}
	return q
}

// History reads all records of a task except its events and logs; ErrNotFound.
func (c *Client) History(ctx context.Context, id weaver.TaskID) (store.History, error) {
	var h wire.History
	if err := c.send(ctx, request{method: http.MethodGet, path: taskPath(id, "history")}, &h); err != nil {
		return store.History{}, err
	}
	return store.History{
		Task: h.Task.Task, Attempts: h.Attempts, Decisions: h.Decisions, Steps: h.Steps, Signals: h.Signals,
		Checkpoints: h.Checkpoints, Artifacts: h.Artifacts, Needs: h.Needs, Dependents: h.Dependents, Audit: h.Audit,
		Holders: h.Holders, Ahead: h.Ahead, TaskPause: h.TaskPause, TypePause: h.TypePause, QueuePause: h.QueuePause,
	}, nil
}

// UndoPlan lists the steps of a task, and those that would be undone; see weaver.Client.UndoPlan.
func (c *Client) UndoPlan(ctx context.Context, id weaver.TaskID) (plan task.UndoPlan, err error) {
	err = c.send(ctx, request{method: http.MethodGet, path: taskPath(id, "undo")}, &plan)
	return plan, err
}

// Wait waits for a task, whichever process runs it, and returns it with its output; see
// weaver.Handle.Wait. A server that is temporarily unavailable or busy does not end the wait: set a
// limit in ctx if it should.
func (c *Client) Wait(ctx context.Context, id weaver.TaskID, opts ...weaver.WaitOption) (weaver.TaskInfo, error) {
	s, err := weaver.ReadWaitOptions(opts...)
	if err != nil {
		return weaver.TaskInfo{}, err
	}
	var t wire.Task
	err = c.until(ctx, id, s, func(q url.Values, poll time.Duration) (over bool, err error) {
		if t, err = c.getTask(ctx, id, q, poll); err != nil {
			return false, err
		}
		over, err = s.Task(&t.Task)
		if over && err == nil && t.PayloadsHidden {
			err = fmt.Errorf("task %s succeeded, and its output is not shown: these credentials have no access payloads", id)
		}
		return over, err
	})
	return t.Task, err
}

// until polls until a task or job has ended. look passes the server a time for its wait.
func (c *Client) until(ctx context.Context, id task.ID, s weaver.WaitSettings, look func(q url.Values, poll time.Duration) (over bool, err error)) error {
	poll := maxLongPoll
	if t := c.http.Timeout; t > 0 {
		poll = min(poll, t/2)
	}
	warned := false
	for failed := 0; ; {
		q := make(url.Values)
		if poll > 0 {
			q.Set("wait", poll.String())
		}
		if s.ThroughBlocked {
			q.Set("through_blocked", "true")
		}
		began := time.Now()
		over, err := look(q, poll)
		switch {
		case over:
			return err
		case err == nil:
			failed = 0
			if early := max(poll, time.Second) - time.Since(began); early > 0 { // the server is stopping, or responds at once
				if err := sleep(ctx, min(early, time.Second)); err != nil {
					return err
				}
			}
			continue
		case ctx.Err() != nil:
			return fmt.Errorf("%w; the last look: %w", context.Cause(ctx), err)
		case poll > 0 && refusedWait(err):
			poll = (poll / 2).Truncate(time.Second)
			continue
		case !passing(err):
			return err
		}
		if !warned {
			c.log.Warn("the server cannot be read; the wait goes on", "id", id, "error", err)
			warned = true
		}
		if ended := sleep(ctx, min(firstPause<<min(failed, 6), 5*time.Second)); ended != nil {
			return fmt.Errorf("%w; the last look: %w", ended, err)
		}
		failed++
	}
}

// refusedWait reports whether the server rejects the length of the wait (Config.MaxWait).
func refusedWait(err error) bool {
	var p *Problem
	return errors.As(err, &p) && p.Status == http.StatusBadRequest && len(p.Errors) == 1 && p.Errors[0].Parameter == "wait"
}
