package faultstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/faults/faultstore"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

const taskType = "acme.test.fault.v1"

var ids = task.NewIDs(nil)

func draft() task.New {
	return task.New{
		ID: ids.New(), Type: taskType, Queue: task.DefaultQueue, Input: json.RawMessage(`1`), SchemaVersion: 1,
		Priority: task.DefaultPriority, MaxAttempts: 3, Backoff: time.Second, BackoffMax: time.Minute,
	}
}

// leased returns a store with one task, and its lease.
func leased(t *testing.T) (*memstore.Store, task.Lease) {
	t.Helper()
	s := memstore.New()
	if _, err := s.Enqueue(t.Context(), "ns", nil, store.Submission{Tasks: []task.New{draft()}}); err != nil {
		t.Fatal(err)
	}
	res, err := s.Claim(t.Context(), "ns", store.ClaimRequest{
		Worker: "w", LeaseID: task.NewLeaseID(), TTL: time.Minute, Limit: 1, Slots: 1, Types: map[string]int{taskType: 1},
	})
	if err != nil || len(res.Tasks) != 1 {
		t.Fatalf("Claim: %v, %v", res, err)
	}
	return s, res.Tasks[0].Lease
}

func TestFaultsInsideAStepsTransaction(t *testing.T) {
	t.Parallel()
	dead, injected := faultstore.ErrDead, faultstore.ErrInjected
	for _, c := range []struct {
		method  string
		fault   faultstore.Fault
		runs    bool // the user's function runs
		commits bool
		err     error
	}{
		{"StepTx", faultstore.None, true, true, nil},
		{"StepTx", faultstore.ErrorBefore, false, false, injected},
		{"StepTx", faultstore.ReplyLost, true, true, injected},
		{"StepTx", faultstore.CrashBefore, false, false, dead},
		{"StepTx", faultstore.CrashAfter, true, true, dead},
		{faultstore.StepTxBegun, faultstore.ErrorBefore, false, false, injected},
		{faultstore.StepTxBegun, faultstore.CrashBefore, false, false, dead},
		{faultstore.StepTxBegun, faultstore.CrashAfter, true, true, nil}, // nothing is committed at that point: no such fault
		{faultstore.StepTxRan, faultstore.ErrorBefore, true, false, injected},
		{faultstore.StepTxRan, faultstore.CrashBefore, true, false, dead},
		{faultstore.StepTxRan, faultstore.ReplyLost, true, true, nil}, // as above
		{"Enqueue", faultstore.ErrorBefore, true, true, nil},          // the function below ignores it
		{"Enqueue", faultstore.CrashBefore, true, false, dead},
		{"Enqueue", faultstore.CrashAfter, true, false, dead},
	} {
		s, lease := leased(t)
		p := faultstore.New(s, faultstore.At(c.method, 1, c.fault))
		view := p.Store()
		runs := false
		_, err := view.StepTx(t.Context(), "ns",
			store.Record{Lease: lease, Step: &task.Step{Name: "s", Kind: task.KindStep, State: task.StepCompleted}}, time.Minute,
			func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
				runs = true
				_, _ = view.Enqueue(ctx, "ns", tx, store.Submission{Tasks: []task.New{draft()}})
				return json.RawMessage(`"v"`), nil
			})
		if !errors.Is(err, c.err) {
			t.Errorf("%s at %s: error %v, want %v", c.fault, c.method, err, c.err)
		}
		if runs != c.runs {
			t.Errorf("%s at %s: the function ran: %v", c.fault, c.method, runs)
		}
		snap, err := s.Snapshot(t.Context(), "ns")
		if err != nil {
			t.Fatal(err)
		}
		if commits := len(snap.Steps) == 1; commits != c.commits {
			t.Errorf("%s at %s: the step is stored: %v", c.fault, c.method, commits)
		}
		if p.Died() != errors.Is(c.err, dead) {
			t.Errorf("%s at %s: died: %v", c.fault, c.method, p.Died())
		}
		if p.Died() {
			<-p.Dead()
		}
	}
}

func TestAnErrorOfTheStepsFunctionIsItsOwn(t *testing.T) {
	t.Parallel()
	s, lease := leased(t)
	own := errors.New("the user's")
	p := faultstore.New(s, nil)
	_, err := p.Store().StepTx(t.Context(), "ns",
		store.Record{Lease: lease, Step: &task.Step{Name: "s", Kind: task.KindStep, State: task.StepCompleted}}, time.Minute,
		func(context.Context, store.Tx) (json.RawMessage, error) { return nil, own })
	if !errors.Is(err, own) {
		t.Errorf("StepTx returned %v", err)
	}
	for _, c := range p.Calls() {
		if c.Method == faultstore.StepTxRan {
			t.Errorf("%s: a function that failed is not about to commit", c)
		}
	}
}

func TestADeadProcessGetsNoNotices(t *testing.T) {
	t.Parallel()
	for _, f := range []faultstore.Fault{faultstore.None, faultstore.CrashBefore, faultstore.CrashAfter, faultstore.ErrorBefore} {
		s, asked := memstore.New(), 0
		counted := storehook.New(s, &storehook.Hooks{Notify: func(fn func(store.Notice), next func(func(store.Notice)) (func(), bool)) (func(), bool) {
			asked++
			return next(fn)
		}})
		p := faultstore.New(counted, faultstore.At("Notify", 1, f))
		got := 0
		stop, complete := p.Store().Notify("ns", nil, func(store.Notice) { got++ })
		write := func() {
			if _, err := s.Enqueue(t.Context(), "ns", nil, store.Submission{Tasks: []task.New{draft()}}); err != nil {
				t.Fatal(err)
			}
		}
		write()
		lives := f == faultstore.None || f == faultstore.ErrorBefore // Notify has no such fault
		if lives != (got == 1) || lives != !p.Died() || lives && !complete {
			t.Errorf("%s at Notify: got %d notices (complete: %v), died: %v", f, got, complete, p.Died())
		}
		if asked := asked == 1; asked == (f == faultstore.CrashBefore) {
			t.Errorf("%s at Notify: the store below was asked: %v", f, asked)
		}
		p.Die()
		write()
		if got > 1 {
			t.Errorf("%s at Notify: a dead process got a notice", f)
		}
		stop()
		if _, complete := p.Store().Notify("ns", nil, func(store.Notice) { got = 99 }); complete {
			t.Error("a dead process was promised notices")
		}
		write()
		if got == 99 {
			t.Error("a dead process was registered")
		}
	}
}

func TestNamesOfFaults(t *testing.T) {
	t.Parallel()
	s := faultstore.Strike{Call: faultstore.Call{N: 7, Method: "Claim", Nth: 2}, Fault: faultstore.ReplyLost}
	if got, want := s.String(), "reply lost at Claim #2 (call 7)"; got != want {
		t.Errorf("a strike reads %q, want %q", got, want)
	}
	seen := map[string]bool{}
	for _, f := range append(everyFault, 99) {
		if seen[f.String()] || f.String() == "" {
			t.Errorf("fault %d has the name %q", int(f), f)
		}
		seen[f.String()] = true
	}
}
