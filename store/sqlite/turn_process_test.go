package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store/sqlite"
)

// Two DBs of one file act like two processes: neither starves the other, regardless of the
// number of its transactions.
func TestProcessesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "weaver.db")
		f := fixtureOn(t, openFile(t, path))
		f.join("worker") // creates the folder
		other := fixtureOn(t, openFile(t, path))
		ctx, stop := context.WithCancel(t.Context())
		var begun atomic.Int64
		ended := make(chan error)
		const producers = 6
		for range producers {
			go func() {
				var err error
				for err == nil && ctx.Err() == nil {
					var tx *sql.Tx
					if tx, err = other.db.DB().BeginTx(context.WithoutCancel(ctx), nil); err == nil {
						begun.Add(1)
						time.Sleep(20 * time.Millisecond)
						err = tx.Commit()
					}
				}
				ended <- err
			}()
		}
		time.Sleep(time.Second)
		const enqueues = 60
		before := begun.Load()
		for range enqueues {
			f.enqueue(1)
		}
		others := begun.Load() - before
		stop()
		for range producers {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if others > enqueues+enqueues/2 { // one at a time
			t.Errorf("the other process wrote %d times while this one wrote %d times", others, enqueues)
		}
	})
}

// A call that leads the group commit gives up when its context ends, while another process
// writes, and the next call leads.
func TestLeaderGivesUp(t *testing.T) {
	t.Parallel()
	for name, workers := range map[string]bool{"in line": true, "without turns": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "weaver.db")
			f := fixtureOn(t, openFile(t, path, sqlite.BusyTimeout(time.Hour)))
			if workers {
				f.join("worker")
			}
			tx := fixtureOn(t, openFile(t, path)).begin()
			ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer stop()
			if err := f.submit(ctx, f.drafts(1)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Enqueue = %v", err)
			}
			stays := make(chan error)
			go func() { stays <- f.submit(t.Context(), f.drafts(1)) }()
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			if err := <-stays; err != nil {
				t.Error(err)
			}
			if got := f.count("SELECT count(*) FROM weaver_tasks"); got != 1 {
				t.Errorf("%d tasks, want 1", got)
			}
		})
	}
}
