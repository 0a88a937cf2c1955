package weaver

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Stream is Step for a function that emits partial output before its value, such as the tokens of a
// model. emit sends a chunk to the listeners of the engine and to Subscribe, as Emit does under the
// step's name; with PersistEvents it is stored. The value is the step's: a replay emits no chunks. A
// function that is called again, in another try or attempt, emits its chunks again.
//
// emit is safe for concurrent use until fn returns; from then on it returns an error. Its other errors
// are those of Emit.
func Stream[T any](ctx context.Context, name string, fn func(ctx context.Context, emit func(chunk any) error) (T, error), opts ...StepOption) (T, error) {
	if fn == nil {
		return Step[T](ctx, name, nil)
	}
	return Step(ctx, name, func(ctx context.Context) (T, error) {
		var over atomic.Bool
		defer over.Store(true)
		return fn(ctx, func(chunk any) error {
			if over.Load() {
				return fmt.Errorf("stream %q: its function has returned: a goroutine outlived it; wait for it before returning", name)
			}
			return Emit(ctx, name, chunk)
		})
	}, opts...)
}
