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

// Ask asks a person a question and returns the answer. It blocks the task with a reason, shown by
// Wait, `why` and lists, until Client.Unblock passes an input. Each name is a question of its own, in
// the name space of the task's steps: an answer is never used for another question. The answer is
// recorded under the name, so later attempts get it without asking.
//
// Without an answer Ask ends the attempt as a wait does: concurrent steps complete first, it returns
// ErrSuspended (see Suspended), and the handler's result is ignored. It costs no attempt.
// Client.Unblock refuses an input that does not decode as T or has fields that T lacks
// (ErrInvalidInput), unless T decodes itself. An unblock without an input (null counts as none), or
// with one that later fails to decode, asks the question again.
//
// within limits the wait, counted from the question; default no limit. After that Ask returns
// ErrNoAnswer, in this and all later attempts. An engine that runs tasks of the type ends the wait, at
// once if it asked and within a minute otherwise; an answer that arrives before then still counts.
//
// Errors: those of Step, and ErrNoAnswer.
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

// ForAsk makes Unblock act only on a task that waits in the Ask with this name. Otherwise nothing
// changes and it returns [ErrChanged]. An approval that is sent twice is then never taken for the next
// question.
func ForAsk(name string) OperateOption {
	return operateOption(func(s *operateSettings) { s.ask = name })
}

// checkAnswer refuses an input that does not fit the task's question. If the question changes
// concurrently, Ask checks the answer.
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
