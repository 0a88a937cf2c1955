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
		f.join("reaper")
		tx := fixtureOn(t, openFile(t, path)).begin()
		written := make(chan error, 1)
		go func() { written <- f.submit(t.Context(), f.drafts(1)) }()
		time.Sleep(fixTTL)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := <-written; err != nil {
			t.Fatal(err)
		}

		reap := func() bool {
			t.Helper()
			f.join("reaper") // its own silence is not what is tested here
			got, err := f.db.Reap(t.Context(), fixNS, store.ReapRequest{Worker: "reaper", TTL: fixTTL, CrashBudget: 3})
			if err != nil {
				t.Fatal(err)
			}
			return got.Paused
		}
		if !reap() {
			t.Error("the reaper judges others right after a stall")
		}
		time.Sleep(fixTTL + time.Second)
		if reap() {
			t.Error("the reaper still pauses a TTL after the stall")
		}
	})
}
