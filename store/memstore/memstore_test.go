package memstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"runtime/debug"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/storetest"
	"github.com/goweaver/weaver/task"
)

// A small heap is collected constantly, which takes up to half of the tests' time.
func init() { debug.SetGCPercent(400) }

func TestStore(t *testing.T) {
	times := repeat
	if testing.Short() {
		times /= 20
	}
	storetest.Run(t, storetest.Harness{
		Name:   "memstore",
		Repeat: times,
		Open:   func(*testing.T) store.Store { return memstore.New() },
		Kill:   func(_ *testing.T, s store.Store, w store.WorkerID) { s.(*memstore.Store).Kill(w) },

		ShiftClock: func(_ *testing.T, s store.Store, d time.Duration) { s.(*memstore.Store).ShiftClock(d) },
	})
}

const (
	ns       = "acme-test"
	taskType = "acme.test.mem.v1"
)

func draft(ids *task.IDs) task.New {
	return task.New{
		ID: ids.New(), Type: taskType, Queue: task.DefaultQueue, Input: json.RawMessage(`{"n":1}`), SchemaVersion: 1,
		Priority: task.DefaultPriority, MaxAttempts: 5, Labels: map[string]string{"a": "b"}, Metadata: map[string]string{"c": "d"},
	}
}

// fixture returns a store with one running task.
func fixture(t *testing.T) (*memstore.Store, *task.IDs, task.Lease) {
	t.Helper()
	s, ids := memstore.New(), task.NewIDs(nil)
	n := draft(ids)
	if _, err := s.Enqueue(t.Context(), ns, nil, store.Submission{Tasks: []task.New{n}}); err != nil {
		t.Fatal(err)
	}
	return s, ids, claim(t, s)
}

func claim(t *testing.T, s *memstore.Store) task.Lease {
	t.Helper()
	got, err := s.Claim(t.Context(), ns, store.ClaimRequest{
		Worker: "w", LeaseID: task.NewLeaseID(), TTL: time.Minute, Limit: 1, Types: map[string]int{taskType: 1},
	})
	if err != nil || len(got.Tasks) != 1 {
		t.Fatalf("Claim = %v, %v", got.Tasks, err)
	}
	return got.Tasks[0].Lease
}

func record(l task.Lease) store.Record {
	return store.Record{Lease: l, Step: &task.Step{Name: "s", Kind: task.KindStep, State: task.StepCompleted, Try: 1}}
}

func snapshot(t *testing.T, s *memstore.Store) *store.Snapshot {
	t.Helper()
	snap, err := s.Snapshot(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range store.Check(snap) {
		t.Errorf("store.Check: %v", v)
	}
	snap.Now = time.Time{}
	return snap
}

// A transaction ends with its function and is valid for its own store only.
func TestTxOutlivesNothing(t *testing.T) {
	t.Parallel()
	s, ids, lease := fixture(t)
	other := memstore.New()
	sub := store.Submission{Tasks: []task.New{draft(ids)}}
	var kept store.Tx
	_, err := s.StepTx(t.Context(), ns, record(lease), time.Minute, func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
		kept = tx
		if _, err := other.Enqueue(ctx, ns, tx, sub); !errors.Is(err, store.ErrForeignTx) {
			t.Errorf("Enqueue in another store: %v, want ErrForeignTx", err)
		}
		if tx.Handle() == nil {
			t.Error("the transaction has no handle")
		}
		return json.RawMessage(`1`), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, s)
	if _, err := s.Enqueue(t.Context(), ns, kept, sub); !errors.Is(err, store.ErrRestartTx) {
		t.Errorf("Enqueue in a transaction that ended: %v, want ErrRestartTx", err)
	}
	if _, err := s.Enqueue(t.Context(), ns, (*memstore.Tx)(nil), sub); !errors.Is(err, store.ErrForeignTx) {
		t.Errorf("Enqueue in no transaction: %v, want ErrForeignTx", err)
	}
	if after := snapshot(t, s); !reflect.DeepEqual(before, after) {
		t.Errorf("refused enqueues changed the store:\n%+v\n%+v", before, after)
	}
}

// An enqueue in a transaction sees the earlier ones; outside of it they are invisible
// until the commit.
func TestTxEnqueuesTogether(t *testing.T) {
	t.Parallel()
	s, ids, lease := fixture(t)
	a, b := draft(ids), draft(ids)
	a.IdempotencyKey, b.IdempotencyKey = "k", "k"
	_, err := s.StepTx(t.Context(), ns, record(lease), 0, func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
		existing := store.Enqueued{ID: a.ID, Disposition: store.DispositionExisting}
		got, err := s.Enqueue(ctx, ns, tx, store.Submission{Tasks: []task.New{a, b, a}})
		created := store.Enqueued{ID: a.ID, Disposition: store.DispositionCreated}
		if want := []store.Enqueued{created, existing, created}; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Enqueue = %v, %v, want %v", got, err, want)
		}
		got, err = s.Enqueue(ctx, ns, tx, store.Submission{Tasks: []task.New{b}})
		if err != nil || !reflect.DeepEqual(got, []store.Enqueued{existing}) {
			t.Errorf("a later Enqueue of the key = %v, %v, want %v", got, err, existing)
		}
		if seen, err := s.Tasks(ctx, ns, a.ID); err != nil || len(seen) != 0 {
			t.Errorf("before the commit Tasks = %v, %v", seen, err)
		}
		a.Input[0] = 'x' // the store has a copy
		return json.RawMessage(`1`), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Tasks(t.Context(), ns, a.ID, b.ID)
	if err != nil || len(got) != 1 || string(got[0].Input) != `{"n":1}` {
		t.Errorf("after the commit Tasks = %v, %v, want the first with its input", got, err)
	}
}

// The results of a function's enqueues must still be true at the commit.
func TestTxRestartsWhenItsAnswersChanged(t *testing.T) {
	t.Parallel()
	s, ids, lease := fixture(t)
	mine, theirs := draft(ids), draft(ids)
	mine.IdempotencyKey, theirs.IdempotencyKey = "k", "k"
	_, err := s.StepTx(t.Context(), ns, record(lease), time.Minute, func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
		if _, err := s.Enqueue(ctx, ns, tx, store.Submission{Tasks: []task.New{mine}}); err != nil {
			t.Error(err)
		}
		if _, err := s.Enqueue(ctx, ns, nil, store.Submission{Tasks: []task.New{theirs}}); err != nil {
			t.Error(err)
		}
		return json.RawMessage(`1`), nil
	})
	if !errors.Is(err, store.ErrRestartTx) {
		t.Errorf("StepTx: %v, want ErrRestartTx", err)
	}
	if snap := snapshot(t, s); len(snap.Steps) != 0 || len(snap.Tasks) != 2 {
		t.Errorf("%d steps and %d tasks are stored, want 0 and 2", len(snap.Steps), len(snap.Tasks))
	}
}

// Overwriting returned values changes nothing in the store.
func TestValuesAreCopied(t *testing.T) {
	t.Parallel()
	s, ids, lease := fixture(t)
	n := draft(ids)
	n.Node = "n"
	job := &task.NewJob{ID: ids.New(), Name: "job", Meta: map[string]string{"a": "b"}}
	if _, err := s.Enqueue(t.Context(), ns, nil, store.Submission{Job: job, Tasks: []task.New{n}}); err != nil {
		t.Fatal(err)
	}
	job.Meta["a"] = "spoilt"
	rec := record(lease)
	rec.Step.Value, rec.Progress = json.RawMessage(`"v"`), &task.Progress{Current: 1}
	recorded, err := s.Record(t.Context(), ns, rec)
	if err != nil || recorded[0].Err != nil {
		t.Fatal(err, recorded)
	}
	fin := store.Finish{
		Lease: lease, Outcome: task.OutcomeFailure, Error: &task.Error{Kind: task.KindHandler, Message: "m"}, StepsRun: []string{"s"},
		Decision: &task.Decision{Kind: task.DecideBlock, Reason: task.Reason{Evidence: map[string]any{"list": []any{1}}}},
	}
	finished, err := s.Finish(t.Context(), ns, fin)
	if err != nil || finished[0].Err != nil {
		t.Fatal(err, finished)
	}
	rec.Step.Value[1], recorded[0].Step.Value[1] = 'x', 'y'
	rec.Progress.Current, fin.Error.Message, fin.StepsRun[0] = 9, "spoilt", "spoilt"
	fin.Decision.Reason.Evidence["list"].([]any)[0] = "spoilt"

	clean := snapshot(t, s)
	if got := clean.Jobs[0].Meta["a"]; got != "b" {
		t.Errorf("the job's meta is %q, want b", got)
	}
	if got := string(clean.Steps[0].Value); got != `"v"` {
		t.Errorf("the step's value is %s", got)
	}
	if got := clean.Tasks[0]; got.Error.Message != "m" || got.Progress.Current != 1 {
		t.Errorf("the task is %+v", got)
	}
	if got := clean.Attempts[0]; got.Error.Message != "m" || got.StepsRun[0] != "s" {
		t.Errorf("the attempt is %+v", got)
	}
	if got := clean.Decisions[0].Reason.Evidence["list"]; !reflect.DeepEqual(got, []any{1.0}) {
		t.Errorf("the evidence is %v", got)
	}

	spoil(snapshot(t, s))
	h, err := s.History(t.Context(), ns, lease.Task)
	if err != nil {
		t.Fatal(err)
	}
	spoil(&store.Snapshot{Tasks: []task.Task{h.Task}, Attempts: h.Attempts, Decisions: h.Decisions, Steps: h.Steps})
	jobs, _, err := s.Jobs(t.Context(), ns, store.JobFilter{})
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := s.List(t.Context(), ns, store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	spoil(&store.Snapshot{Jobs: jobs, Tasks: list})
	if got := snapshot(t, s); !reflect.DeepEqual(got, clean) {
		t.Errorf("spoiling what was read changed the store:\n got %+v\nwant %+v", got, clean)
	}
}

// spoil overwrites every value that a snapshot points to.
func spoil(s *store.Snapshot) {
	for i := range s.Tasks {
		t := &s.Tasks[i]
		t.Input[0], t.Labels["a"], t.Metadata["c"] = 'x', "spoilt", "spoilt"
		if t.Error != nil {
			t.Error.Message, t.Progress.Current = "spoilt", 9
		}
	}
	for i := range s.Attempts {
		s.Attempts[i].Error.Message, s.Attempts[i].StepsRun[0] = "spoilt", "spoilt"
	}
	for i := range s.Decisions {
		s.Decisions[i].Reason.Evidence["list"].([]any)[0] = "spoilt"
	}
	for i := range s.Steps {
		s.Steps[i].Value[0] = 'x'
	}
	for i := range s.Jobs {
		s.Jobs[i].Meta["a"] = "spoilt"
	}
}
