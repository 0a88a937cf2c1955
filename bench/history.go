package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// claimSize is how many tasks each measured claim takes.
const claimSize = 10

// claims times claims on a file in which so many tasks have finished, and
// returns the median in microseconds.
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

func claimsOn(ctx context.Context, db *sqlite.DB, eng *weaver.Engine) (float64, error) {
	const ns, worker = "default", "bench"
	if err := db.Join(ctx, ns, store.WorkerInfo{ID: worker, Name: worker, TTL: time.Minute}); err != nil {
		return 0, err
	}
	const rounds = 400
	if _, err := noopType.EnqueueMany(ctx, eng, make([]int, rounds*claimSize)); err != nil {
		return 0, err
	}
	var took []time.Duration
	for range rounds {
		req := store.ClaimRequest{
			Worker: worker, Name: worker, LeaseID: task.NewLeaseID(), TTL: time.Minute, Limit: claimSize, Slots: claimSize,
			Types: map[string]int{noopType.Name(): 1},
		}
		begin := time.Now()
		got, err := db.Claim(ctx, ns, req)
		if err != nil {
			return 0, err
		}
		took = append(took, time.Since(begin))
		if len(got.Tasks) != claimSize {
			return 0, fmt.Errorf("a claim took %d tasks, want %d", len(got.Tasks), claimSize)
		}
	}
	slices.Sort(took)
	return float64(took[len(took)/2].Nanoseconds()) / 1000, nil
}
