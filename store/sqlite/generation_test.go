package sqlite_test

import (
	"errors"
	"testing"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Each process remembers the generation of leases. A restore that another one
// noted must be noticed with the next write.
func TestRestoreByAnotherProcess(t *testing.T) {
	t.Parallel()
	db, other := pair(t)
	f := fixtureOn(t, db)
	f.join("w")
	f.enqueue(1)
	c := f.claim("w", 1)[0] // and the generation is known
	if _, err := other.Operate(t.Context(), fixNS, store.Restored{}); err != nil {
		t.Fatal(err)
	}
	beats, err := db.Heartbeat(t.Context(), fixNS, store.HeartbeatRequest{Worker: "w", TTL: fixTTL, Leases: []task.Lease{c.Lease}})
	if err != nil || !beats[0].Lost {
		t.Errorf("the heartbeat of a lease of before the restore: %+v, %v; want it lost", beats, err)
	}
	got, err := db.Finish(t.Context(), fixNS, store.Finish{Lease: c.Lease, Outcome: task.OutcomeSuccess, CodeVersion: 1})
	if err != nil || !errors.Is(got[0].Err, store.ErrLeaseLost) {
		t.Errorf("the finish under a lease of before the restore: %+v, %v; want ErrLeaseLost", got, err)
	}
}
