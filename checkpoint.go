package weaver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/task"
)

// Checkpoint replaces the task's value under a name: the state of a long step or loop. When it returns
// nil the value is durable, and LoadCheckpoint returns it in this and every later attempt, also after
// a Retry. The value
// travels as JSON and obeys Config.InlineLimit.
//
// A changed value is progress: it resets the crash count, and the attempt counts as having made
// progress (Budget.MaxNoProgress). The names are separate from step names. Checkpoint may be called
// inside a step and in goroutines of the handler; inside StepTx, whose transaction it would wait for,
// it is ErrNestedTx.
//
// Errors: those of a step. A value that cannot be stored, or a bad name, fails the task at once.
func Checkpoint[T any](ctx context.Context, name string, v T) error {
	a, err := checkpointing(ctx, name)
	if err != nil {
		return err
	}
	raw, err := encodeOutput("checkpoint", &v)
	if err != nil {
		return a.Refuse(fmt.Errorf("checkpoint %q: %w", name, err))
	}
	return a.Checkpoint(ctx, name, raw)
}

// LoadCheckpoint returns the task's checkpoint under a name; ok is false if there is no such
// checkpoint. A value that does not decode as T blocks the task (decode_error).
func LoadCheckpoint[T any](ctx context.Context, name string) (value T, ok bool, err error) {
	a, err := checkpointing(ctx, name)
	if err != nil {
		return value, false, err
	}
	raw, err := a.LoadCheckpoint(ctx, name)
	if err != nil || raw == nil {
		return value, false, err
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		var none T
		return none, false, a.Refuse(&engine.Verdict{Kind: engine.Blocked, Err: &engine.KindError{
			Kind: task.KindDecode,
			Err:  fmt.Errorf("the checkpoint %q does not decode as %T: %w; give it a new name to begin anew, or bring the old type back", name, value, err),
		}})
	}
	return value, true, nil
}

func checkpointing(ctx context.Context, name string) (*engine.Attempt, error) {
	a, err := engine.From(ctx)
	switch {
	case err != nil:
	case engine.StepTxOf(ctx) != nil:
		err = errors.Join(ErrNestedTx, errors.New("it would wait for the transaction of the StepTx that it is in"))
	default:
		return a, nil
	}
	return nil, fmt.Errorf("checkpoint %q: %w", name, err)
}
