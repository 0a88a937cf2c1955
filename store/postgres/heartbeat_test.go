package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A locked row delays no heartbeat: its lease must be asked for again, the others are extended, and
// a lost lease is still reported lost.
func TestHeartbeatWaitsForNoLock(t *testing.T) {
	t.Parallel()
	const ns, typ, ttl = "default", "acme.test.noop.v1", time.Minute
	db := openURL(t, pgtest.Migrated(pgtest.InShort(t), "weaver", migrateURL))
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ids := task.NewIDs(nil)
	var sub store.Submission
	for range 3 {
		sub.Tasks = append(sub.Tasks, task.New{ID: ids.New(), Type: typ, Queue: "default", Priority: 5, SchemaVersion: 1, MaxAttempts: 1})
	}
	_, err := db.Enqueue(ctx, ns, nil, sub)
	check(err)
	check(db.Join(ctx, ns, store.WorkerInfo{ID: "w", Name: "w", TTL: ttl}))
	got, err := db.Claim(ctx, ns, store.ClaimRequest{
		Worker: "w", Name: "w", LeaseID: task.NewLeaseID(), TTL: ttl, Limit: 3, Slots: 3, Types: map[string]int{typ: 1},
	})
	check(err)
	if len(got.Tasks) != 3 {
		t.Fatalf("%d tasks were claimed", len(got.Tasks))
	}
	leases := []task.Lease{got.Tasks[0].Lease, got.Tasks[1].Lease, got.Tasks[2].Lease}
	leases[2].Epoch++

	tx, err := db.Pool().Begin(ctx)
	check(err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // it may have ended
	_, err = tx.Exec(ctx, "SELECT 1 FROM weaver.weaver_tasks WHERE task_id = $1 FOR UPDATE", leases[0].Task[:])
	check(err)
	// A heartbeat that waited for the lock would fail with the lock's timeout.
	beats, err := db.Heartbeat(ctx, ns, store.HeartbeatRequest{Worker: "w", TTL: ttl, Leases: leases})
	check(err)
	if !beats[0].Retry || beats[1] != (store.Beat{}) || !beats[2].Lost {
		t.Errorf("the answers are %+v", beats)
	}
	check(tx.Rollback(ctx))
	beats, err = db.Heartbeat(ctx, ns, store.HeartbeatRequest{Worker: "w", TTL: ttl, Leases: leases[:1]})
	check(err)
	if beats[0] != (store.Beat{}) {
		t.Errorf("without the lock the answer is %+v", beats[0])
	}
}
