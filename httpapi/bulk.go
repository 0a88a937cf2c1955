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

// BulkRequest says which tasks are changed, and how: those of q, or ids.
type BulkRequest struct {
	Verb   ops.BulkVerb `json:"verb"`                     // retry, cancel, delete or unblock
	Q      string       `json:"q,omitempty"`              // of what it selects, what the verb can change, newest first
	IDs    []string     `json:"ids,omitempty" max:"1000"` // at most 1,000
	Newest string       `json:"newest,omitempty"`         // with q: no task that was enqueued after this one
	Next   string       `json:"next,omitempty"`           // that of the answer before
	Limit  int          `json:"limit,omitempty"`          // the most tasks; 0: 1,000, which is the most
	Reason string       `json:"reason,omitempty"`         // for the audit
	DryRun bool         `json:"dry_run,omitempty"`        // change nothing
	Force  bool         `json:"force,omitempty"`          // cancel: running ones end at once

	KeepSteps bool `json:"keep_steps,omitempty"` // retry: although a cleanup ran
	Cleanup   bool `json:"cleanup,omitempty"`    // retry: try undos again that were given up
}

// BulkResult says what was done. While it has a next the same request goes on with that.
type BulkResult struct {
	Done        int           `json:"done"`                   // tasks that were changed; in a dry run: that would be
	Asked       int           `json:"asked"`                  // cancel: of these, those that run and were asked to end
	UndoneFirst int           `json:"undone_first,omitempty"` // cancel, in a dry run: of done, those that would be undone before they end
	AlreadyDone int           `json:"already_done"`           // that were as the verb would have them by then, or are not selected any more
	Refused     []RefusedTask `json:"refused"`                // that could not be changed

	States  map[task.State]int `json:"states,omitempty"`  // in a dry run: how many of done are in which state
	Samples []BulkSample       `json:"samples,omitempty"` // in a dry run: the first 20 of them

	Scanned int     `json:"scanned"`           // tasks that were looked at
	Unread  int     `json:"unread"`            // tasks whose values could not be read: they are not selected
	Newest  task.ID `json:"newest,omitzero"`   // the newest task that was selected: as newest it fixes what another request is for
	Next    string  `json:"next,omitempty"`    // left out: this was the end
	Trouble string  `json:"trouble,omitempty"` // why it ended early
}

// RefusedTask is a task that a verb could not change, and why.
type RefusedTask struct {
	ID      task.ID  `json:"id"`
	Problem *Problem `json:"problem"`
}

// BulkSample is a task that a dry run lists.
type BulkSample struct {
	ID    task.ID    `json:"id"`
	Type  string     `json:"task_type"`
	Queue string     `json:"queue"`
	State task.State `json:"state"`
}

// bulkRequest makes the request of a body.
func (c *call) bulkRequest(b *BulkRequest) (req ops.BulkRequest, err error) {
	req = ops.BulkRequest{Verb: b.Verb, After: b.Next, Limit: b.Limit, DryRun: b.DryRun, Force: b.Force, KeepSteps: b.KeepSteps, Cleanups: b.Cleanup, By: c.who.Name, Reason: b.Reason}
	wrong := func(pointer, format string, args ...any) error {
		return bodyProblem(invalidBody, pointer, fmt.Sprintf(format, args...))
	}
	switch {
	case !slices.Contains(ops.BulkVerbs(), b.Verb):
		return req, wrong("/verb", "%q is no verb of many tasks; the verbs are %v", b.Verb, ops.BulkVerbs())
	case b.Limit < 0 || b.Limit > ops.MaxBulk:
		return req, wrong("/limit", "it is %d: want 1 to %d", b.Limit, ops.MaxBulk)
	case b.Force && b.Verb != ops.BulkCancel:
		return req, wrong("/force", "it is for cancel alone")
	case b.KeepSteps && b.Verb != ops.BulkRetry:
		return req, wrong("/keep_steps", "it is for retry alone")
	case b.Cleanup && b.Verb != ops.BulkRetry:
		return req, wrong("/cleanup", "it is for retry alone")
	case b.Q != "" && b.IDs != nil:
		return req, wrong("/ids", "there is a q, too: want one of them")
	case b.Q == "" && b.IDs == nil:
		return req, wrong("/q", "there are no ids either: want one of them. A q that is empty is refused, too, as it would select every task")
	case len(b.IDs) > ops.MaxBulk:
		return req, wrong("/ids", "there are %d: at most %d", len(b.IDs), ops.MaxBulk)
	case b.IDs != nil && b.Newest != "":
		return req, wrong("/newest", "it is for q: ids say themselves which tasks they are")
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
		// What was done is told, and the next request goes on behind it.
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
		b.Refused[i] = RefusedTask{refused.ID, c.problem(refused.Err, "a verb failed for a task")}
	}
	for _, s := range r.Samples {
		b.Samples = append(b.Samples, BulkSample{s.ID, s.Type, s.Queue, s.State})
	}
	return b
}
