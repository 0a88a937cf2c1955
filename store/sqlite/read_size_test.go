package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// Reads of one job or task do not depend on the number of others: 100,000 with
// WEAVER_READS=full.
func TestReadsOfOneDoNotGrow(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	many := 2_000
	if os.Getenv("WEAVER_READS") == "full" {
		many = 100_000
	}
	few := readStepsAmong(t, 10)
	for what, steps := range readStepsAmong(t, many) {
		if steps != few[what] || steps == 0 {
			t.Errorf("%s takes %d steps among %d jobs and %d among 10", what, steps, many, few[what])
		}
	}
}

// readStepsAmong stores this number of jobs of two tasks, of which the second needs the first.
// It returns the virtual machine steps of reads of the middle job.
func readStepsAmong(t *testing.T, jobs int) map[string]int {
	t.Helper()
	db, err := sqlite.OpenMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := fixtureOn(t, db)
	typ := weaver.Define[string, weaver.None]("acme.test.size.v1")
	client, err := weaver.NewClient(f.db, weaver.ClientConfig{Namespace: fixNS})
	if err != nil {
		t.Fatal(err)
	}
	var job, needy task.ID
	for i := range jobs {
		sub := f.drafts(2, func(n *task.New) { n.Type = typ.Name() })
		sub.Tasks[0].Node, sub.Tasks[1].Node = "a", "b"
		sub.Tasks[1].Needs = []task.Edge{{Needs: sub.Tasks[0].ID, Kind: task.OnSuccess}}
		sub.Job = &task.NewJob{ID: f.ids.New(), Name: fmt.Sprint("job ", i)}
		if err := f.submit(t.Context(), sub); err != nil {
			t.Fatal(err)
		}
		if i == jobs/2 {
			job, needy = sub.Job.ID, sub.Tasks[1].ID
		}
	}
	steps := map[string]int{}
	for _, r := range []struct {
		what string
		read func(context.Context) error
	}{
		{"Job", func(ctx context.Context) error { _, err := store.JobOf(ctx, f.db, fixNS, job); return err }},
		{"Needs", func(ctx context.Context) error { _, err := f.db.Needs(ctx, fixNS, needy); return err }},
		{"History", func(ctx context.Context) error { _, err := f.db.History(ctx, fixNS, needy); return err }},
		{"Tasks", func(ctx context.Context) error { _, err := f.db.Tasks(ctx, fixNS, needy); return err }},
		{"JobStatus", func(ctx context.Context) error { _, err := client.JobStatus(ctx, job); return err }},
		{"JobTasks", func(ctx context.Context) error { _, err := client.JobTasks(ctx, job); return err }},
		{"JobResult", func(ctx context.Context) error { _, err := client.JobResult(ctx, job); return err }},
		{"WaitJob", func(ctx context.Context) error {
			if _, err := f.db.Operate(ctx, fixNS, store.CancelJob{Job: job}); err != nil {
				return err
			}
			f.db.ReadSteps()
			_, err := client.WaitJob(ctx, job)
			return err
		}},
	} {
		f.db.ReadSteps()
		if err := r.read(t.Context()); err != nil {
			t.Fatalf("%s: %v", r.what, err)
		}
		steps[r.what] = f.db.ReadSteps()
	}
	return steps
}
