package weaver

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/jsonfields"
)

// Ask asks a person: it blocks the task, with reason as what Wait, `why` and the
// lists show, and returns the input that Client.Unblock was given for it. Each
// name is a question of its own, in the one name space of the task's steps: the
// answer to one is never that to another. The answer is recorded under the
// name, so a later attempt gets it without asking.
//
// Without an answer Ask ends the attempt as a wait does: steps that run beside
// it are completed first, it returns ErrSuspended (see Suspended), and whatever
// the handler returns then is ignored. It costs no attempt. Client.Unblock refuses an
// input that does not decode as T or has fields that T lacks (ErrInvalidInput), unless
// T decodes itself. An unblock without an input (null is none), or with one that turns
// out not to decode, has the question asked again.
//
// within ends the wait for an answer so long after the question is asked; default never.
// Ask returns ErrNoAnswer then, in this and all later attempts. An engine that runs
// tasks of the type ends the wait, at once if it asked itself and within a minute otherwise;
// an answer that comes before it does still counts.
//
// Errors are those of Step, and ErrNoAnswer.
func Ask[T any](ctx context.Context, name, reason string, within ...time.Duration) (T, error) {
	var value T
	var limit time.Duration
	a, err := engine.From(ctx)
	if err != nil {
		return value, fmt.Errorf("ask %q: %w", name, err)
	}
	if len(within) > 0 {
		if limit = within[0]; len(within) > 1 || limit <= 0 {
			return value, a.Refuse(fmt.Errorf("ask %q: %w: to be answered within %s: want one time, of more than 0", name, ErrInvalidOption, within))
		}
	}
	raw, err := a.Ask(ctx, name, reason, jsonfields.Shape(reflect.TypeFor[T]()), limit, func(input json.RawMessage) error {
		if err := decodeStrict(input, new(T)); err != nil { // "approved" for "approve" would be a no
			return fmt.Errorf("does not decode as %T: %w", value, err)
		}
		return nil
	})
	if ErrorCode(err) == engine.CodeNoAnswer {
		return value, fmt.Errorf("ask %q: %w", name, ErrNoAnswer)
	}
	if err != nil {
		return value, err
	}
	return decodeStep[T](a, name, raw)
}

// ForAsk makes Unblock act only on a task that waits with the Ask of a name: else
// nothing changes and the answer is [store.ErrChanged]. An approval that is sent twice
// is then never taken for the next one.
func ForAsk(name string) OperateOption {
	return operateOption(func(s *operateSettings) { s.ask = name })
}

// checkAnswer refuses an input that cannot be the answer to the question of a task. A
// question that is asked meanwhile checks its answer itself, in Ask.
func (c *Client) checkAnswer(ctx context.Context, id TaskID, ask string, input json.RawMessage) error {
	if len(input) == 0 || string(input) == "null" {
		return nil
	}
	t, err := c.get(ctx, id)
	if err != nil || t.State != StateBlocked || t.Error == nil || t.Error.Ask == "" || ask != "" && ask != t.Error.Ask {
		return nil // the store answers
	}
	if err := jsonfields.CheckShape(t.Error.AskShape, input); err != nil {
		return fmt.Errorf("unblock task %s: %w: the question %q takes %s: %w", id, ErrInvalidInput, t.Error.Ask, t.Error.AskShape, err)
	}
	return nil
}
