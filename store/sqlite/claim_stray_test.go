package sqlite_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The store never leaves a dispatch row to a task that is not claimable, so SQL writes the
// rows here. A claim must not follow them.
func TestStrayDispatchRows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := fixtureOn(t, newNoteStore(t).db)
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
			"UPDATE weaver_tasks SET plain = 0",
			"DELETE FROM weaver_outbox_events",
			`INSERT INTO weaver_outbox_events (namespace, task_id, queue, task_type, priority, available_at)
			 SELECT namespace, task_id, queue, task_type, priority, 1 FROM weaver_tasks`,
		} {
			if err := f.db.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		// Of the four tasks only the need of the other task may run.
		if got := f.claim("w", 10); len(got) != 1 || got[0].Task.ID != needs.Tasks[0].ID {
			t.Errorf("claimed %d tasks, want the one that is claimable (not %v, %v or %v)", len(got), ended, asked, needs.Tasks[1].ID)
		}
		if n := f.count("SELECT count(*) FROM weaver_outbox_events"); n != 0 {
			t.Errorf("%d rows are left for the next claim, and all others", n)
		}
	})
}
