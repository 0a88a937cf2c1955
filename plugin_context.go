package weaver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/task"
)

// maxNote is the maximum length of a note's value in bytes.
const maxNote = 1 << 10

// Note adds a named text, with a name of up to 255 bytes, to the running attempt (AttemptInfo.Notes).
// It is stored with the end of the attempt, so an attempt whose process dies has no notes. An attempt
// has up to 16 notes of up to 1 KiB; the last value of a name counts. Errors: ErrNoTask,
// ErrAttemptOver, ErrInvalidOption.
func Note(ctx context.Context, name, value string) error {
	a, err := engine.From(ctx)
	if err != nil {
		return err
	}
	if err = option.CheckKey("Note", name); err == nil {
		err = task.CheckText("Note "+name, value)
	}
	if err == nil && len(value) > maxNote {
		err = fmt.Errorf("Note %.40q: the value is %d bytes long, at most %d are allowed", name, len(value), maxNote)
	}
	if err == nil {
		err = a.Note(name, value)
	}
	if err != nil && !errors.Is(err, ErrAttemptOver) {
		return fmt.Errorf("%w: %w", ErrInvalidOption, err)
	}
	return err
}

// EarlierAttempts reads, inside a handler, the finished attempts of its task before this one. It reads
// the task's whole history: do not use it in a frequent handler.
func EarlierAttempts(ctx context.Context) ([]AttemptInfo, error) {
	a, err := engine.From(ctx)
	if err != nil {
		return nil, err
	}
	return a.Earlier(ctx)
}

// entered records the context of the innermost handler.
func entered(next HandlerFunc) HandlerFunc {
	return func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		engine.Enter(ctx)
		return next(ctx, input)
	}
}

func (c *Client) injectInto(ctx context.Context, tasks []task.New) {
	if c.inject == nil {
		return
	}
	for i := range tasks {
		c.inject(ctx, &tasks[i])
	}
}

// inject returns the function that completes tasks before they are stored, or nil.
func (s *Setup) inject(log *slog.Logger) engine.Inject {
	if len(s.injects) == 0 {
		return nil
	}
	return func(ctx context.Context, n *task.New) {
		shared := true // the map may belong to the type or to other drafts
		for _, fn := range s.injects {
			for key, value := range guarded(log, "InjectMetadata", ctx, fn) {
				if _, has := n.Metadata[key]; has {
					continue
				}
				err := option.CheckKey("Metadata", key)
				if err == nil {
					err = task.CheckText("Metadata "+key, value)
				}
				if err != nil {
					log.Warn("metadata of a plug-in is left out", "task_type", n.Type, "error", err)
					continue
				}
				if shared {
					shared, n.Metadata = false, maps.Clone(n.Metadata)
				}
				if n.Metadata == nil {
					n.Metadata = make(map[string]string)
				}
				n.Metadata[key] = value
			}
		}
	}
}

// stored returns the function to call for stored tasks, or nil.
func (s *Setup) stored(log *slog.Logger) engine.Stored {
	if len(s.stores) == 0 {
		return nil
	}
	return func(ctx context.Context, tasks []task.New) {
		for _, fn := range s.stores {
			guarded(log, "OnStored", ctx, func(ctx context.Context) (none None) {
				for i := range tasks {
					fn(ctx, tasks[i].Type, tasks[i].Queue)
				}
				return none
			})
		}
	}
}

// logAttrs returns the function that adds attributes to loggers, or nil.
func (s *Setup) logAttrs(log *slog.Logger) engine.LogAttrs {
	if len(s.attrs) == 0 {
		return nil
	}
	return func(ctx context.Context) (attrs []slog.Attr) {
		for _, fn := range s.attrs {
			attrs = append(attrs, guarded(log, "LogAttrs", ctx, fn)...)
		}
		return attrs
	}
}

// guarded calls a plug-in's function and recovers its panic.
func guarded[T any](log *slog.Logger, what string, ctx context.Context, fn func(context.Context) T) (got T) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("a plug-in panicked", "in", what, "panic", p)
		}
	}()
	return fn(ctx)
}
