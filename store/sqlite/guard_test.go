package sqlite_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// No code of the store leaves a dispatch row to a task that is not claimable,
// so the rows here are written past it. A claim must not believe them.
func TestStrayDispatchRows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := fixtureOn(t, newNotebook(t).db)
		f.join("w")
		once := func(key string) func(*task.New) { return func(n *task.New) { n.IdempotencyKey = key } }
		ended, asked := f.enqueue(1, once("ended"))[0], f.enqueue(1, once("asked"))[0]
		_, err := f.db.Operate(t.Context(), fixNS, store.CancelTask{Task: ended})
		if err != nil {
			t.Fatal(err)
		}
		needs := f.drafts(2, func(n *task.New) { n.Delay = time.Hour })
		needs.Tasks[1].Needs = []task.Edge{{Needs: needs.Tasks[0].ID, Kind: task.OnSuccess}}
		if err := f.submit(t.Context(), needs); err != nil {
			t.Fatal(err)
		}
		for _, sql := range []string{
			"UPDATE weaver_tasks SET cancel_requested = 1 WHERE idempotency_key = 'asked'",
			"UPDATE weaver_tasks SET plain = 0 WHERE waiting_reason = 'deps'",
			"DELETE FROM weaver_outbox_events",
			`INSERT INTO weaver_outbox_events (namespace, task_id, queue, task_type, priority, available_at)
			 SELECT namespace, task_id, queue, task_type, priority, 1 FROM weaver_tasks`,
		} {
			if err := f.db.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		// Of the four only the need of the other may run.
		if got := f.claim("w", 10); len(got) != 1 || got[0].Task.ID != needs.Tasks[0].ID {
			t.Errorf("claimed %d tasks, want the one that is claimable (not %v, %v or %v)", len(got), ended, asked, needs.Tasks[1].ID)
		}
		if n := f.count("SELECT count(*) FROM weaver_outbox_events"); n != 0 {
			t.Errorf("%d rows are left for the next claim, and all others", n)
		}
	})
}

// What the schema refuses needs no code to be right.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	const newTask = "INSERT INTO weaver_tasks (namespace, task_id, task_type, queue, priority, state, plain, created_at, updated_at, idempotency_key) VALUES "
	for name, pair := range map[string]struct {
		first, second string
		both          bool // may stand
	}{
		"a lease without running":           {newTask + "('a', x'01', 't', 'q', 5, 'ready', 0, 0, 0, NULL)", "UPDATE weaver_tasks SET lease_id = x'01'", false},
		"running without a lease":           {newTask + "('a', x'01', 't', 'q', 5, 'ready', 0, 0, 0, NULL)", "UPDATE weaver_tasks SET state = 'running'", false},
		"an idempotency key twice":          {newTask + "('a', x'01', 't', 'q', 5, 'ready', 0, 0, 0, 'k')", newTask + "('a', x'02', 't', 'q', 5, 'ready', 0, 0, 0, 'k')", false},
		"a key of another type":             {newTask + "('a', x'01', 't', 'q', 5, 'ready', 0, 0, 0, 'k')", newTask + "('a', x'02', 'u', 'q', 5, 'ready', 0, 0, 0, 'k')", true},
		"an id in two namespaces":           {newTask + "('a', x'01', 't', 'q', 5, 'ready', 0, 0, 0, NULL)", newTask + "('b', x'01', 't', 'q', 5, 'ready', 0, 0, 0, NULL)", true},
		"two values of a step":              {"INSERT INTO weaver_steps VALUES ('a', x'01', 's', 0, 0, 1, 1, 0, 'step', 'completed', '1', NULL, NULL, 0, 0)", "INSERT INTO weaver_steps VALUES ('a', x'01', 's', 0, 0, 2, 1, 0, 'step', 'completed', '2', NULL, NULL, 0, 0)", false},
		"two dispatch rows of a task":       {"INSERT INTO weaver_outbox_events VALUES ('a', x'01', 'q', 't', 5, 1, NULL)", "INSERT INTO weaver_outbox_events VALUES ('a', x'01', 'q', 't', 5, 2, NULL)", false},
		"two attempts of a number":          {"INSERT INTO weaver_attempts VALUES ('a', x'01', 1, 1, x'01', 'w', 1, 0, 0, 'success', NULL, NULL, NULL, NULL)", "INSERT INTO weaver_attempts VALUES ('a', x'01', 1, 2, x'02', 'w', 1, 0, 0, 'success', NULL, NULL, NULL, NULL)", false},
		"two claims under a lease id":       {"INSERT INTO weaver_claims VALUES ('a', x'01', 'w', 1, x'')", "INSERT INTO weaver_claims VALUES ('a', x'01', 'w', 2, x'')", false},
		"two waiters that are due together": {"INSERT INTO weaver_conc_waiters VALUES ('a', 'k', 1, x'01')", "INSERT INTO weaver_conc_waiters VALUES ('a', 'k', 1, x'02')", true},
		"a queue paused twice":              {"INSERT INTO weaver_paused_queues VALUES ('a', 'q', 1, '', '')", "INSERT INTO weaver_paused_queues VALUES ('a', 'q', 2, '', '')", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newNotebook(t).db
			if err := db.Exec(t.Context(), pair.first); err != nil {
				t.Fatal(err)
			}
			if err := db.Exec(t.Context(), pair.second); (err == nil) != pair.both {
				t.Errorf("%s\n%s: %v", pair.first, pair.second, err)
			}
		})
	}
	t.Run("two stores of one generation", func(t *testing.T) {
		t.Parallel()
		var seen []string
		for range 2 {
			snap, err := newNotebook(t).db.Snapshot(t.Context(), fixNS)
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, snap.Generation)
		}
		if seen[0] == seen[1] || seen[0] == "" {
			t.Errorf("generations %q", seen)
		}
	})
}

// grouped makes calls so that they share one group, in this order.
func grouped(t *testing.T, db *sqlite.DB, calls ...func()) {
	t.Helper()
	release := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = db.Write(context.Background(), func(func(string) error) error { <-release; return nil })
	})
	synctest.Wait()
	for _, call := range calls {
		wg.Go(call)
		synctest.Wait()
	}
	close(release)
	wg.Wait()
}

// A restore and a lease of before it in one group: what is remembered of the
// generation must be neither the old one nor one that is rolled back.
func TestRestoreInAGroup(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"committed": true, "rolled back": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := newNotebook(t)
				f := fixtureOn(t, n.db)
				f.join("w")
				f.enqueue(1)
				c := f.claim("w", 1)[0] // and the generation is known
				commits, ops := 0, 0
				f.db.OnCommit(func(commit func() error) error {
					if commits++; !lost && commits == 2 { // 1: the leader. 2: the group.
						return errOwn
					}
					return commit()
				})
				f.db.OnOp(func() error {
					if ops++; !lost && ops == 4 { // 1: the leader. 2, 3: the group. 4: the restore alone.
						return errOwn
					}
					return nil
				})
				var recorded []store.RecordResult
				var restoring, recording error
				grouped(t, f.db, func() {
					_, restoring = f.db.Operate(context.Background(), fixNS, store.Restored{})
				}, func() {
					recorded, recording = f.db.Record(context.Background(), fixNS, store.Record{Lease: c.Lease, Step: &task.Step{
						Name: "s", Kind: task.KindStep, State: task.StepCompleted, AttemptNo: 1, Try: 1, Value: []byte(`1`),
					}})
				})
				if recording != nil || (restoring == nil) != lost {
					t.Fatalf("the restore: %v; the record: %v", restoring, recording)
				}
				if errors.Is(recorded[0].Err, store.ErrLeaseLost) != lost {
					t.Errorf("the record beside a restore that was %s: %v", name, recorded[0].Err)
				}
				beats, err := f.db.Heartbeat(t.Context(), fixNS, store.HeartbeatRequest{Worker: "w", TTL: time.Minute, Leases: []task.Lease{c.Lease}})
				if err != nil || beats[0].Lost != lost {
					t.Errorf("the heartbeat after a restore that was %s: %+v, %v", name, beats, err)
				}
			})
		})
	}
}

func TestClaimsThatWaitForAGroup(t *testing.T) {
	inLot(t, "ride once, although the group is done again one by one", func(l *lot) {
		ch := l.park(l.Context(), time.Hour)
		subs := []store.Submission{l.drafts(1), l.drafts(1)}
		failed := 0
		l.db.OnCommit(func(commit func() error) error {
			if failed++; failed == 2 { // 1: the leader
				return errOwn
			}
			return commit()
		})
		var errs [2]error
		grouped(l.T, l.db, func() { errs[0] = l.submit(context.Background(), subs[0]) }, func() { errs[1] = l.submit(context.Background(), subs[1]) })
		if err := errors.Join(errs[:]...); err != nil {
			l.Fatal(err)
		}
		got := l.got(<-ch, 1)
		if n := l.count("SELECT count(*) FROM weaver_tasks WHERE state = 'running'"); n != 1 {
			l.Errorf("%d tasks are leased, and one was handed out", n)
		}
		l.finish(got...)
		l.sound(append(idsOf(subs[0]), idsOf(subs[1])...)...)
	})

	inLot(t, "get nothing of a group whose commit failed", func(l *lot) {
		ch := l.park(l.Context(), time.Hour)
		failed := 0
		l.db.OnCommit(func(commit func() error) error {
			if failed++; failed > 1 { // the group, and each by itself
				return errOwn
			}
			return commit()
		})
		grouped(l.T, l.db,
			func() { says(l.T, l.submit(context.Background(), l.drafts(1)), errOwn) },
			func() { says(l.T, l.submit(context.Background(), l.drafts(1)), errOwn) })
		l.db.OnCommit(nil)
		select {
		case a := <-ch:
			l.Fatalf("answered with %d tasks, error %v", len(a.Tasks), a.err)
		case <-time.After(time.Minute):
		}
		l.enqueue(1)
		l.got(<-ch, 1)
	})

	inLot(t, "do not wait for what hints name, nor to look a lease up", func(l *lot) {
		for name, change := range map[string]func(*store.ClaimRequest){
			"a hint":    func(r *store.ClaimRequest) { r.IDs = []task.ID{task.NewIDs(nil).New()} },
			"a look-up": func(r *store.ClaimRequest) { r.Again = true },
		} {
			began := time.Now()
			l.got(<-l.park(l.Context(), time.Hour, change), 0)
			if waited := time.Since(began); waited != 0 {
				l.Errorf("%s waited %v", name, waited)
			}
		}
	})
}

// A worker's lock is one of its namespace, and nobody's beside it.
func TestWorkerLocks(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/w.db"
	one, two := openFile(t, path), openFile(t, path)
	w := store.WorkerInfo{ID: "w", TTL: time.Second}
	if err := one.Join(t.Context(), "here", w); err != nil {
		t.Fatal(err)
	}
	if err := two.Join(t.Context(), "here", w); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a second process under the same id: %v, want ErrConflict", err)
	}
	if err := two.Join(t.Context(), "there", w); err != nil {
		t.Errorf("the same id in another namespace: %v", err)
	}
	if err := one.Leave(t.Context(), "here", w.ID); err != nil {
		t.Fatal(err)
	}
	if err := two.Join(t.Context(), "here", w); err != nil {
		t.Errorf("the same id after the other left: %v", err)
	}
}
