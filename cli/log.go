package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/store"
)

// unserved is the engine's log message about a type whose tasks wait in a queue that it does not serve.
const unserved = "no queue of this engine holds the tasks of a type that it handles: they wait for another worker"

// printed lists messages of the engine that its events repeat: the lines of a worker and the view of a run already
// show them.
var printed = map[string]bool{"attempt failed": true, "task blocked": true}

// engineLog filters the log of an engine: it drops messages that are printed anyway, and warnings about intended
// settings.
type engineLog struct {
	slog.Handler
	ownQueue bool // the engine serves one job and no other queue
}

// Handle implements slog.Handler.
func (h engineLog) Handle(ctx context.Context, r slog.Record) error {
	if aboutGone(r) {
		return nil // untilGone logs it
	}
	if printed[r.Message] || r.Message == unserved && (h.ownQueue || isBuiltin(r)) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// aboutGone reports whether a record carries the error of a store that is gone.
func aboutGone(r slog.Record) (gone bool) {
	r.Attrs(func(a slog.Attr) bool {
		err, _ := a.Value.Any().(error)
		gone = errors.Is(err, store.ErrGone)
		return !gone
	})
	return gone
}

// isBuiltin reports whether a record is about a builtin type, which has no queue of its own.
func isBuiltin(r slog.Record) bool {
	found := false
	r.Attrs(func(a slog.Attr) bool {
		name := a.Value.String()
		found = found || a.Key == "task_type" && (name == builtin.Run.Name() || name == builtin.Request.Name() || name == builtin.Approve.Name() || name == builtin.Foreach.Name())
		return !found
	})
	return found
}

// WithAttrs implements slog.Handler.
func (h engineLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return engineLog{h.Handler.WithAttrs(attrs), h.ownQueue}
}

// WithGroup implements slog.Handler.
func (h engineLog) WithGroup(name string) slog.Handler {
	return engineLog{h.Handler.WithGroup(name), h.ownQueue}
}
