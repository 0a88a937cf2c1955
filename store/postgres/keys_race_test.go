package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The row of a concurrency key is created and deleted with its holders. A transaction that meets
// such a change sees a consistent row: no two tasks run under a key with one slot, and no task
// waits for a free slot.
func TestKeyRowsComeAndGo(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t, "weaver", migrateURL)
	one, other := openURL(t, url), openURL(t, url)
	w := joined(t, one)
	claim := func(db store.Store) []store.Claimed {
		res, err := db.Claim(context.Background(), space, store.ClaimRequest{Worker: w, LeaseID: task.NewLeaseID(), TTL: time.Minute, Limit: 1, Slots: 10, Types: map[string]int{"t": 1}})
		if err != nil {
			t.Error(err)
		}
		return res.Tasks
	}
	finish := func(db store.Store, c *store.Claimed) {
		res, err := db.Finish(context.Background(), space, store.Finish{Lease: c.Lease, Outcome: task.OutcomeSuccess, Output: []byte(`1`), CodeVersion: 1})
		if err != nil || res[0].Err != nil {
			t.Errorf("finish: %v, %v", err, res)
		}
	}
	rounds := 60
	for round := range rounds {
		sub := submission(3)
		for i := range sub.Tasks {
			sub.Tasks[i].ConcurrencyKey, sub.Tasks[i].ConcurrencyLimit = "k", 1
		}
		last := sub.Tasks[2].ID
		if _, err := one.Enqueue(t.Context(), space, nil, sub); err != nil {
			t.Fatal(err)
		}
		cancelled := round%2 == 1
		var held []store.Claimed
		if !cancelled { // one runs: its end meets the claims of the others
			held = claim(one)
		}
		var mu sync.Mutex
		var taken []store.Claimed
		var all sync.WaitGroup
		for _, db := range []store.Store{one, other} {
			all.Go(func() {
				got := claim(db)
				mu.Lock()
				defer mu.Unlock()
				taken = append(taken, got...)
			})
		}
		all.Go(func() {
			if cancelled {
				if _, err := other.Operate(context.Background(), space, store.CancelTask{Task: last}); err != nil {
					t.Error(err)
				}
				return
			}
			for i := range held {
				finish(other, &held[i])
			}
		})
		all.Wait()
		if len(taken) > 1 {
			t.Fatalf("round %d: %d tasks run under a key of one", round, len(taken))
		}
		want := 3
		if cancelled {
			want = 2
		}
		done := len(held)
		for len(taken) > 0 || done < want {
			for i := range taken {
				finish(one, &taken[i])
				done++
			}
			if taken = claim(other); len(taken) == 0 && done < want {
				if list, err := other.Tasks(t.Context(), space, last); err == nil && len(list) == 1 && cancelled && list[0].State != task.Cancelled {
					want = 3 // it ran before it could be cancelled
					continue
				}
				t.Fatalf("round %d: %d of %d tasks ran, and none is due", round, done, want)
			}
		}
	}
}
