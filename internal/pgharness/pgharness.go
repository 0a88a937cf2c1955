// Package pgharness passes settings from tests outside of package postgres to a store on
// PostgreSQL that they open.
package pgharness

import (
	"context"
	"time"
)

// Settings are the test settings of one store. Zero values change nothing.
type Settings struct {
	FsyncOff bool             // the server may run with fsync off, like the servers of package pgtest
	Clock    func() time.Time // replaces the server's time of transactions
	ScanPage int              // number of tasks, jobs or keys in one part of a scan
	Redone   func(err error)  // called before a transaction that failed with err runs again
}

type key struct{}

// With returns a context with settings. postgres.Open applies them to a store opened with it.
func With(ctx context.Context, s Settings) context.Context { return context.WithValue(ctx, key{}, s) }

// Of returns the settings of a context.
func Of(ctx context.Context) Settings {
	s, _ := ctx.Value(key{}).(Settings)
	return s
}
