package weaver_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// durablyProcesses are the items that need a file, and processes that share
// it. They run in real time.
func durablyProcesses(t *testing.T) {
	t.Run("24 a killed process is taken over at once", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "weaver.db")
		w := newWorld(t, openFile(t, path))
		h := enqueue(w, childAdd, childInput{A: 1, B: 2, Hang: true})
		c := startChild(t, path)
		c.says("hangs")
		c.kill()

		killed := time.Now()
		w.run(childAdd.Handler(addInStep))
		out := result(w, h)
		equal(t, "sum", out.Sum, 3)
		equal(t, "process that ran the step", out.Process, c.cmd.Process.Pid)
		if waited := time.Since(killed); waited > weaver.DefaultLease/2 {
			t.Errorf("taken over after %s: the lease of %s must not matter", waited, weaver.DefaultLease)
		}
		w.wantOutcomes(h.ID(), task.OutcomeLeaseLost, task.OutcomeSuccess)
	})

	t.Run("27 migrations are explicit, idempotent, versioned, and safe from two processes at once", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "weaver.db")
		db, err := sqlite.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, db)
		t.Cleanup(func() { w.must(db.Close()) })
		_, err = childAdd.Enqueue(t.Context(), w.client, childInput{})
		wantError(t, err, weaver.ErrNotMigrated, "weaver migrate up")
		err = w.newEngine(db, weaver.Config{}).Run(t.Context())
		wantError(t, err, weaver.ErrNotMigrated, "weaver migrate up", "Migrate")

		// Two processes and eight handles of this one, all at once.
		a, b := startChild(t, path), startChild(t, path)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				other, err := sqlite.Open(t.Context(), path)
				if err != nil {
					t.Error(err)
					return
				}
				if err := other.Migrate(t.Context()); err != nil {
					t.Error(err)
				}
				if err := other.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		a.says("runs")
		b.says("runs")
		out, err := childAdd.EnqueueAndWait(t.Context(), w.client, childInput{A: 2, B: 3})
		w.must(err)
		equal(t, "sum", out.Sum, 5)
		a.end()
		b.end()

		before, err := db.MigrationStatus(t.Context())
		w.must(err)
		w.must(db.Migrate(t.Context()))
		after, err := db.MigrationStatus(t.Context())
		w.must(err)
		for i := range before {
			equal(t, "a migration is applied once", after[i], before[i])
		}
		list, _, err := w.client.List(t.Context(), weaver.Filter{})
		w.must(err)
		equal(t, "tasks after migrating again", len(list), 1)

		// A newer program was here.
		_, err = db.DB().ExecContext(t.Context(), "INSERT INTO weaver_schema_versions (version, name, checksum, applied_at) VALUES (9999, 'later', 'x', 0)")
		w.must(err)
		wantError(t, db.Migrate(t.Context()), weaver.ErrNewerSchema)
		wantError(t, w.newEngine(db, weaver.Config{}).Run(t.Context()), weaver.ErrNewerSchema, "newer version of the program")
	})

	t.Run("53 a result is waited for from another process", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "weaver.db")
		w := newWorld(t, openFile(t, path))
		c := startChild(t, path)
		c.says("runs")
		out := result(w, enqueue(w, childAdd, childInput{A: 20, B: 22}))
		equal(t, "sum", out.Sum, 42)
		equal(t, "process that did it", out.Process, c.cmd.Process.Pid)
		if out.Process == os.Getpid() {
			t.Error("this process ran it itself")
		}
		c.end()
	})

	t.Run("53 a result is waited for through another handle, without polling", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "weaver.db")
		synctest.Test(t, func(t *testing.T) {
			w, other := newWorld(t, openFile(t, path)), newWorld(t, openFile(t, path))
			h := enqueue(w, childAdd, childInput{A: 20, B: 22})
			waited := make(chan error, 1)
			go func() {
				_, err := other.client.Wait(t.Context(), h.ID())
				waited <- err
			}()
			synctest.Wait()
			began := time.Now()
			w.run(childAdd.Handler(addInStep))
			w.must(<-waited)
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Errorf("it took %s to notice", took)
			}
		})
	})
}
