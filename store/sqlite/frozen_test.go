package sqlite_test

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/migrate"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// frozenChecksums are the checksums of the released migrations, from 0001 on. A change needs a
// new migration.
var frozenChecksums = []string{
	"e24b259a5da4640c2a578b42017a99d000d5a186eefad5ffa8fba3faaafdc706",
	"3eede9090623bbbb3aa84c383b5f6e3bb88015bcf213f0bc2e1c48d52c3b998e",
	"0ecbce0043de65e56a5250e43b601fb34b39d635db6ec322c1b2e48c96d9d5a1",
	"840bc6f41f4ba93158e2221da7e14e2bda72881a586e1b68e6071113b0f14bd6",
	"003a2251704c92c3acf92a4ec0c1eac809b2f80033fbb962bd9302c67fcc00d6",
	"d336b6386368fb8cb490fa28f77ca68d72a86e304aaeae45c5889e1bf16ea643",
}

func TestMigrationsAreFrozen(t *testing.T) {
	t.Parallel()
	known, err := migrate.Load(os.DirFS("."), "migrations")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range frozenChecksums {
		if m := known[i]; m.Checksum != want {
			t.Errorf("%04d_%s.sql was edited (checksum %s): undo that and add a migration", m.Version, m.Name, m.Checksum)
		}
	}
}

// frozenFile was made by writeFrozen with only migration 0001.
const frozenFile = "testdata/0001.db"

// A file made by 0001 opens, is consistent, and continues to work.
func TestFrozenFile(t *testing.T) {
	t.Parallel()
	if os.Getenv("WEAVER_FROZEN") == "write" {
		writeFrozen(t)
	}
	data, err := os.ReadFile(frozenFile)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) >= 200<<10 {
		t.Errorf("%s has %d bytes, want less than 200 KiB", frozenFile, len(data))
	}
	path := filepath.Join(t.TempDir(), "weaver.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f := fixtureOn(t, openFile(t, path)) // it migrates, if there are migrations after 0001
	if err := f.db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	snap, err := f.db.Snapshot(t.Context(), fixNS)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range store.Check(snap) {
		t.Errorf("store.Check: %v", v)
	}
	var all []task.ID
	states := make(map[task.State]int)
	var running task.Task
	for i := range snap.Tasks {
		all = append(all, snap.Tasks[i].ID)
		states[snap.Tasks[i].State]++
		if snap.Tasks[i].State == task.Running {
			running = snap.Tasks[i]
		}
	}
	want := map[task.State]int{task.Succeeded: 2, task.Running: 1, task.Pending: 2, task.Ready: 1, task.Failed: 1, task.Blocked: 1, task.Cancelled: 1}
	for state, n := range want {
		if states[state] != n {
			t.Errorf("%d tasks are %s, want %d", states[state], state, n)
		}
	}
	if len(snap.Jobs) != 1 || len(snap.Steps) != 2 || len(snap.Edges) != 1 || len(snap.Keys) != 0 || len(snap.Audit) != 2 || len(snap.Paused) != 1 {
		t.Errorf("%d jobs, %d steps, %d edges, %d keys, %d audit entries, %d paused queues; want 1, 2, 1, 0, 2, 1",
			len(snap.Jobs), len(snap.Steps), len(snap.Edges), len(snap.Keys), len(snap.Audit), len(snap.Paused))
	}
	long, _, err := f.db.List(t.Context(), fixNS, store.Filter{Labels: map[string]string{"kind": "long"}})
	if err != nil || len(long) != 1 || len(long[0].Input) < 1000 || len(long[0].Output) < 1000 {
		t.Errorf("the task with long texts: %+v, %v", long, err)
	}

	// The old lease still holds, and the dependent of its task continues.
	lease := task.Lease{Task: running.ID, Epoch: running.Epoch, ID: running.LeaseID, Generation: snap.Generation}
	got, err := f.db.Finish(t.Context(), fixNS, store.Finish{Lease: lease, Outcome: task.OutcomeSuccess, CodeVersion: 1})
	if err != nil || got[0].Err != nil {
		t.Fatalf("Finish under the lease of before: %+v, %v", got, err)
	}
	if _, err := f.db.Operate(t.Context(), fixNS, store.RetryTask{Task: failedOf(snap)}, store.ResumeQueue{Queue: "paused"}); err != nil {
		t.Fatal(err)
	}
	f.join("w")
	all = append(all, f.enqueue(1)...)
	f.finish(f.claim("w", 10)...)
	f.sound(all...)
	ended, _, err := f.db.List(t.Context(), fixNS, store.Filter{States: []task.State{task.Succeeded}})
	if err != nil || len(ended) != 7 { // the two earlier ones, the running one, its dependent, the failed one, that of the paused queue, the new one
		t.Errorf("%d tasks succeeded, %v; want 7", len(ended), err)
	}
}

func failedOf(snap *store.Snapshot) task.ID {
	for i := range snap.Tasks {
		if snap.Tasks[i].State == task.Failed {
			return snap.Tasks[i].ID
		}
	}
	return task.ID{}
}

// writeFrozen creates frozenFile, with a page of 4 KiB to keep it small. It runs with
// WEAVER_FROZEN=write, once for each migration that gets a file.
func writeFrozen(t *testing.T) {
	t.Helper()
	path, err := filepath.Abs(frozenFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	small, err := sql.Open("sqlite3", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := small.Exec("PRAGMA page_size=4096; VACUUM"); err != nil {
		t.Fatal(err)
	}
	if err := small.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := fixtureOn(t, db)
	f.join("w")
	text := json.RawMessage(`"` + strings.Repeat("long ", 300) + `"`)

	// Two succeeded tasks: one with long texts, one with a step that failed once.
	f.enqueue(1, func(n *task.New) {
		n.Input, n.Labels = text, map[string]string{"kind": "long"}
	})
	c := f.claim("w", 1)[0]
	f.end(store.Finish{Lease: c.Lease, Outcome: task.OutcomeSuccess, Output: text, CodeVersion: 1})
	f.enqueue(1, func(n *task.New) { n.IdempotencyKey, n.Metadata = "once", map[string]string{"by": "hand"} })
	c = f.claim("w", 1)[0]
	step := task.Step{Name: "fetch", Kind: task.KindStep, State: task.StepFailed, Try: 1, Error: &task.Error{Kind: task.KindInternal, Message: "refused"}}
	done := task.Step{Name: "fetch", Kind: task.KindStep, State: task.StepCompleted, Try: 2, Value: json.RawMessage(`{"ok":true}`)}
	recs, err := f.db.Record(t.Context(), fixNS,
		store.Record{Lease: c.Lease, Step: &step},
		store.Record{Lease: c.Lease, Step: &done, Progress: &task.Progress{}})
	if err != nil || recs[0].Err != nil || recs[1].Err != nil {
		t.Fatal(recs, err)
	}
	f.finish(c)

	// One failed, one blocked, one cancelled task.
	f.enqueue(2)
	cs := f.claim("w", 2)
	f.end(store.Finish{
		Lease: cs[0].Lease, Outcome: task.OutcomeFailure, CodeVersion: 1, Error: &task.Error{Kind: "acme", Message: "no"},
		Decision: &task.Decision{Kind: task.DecideMarkDead},
	})
	f.end(store.Finish{
		Lease: cs[1].Lease, Outcome: task.OutcomeBlocked, CodeVersion: 1, Error: &task.Error{Kind: "acme", Message: "ask"},
		Decision: &task.Decision{Kind: task.DecideBlock},
	})
	late := f.enqueue(1, func(n *task.New) { n.Delay, n.ExpireAfter = time.Hour, 1000*time.Hour })[0]
	by := store.Audit{By: "ann", Reason: "wrong file"}
	if _, err := f.db.Operate(t.Context(), fixNS, store.CancelTask{Task: late, Audit: by}, store.PauseQueue{Queue: "paused", Audit: by}); err != nil {
		t.Fatal(err)
	}

	// A job of two tasks, whose first task runs; a ready task in a paused queue; and a task in
	// the far future.
	sub := f.drafts(2)
	sub.Job = &task.NewJob{ID: f.ids.New(), Name: "nightly", Meta: map[string]string{"day": "1"}}
	sub.Tasks[1].Needs = []task.Edge{{Needs: sub.Tasks[0].ID, Kind: task.OnSuccess}}
	if err := f.submit(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	forever := fixClaim("w", 1)
	forever.TTL = 1_000_000 * time.Hour // the file must stay consistent for as long
	if got, err := f.db.Claim(t.Context(), fixNS, forever); err != nil || len(got.Tasks) != 1 {
		t.Fatalf("the job's first task was not claimed: %+v, %v", got, err)
	}
	f.enqueue(1, func(n *task.New) { n.Queue = "paused" })
	f.enqueue(1, func(n *task.New) {
		n.Delay, n.ConcurrencyKey, n.ConcurrencyLimit = 1_000_000*time.Hour, "customer-1", 1
	})
	shut(t, db)
	if err := os.RemoveAll(path + ".workers"); err != nil {
		t.Fatal(err)
	}
}

// end ends one attempt.
func (f *fixture) end(fin store.Finish) {
	f.Helper()
	got, err := f.db.Finish(f.Context(), fixNS, fin)
	if err != nil || got[0].Err != nil {
		f.Fatalf("Finish: %+v, %v", got, err)
	}
}
