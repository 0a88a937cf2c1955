package store

import "log/slog"

// Warning is a problem for the operator.
type Warning struct {
	Key   string      // constant while the problem lasts
	Once  bool        // the problem is over: log it once, however often it is returned
	Text  string      // the problem and its remedy
	Attrs []slog.Attr // details
}
