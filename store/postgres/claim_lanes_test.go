package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

// While reading the lanes takes long, claims of a backlog use the remembered lanes. If these are
// empty a claim reads the lanes after all.
func TestRememberedLanes(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t, "weaver", migrateURL)
	db, other := openURL(t, url), openURL(t, url)
	here, there := &planWork{TB: t, db: db, ids: task.NewIDs(nil)}, &planWork{TB: t, db: other, ids: task.NewIDs(nil)}
	const urgentType, otherType = "acme.urgent.v1", "acme.other.v1"
	urgent := func(n *task.New) { n.Type, n.Priority = urgentType, task.DefaultPriority-1 }
	var ids []task.ID
	for i := range 6 {
		ids = append(ids, there.enqueue(1, func(n *task.New) {
			if i == 3 { // no claim takes it together with others
				n.ConcurrencyKey, n.ConcurrencyLimit = "key", 1
			}
		})...)
	}
	claim := func(limit int, change func(*store.ClaimRequest), want ...task.ID) store.ClaimResult {
		t.Helper()
		req := store.ClaimRequest{
			Worker: "w", LeaseID: task.NewLeaseID(), TTL: time.Minute, Limit: limit, Types: map[string]int{workType: 1, urgentType: 1, otherType: 1},
		}
		if change != nil {
			change(&req)
		}
		res, err := db.Claim(t.Context(), planNS, req)
		if err != nil {
			t.Fatal(err)
		}
		var got []task.ID
		for i := range res.Tasks {
			got = append(got, res.Tasks[i].Task.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("a claim of %d took %v, want %v", limit, got, want)
		}
		return res
	}
	dueAt := func(id task.ID) (at int64) {
		t.Helper()
		if err := db.Pool().QueryRow(t.Context(), `SELECT available_at FROM weaver.weaver_outbox_events WHERE task_id = $1`, id[:]).Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	work := lane.Key{Queue: workQueue, Type: workType, Priority: task.DefaultPriority}
	remember := func(first task.ID) {
		t.Helper()
		postgres.RememberLane(db, planNS, work, dueAt(first))
	}

	remember(ids[5])
	if res := claim(1, nil, ids[5]); res.Next != 0 {
		t.Errorf("more is due than is remembered, and the next claim is worth while after %s", res.Next)
	}
	remember(ids[1])
	second := dueAt(ids[2])
	claim(2, nil, ids[1], ids[2])
	if got := postgres.RememberedBound(db, planNS, work); got != second {
		t.Errorf("the claim after it begins at %d, want %d, where this one ended", got, second)
	}
	foreign := there.enqueue(1, urgent)
	own := here.enqueue(1, urgent, func(n *task.New) { n.Type = otherType })
	claim(1, nil, own...)
	if res := claim(10, nil, ids[3], ids[4]); res.Next != 0 {
		t.Errorf("all that is remembered was taken, and the next claim is worth while after %s", res.Next)
	}
	claim(10, nil, foreign[0], ids[0]) // finds nothing and reads the lanes
	if res := claim(1, nil); res.Next >= 0 {
		t.Errorf("there is nothing, and the next claim is worth while after %s", res.Next)
	}

	// A claim by hints always reads the lanes.
	ids = slices.Concat(there.enqueue(1), there.enqueue(1))
	remember(ids[1])
	there.enqueue(1, urgent, func(n *task.New) { n.Delay = time.Hour })
	if res := claim(1, func(r *store.ClaimRequest) { r.IDs = ids[:1] }, ids[0]); res.Next != 0 {
		t.Errorf("another task is due, and the next claim is worth while after %s", res.Next)
	}
	if res := claim(1, func(r *store.ClaimRequest) { r.IDs = ids[1:] }, ids[1]); res.Next < 50*time.Minute {
		t.Errorf("the next task is due in an hour, and the next claim is worth while after %s", res.Next)
	}
}

// A claim that leaves sent tasks does not move the remembered start of their lane behind them.
func TestRememberedLanes_OfSentTasks(t *testing.T) {
	t.Parallel()
	db := openURL(t, pgtest.Migrated(t, "weaver", migrateURL))
	here := &planWork{TB: t, db: db, ids: task.NewIDs(nil)}
	sent := here.enqueue(1)
	if got, err := db.Publish(t.Context(), planNS, store.PublishRequest{Limit: 10, Hold: time.Hour}); err != nil || len(got.Tasks) != 1 {
		t.Fatalf("published %v: %v", got.Tasks, err)
	}
	unsent := here.enqueue(1)
	work := lane.Key{Queue: workQueue, Type: workType, Priority: task.DefaultPriority}
	var due int64
	if err := db.Pool().QueryRow(t.Context(), `SELECT available_at FROM weaver.weaver_outbox_events WHERE task_id = $1`, sent[0][:]).Scan(&due); err != nil {
		t.Fatal(err)
	}
	postgres.RememberLane(db, planNS, work, due)
	req := store.ClaimRequest{Worker: "w", LeaseID: task.NewLeaseID(), TTL: time.Minute, Limit: 1, Types: map[string]int{workType: 1}, LeaveSent: true}
	res, err := db.Claim(t.Context(), planNS, req)
	if err != nil || len(res.Tasks) != 1 || res.Tasks[0].Task.ID != unsent[0] {
		t.Fatalf("claimed %v: %v, want the task that was not sent", res.Tasks, err)
	}
	if got := postgres.RememberedBound(db, planNS, work); got != due {
		t.Errorf("the next claim begins at %d, want %d, where the sent task is", got, due)
	}
}
