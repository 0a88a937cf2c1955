package sqlite

import (
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Thousands of lanes are not read again with every external commit. A worker that found
// nothing must claim again after the next reading, or it would find tasks of another process
// only at its next poll.
func TestNextWhenLanesAreReadLate(t *testing.T) {
	t.Parallel()
	const ns, took = "ns", time.Hour // as on a slow machine
	db, err := OpenMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	many := make(map[lane.Key]int64)
	for i := range int64(lane.Few + 1) {
		many[lane.Key{Queue: "q", Type: "other.v1", Priority: i}] = lane.Empty - 1
	}
	db.lanes.Replace(ns, many, lane.Reading{At: time.Now(), Took: took})
	db.lanes.Invalidate()
	got, err := db.Claim(t.Context(), ns, store.ClaimRequest{
		Worker: "w", LeaseID: task.NewLeaseID(), TTL: time.Second, Limit: 1, Slots: 1, Types: map[string]int{"some.v1": 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Next <= 0 || got.Next > 20*took {
		t.Errorf("Next = %v, want the time until the lanes are read again, at most %v", got.Next, 20*took)
	}
}
