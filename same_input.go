package weaver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/goweaver/weaver/task"
)

// requireInput returns ErrConflict unless a task has the input of a draft.
func (c *Client) requireInput(ctx context.Context, id TaskID, n *task.New) error {
	same, err := c.HasInput(ctx, id, n.Input)
	switch {
	case errors.Is(err, ErrForgotten), errors.Is(err, ErrValuesDropped):
		return fmt.Errorf("%w: task %s of %s has the idempotency key %q, and its input is not known any more: %w", ErrConflict, id, n.Type, n.IdempotencyKey, err)
	case err != nil:
		return err
	case !same:
		return fmt.Errorf("%w: task %s of %s has the idempotency key %q, and another input: use another key, or leave RequireSameInput out", ErrConflict, id, n.Type, n.IdempotencyKey)
	}
	return nil
}

// HasInput reports whether a task's input is the same JSON. Key order and white space do not matter;
// numbers must be written alike. Errors: ErrForgotten, ErrValuesDropped if the input or a field of it
// was removed.
func (c *Client) HasInput(ctx context.Context, id TaskID, input json.RawMessage) (bool, error) {
	t, err := c.Get(ctx, id)
	switch {
	case err != nil:
		return false, err
	case t.Forgotten:
		return false, fmt.Errorf("input of task %s: %w", id, ErrForgotten)
	case len(t.Input) == 0 || task.HasExpired(t.Input):
		return false, fmt.Errorf("input of task %s: %w", id, ErrValuesDropped)
	case bytes.Equal(t.Input, input):
		return true, nil
	}
	was, err := plainJSON(t.Input)
	if err != nil {
		return false, fmt.Errorf("input of task %s: %w", id, err)
	}
	is, err := plainJSON(input)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrInvalidInput, err)
	}
	return reflect.DeepEqual(was, is), nil
}

// plainJSON decodes a value and keeps numbers as written.
func plainJSON(raw json.RawMessage) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON value")
	}
	return v, nil
}
