package cli

import (
	"context"
	"log/slog"
)

// printed are the messages of the engine about what its events say as well: the
// lines of a worker and the view of a run have them already.
var printed = map[string]bool{"attempt failed": true, "task blocked": true}

// withoutPrinted is a log of the engine less what is printed anyway.
type withoutPrinted struct{ slog.Handler }

// Handle implements slog.Handler.
func (h withoutPrinted) Handle(ctx context.Context, r slog.Record) error {
	if printed[r.Message] {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h withoutPrinted) WithAttrs(attrs []slog.Attr) slog.Handler {
	return withoutPrinted{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h withoutPrinted) WithGroup(name string) slog.Handler {
	return withoutPrinted{h.Handler.WithGroup(name)}
}
