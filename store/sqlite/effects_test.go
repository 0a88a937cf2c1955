package sqlite_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// claimRows counts the rows by which the reaper finds leases.
func (f *fixture) claimRows() int {
	f.Helper()
	return f.count("SELECT count(*) FROM weaver_claims")
}

// The reaper finds leases by the row of their claim. The row must stay while one of the
// claim's tasks runs, whichever process ends the others and however often the group is
// retried. Otherwise the last task would be leased forever.
func TestAClaimIsKnownWhileOneOfItsTasksRuns(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, f *fixture, one store.Claimed){
		"ended by its worker": func(_ *testing.T, f *fixture, one store.Claimed) { f.finish(one) },
		"ended by another process": func(t *testing.T, f *fixture, one store.Claimed) {
			other := openFile(t, f.db.Path())
			got, err := other.Operate(t.Context(), fixNS, store.CancelTask{Task: one.Task.ID, Force: true})
			if err != nil || got[0].Err != nil {
				t.Fatalf("Operate = %+v, %v", got, err)
			}
		},
		"ended in a group that is done again": func(t *testing.T, f *fixture, one store.Claimed) {
			commits := 0
			f.db.OnCommit(func(commit func() error) error {
				if commits++; commits == 2 { // 1: the leader. 2: the group.
					return errOwn
				}
				return commit()
			})
			grouped(t, f.db, func() { f.finish(one) }, func() {
				_ = f.db.Write(context.Background(), func(execSQL) error { return nil })
			})
			f.db.OnCommit(nil)
			if commits != 4 {
				t.Fatalf("%d commits, want the leader's, the group's, and two more", commits)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := fixtureOn(t, openFile(t, filepath.Join(t.TempDir(), "w.db")))
				f.enqueue(2)
				claimed := f.claim("w", 2)
				end(t, f, claimed[0])
				if n := f.claimRows(); n != 1 {
					t.Errorf("%d claims are known, want 1", n)
				}
				f.join("reaper")
				for range 5 { // until the lease is over, and the worker is eligible to reap
					time.Sleep(fixTTL / 3)
					if _, err := f.db.Heartbeat(t.Context(), fixNS, store.HeartbeatRequest{Worker: "reaper", TTL: fixTTL}); err != nil {
						t.Fatal(err)
					}
				}
				got, err := f.db.Reap(t.Context(), fixNS, store.ReapRequest{Worker: "reaper", TTL: fixTTL, Limit: 10, CrashBudget: 3})
				if err != nil || len(got.Reaped) != 1 || got.Reaped[0].Task != claimed[1].Task.ID {
					t.Errorf("Reap = %+v, %v; want the task that still runs", got, err)
				}
			})
		})
	}
}

// The row of a claim is deleted with its last task, however its tasks end, without the reaper.
func TestAClaimGoesWithTheLastOfItsTasks(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, newNoteStore(t).db)
	f.enqueue(9)
	one, other, third := f.claim("w", 3), f.claim("w", 3), f.claim("w", 3)
	f.finish(one[0], other[0], one[1], other[1], other[2]) // of two claims, interleaved
	f.finish(one[2])
	if n := f.claimRows(); n != 1 {
		t.Errorf("%d claims are known, want the third", n)
	}
	f.finish(third[0])
	if _, err := f.db.Operate(t.Context(), fixNS, store.CancelTask{Task: third[1].Task.ID, Force: true}); err != nil {
		t.Fatal(err)
	}
	fin := store.Finish{Lease: third[2].Lease, Outcome: task.OutcomeSuccess, Output: json.RawMessage(`1`), CodeVersion: 1, Progress: &task.Progress{}}
	if got, err := f.db.Finish(t.Context(), fixNS, fin); err != nil || got[0].Err != nil {
		t.Fatalf("Finish = %+v, %v", got, err)
	}
	if n := f.claimRows(); n != 0 {
		t.Errorf("%d claims are known, want none", n)
	}
}

// Uncommitted changes are not notified, even if the operation itself succeeded.
func TestWhatIsNotCommittedIsNotNotified(t *testing.T) {
	t.Parallel()
	n := newNoteStore(t)
	f := fixtureOn(t, n.db)
	notices := f.notices()
	n.fail = func(int32) error { return errOwn }
	says(t, f.submit(t.Context(), f.drafts(1)), errOwn)
	n.fail = nil
	if len(notices) != 0 {
		t.Errorf("notified %+v of an enqueue that was rolled back", <-notices)
	}
	f.enqueue(1)
	if len(notices) != 1 {
		t.Errorf("%d notices of an enqueue that was committed, want 1", len(notices))
	}
}

// A waiting claim must be registered before its caller continues, because a caller that is
// woken at once withdraws it.
func TestAClaimWaitsBeforeItsCallerGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := fixtureOn(t, newNoteStore(t).db)
		f.join("w")
		stop, _ := f.db.Notify(fixNS, nil, func(store.Notice) {
			synctest.Wait() // every caller with its answer has run until it blocks
		})
		defer stop()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		req := fixClaim("w", 1)
		wake := make(chan struct{}, 1)
		wake <- struct{}{}
		began := time.Now()
		later := f.drafts(1, func(n *task.New) { n.Delay = 3 * time.Hour })
		grouped(t, f.db,
			func() {
				if err := f.submit(t.Context(), later); err != nil {
					t.Error(err)
				}
			},
			func() {
				req.Wait, req.Wake = time.Hour, wake
				got, err := f.db.Claim(ctx, fixNS, req)
				if err != nil || len(got.Tasks) != 0 {
					t.Errorf("Claim = %+v, %v", got, err)
				}
			})
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the claim that was woken ended after %v", waited)
		}
	})
}

// A claim's reading in a group whose commit fails does not count. A row deleted by another
// operation of the group exists again, and must not be missed forever.
func TestLanesReadInALostGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := fixtureOn(t, openFile(t, filepath.Join(t.TempDir(), "w.db")))
		f.claim("w", 1) // reads the lanes
		other := fixtureOn(t, openFile(t, f.db.Path()))
		id := other.enqueue(1)[0] // they must be read again
		f.db.OnCommit(func(func() error) error { return errOwn })
		grouped(t, f.db, func() {
			if _, err := f.db.Operate(context.Background(), fixNS, store.CancelTask{Task: id}); err == nil {
				t.Error("a cancel whose commit failed got an answer")
			}
		}, func() {
			if _, err := f.db.Claim(context.Background(), fixNS, fixClaim("w", 1)); err == nil {
				t.Error("a claim whose commit failed got an answer")
			}
		})
		f.db.OnCommit(nil)
		if got := f.claim("w", 1); len(got) != 1 {
			t.Errorf("the next claim got %d tasks, want the one that is due", len(got))
		}
	})
}
