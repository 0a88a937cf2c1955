package weaver

import (
	"encoding/json"
	"fmt"

	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/task"
)

// Plain returns the draft as a plain value, for a Decider that names the children of a task
// (decide.Decision.Children). Errors: those of the draft (Err), and ErrInvalidOption for an
// IdempotencyKey, which a child cannot have.
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
		p := task.Draft{Type: d.typeName, Input: d.input}
		option.Copy(&p, n)
		return p, nil
	}
}

// planned converts plain drafts of the handler's type to tasks.
func (h Handler) planned(c *Client) func(*task.Draft) (task.New, error) {
	return func(p *task.Draft) (task.New, error) {
		input := p.Input
		if len(input) == 0 {
			input = json.RawMessage("null")
		}
		if p.Node != "" {
			if err := option.CheckKey("Node", p.Node); err != nil {
				return task.New{}, fmt.Errorf("%w: %w", ErrInvalidOption, err)
			}
		}
		n, err := c.toNew(h.Draft(input, option.Given[EnqueueOption](p)...))
		n.Node = p.Node
		return n, err
	}
}
