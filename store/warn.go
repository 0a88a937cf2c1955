package store

import "log/slog"

// Warning is one thing that an operator should know.
type Warning struct {
	Key   string      // the same for the same thing, as long as it lasts
	Once  bool        // it is past: to be logged once, not again as long as it is returned
	Text  string      // what is wrong, and what to do about it
	Attrs []slog.Attr // its figures
}
