package sqlite_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func (f *fixture) record(rec store.Record) {
	f.Helper()
	if got, err := f.db.Record(f.Context(), fixNS, rec); err != nil || got[0].Err != nil {
		f.Fatalf("Record: %v, %v", got, err)
	}
}

// collectTasks asks for the oldest ended tasks.
var collectTasks = store.CollectRequest{Retain: []store.Retention{{}}, After: rules.CollectCursor{Stage: rules.CollectTasks}.String()}

// noisy records n events of a running task.
func (f *fixture) noisy(c store.Claimed, n int) {
	f.Helper()
	var events []store.EventRow
	for i := range n {
		events = append(events, store.EventRow{Seq: int64(i + 1), Type: "step.started", At: store.Now(), Body: json.RawMessage(`{}`)})
	}
	for some := range slices.Chunk(events, 1000) {
		f.record(store.Record{Lease: c.Lease, Events: some})
	}
}

// Tasks that are removed together leave no row in any table.
func TestCollectInSets(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	const n = 40
	f.enqueue(n, bulky, func(d *task.New) {
		d.Labels, d.Expire = map[string]string{"team": "red", "id": d.ID.String()}, []task.Expiry{{Path: "n", After: time.Hour}}
	})
	for range 2 {
		for _, c := range f.claim("w", n) {
			rec := store.Record{Lease: c.Lease, Step: &task.Step{
				Name: fmt.Sprint("s", c.Task.AttemptNo), Kind: task.KindStep, State: task.StepCompleted, Try: 1, Value: json.RawMessage(`1`),
			}, Events: []store.EventRow{
				{Seq: int64(2 * c.Task.AttemptNo), Type: "step.started", At: store.Now(), Body: json.RawMessage(`{}`)},
				{Seq: int64(2*c.Task.AttemptNo + 1), Type: "log.written", At: store.Now(), Body: json.RawMessage(`{}`), Log: true},
			}}
			f.record(rec)
			f.record(store.Record{Lease: c.Lease, Checkpoint: &task.Checkpoint{Name: "cursor", Value: json.RawMessage(`7`)}})
			if c.Task.AttemptNo == 2 {
				f.finish(c)
				continue
			}
			f.end(store.Finish{
				Lease: c.Lease, Outcome: task.OutcomeFailure, Error: &task.Error{Kind: task.KindHandler, Message: "no luck"}, CodeVersion: 1,
				Decision: &task.Decision{Kind: task.DecideRetry, Reason: task.Reason{Policy: "test", Version: 1, Text: "the test says so"}},
			})
		}
	}
	young := f.enqueue(1)
	recorded := f.texts(`SELECT s.name FROM sqlite_schema s WHERE s.type = 'table' AND s.name LIKE 'weaver_%' AND EXISTS (SELECT 1 FROM pragma_table_info(s.name) c WHERE c.name = 'task_id')`)
	rows := func(table string) int {
		return f.count("SELECT count(*) FROM "+table+" WHERE task_id <> ?", young[0][:])
	}
	for _, table := range []string{"attempts", "decisions", "steps", "payloads", "checkpoints", "events", "logs", "expiries", "task_labels"} {
		if table = "weaver_" + table; !slices.Contains(recorded, table) || rows(table) < n {
			t.Fatalf("%s has rows of %d tasks, want of %d: the test shows nothing of it", table, rows(table), n)
		}
	}
	got, _ := f.collectAll(store.Retention{})
	if got.Tasks != n || len(got.Gone) != n {
		t.Errorf("%d tasks were removed, and %d named, want %d", got.Tasks, len(got.Gone), n)
	}
	for _, table := range recorded {
		if left := rows(table); left > 0 {
			t.Errorf("%s has %d rows of tasks that went", table, left)
		}
	}
	f.sound(young...)
}

// A set consists of tasks whose recorded rows were all seen. There is no set if remaining
// tasks have so many rows that some were not read.
func TestCollectInSetsSeesAll(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	f.enqueue(3)
	tasks := f.claim("w", 3)
	stays := tasks[1].Task.ID
	f.noisy(tasks[1], 1000)
	f.noisy(tasks[2], 5)
	f.finish(tasks[0], tasks[2])
	if got, _ := f.collectAll(store.Retention{}); got.Tasks != 2 {
		t.Errorf("%d tasks went, want 2", got.Tasks)
	}
	if left := f.count("SELECT count(*) FROM weaver_events WHERE task_id <> ?", stays[:]); left != 0 {
		t.Errorf("%d events of tasks that went are left", left)
	}
	f.sound(stays)
}

// A set moves at most the rows that fit into a bite.
func TestCollectInSetsIsBounded(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	ids := f.enqueue(20)
	f.finish(f.claim("w", len(ids))...)
	req := collectTasks
	req.Limit = 9
	for left := len(ids); left > 0; { // two rows each: the task and its attempt
		got, err := f.db.Collect(t.Context(), fixNS, req)
		if err != nil || got.Tasks == 0 || got.Tasks > 5 {
			t.Fatalf("a bite of 9 rows did %+v, %v", got, err)
		}
		left -= got.Tasks
		req.After = got.Next
	}
	f.sound()
}

// A task that runs again since a collector found it stays.
func TestCollectInSetsLooksAgain(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	ids := f.enqueue(3)
	f.finish(f.claim("w", 3)...)
	done := make(chan store.CollectResult, 1)
	f.db.ReadSteps()
	err := f.db.Write(t.Context(), func(exec func(string) error) error {
		go func() {
			got, err := f.db.Collect(t.Context(), fixNS, collectTasks)
			if err != nil {
				t.Errorf("Collect: %v", err)
			}
			done <- got
		}()
		for f.db.ReadSteps() == 0 && len(done) == 0 { // until it has found them
			runtime.Gosched()
		}
		return exec(fmt.Sprintf("UPDATE weaver_tasks SET state = 'ready', finished_at = NULL WHERE task_id = x'%x'", ids[1][:]))
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.Tasks != 2 || slices.Contains(got.Gone, ids[1]) {
		t.Errorf("Collect = %+v, want two tasks", got)
	}
	if n := f.count("SELECT count(*) FROM weaver_tasks WHERE task_id = ?", ids[1][:]); n != 1 {
		t.Error("the task that runs again went")
	}
}

// Tasks in removal by chores count as removed.
func TestCollectInSetsLeavesChores(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	ids := f.enqueue(2)
	for _, c := range f.claim("w", 2) {
		f.noisy(c, 2*rules.MaxMoves+10)
		f.finish(c)
	}
	if got, bites := f.collectAll(store.Retention{}); got.Tasks != 2 || bites < 2 || len(f.chores()) != 2 {
		t.Fatalf("%d tasks went in %d bites, and left %d chores, want two of each", got.Tasks, bites, len(f.chores()))
	}
	if got, _ := f.collectAll(store.Retention{}); got.Tasks+len(got.Gone) != 0 {
		t.Errorf("a second pass did %+v, want nothing", got)
	}
	f.reapChores()
	if n := f.count("SELECT count(*) FROM weaver_events"); n != 0 {
		t.Errorf("%d events of %v are left", n, ids)
	}
	f.sound()
}

// A task stays until its children are stored, even if only the drafts show that it has
// children.
func TestCollectInSetsLeavesDrafts(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	f.enqueue(1)
	root := f.claim("w", 1)[0]
	f.end(f.decomposing(root, task.JoinComplete, 3))
	var fins []store.Finish
	for _, c := range f.claim("w", 3) {
		fins = append(fins, f.decomposing(c, task.JoinComplete, rules.MaxMoves/2+1)) // there is room for the first task's children
	}
	f.dieAfter(1)
	if _, err := f.db.Finish(t.Context(), fixNS, fins...); err != nil {
		t.Fatal(err)
	}
	f.db.OnCommit(nil)
	f.operate(store.CancelTask{Task: root.Task.ID})
	f.collectAll(store.Retention{})
	undrafted := `SELECT count(*) FROM weaver_drafts d WHERE NOT EXISTS (SELECT 1 FROM weaver_tasks t WHERE t.namespace = d.namespace AND t.task_id = d.task_id)`
	for range 2 {
		f.collectAll(store.Retention{})
		if n := f.count(undrafted); n != 0 || f.count("SELECT count(*) FROM weaver_drafts") != 2 {
			t.Fatalf("%d tasks went before their children were stored", n)
		}
	}
	f.reapChores()
	f.collectAll(store.Retention{})
	f.reapChores()
	f.collectAll(store.Retention{})
	f.sound()
}
