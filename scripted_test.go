package weaver_test

import (
	"context"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// scripted is a store of which a test answers some calls itself.
type scripted struct {
	*faults
	ready     func() error
	join      func(ctx context.Context, real func() error) error
	claim     func(ctx context.Context, real func() (store.ClaimResult, error)) (store.ClaimResult, error)
	heartbeat func(ctx context.Context, req store.HeartbeatRequest, real func() ([]store.Beat, error)) ([]store.Beat, error)
	reap      func(real func() (store.ReapResult, error)) (store.ReapResult, error)
	record    func(real func() ([]store.RecordResult, error)) ([]store.RecordResult, error)
	finish    func(ctx context.Context, real func() ([]store.FinishResult, error)) ([]store.FinishResult, error)
	stepTx    func(limit time.Duration) error
	needs     func() error
}

func newScripted(w *world) *scripted { return &scripted{faults: newFaults(w, w.store)} }

// Ready implements store.Reader.
func (s *scripted) Ready(ctx context.Context) error {
	if s.ready != nil {
		return s.ready()
	}
	return s.faults.Ready(ctx)
}

// Join implements store.Worker.
func (s *scripted) Join(ctx context.Context, ns string, w store.WorkerInfo) error {
	call := func() error { return s.faults.Join(ctx, ns, w) }
	if s.join == nil {
		return call()
	}
	return s.join(ctx, call)
}

// Claim implements store.Worker.
func (s *scripted) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	call := func() (store.ClaimResult, error) { return s.faults.Claim(ctx, ns, req) }
	if s.claim == nil {
		return call()
	}
	return s.claim(ctx, call)
}

// Heartbeat implements store.Worker.
func (s *scripted) Heartbeat(ctx context.Context, ns string, req store.HeartbeatRequest) ([]store.Beat, error) {
	call := func() ([]store.Beat, error) { return s.faults.Heartbeat(ctx, ns, req) }
	if s.heartbeat == nil {
		return call()
	}
	return s.heartbeat(ctx, req, call)
}

// Reap implements store.Worker.
func (s *scripted) Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error) {
	call := func() (store.ReapResult, error) { return s.faults.Reap(ctx, ns, req) }
	if s.reap == nil {
		return call()
	}
	return s.reap(call)
}

// Record implements store.Worker.
func (s *scripted) Record(ctx context.Context, ns string, recs ...store.Record) ([]store.RecordResult, error) {
	call := func() ([]store.RecordResult, error) { return s.faults.Record(ctx, ns, recs...) }
	if s.record == nil {
		return call()
	}
	return s.record(call)
}

// Finish implements store.Worker.
func (s *scripted) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	call := func() ([]store.FinishResult, error) { return s.faults.Finish(ctx, ns, fins...) }
	if s.finish == nil {
		return call()
	}
	return s.finish(ctx, call)
}

// StepTx implements store.StepTxer.
func (s *scripted) StepTx(ctx context.Context, ns string, rec store.Record, limit time.Duration, fn func(context.Context, store.Tx) (json.RawMessage, error)) (store.RecordResult, error) {
	if s.stepTx != nil {
		if err := s.stepTx(limit); err != nil {
			return store.RecordResult{}, err
		}
	}
	return s.faults.StepTx(ctx, ns, rec, limit, fn)
}

// Needs implements store.Reader.
func (s *scripted) Needs(ctx context.Context, ns string, id task.ID) ([]store.Need, error) {
	if s.needs != nil {
		if err := s.needs(); err != nil {
			return nil, err
		}
	}
	return s.faults.Store.Needs(ctx, ns, id)
}
