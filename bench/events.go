package main

import (
	"context"

	"github.com/goweaver/weaver"
)

// logged measures tasks with one step and one log line.
func logged(ctx context.Context, n int, plugins ...weaver.Plugin) (float64, error) {
	h := stepType.Handler(func(ctx context.Context, i int) (int, error) {
		return weaver.Step(ctx, "double", func(ctx context.Context) (int, error) {
			weaver.Log(ctx).Info("doubling", "number", i)
			return 2 * i, nil
		})
	})
	return throughput(ctx, n, full, h, func(i int) weaver.Draft { return stepType.With(i) }, plugins...)
}

func (r *report) events(ctx context.Context) error {
	f, err := r.measure(
		func() (float64, error) { return logged(ctx, r.n/2) },
		func() (float64, error) { return logged(ctx, r.n/2, weaver.PersistLogs()) },
		func() (float64, error) { return logged(ctx, r.n/2, weaver.PersistEvents()) },
		func() (float64, error) { return logged(ctx, r.n/2, weaver.PersistLogs(), weaver.PersistEvents()) },
	)
	if err != nil {
		return err
	}
	for i, name := range []string{"PersistLogs", "PersistEvents", "both"} {
		r.row("one-step tasks/s with a line, "+name+", FULL", f[i+1].String(), "without "+f[0].String(), ratio(f[i+1].median()/f[0].median()))
	}
	return nil
}
