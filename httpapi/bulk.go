package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/task"
)

// bulkRequest makes the request of a body.
func (c *call) bulkRequest(b *BulkRequest) (req ops.BulkRequest, err error) {
	req = ops.BulkRequest{Verb: b.Verb, After: b.Next, Limit: b.Limit, DryRun: b.DryRun, Force: b.Force, KeepSteps: b.KeepSteps, Cleanups: b.Cleanup, By: c.who.Name, Reason: b.Reason}
	wrong := func(pointer, format string, args ...any) error {
		return bodyProblem(invalidBody, pointer, fmt.Sprintf(format, args...))
	}
	switch {
	case !slices.Contains(ops.BulkVerbs(), b.Verb):
		return req, wrong("/verb", "%q is not a bulk verb: use one of %v", b.Verb, ops.BulkVerbs())
	case b.Limit < 0 || b.Limit > ops.MaxBulk:
		return req, wrong("/limit", "it is %d: want 1 to %d", b.Limit, ops.MaxBulk)
	case b.Force && b.Verb != ops.BulkCancel:
		return req, wrong("/force", "only for cancel: leave it out")
	case b.KeepSteps && b.Verb != ops.BulkRetry:
		return req, wrong("/keep_steps", "only for retry: leave it out")
	case b.Cleanup && b.Verb != ops.BulkRetry:
		return req, wrong("/cleanup", "only for retry: leave it out")
	case b.Q != "" && b.IDs != nil:
		return req, wrong("/ids", "there is a q, too: want one of them")
	case b.Q == "" && b.IDs == nil:
		return req, wrong("/q", "q and ids are both missing: give one of them. An empty q is rejected too, because it would select every task")
	case len(b.IDs) > ops.MaxBulk:
		return req, wrong("/ids", "there are %d: at most %d", len(b.IDs), ops.MaxBulk)
	case b.IDs != nil && b.Newest != "":
		return req, wrong("/newest", "only with q: ids already fix the selection")
	}
	if b.Newest != "" {
		if req.Newest, err = task.ParseID(b.Newest); err != nil {
			return req, wrong("/newest", "%s", err)
		}
	}
	if b.Q != "" {
		q, p := c.parseQuery(b.Q)
		if p != nil {
			p.Errors[0].Pointer = "#/q"
			return req, p
		}
		req.Query = &q
		return req, nil
	}
	req.IDs = make([]task.ID, len(b.IDs))
	for i, text := range b.IDs {
		if req.IDs[i], err = task.ParseID(text); err != nil {
			return req, wrong(fmt.Sprintf("/ids/%d", i), "%s", err)
		}
	}
	return req, nil
}

// bulk changes up to 1,000 tasks.
func (c *call) bulk() error {
	var body BulkRequest
	if err := c.decode(&body); err != nil {
		return err
	}
	req, err := c.bulkRequest(&body)
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	res, err := c.api.client.Bulk(ctx, req)
	answer := c.showBulk(&res)
	if err != nil {
		if req.DryRun || res.Next == "" || res.Next == req.After || errors.Is(err, weaver.ErrInvalidOption) {
			if res.Done > 0 && !req.DryRun && c.r.Context().Err() == nil {
				p := c.problem(err, "a verb of many tasks ended early")
				p.Detail = fmt.Sprintf("%s Before that %d tasks were changed.", cmp.Or(p.Detail, p.Title), res.Done)
				return p
			}
			return err
		}
		// The response reports the completed part, and the next request continues after it.
		answer.Trouble = c.problem(err, "a verb of many tasks ended early").Error()
	}
	return c.write(http.StatusOK, answer)
}

func (c *call) showBulk(r *ops.BulkResult) BulkResult {
	b := BulkResult{
		Done: r.Done, Asked: r.Asked, UndoneFirst: r.UndoneFirst, AlreadyDone: r.AlreadyDone, Refused: make([]RefusedTask, len(r.Refused)),
		States: r.States, Scanned: r.Scanned, Unread: r.Unread, Newest: r.Newest, Next: r.Next,
	}
	for i, refused := range r.Refused {
		b.Refused[i] = RefusedTask{ID: refused.ID, Problem: c.problem(refused.Err, "a verb failed for a task")}
	}
	for _, s := range r.Samples {
		b.Samples = append(b.Samples, BulkSample{ID: s.ID, Type: s.Type, Queue: s.Queue, State: s.State})
	}
	return b
}
