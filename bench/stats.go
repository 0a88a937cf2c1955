package main

import (
	"context"

	"github.com/goweaver/weaver"
)

// stats compares engines with and without statistics. A run spans several of their slots of ten seconds.
func (r *report) stats(ctx context.Context) error {
	var used [2]figure // processor time in seconds
	run := func(i int, none bool) func() (float64, error) {
		return func() (float64, error) {
			h := noopType.Handler(func(context.Context, int) (weaver.None, error) { return weaver.None{}, nil })
			cfg := weaver.Config{Handlers: []weaver.Handler{h}, NoStats: none}
			before := processors()
			perSecond, err := throughputOf(ctx, 16*r.n, inFile(full), cfg, func(i int) weaver.Draft { return noopType.With(i) })
			used[i] = append(used[i], (processors() - before).Seconds())
			return perSecond, err
		}
	}
	f, err := r.measure(run(0, true), run(1, false))
	if err != nil {
		return err
	}
	r.row("no-op tasks/s with statistics, FULL", f[1].String(), "without "+f[0].String(), ratio(f[1].median()/f[0].median()))
	r.row("  seconds of a processor, enqueueing among it", used[1].String(), "without "+used[0].String(), ratio(used[1].median()/used[0].median()))
	return nil
}
