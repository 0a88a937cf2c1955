package main

import (
	"context"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// claimSize is the number of tasks of each measured claim.
const claimSize = 10

// claims measures claims on a file with the given number of finished tasks, and returns the median in microseconds.
func claims(ctx context.Context, finished int) (micros float64, err error) {
	err = onStore(ctx, full, func(db *sqlite.DB) error {
		h := noopType.Handler(func(context.Context, int) (weaver.None, error) { return weaver.None{}, nil })
		eng, err := weaver.New(db, weaver.Config{Handlers: []weaver.Handler{h}, Concurrency: 1000, Logger: quiet})
		if err != nil {
			return err
		}
		for done := 0; done < finished; done += 10_000 {
			if _, err := noopType.EnqueueMany(ctx, eng, make([]int, min(10_000, finished-done))); err != nil {
				return err
			}
			if err := eng.RunUntilIdle(ctx); err != nil {
				return err
			}
		}
		micros, err = claimsOn(ctx, db, eng)
		return err
	})
	return micros, err
}

func claimsOn(ctx context.Context, db store.Store, eng *weaver.Engine) (float64, error) {
	took, err := claimTimes(ctx, db, eng)
	if err != nil {
		return 0, err
	}
	return float64(took[len(took)/2].Nanoseconds()) / 1000, nil
}
