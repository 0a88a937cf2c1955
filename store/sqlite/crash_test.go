package sqlite_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// childStorms writes from many goroutines until it is killed, and prints acknowledged
// submissions, one line of IDs each.
func childStorms(ctx context.Context, path string, _ *bufio.Scanner, out io.Writer) error {
	return opened(ctx, path, func(db *sqlite.DB) error {
		db.Whole, db.Part = 2, 2 // the tasks of a job are stored in several transactions
		var mu sync.Mutex        // a line is written at once
		var wg sync.WaitGroup
		errs := make([]error, 6)
		for i := range errs {
			wg.Go(func() {
				for errs[i] == nil {
					var ids []task.ID
					if ids, errs[i] = storm(ctx, db, i); errs[i] != nil {
						return
					}
					mu.Lock()
					fmt.Fprintln(out, strings.Trim(fmt.Sprint(ids), "[]"))
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
}

// storm performs one operation of the i-th kind and returns its stored tasks.
func storm(ctx context.Context, db *sqlite.DB, i int) ([]task.ID, error) {
	f := &fixture{db: db, ids: task.NewIDs(nil)}
	var sub store.Submission
	switch i % 3 {
	case 0: // fills more than one page
		sub = f.drafts(3, bulky, func(n *task.New) { n.Labels = map[string]string{"k": "v"} })
	case 1: // a job, whose tasks are stored together or not at all
		sub = f.drafts(4)
		sub.Job = &task.NewJob{ID: f.ids.New(), Name: "storm"}
		for j := range sub.Tasks {
			sub.Tasks[j].Node = fmt.Sprint("n", j)
			if j > 0 {
				sub.Tasks[j].Needs = []task.Edge{{Needs: sub.Tasks[0].ID, Kind: task.OnSuccess}}
			}
		}
	default: // a small task, and work
		sub = f.drafts(1)
	}
	if err := f.submit(ctx, sub); err != nil || i%3 != 2 {
		return idsOf(sub), err
	}
	got, err := db.Claim(ctx, fixNS, fixClaim("child", 2))
	if err != nil {
		return nil, err
	}
	for _, c := range got.Tasks {
		if _, err := db.Finish(ctx, fixNS, store.Finish{Lease: c.Lease, Outcome: task.OutcomeSuccess, Output: json.RawMessage(`null`)}); err != nil {
			return nil, err
		}
	}
	return idsOf(sub), nil
}

// A process is killed in the middle of a storm of writes. Everything acknowledged to it is
// stored when the file is opened again, and nothing is stored half.
func TestKilledInAStorm(t *testing.T) {
	t.Parallel()
	for _, acknowledged := range []int{20, 90} {
		f := fileFixture(t)
		path := f.db.Path()
		if err := f.db.Close(); err != nil {
			t.Fatal(err)
		}
		c := startChild(t, "storm", path)
		var lines []string
		for len(lines) < acknowledged {
			lines = append(lines, c.readLine())
		}
		c.kill()
		lines = append(lines, c.rest()...) // the rest of the pipe

		f = fixtureOn(t, openFile(t, path))
		snap, err := f.db.Snapshot(t.Context(), fixNS)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range store.Check(snap) {
			t.Errorf("store.Check: %v", v)
		}
		stored := make(map[string]bool)
		for i := range snap.Tasks {
			stored[snap.Tasks[i].ID.String()] = true
		}
		for _, line := range lines {
			for _, id := range strings.Fields(line) {
				if !stored[id] {
					t.Errorf("task %s was acknowledged and is gone", id)
				}
			}
		}
		f.reapChores()
		f.chores()
		for _, j := range snap.Jobs {
			if n := f.count("SELECT count(*) FROM weaver_tasks WHERE job_id = ?", j.ID[:]); n != 4 {
				t.Errorf("job %v has %d tasks, want all 4 or no job", j.ID, n)
			}
		}
		if got := f.one("PRAGMA integrity_check"); got != "ok" {
			t.Errorf("integrity_check: %s", got)
		}
		f.finish(f.claim("w", 10)...) // and work continues
	}
}
