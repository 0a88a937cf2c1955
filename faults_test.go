package weaver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
)

// faults is a store as one worker sees it: calls fail, or their answers get
// lost, as the test says. The store below stays whole for everybody else.
type faults struct {
	store.Store
	store.Notifier
	store.StepTxer

	mu     sync.Mutex
	before func(call string) error // an error keeps the call from the store
	after  func(call string) error // an error replaces the answer: the store did it
	calls  map[string]int
}

func newFaults(t testing.TB, s weaver.Store) *faults {
	t.Helper()
	n, ok := s.(store.Notifier)
	tx, ok2 := s.(store.StepTxer)
	if !ok || !ok2 {
		t.Fatalf("%T is no store.Notifier or no store.StepTxer", s)
	}
	return &faults{Store: s, Notifier: n, StepTxer: tx, calls: map[string]int{}}
}

// cut lets nothing through from now on; mend ends that.
func (f *faults) cut() {
	f.set(func(call string) error {
		return fmt.Errorf("%s: %w: the test cut the line", call, store.ErrUnavailable)
	}, nil)
}

func (f *faults) mend() { f.set(nil, nil) }

func (f *faults) set(before, after func(call string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

// count returns how often a method was called.
func (f *faults) count(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[call]
}

// through makes one call, unless it is to fail.
func through[R any](f *faults, call string, do func() (R, error)) (R, error) {
	var none R
	if err := f.enter(call); err != nil {
		return none, err
	}
	res, err := do()
	if err == nil {
		err = f.leave(call)
	}
	if err != nil {
		return none, err
	}
	return res, nil
}

func (f *faults) enter(call string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[call]++
	if f.before == nil {
		return nil
	}
	return f.before(call)
}

func (f *faults) leave(call string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.after == nil {
		return nil
	}
	return f.after(call)
}

// Enqueue implements store.Producer.
func (f *faults) Enqueue(ctx context.Context, ns string, tx store.Tx, sub store.Submission) ([]store.Enqueued, error) {
	return through(f, "Enqueue", func() ([]store.Enqueued, error) { return f.Store.Enqueue(ctx, ns, tx, sub) })
}

// Join implements store.Worker.
func (f *faults) Join(ctx context.Context, ns string, w store.WorkerInfo) error {
	_, err := through(f, "Join", func() (struct{}, error) { return struct{}{}, f.Store.Join(ctx, ns, w) })
	return err
}

// Leave implements store.Worker.
func (f *faults) Leave(ctx context.Context, ns string, id store.WorkerID) error {
	_, err := through(f, "Leave", func() (struct{}, error) { return struct{}{}, f.Store.Leave(ctx, ns, id) })
	return err
}

// Claim implements store.Worker.
func (f *faults) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	return through(f, "Claim", func() (store.ClaimResult, error) { return f.Store.Claim(ctx, ns, req) })
}

// Heartbeat implements store.Worker.
func (f *faults) Heartbeat(ctx context.Context, ns string, req store.HeartbeatRequest) ([]store.Beat, error) {
	return through(f, "Heartbeat", func() ([]store.Beat, error) { return f.Store.Heartbeat(ctx, ns, req) })
}

// Finish implements store.Worker.
func (f *faults) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	return through(f, "Finish", func() ([]store.FinishResult, error) { return f.Store.Finish(ctx, ns, fins...) })
}

// Record implements store.Worker.
func (f *faults) Record(ctx context.Context, ns string, recs ...store.Record) ([]store.RecordResult, error) {
	return through(f, "Record", func() ([]store.RecordResult, error) { return f.Store.Record(ctx, ns, recs...) })
}

// Reap implements store.Worker.
func (f *faults) Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error) {
	return through(f, "Reap", func() (store.ReapResult, error) { return f.Store.Reap(ctx, ns, req) })
}

// StepTx implements store.StepTxer.
func (f *faults) StepTx(ctx context.Context, ns string, rec store.Record, limit time.Duration, fn func(context.Context, store.Tx) (json.RawMessage, error)) (store.RecordResult, error) {
	return through(f, "StepTx", func() (store.RecordResult, error) { return f.StepTxer.StepTx(ctx, ns, rec, limit, fn) })
}

// quiet is a store that tells nobody anything, like one in another process:
// its users poll.
type quiet struct{ store.Store }
