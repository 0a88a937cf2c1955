package sqlite_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// After a long wait for the write lock a dead worker looks like a worker that waited for the
// same lock. The reaper therefore gives all workers a TTL to renew (R7). The busy handler
// sleeps, so the wait takes no time in a bubble.
func TestReapWarmsUpAfterALongWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "weaver.db")
		f := fixtureOn(t, openFile(t, path, sqlite.BusyTimeout(time.Minute)))
		f.enqueue(1)
		f.claim("doomed", 1)
		beat := func(d time.Duration) { // every TTL/3, because the reaper's own silence is not tested here
			for f.join("reaper"); d > 0; d -= fixTTL / 3 {
				time.Sleep(fixTTL / 3)
				f.join("reaper")
			}
		}
		beat(2 * fixTTL)
		tx := fixtureOn(t, openFile(t, path)).begin()
		written := make(chan error, 1)
		go func() { written <- f.submit(t.Context(), f.drafts(1)) }()
		time.Sleep(fixTTL * 4 / 10)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := <-written; err != nil {
			t.Fatal(err)
		}

		reap := func() bool {
			t.Helper()
			got, err := f.db.Reap(t.Context(), fixNS, store.ReapRequest{Worker: "reaper", TTL: fixTTL, CrashBudget: 3})
			if err != nil {
				t.Fatal(err)
			}
			return got.WarmingUp
		}
		if !reap() {
			t.Error("the reaper is eligible right after a long wait for the lock")
		}
		beat(fixTTL + time.Second)
		if reap() {
			t.Error("the reaper still warms up a TTL after the wait")
		}
	})
}

// The wall clock is set back by an hour, so the rows of workers are an hour in the future. The
// reaper warms up again, and does not wait for that hour to pass.
func TestReapAfterTheClockGoesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := fileFixture(t)
		f.warmUp("reaper")
		f.enqueue(1)
		f.claim("doomed", 1)
		f.exec("UPDATE weaver_workers SET last_seen = last_seen + ?, heartbeats_since = heartbeats_since + ?", time.Hour.Microseconds(), time.Hour.Microseconds())
		f.warmUp("reaper")
		f.warmUp("reaper")
		got, err := f.db.Reap(t.Context(), fixNS, store.ReapRequest{Worker: "reaper", TTL: fixTTL, CrashBudget: 3})
		if err != nil || len(got.Reaped) != 1 || got.WarmingUp {
			t.Errorf("the reap answered %+v, %v, want one lease", got, err)
		}
	})
}
