package weaver_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// A waiting task or job ends at its deadline, however long leases are.
func TestDeadlinesOfWhatWaits(t *testing.T) {
	waits := weaver.Define[string, string]("engine.deadline.waits.v1") // no worker serves this type
	served := weaver.Define[string, string]("engine.deadline.served.v1")
	handler := served.Handler(func(context.Context, string) (string, error) { return "", nil })
	const soon = 30 * time.Millisecond
	// set sets deadlines of half a second and a second through a client, and checks that both hold
	// within a tolerance.
	set := func(fx *fixture, c *weaver.Client, late time.Duration) {
		fx.Helper()
		time.Sleep(time.Minute + 7*time.Second) // the reaper is between two rounds
		began := time.Now()
		h, err := waits.Enqueue(fx.Context(), c, "", weaver.ExpireAfter(500*time.Millisecond))
		fx.must(err)
		j := weaver.NewJob("short", weaver.Budget{MaxDuration: time.Second})
		j.Add("b", waits.With(""), weaver.Needs(j.Add("a", waits.With(""))))
		job, err := c.Submit(fx.Context(), j)
		fx.must(err)
		time.Sleep(time.Until(began.Add(500*time.Millisecond + late)))
		fx.wantState(h.ID(), weaver.StateCancelled)
		time.Sleep(time.Until(began.Add(time.Second + late)))
		status, err := c.JobStatus(fx.Context(), job.ID())
		fx.must(err)
		equal(fx, "the state of the job", status.State, task.JobFailed)
	}

	subtest(t, "set by this process", func(fx *fixture) {
		fx.run(handler)
		set(fx, fx.client, soon)
	})

	subtest(t, "set in a caller's transaction", func(fx *fixture) {
		db := openFile(fx, filepath.Join(fx.TempDir(), "weaver.db"))
		fx = newFixture(fx.T, db)
		fx.run(handler)
		time.Sleep(time.Minute + 7*time.Second)
		tx, err := db.DB().BeginTx(fx.Context(), nil)
		fx.must(err)
		h, err := waits.Enqueue(fx.Context(), fx.client.InTx(sqlite.Tx(tx)), "", weaver.ExpireAfter(500*time.Millisecond))
		fx.must(err)
		fx.must(tx.Commit())
		time.Sleep(500*time.Millisecond + soon)
		fx.wantState(h.ID(), weaver.StateCancelled)
	})

	subtest(t, "set by another process", func(fx *fixture) {
		path := filepath.Join(fx.TempDir(), "weaver.db")
		fx = newFixture(fx.T, openFile(fx, path))
		fx.run(handler)
		set(fx, newFixture(fx.T, openFile(fx, path)).client, time.Second+soon)
	})

	subtest(t, "set in a store without notices", func(fx *fixture) {
		fx.runConfig(polled(fx.store), weaver.Config{Handlers: []weaver.Handler{handler}})
		set(fx, fx.client, time.Second*11/10+soon)
	})
}
