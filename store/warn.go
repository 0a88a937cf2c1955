package store

import (
	"context"
	"log/slog"
)

// Warner is implemented by stores that notice what endangers them while they are
// used: a reader that keeps a log from being cut, a clock that was set. An engine
// asks for the warnings every third of a lease, and logs them.
type Warner interface {
	// Warnings returns what an operator should know now. It may be called at any
	// time, waits for no writer, and writes nothing.
	Warnings(ctx context.Context) []Warning
}

// Warning is one thing that an operator should know.
type Warning struct {
	Key   string      // the same for the same thing, as long as it lasts
	Once  bool        // it is past: to be logged once, not again as long as it is returned
	Text  string      // what is wrong, and what to do about it
	Attrs []slog.Attr // its figures
}
