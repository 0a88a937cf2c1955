package sqlite_test

import (
	"testing"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The row of a job is hot. Usage of a budget changes it in the statement that counts the job's
// tasks, and only in jobs with a budget of this kind.
func TestBudgetsChangeTheJobOnce(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	f.exec("CREATE TABLE seen (n)")
	f.exec("CREATE TRIGGER seen_jobs AFTER UPDATE ON weaver_jobs BEGIN INSERT INTO seen VALUES (1); END")
	retry := func(c store.Claimed) store.Finish {
		return store.Finish{
			Lease: c.Lease, Outcome: task.OutcomeFailure, Error: &task.Error{Kind: task.KindHandler, Message: "no luck"},
			Decision: &task.Decision{Kind: task.DecideRetry}, CodeVersion: 1,
		}
	}
	success := func(c store.Claimed) store.Finish {
		return store.Finish{Lease: c.Lease, Outcome: task.OutcomeSuccess, CodeVersion: 1}
	}
	for name, tc := range map[string]struct {
		budget                         task.Budget
		retries, ends, spends, records int // updates of the job's row for two tasks in one batch
	}{
		"none":        {task.Budget{MaxAttemptsPerTask: 9, MaxRepairs: 1, MaxNoProgress: 9}, 0, 1, 0, 0},
		"of attempts": {task.Budget{MaxTotalAttempts: 9}, 1, 1, 0, 0},
		"of cost":     {task.Budget{MaxCost: 100}, 0, 1, 1, 0},
		"both":        {task.Budget{MaxTotalAttempts: 9, MaxCost: 100}, 1, 1, 1, 0},
	} {
		sub := f.drafts(2)
		sub.Job = &task.NewJob{ID: f.ids.New(), Name: name, Budget: tc.budget}
		if err := f.submit(f.Context(), sub); err != nil {
			t.Fatal(err)
		}
		changed := func(what string, want int, do func(cs []store.Claimed) error) {
			t.Helper()
			f.exec("DELETE FROM seen")
			if err := do(f.claim("w", 2)); err != nil {
				t.Fatal(err)
			}
			if got := f.count("SELECT count(*) FROM seen"); got != want {
				t.Errorf("a budget %s: %s changed the job %d times, want %d", name, what, got, want)
			}
		}
		finish := func(end func(store.Claimed) store.Finish) func(cs []store.Claimed) error {
			return func(cs []store.Claimed) error {
				_, err := f.db.Finish(f.Context(), fixNS, end(cs[0]), end(cs[1]))
				return err
			}
		}
		var held []store.Claimed
		record := func(cost int64, step string) func(cs []store.Claimed) error {
			return func(cs []store.Claimed) error {
				held = append(held, cs...)
				var recs []store.Record
				for _, c := range held {
					recs = append(recs, store.Record{Lease: c.Lease, Step: &task.Step{Name: step, Kind: task.KindStep, State: task.StepCompleted, Try: 1, Cost: cost, Value: []byte("1")}})
				}
				_, err := f.db.Record(f.Context(), fixNS, recs...)
				return err
			}
		}
		changed("retries", tc.retries, finish(retry))
		changed("a spending step", tc.spends, record(3, "dear"))
		changed("a step", tc.records, record(0, "free"))
		changed("the end", tc.ends, func([]store.Claimed) error { return finish(success)(held) })
	}
}
