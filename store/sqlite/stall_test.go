package sqlite_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// Whoever waited long for the write lock cannot tell a dead worker from one
// that waits for the same lock, so the reaper leaves everybody a TTL to renew
// (R7). The busy handler sleeps, so the wait takes no time in a bubble.
func TestReapPausesAfterAStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "weaver.db")
		f := fixtureOn(t, openFile(t, path, sqlite.BusyTimeout(time.Minute)))
		f.enqueue(1)
		f.claim("doomed", 1)
		beat := func(d time.Duration) { // every TTL/3: its own silence is not what is tested here
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
			t.Error("the reaper judges others right after a stall")
		}
		beat(fixTTL + time.Second)
		if reap() {
			t.Error("the reaper still pauses a TTL after the stall")
		}
	})
}

// The wall's clock is set back by an hour. Who was seen an hour ahead has not
// been seen for an hour: nobody knows. But he need not wait for the hour.
func TestAClockThatGoesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := fileFixture(t)
		f.steady("reaper")
		f.enqueue(1)
		f.claim("doomed", 1)
		f.exec("UPDATE weaver_workers SET last_seen = last_seen + ?, heartbeats_since = heartbeats_since + ?", time.Hour.Microseconds(), time.Hour.Microseconds())
		f.steady("reaper")
		f.steady("reaper")
		got, err := f.db.Reap(t.Context(), fixNS, store.ReapRequest{Worker: "reaper", TTL: fixTTL, CrashBudget: 3})
		if err != nil || len(got.Reaped) != 1 || got.WarmingUp {
			t.Errorf("the reap answered %+v, %v, want one lease", got, err)
		}
	})
}
