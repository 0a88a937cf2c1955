package sqlite_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A claim whose leases were renewed is checked again when they end. It does not take the place
// of a claim with an expired lease, even if a reap reads few rows.
func TestReapLooksPastRenewedClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fixtureOn(t, newNoteStore(t).db)
		for _, w := range []store.WorkerID{"renews", "silent", "reaps"} {
			f.join(w)
		}
		f.enqueue(2)
		renewed := f.claim("renews", 1)[0]
		time.Sleep(time.Second)
		expired := f.claim("silent", 1)[0]
		for range 5 {
			time.Sleep(fixTTL / 3)
			for worker, leases := range map[store.WorkerID][]task.Lease{"renews": {renewed.Lease}, "reaps": nil} {
				if _, err := f.db.Heartbeat(t.Context(), fixNS, store.HeartbeatRequest{Worker: worker, TTL: fixTTL, Leases: leases}); err != nil {
					t.Fatal(err)
				}
			}
		}
		var reaped []task.ID
		for range 3 {
			got, err := f.db.Reap(t.Context(), fixNS, store.ReapRequest{Worker: "reaps", TTL: fixTTL, CrashBudget: 3, Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range got.Reaped {
				reaped = append(reaped, r.Task)
			}
		}
		if !slices.Equal(reaped, []task.ID{expired.Task.ID}) {
			t.Errorf("reaped %v, want %v", reaped, expired.Task.ID)
		}
	})
}
