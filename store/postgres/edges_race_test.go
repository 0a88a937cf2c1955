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

// The dependencies of tasks finish in two processes at once: each finish counts.
func TestNeedsEndAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t, "weaver", migrateURL)
	one, other := openURL(t, url), openURL(t, url)
	w := joined(t, one)
	const n = 20 // tasks with two dependencies each
	for round := range 15 {
		sub := submission(3 * n)
		half := make(map[task.ID]int, 2*n)
		for i := range n {
			a, b := sub.Tasks[2*i].ID, sub.Tasks[2*i+1].ID
			half[a], half[b] = 0, 1
			sub.Tasks[2*n+i].Needs = []task.Edge{{Needs: a, Kind: task.OnSuccess}, {Needs: b, Kind: task.OnSuccess}}
		}
		if _, err := one.Enqueue(t.Context(), space, nil, sub); err != nil {
			t.Fatal(err)
		}
		claim := func() []store.Claimed {
			res, err := one.Claim(t.Context(), space, store.ClaimRequest{Worker: w, LeaseID: task.NewLeaseID(), TTL: time.Minute, Limit: 3 * n, Slots: 3 * n, Types: map[string]int{"t": 1}})
			if err != nil {
				t.Fatal(err)
			}
			return res.Tasks
		}
		finish := func(db store.Store, fins []store.Finish) {
			res, err := db.Finish(context.Background(), space, fins...)
			for i := range res {
				if res[i].Err != nil {
					err = res[i].Err
				}
			}
			if err != nil {
				t.Errorf("finish: %v", err)
			}
		}
		var fins [2][]store.Finish
		for _, c := range claim() {
			fin := store.Finish{Lease: c.Lease, Outcome: task.OutcomeSuccess, Output: []byte(`1`), CodeVersion: 1}
			fins[half[c.Task.ID]] = append(fins[half[c.Task.ID]], fin)
		}
		var both sync.WaitGroup
		both.Go(func() { finish(one, fins[0]) })
		both.Go(func() { finish(other, fins[1]) })
		both.Wait()
		got := claim()
		if len(got) != n {
			t.Fatalf("round %d: %d of %d tasks are due, whose needs have all ended", round, len(got), n)
		}
		var last []store.Finish
		for _, c := range got {
			last = append(last, store.Finish{Lease: c.Lease, Outcome: task.OutcomeSuccess, CodeVersion: 1})
		}
		finish(one, last)
	}
}
