package sqlite_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Each process caches the generation of leases. The next write must notice a restore by
// another process.
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

// A restore and a lease from before it in one group: the cached generation must be neither the
// old one nor a rolled-back one.
func TestRestoreInAGroup(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"committed": true, "rolled back": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := newNoteStore(t)
				f := fixtureOn(t, n.db)
				f.join("w")
				f.enqueue(1)
				c := f.claim("w", 1)[0] // and the generation is known
				commits, ops := 0, 0
				f.db.OnCommit(func(commit func() error) error {
					if commits++; !lost && commits == 2 { // 1: the leader. 2: the group.
						return errOwn
					}
					return commit()
				})
				f.db.OnOp(func() error {
					if ops++; !lost && ops == 4 { // 1: the leader. 2, 3: the group. 4: the restore by itself.
						return errOwn
					}
					return nil
				})
				var recorded []store.RecordResult
				var restoring, recording error
				grouped(t, f.db, func() {
					_, restoring = f.db.Operate(context.Background(), fixNS, store.Restored{})
				}, func() {
					recorded, recording = f.db.Record(context.Background(), fixNS, store.Record{Lease: c.Lease, Step: &task.Step{
						Name: "s", Kind: task.KindStep, State: task.StepCompleted, AttemptNo: 1, Try: 1, Value: []byte(`1`),
					}})
				})
				if recording != nil || (restoring == nil) != lost {
					t.Fatalf("the restore: %v; the record: %v", restoring, recording)
				}
				if errors.Is(recorded[0].Err, store.ErrLeaseLost) != lost {
					t.Errorf("the record beside a restore that was %s: %v", name, recorded[0].Err)
				}
				beats, err := f.db.Heartbeat(t.Context(), fixNS, store.HeartbeatRequest{Worker: "w", TTL: time.Minute, Leases: []task.Lease{c.Lease}})
				if err != nil || beats[0].Lost != lost {
					t.Errorf("the heartbeat after a restore that was %s: %+v, %v", name, beats, err)
				}
			})
		})
	}
}
