// Package pgharness has what tests set in a store on PostgreSQL when they open it from
// outside of its package.
package pgharness

import (
	"context"
	"time"
)

// Settings are those of one store. Zero values change nothing.
type Settings struct {
	FsyncOff bool             // the server may run with fsync off, as those of package pgtest do
	Clock    func() time.Time // the time of transactions, instead of the server's
	ScanPage int              // how many tasks, jobs or keys one part of a scan has
	Redone   func(err error)  // before a transaction that failed with err is run again
}

type key struct{}

// With returns a context with which postgres.Open opens a store with these settings.
func With(ctx context.Context, s Settings) context.Context { return context.WithValue(ctx, key{}, s) }

// Of returns the settings of a context.
func Of(ctx context.Context) Settings {
	s, _ := ctx.Value(key{}).(Settings)
	return s
}
