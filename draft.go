package weaver

import (
	"encoding/json"
	"fmt"

	"github.com/goweaver/weaver/task"
)

// Plain returns the draft as a plain value, with which a Decider names the children
// of a task (decide.Decision.Children). Errors: those of the draft (Err), and
// ErrInvalidOption for an IdempotencyKey, which a child cannot have.
func (d Draft) Plain() (task.Draft, error) {
	switch n := d.options(); {
	case d.err != nil:
		return task.Draft{}, d.err
	case d.typeName == "":
		return task.Draft{}, fmt.Errorf("%w: the draft is empty: make drafts with a task type's With", ErrInvalidInput)
	case n.IdempotencyKey != "":
		return task.Draft{}, fmt.Errorf("%w of %s: a child has no IdempotencyKey: it is stored once with the decision", ErrInvalidOption, d.typeName)
	case n.Coalesce:
		return task.Draft{}, fmt.Errorf("%w of %s: a child has no Coalesce: its parent waits for it", ErrInvalidOption, d.typeName)
	default:
		return task.Draft{
			Type: d.typeName, Input: d.input,
			Queue: n.Queue, Priority: n.Priority, Delay: n.Delay, At: n.At, ExpireAfter: n.ExpireAfter,
			MaxAttempts: n.MaxAttempts, MaxCost: n.MaxCost, MaxNoProgress: n.MaxNoProgress, Backoff: n.Backoff, BackoffMax: n.BackoffMax, Timeout: n.Timeout,
			CleanupWhenCancelled: n.CleanupWhenCancelled,
			ConcurrencyKey:       n.ConcurrencyKey, ConcurrencyLimit: n.ConcurrencyLimit,
			Labels: n.Labels, Metadata: n.Metadata,
		}, nil
	}
}

// planned makes tasks of the plain drafts of the handler's type.
func (h Handler) planned(c *Client) func(*task.Draft) (task.New, error) {
	return func(p *task.Draft) (task.New, error) {
		input := p.Input
		if len(input) == 0 {
			input = json.RawMessage("null")
		}
		if p.Node != "" {
			if err := checkKey("Node", p.Node); err != nil {
				return task.New{}, fmt.Errorf("%w: %w", ErrInvalidOption, err)
			}
		}
		n, err := c.toNew(h.Draft(input, plainOptions(p)...))
		n.Node = p.Node
		return n, err
	}
}

// plainOptions are the options that a plain draft has.
func plainOptions(p *task.Draft) (opts []EnqueueOption) {
	add := func(given bool, o EnqueueOption) {
		if given {
			opts = append(opts, o)
		}
	}
	add(p.Queue != "", Queue(p.Queue))
	add(p.Priority != 0, Priority(p.Priority))
	add(p.Delay != 0, Delay(p.Delay))
	add(!p.At.IsZero(), At(p.At))
	add(p.ExpireAfter != 0, ExpireAfter(p.ExpireAfter))
	add(p.MaxAttempts != 0, MaxAttempts(p.MaxAttempts))
	add(p.MaxCost != 0, MaxCost(p.MaxCost))
	add(p.MaxNoProgress != 0, MaxNoProgress(p.MaxNoProgress))
	add(p.Backoff != 0, Backoff(p.Backoff))
	add(p.BackoffMax != 0, BackoffMax(p.BackoffMax))
	add(p.Timeout != 0, Timeout(p.Timeout))
	add(p.CleanupWhenCancelled, CleanupWhenCancelled())
	if p.ConcurrencyKey != "" || p.ConcurrencyLimit != 0 {
		opts = append(opts, ConcurrencyKey(p.ConcurrencyKey, max(p.ConcurrencyLimit, 1)))
	}
	for k, v := range p.Labels {
		opts = append(opts, Label(k, v))
	}
	for k, v := range p.Metadata {
		opts = append(opts, Metadata(k, v))
	}
	return opts
}
