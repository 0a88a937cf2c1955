package postgres_test

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

// manyKinds enqueues tasks that a claim reads separately: with a job, with labels, with a long
// input.
func (w *planWork) manyKinds(n int) (ids []task.ID) {
	job := task.NewJob{ID: w.ids.New(), Name: "claims"}
	sub := store.Submission{Job: &job}
	for i := range n {
		d := w.draft()
		d.Node = "n" + strings.Repeat("o", i)
		sub.Tasks, ids = append(sub.Tasks, d), append(ids, d.ID)
	}
	w.submit(sub)
	ids = append(ids, w.enqueue(n, func(d *task.New) { d.Labels = map[string]string{"not": "plain"} })...)
	return append(ids, w.enqueue(n, func(d *task.New) { d.Input = json.RawMessage(`"` + strings.Repeat("long ", 1000) + `"`) })...)
}

// countClaim claims the work and returns the number of round trips.
func (w *planWork) countClaim(want int) (rounds int, got []store.Claimed) {
	w.Helper()
	req := store.ClaimRequest{Worker: "w", Name: "host:1", LeaseID: task.NewLeaseID(), TTL: workTTL, Limit: 1000, Slots: 1000, Types: map[string]int{workType: 1}}
	res, rounds, err := w.db.CountClaim(w.Context(), planNS, req)
	w.ok(err)
	if len(res.Tasks) != want {
		w.Fatalf("claimed %d tasks, want %d", len(res.Tasks), want)
	}
	return rounds, res.Tasks
}

// A claim of many tasks makes about as many round trips as a claim of a few, whatever the tasks
// are: first attempts, later ones, with steps and with long inputs.
func TestClaimRounds(t *testing.T) {
	t.Parallel()
	w := lockWork(t)
	var first, later []int
	for _, n := range []int{1, 1, 2, 100} { // the first run prepares the statements
		w.manyKinds(n)
		rounds, got := w.countClaim(3 * n)
		first = append(first, rounds)
		for _, c := range got {
			w.record(step(c, "a", 0))
			w.record(step(c, "b", 1))
			w.finish(failed(c, task.DecideRetry))
		}
		rounds, got = w.countClaim(3 * n)
		later = append(later, rounds)
		long := 0
		for _, c := range got {
			if len(c.Task.Input) > 1000 {
				long++
			}
			if len(c.Steps) != 2 || c.Steps[0].Name != "a" || c.Steps[1].Name != "b" || c.Steps[0].TaskID != c.Task.ID {
				t.Fatalf("a later attempt has the steps %+v, want its own, a and b", c.Steps)
			}
		}
		if long != n {
			t.Errorf("%d tasks have their long inputs, want %d", long, n)
		}
		w.succeed(got...)
	}
	const most = 15
	for _, rounds := range [][]int{first[1:], later[1:]} {
		if slices.Max(rounds) > most {
			t.Errorf("claims of 3, 6 and 300 tasks make %v round trips, want %d at most", rounds, most)
		}
	}
}

// A claim of newly enqueued tasks makes two round trips besides its commit, and returns when the
// next task is due. A claim that takes its maximum from a lane, or finds tasks that are not plain
// and new, reads further.
func TestFreshClaimRounds(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Microsecond)
	w := lockWork(t, postgres.Clock(func() time.Time { return now })) // makes enqueued tasks count as new
	count := func(want int) int {
		t.Helper()
		postgres.ReadLanes(w.db, planNS)
		rounds, got := w.countClaim(want)
		w.succeed(got...)
		return rounds
	}
	mixed := func(priority int) { // in a lane: for a second a claim remembers that the lane is mixed
		of := func(d *task.New) { d.Priority = priority }
		w.enqueue(1, of)
		w.finish(store.Finish{Lease: w.claimWork(1)[0].Lease, Outcome: task.OutcomeReleased})
		w.enqueue(1, of)
	}
	for priority := range 2 { // the first run prepares the statements
		w.enqueue(1)
		count(1)
		mixed(1 + priority)
		count(2)
	}
	w.enqueue(1, func(d *task.New) { d.Delay = time.Hour })
	w.enqueue(1)
	if rounds := count(1); rounds != 2 {
		t.Errorf("the claim of a task that had just come made %d round trips, want 2", rounds)
	}
	mixed(3)
	if rounds := count(2); rounds != 8 { // one read checks whether there are more
		t.Errorf("the claim of a first and of a second attempt made %d round trips, want 8", rounds)
	}
	mixed(4)
	for _, c := range []struct {
		limit int
		next  time.Duration
	}{{1, 0}, {2, time.Hour}} {
		postgres.ReadLanes(w.db, planNS)
		req := store.ClaimRequest{Worker: "w", Name: "host:1", LeaseID: task.NewLeaseID(), TTL: workTTL, Limit: c.limit, Slots: 100, Types: map[string]int{workType: 1}}
		res, err := w.db.Claim(t.Context(), planNS, req)
		w.ok(err)
		if len(res.Tasks) != 1 || res.Next != c.next {
			t.Errorf("a claim of %d took %d tasks, the next in %v; want one, the next in %v", c.limit, len(res.Tasks), res.Next, c.next)
		}
	}
}

// The statement that leases many tasks leases those that are unchanged since they were read. If any
// task has changed, the whole claim is rolled back.
func TestClaimTasks(t *testing.T) {
	t.Parallel()
	w := workIn(t, pgtest.Migrated(pgtest.InShort(t), "weaver", migrateURL))
	ids := w.manyKinds(1)
	u := connect(t, w.db.RawURL())
	u.exec("UPDATE weaver.weaver_tasks SET lease_epoch = 7 WHERE task_id = '\\x" + hex.EncodeToString(ids[0][:]) + "'")
	rows := []sqlstore.ClaimTask{{ID: ids[0], Epoch: 6}, {ID: ids[1]}, {ID: ids[2]}}
	n, err := w.db.ClaimTasks(t.Context(), planNS, rows...)
	if err != nil || n != 2 {
		t.Errorf("leased %d tasks, %v; want the two whose epochs are those that were read", n, err)
	}
	if n, err = w.db.ClaimTasks(t.Context(), planNS, sqlstore.ClaimTask{ID: ids[1], Epoch: 1}); err != nil || n != 0 {
		t.Errorf("leased %d tasks that run, %v; want none", n, err)
	}

	want := w.manyKinds(1)
	u.exec(`CREATE FUNCTION weaver.keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`)
	u.exec("CREATE TRIGGER keep BEFORE UPDATE ON weaver.weaver_tasks FOR EACH ROW WHEN (OLD.task_id = '\\x" + hex.EncodeToString(want[2][:]) + "') EXECUTE FUNCTION weaver.keep()")
	req := store.ClaimRequest{Worker: "w", Name: "host:1", LeaseID: task.NewLeaseID(), TTL: workTTL, Limit: 10, Slots: 10, Types: map[string]int{workType: 1}}
	if res, err := w.db.Claim(t.Context(), planNS, req); err == nil || !strings.Contains(err.Error(), "1 of 3 tasks changed while they were claimed") {
		t.Errorf("a claim with a task that changed meanwhile: %d tasks, %v; want an error", len(res.Tasks), err)
	}
	u.exec("DROP TRIGGER keep ON weaver.weaver_tasks")
	if got := w.claimWork(3); got[2].Task.ID != want[2] {
		t.Errorf("claimed %v afterwards, want %v", got, want)
	}
}
