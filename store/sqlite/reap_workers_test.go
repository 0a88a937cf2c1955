package sqlite_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
)

// Leases of a worker with the same ID in another namespace do not keep the row of a worker
// that is gone. Otherwise every reap would read that row, and its lock file would stay.
func TestReapForgetsWorkersByNamespace(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]func(f *fixture){
		"silent": func(*fixture) { time.Sleep(12 * fixTTL) },
		"dead":   func(f *fixture) { f.db.Kill(fixNS, "same") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fixtureOn(t, openFile(t, filepath.Join(t.TempDir(), "weaver.db")))
				const otherNS = "acme-prod"
				f.join("same")
				if err := f.db.Join(t.Context(), otherNS, store.WorkerInfo{ID: "same", Name: "host:1", TTL: fixTTL}); err != nil {
					t.Fatal(err)
				}
				if _, err := f.db.Enqueue(t.Context(), otherNS, nil, f.drafts(1)); err != nil {
					t.Fatal(err)
				}
				got, err := f.db.Claim(t.Context(), otherNS, fixClaim("same", 1))
				if err != nil || len(got.Tasks) != 1 {
					t.Fatalf("Claim in the other namespace = %d tasks, %v", len(got.Tasks), err)
				}
				gone(f)
				f.warmUp("reaper")
				if _, err := f.db.Reap(t.Context(), fixNS, store.ReapRequest{Worker: "reaper", TTL: fixTTL, CrashBudget: 3}); err != nil {
					t.Fatal(err)
				}
				for ns, want := range map[string]int{fixNS: 0, otherNS: 1} {
					if n := f.count("SELECT count(*) FROM weaver_workers WHERE worker_id = 'same' AND namespace = ?", ns); n != want {
						t.Errorf("%s has %d rows of the worker, want %d", ns, n, want)
					}
				}
			})
		})
	}
}

// warmUp observes a worker without a gap until it is eligible to reap.
func (f *fixture) warmUp(worker store.WorkerID) {
	f.Helper()
	f.join(worker)
	for range 3 {
		time.Sleep(fixTTL / 3)
		f.join(worker)
	}
}

// The row of a claim whose tasks ended through another process remains until the reaper reads
// it. It stands for no lease, so the row of its worker is deleted nevertheless.
func TestReapForgetsWorkersWithEmptyClaims(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ ended, left int }{
		"nothing runs":    {2, 0},
		"one of two runs": {1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "weaver.db")
				f, other := fixtureOn(t, openFile(t, path)), fixtureOn(t, openFile(t, path))
				f.join("silent")
				f.enqueue(2)
				req := fixClaim("silent", 2)
				req.TTL = 20 * fixTTL
				got, err := f.db.Claim(t.Context(), fixNS, req)
				if err != nil || len(got.Tasks) != 2 {
					t.Fatalf("Claim = %d tasks, %v", len(got.Tasks), err)
				}
				other.finish(got.Tasks[:c.ended]...)
				time.Sleep(12 * fixTTL)
				f.warmUp("reaper")
				if _, err := f.db.Reap(t.Context(), fixNS, store.ReapRequest{Worker: "reaper", TTL: fixTTL, CrashBudget: 3}); err != nil {
					t.Fatal(err)
				}
				for _, table := range []string{"weaver_claims", "weaver_workers"} {
					if n := f.count("SELECT count(*) FROM " + table + " WHERE worker_id = 'silent'"); n != c.left {
						t.Errorf("%s has %d rows of the worker, want %d", table, n, c.left)
					}
				}
			})
		})
	}
}
