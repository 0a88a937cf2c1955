package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// scanned returns a store with rows in every table, read three at a time.
func scanned(t *testing.T) *fixture {
	t.Helper()
	f := fixtureOn(t, openFile(t, filepath.Join(t.TempDir(), "w.db"), sqlite.ScanPage(3)))
	for i := range 5 {
		sub := f.drafts(3, func(n *task.New) { n.Labels = map[string]string{"i": fmt.Sprint(i)} })
		for j := range sub.Tasks {
			sub.Tasks[j].Node = fmt.Sprint("n", j)
			if j > 0 {
				sub.Tasks[j].Needs = []task.Edge{{Needs: sub.Tasks[j-1].ID, Kind: task.OnSuccess}}
			}
		}
		sub.Job = &task.NewJob{ID: f.ids.New(), Name: "job"}
		if err := f.submit(t.Context(), sub); err != nil {
			t.Fatal(err)
		}
	}
	f.finish(f.claim("w", 4)...)
	f.enqueue(8, func(n *task.New) { n.ConcurrencyKey, n.ConcurrencyLimit = "key "+string(n.ID.String()[25]), 1 })
	f.enqueue(5, func(n *task.New) { n.ConcurrencyKey, n.ConcurrencyLimit = "shared", 2 })
	f.claim("w", 20)
	f.enqueue(4)
	return f
}

// violations returns the findings of a check, sorted.
func violations(list []store.Violation) []string {
	var out []string
	for _, v := range list {
		out = append(out, v.Invariant+" "+v.ID)
	}
	slices.Sort(out)
	return out
}

// A check by parts finds everything that a check of the whole finds, at any place.
func TestScanFindsWhatASnapshotShows(t *testing.T) {
	t.Parallel()
	for _, damage := range []string{
		"",
		"DELETE FROM weaver_outbox_events",
		"DELETE FROM weaver_tasks WHERE state = 'succeeded'",
		"DELETE FROM weaver_tasks WHERE state = 'pending'",
		"DELETE FROM weaver_tasks",
		"DELETE FROM weaver_jobs WHERE job_id = (SELECT min(job_id) FROM weaver_jobs)",
		"UPDATE weaver_jobs SET unfinished = unfinished + 1",
		"UPDATE weaver_task_dependencies SET done = 1 - done",
		"UPDATE weaver_conc_keys SET held = held + 1",
		"DELETE FROM weaver_conc_keys",
		"DELETE FROM weaver_conc_keys WHERE key = (SELECT min(key) FROM weaver_conc_keys)",
		"UPDATE weaver_conc_keys SET cap = 9",
		"INSERT INTO weaver_conc_waiters (namespace, key, due_at, task_id) VALUES ('acme-test', 'a', 1, x'01'), ('acme-test', 'b', 1, x'01'), ('acme-test', 'z', 1, x'02')",
		"INSERT INTO weaver_steps (namespace, task_id, name, attempt_no, try, by_attempt, by_try, step_index, kind, state, value, error_json, wake_at, started_at, completed_at) SELECT namespace, x'ff', 'late', 0, 0, 1, 1, 0, 'step', 'completed', '1', NULL, NULL, 1, 1 FROM weaver_jobs LIMIT 1",
		"UPDATE weaver_tasks SET step_count = 3",
		"UPDATE weaver_attempts SET lease_epoch = 99",
		"DELETE FROM weaver_jobs",
	} {
		t.Run(damage, func(t *testing.T) {
			t.Parallel()
			f := scanned(t)
			if damage != "" {
				f.exec(damage)
			}
			snap, err := f.db.Snapshot(t.Context(), fixNS)
			if err != nil {
				t.Fatal(err)
			}
			want := violations(store.Check(snap))
			if (damage == "") != (len(want) == 0) {
				t.Fatalf("the whole shows %v", want)
			}
			var found []store.Violation
			parts := map[store.PartOf]int{}
			err = f.db.Scan(t.Context(), fixNS, func(p *store.Part) error {
				parts[p.Of]++
				if n := f.db.OpenReads(); n != 0 {
					t.Errorf("%d reads are open while a part is looked at", n)
				}
				found = append(found, store.CheckPart(p)...)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := violations(found); !slices.Equal(got, want) {
				t.Errorf("by parts a check finds\n%q\nand of the whole\n%q", got, want)
			}
			if damage == "" && (parts[store.PartOfTasks] < 9 || parts[store.PartOfJobs] < 2 || parts[store.PartOfKeys] < 2) {
				t.Errorf("parts: %v", parts)
			}
		})
	}
}

// A part does not grow with the store: a check of 10⁷ tasks fits into memory, even if they
// belong to one job.
func TestScanIsBounded(t *testing.T) {
	t.Parallel()
	n := 20_000 // 200 pages
	if testing.Short() || repeat < 40 {
		n = 2_000
	}
	const page = 100
	f := fixtureOn(t, openFile(t, filepath.Join(t.TempDir(), "w.db"), sqlite.ScanPage(page)))
	job := f.ids.New()
	f.exec(fmt.Sprintf(`
INSERT INTO weaver_jobs (namespace, job_id, name, state, budget_json, total, unfinished, movable, failed, succeeded, created_at, updated_at, finished_at)
VALUES ('%[1]s', x'%[2]x', 'large', 'succeeded', '{}', %[3]d, 0, 0, 0, %[3]d, 1, 1, 1)`, fixNS, job[:], n))
	f.exec(fmt.Sprintf(`
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
INSERT INTO weaver_tasks (namespace, task_id, task_type, queue, priority, state, attempt_no, attempt_count, max_attempts, step_count, job_id, created_at, updated_at, finished_at)
SELECT '%s', CAST(printf('%%016d', i) AS BLOB), 'acme.demo.ok.v1', 'q', 5, 'succeeded', 1, 1, 5, 1, x'%x', 1, 1, 1 FROM n`, n, fixNS, job[:]))
	f.exec(`
INSERT INTO weaver_attempts (namespace, task_id, attempt_no, lease_epoch, lease_id, code_version, started_at, finished_at, outcome_kind)
SELECT namespace, task_id, 1, 0, task_id, 1, 1, 1, 'success' FROM weaver_tasks`)
	f.exec(`
INSERT INTO weaver_steps (namespace, task_id, name, attempt_no, try, by_attempt, by_try, step_index, kind, state, value, started_at, completed_at)
SELECT namespace, task_id, 's', 0, 0, 1, 1, 0, 'step', 'completed', '1', 1, 1 FROM weaver_tasks`)
	tasks, most := 0, 0
	err := f.db.Scan(t.Context(), fixNS, func(p *store.Part) error {
		for _, v := range store.CheckPart(p) {
			t.Errorf("store.CheckPart: %v", v)
		}
		if p.Of == store.PartOfTasks {
			tasks += len(p.Tasks)
		}
		most = max(most, len(p.Tasks)+len(p.Needed)+len(p.Jobs)+len(p.Sums)+len(p.Edges)+len(p.Attempts)+len(p.Decisions)+len(p.Steps)+
			len(p.Signals)+len(p.Dispatch)+len(p.Keys)+len(p.Waiters)+len(p.Audit)+len(p.Chores))
		return nil
	})
	if err != nil || tasks != n || most > 3*page {
		t.Errorf("%v; %d tasks of %d were seen, with %d rows at once, want at most %d", err, tasks, n, most, 3*page)
	}
}

// The scan ends with the first error.
func TestScanEndsWithAnError(t *testing.T) {
	t.Parallel()
	f := scanned(t)
	n := 0
	stop := errors.New("enough")
	err := f.db.Scan(t.Context(), fixNS, func(*store.Part) error {
		if n++; n == 2 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || n != 2 {
		t.Errorf("Scan = %v after %d parts", err, n)
	}
}
