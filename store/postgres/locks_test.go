package postgres_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

// lockWork is a worker's and a caller's calls during a transaction that holds locks.
func lockWork(t *testing.T, opts ...postgres.Option) *planWork {
	t.Helper()
	return workIn(t, pgtest.Migrated(t, "weaver", migrateURL), opts...)
}

// workIn is lockWork in the database of url.
func workIn(t *testing.T, url string, opts ...postgres.Option) *planWork {
	t.Helper()
	opts = append(opts, postgres.LockFolder(t.TempDir()))
	w := &planWork{TB: t, db: openURL(t, url, opts...), ids: task.NewIDs(nil)}
	w.ok(w.db.Join(t.Context(), planNS, store.WorkerInfo{ID: "w", Name: "host:1", TTL: workTTL}))
	return w
}

// locking runs SQL in a transaction that stays open.
func (w *planWork) locking(sql string, args ...any) pgx.Tx {
	w.Helper()
	tx, err := w.db.Pool().Begin(w.Context())
	w.ok(err)
	w.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // it may have ended
	_, err = tx.Exec(w.Context(), sql, args...)
	w.ok(err)
	return tx
}

// A claim skips locked rows and waits for no transaction that holds one.
func TestClaimPassesLocked(t *testing.T) {
	t.Parallel()
	w := workIn(t, pgtest.Migrated(pgtest.InShort(t), "weaver", migrateURL))
	for name, change := range map[string]func(*task.New){
		"first attempts of plain tasks": func(*task.New) {},
		"tasks with a key":              func(n *task.New) { n.ConcurrencyKey, n.ConcurrencyLimit = "many", 9 },
	} {
		ids := w.enqueue(2, change)
		tx := w.locking("SELECT 1 FROM weaver.weaver_outbox_events WHERE task_id = $1 FOR UPDATE", ids[0][:])
		got := w.claimWork(1) // a claim that waited for the lock would fail with the lock's timeout
		if got[0].Task.ID != ids[1] {
			t.Errorf("%s: it claimed %v, want %v", name, got[0].Task.ID, ids[1])
		}
		// The worker that holds the other task may give it back.
		res, err := w.db.Claim(t.Context(), planNS, store.ClaimRequest{
			Worker: "w", Name: "host:1", LeaseID: task.NewLeaseID(), TTL: workTTL, Limit: 1, Slots: 10, Types: map[string]int{workType: 1},
		})
		if err != nil || len(res.Tasks) > 0 || res.Next <= 0 || res.Next > 100*time.Millisecond {
			t.Errorf("%s: a claim of what is locked answers %d tasks, next in %v, %v; want none, next soon", name, len(res.Tasks), res.Next, err)
		}
		w.ok(tx.Rollback(t.Context()))
		w.succeed(append(got, w.claimWork(1)...)...)
	}
}

// A statement that decides on a row locks it before it reads it.
func TestLocksFirst(t *testing.T) {
	t.Parallel()
	w := workIn(t, pgtest.Migrated(pgtest.InShort(t), "weaver", migrateURL))
	ready := func(change ...func(*task.New)) task.ID { return w.enqueue(1, change...)[0] }
	cancel := func(id task.ID) func() { return func() { w.operate(store.CancelTask{Task: id}) } }
	advisory := func(what string) int64 {
		h := fnv.New64a()
		fmt.Fprintf(h, "weaver %s weaver %s", what, planNS)
		return int64(h.Sum64())
	}
	const lockAdvisory = "SELECT pg_advisory_xact_lock($1)"
	for _, c := range []struct {
		name, lock, waits string // waits is a pattern of the statement that waits
		play              func() (arg any, op func())
	}{
		{"tasks", "SELECT 1 FROM weaver.weaver_tasks WHERE task_id = $1 FOR UPDATE", "%weaver_tasks%FOR UPDATE)%", func() (any, func()) {
			id := ready()
			return id[:], cancel(id)
		}},
		{"dispatch rows", "SELECT 1 FROM weaver.weaver_outbox_events WHERE task_id = $1 FOR UPDATE", "%weaver_outbox_events%FOR UPDATE)%", func() (any, func()) {
			id := ready()
			return id[:], cancel(id)
		}},
		{"keys", "SELECT 1 FROM weaver.weaver_conc_keys WHERE key = $1 FOR UPDATE", "%weaver_conc_keys%FOR UPDATE)%", func() (any, func()) {
			id := ready(func(n *task.New) { n.ConcurrencyKey, n.ConcurrencyLimit = "locked", 1 })
			w.claimWork(1)
			return "locked", func() { w.operate(store.CancelTask{Task: id, Force: true}) }
		}},
		{"jobs", "SELECT 1 FROM weaver.weaver_jobs WHERE job_id = $1 FOR UPDATE", "%weaver_jobs%FOR UPDATE)%", func() (any, func()) {
			job := task.NewJob{ID: w.ids.New(), Name: "locks"}
			n := w.draft()
			n.Node = "n"
			w.submit(store.Submission{Job: &job, Tasks: []task.New{n}})
			return job.ID[:], cancel(n.ID)
		}},
		{"tasks that it claims", "SELECT 1 FROM weaver.weaver_tasks WHERE task_id = $1 FOR UPDATE", "%weaver_tasks%FOR UPDATE)%", func() (any, func()) {
			id := ready(func(n *task.New) { n.ExpireAfter = time.Hour }) // not plain
			return id[:], func() { w.claimWork(1) }
		}},
		{"tasks that it collects", "SELECT 1 FROM weaver.weaver_tasks WHERE task_id = $1 FOR UPDATE", "%weaver_tasks%FOR UPDATE)%", func() (any, func()) {
			ids := w.enqueue(2)
			w.succeed(w.claimWork(2)...)
			return ids[1][:], func() { w.retain(2) }
		}},
		{"the graph", lockAdvisory, "%pg_advisory_xact_lock%", func() (any, func()) {
			w.enqueue(2)
			got := w.claimWork(2)
			return advisory("graph"), func() {
				w.finish(store.Finish{Lease: got[0].Lease, Outcome: task.OutcomeAddDependency, DependsOn: got[1].Task.ID})
			}
		}},
		{"tasks that coalesce", lockAdvisory, "%pg_advisory_xact_lock%", func() (any, func()) {
			return advisory(fmt.Sprintf("name coalesce %q %q %q %q", workType, workQueue, "", "new")), func() {
				w.enqueue(1, func(n *task.New) { n.ConcurrencyKey, n.ConcurrencyLimit, n.Coalesce = "new", 1, true })
			}
		}},
		{"commands that move many tasks", lockAdvisory, "%pg_advisory_xact_lock%", func() (any, func()) {
			return advisory("heavy"), cancel(ready())
		}},
	} {
		arg, op := c.play()
		tx := w.locking(c.lock, arg)
		done := make(chan struct{})
		go func() {
			defer close(done)
			op()
		}()
		eventually(t, "who decides on "+c.name+" waits for their lock", func() bool {
			var n int
			err := w.db.Pool().QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
  AND query LIKE $1 AND query NOT LIKE '%UPDATE weaver%'`, c.waits).Scan(&n)
			return err == nil && n > 0
		})
		w.ok(tx.Rollback(t.Context()))
		<-done
	}
}
